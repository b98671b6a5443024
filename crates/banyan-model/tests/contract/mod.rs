//! Compares JSON Schemas by what they allow, whatever generator wrote them.

pub(crate) mod compare;
pub(crate) mod shape;
