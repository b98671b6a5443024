//! How much one call may ask for.

/// How much one call may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The page size of a call that names none.
    pub default_list_limit: usize,
    /// The largest page.
    pub max_list_limit: usize,
    /// The largest attachment, in bytes.
    pub max_attachment_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { default_list_limit: 50, max_list_limit: 500, max_attachment_bytes: 52_428_800 }
    }
}

impl Limits {
    /// The page size for a call that asks for this one.
    pub fn page_size(&self, asked: Option<usize>) -> usize {
        asked.unwrap_or(self.default_list_limit).clamp(1, self.max_list_limit.max(1))
    }
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
