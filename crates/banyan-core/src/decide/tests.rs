//! What each call writes and answers, and in which order it refuses.
