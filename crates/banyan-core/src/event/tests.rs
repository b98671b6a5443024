//! What subscribers are told about each record.
