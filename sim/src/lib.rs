//! Crashes, power cuts and full disks, simulated and real.
