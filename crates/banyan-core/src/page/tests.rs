//! Which entries reads answer with.
