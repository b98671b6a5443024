//! Which names are safe: judged component by component, so that `v1..v2.diff` is one.

use super::error::{Error, Why};
use super::limits::NAME;
use super::manifest::safe_display;

/// Why a name is not a path within an archive, in words that follow the name.
pub(crate) fn flaw(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        return Some("is empty");
    }
    if path.len() > NAME {
        return Some("is too long");
    }
    if path.starts_with('/') {
        return Some("is absolute");
    }
    if path.contains('\\') {
        return Some("has a backslash");
    }
    if path.chars().any(char::is_control) {
        return Some("has a control character");
    }
    let mut first = path.bytes();
    if first.next().is_some_and(|byte| byte.is_ascii_alphabetic()) && first.next() == Some(b':') {
        return Some("starts with a drive letter");
    }
    // One slash at the end marks a directory.
    path.strip_suffix('/').unwrap_or(path).split('/').find_map(|component| match component {
        "" => Some("has an empty component"),
        "." => Some("has the component `.`"),
        ".." => Some("has the component `..`, which leads out of the archive"),
        _ => None,
    })
}

/// Refuses an archive for a name that is not safe.
pub(crate) fn check(what: &str, path: &str) -> Result<(), Error> {
    match flaw(path) {
        Some(flaw) => Err(Error::refused(Why::UnsafePath, format!("the {what} `{}` {flaw}", safe_display(path)))),
        None => Ok(()),
    }
}

/// Why a message may not name this as an attachment. Also refuses the archive's own papers.
pub(crate) fn source_flaw(path: &str) -> Option<&'static str> {
    flaw(path).or_else(|| {
        let papers = path == "META-INF" || path.to_ascii_uppercase().starts_with("META-INF/");
        papers.then_some("is one of the archive's own papers")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_names_when_they_are_judged_then_only_their_components_count() {
        for safe in ["prompt.md", "data/v1..v2.diff", "data/...", "a/b/", "session/attachments/ü.png", "..a/b.."]
        {
            assert_eq!(flaw(safe), None, "{safe}");
        }
        let long = "x".repeat(NAME + 1);
        for unsafe_one in [
            "",
            "/etc/evil",
            "../x",
            "a/../b",
            "a/..",
            "./a",
            "a//b",
            "a\\b",
            "C:/x",
            "c:x",
            "a\0b",
            "a\nb",
            "/",
            &long,
        ] {
            assert!(flaw(unsafe_one).is_some(), "{unsafe_one:?}");
        }
        assert!(source_flaw("META-INF/MANIFEST.MF").is_some());
        assert!(source_flaw("meta-inf/x").is_some());
        assert_eq!(source_flaw("session/attachments/a.png"), None);
    }
}
