//! How fast Banyan is, beside its peers, in one run.

fn main() {}
