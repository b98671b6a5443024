//! How much one call may ask for.

use std::io::{self, Write};

use banyan_model::{Error, Object};
use serde::Serialize;

use crate::record::{MetaPut, Record};

/// How much one call may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The page size of a call that names none.
    pub default_list_limit: usize,
    /// The largest page.
    pub max_list_limit: usize,
    /// The largest attachment, in bytes.
    pub max_attachment_bytes: u64,
    /// The most bytes that one call may give a session as metadata, counted as JSON, with title, description and status reason.
    pub max_metadata_bytes: usize,
}

/// The limit on metadata unless another is set.
pub const DEFAULT_METADATA_BYTES: usize = 1 << 20;

impl Default for Limits {
    fn default() -> Self {
        Self {
            default_list_limit: 50,
            max_list_limit: 500,
            max_attachment_bytes: 52_428_800,
            max_metadata_bytes: DEFAULT_METADATA_BYTES,
        }
    }
}

impl Limits {
    /// The page size for a call that asks for this one.
    pub fn page_size(&self, asked: Option<usize>) -> usize {
        asked.unwrap_or(self.default_list_limit).clamp(1, self.max_list_limit.max(1))
    }

    /// Refuses records that give a session more metadata than is allowed. `known` is what it has: putting the same again is no
    /// reason to refuse.
    pub fn check_metadata(&self, records: &[Record], known: Option<&Object>) -> Result<(), Error> {
        for record in records {
            let (texts, metadata) = match record {
                Record::Created(created) => {
                    ([Some(&created.title), Some(&created.description), None], created.metadata.as_ref())
                }
                Record::MetaSet(set) => {
                    ([set.title.as_ref(), set.description.as_ref(), None], set.metadata.as_ref())
                }
                Record::MetaPut(MetaPut { meta }) => (
                    [Some(&meta.title), Some(&meta.description), meta.status_reason.as_ref()],
                    meta.metadata.as_ref().filter(|metadata| known != Some(*metadata)),
                ),
                Record::StatusSet(set) => ([set.reason.as_ref(), None, None], None),
                _ => continue,
            };
            let texts: usize = texts.into_iter().flatten().map(String::len).sum();
            let bytes = texts.saturating_add(metadata.map_or(0, json_len));
            if bytes > self.max_metadata_bytes {
                return Err(Error::too_large(format!(
                    "`metadata`, with title, description and status reason, has {bytes} bytes, and {} are allowed; keep what is \
                     large in an entry or an attachment",
                    self.max_metadata_bytes
                )));
            }
        }
        Ok(())
    }
}

/// How many bytes a value has as JSON.
pub(crate) fn json_len(value: &impl Serialize) -> usize {
    struct Counter(usize);

    impl Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut counter = Counter(0);
    // Counting does not fail, and what was read as JSON can be written as JSON.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_sizes_are_at_least_one_and_at_most_the_maximum() {
        let limits = Limits::default();
        assert_eq!([None, Some(0), Some(7), Some(9_999)].map(|asked| limits.page_size(asked)), [50, 1, 7, 500]);
        let odd = Limits { default_list_limit: 9, max_list_limit: 0, ..limits };
        assert_eq!(odd.page_size(None), 1);
    }
}
