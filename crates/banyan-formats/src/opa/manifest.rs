//! `META-INF/MANIFEST.MF`: read in every spelling that is around, written in the one that everybody reads.

use super::error::{Error, Why};
use super::limits::NAME;

/// The most bytes that a line has.
const LINE: usize = 72;
/// The most bytes that a name has.
const ATTRIBUTE: usize = 70;

/// The main attributes of an archive, and what is said of single entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The main attributes, in their order.
    pub attributes: Vec<(String, String)>,
    pub(crate) sections: Vec<Section>,
}

/// One section of a manifest, or of a signature file, after the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    /// The entry that it is about; opa-archive writes one section without.
    pub name: Option<String>,
    pub attributes: Vec<(String, String)>,
    /// Where its lines are, without the blank line after them.
    pub lines: std::ops::Range<usize>,
    /// The same with the blank line.
    pub with_blank: std::ops::Range<usize>,
}

impl Manifest {
    /// The value of a main attribute, whatever case its name is in.
    pub fn get(&self, name: &str) -> Option<&str> {
        find(&self.attributes, name)
    }

    /// Reads a manifest, or a signature file, which has the same form.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        let mut sections = sections(bytes)?.into_iter();
        let mut main = Vec::new();
        if let Some(section) = sections.next() {
            // The first section is about the whole archive, even one that gives a name.
            main.extend(section.name.map(|name| ("Name".to_owned(), name)));
            main.extend(section.attributes);
        }
        Ok(Self { attributes: main, sections: sections.collect() })
    }

    /// The manifest as bytes: lines of at most 72 bytes, cut between characters, CRLF at their ends.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (name, value) in &self.attributes {
            write_attribute(&mut out, name, value);
        }
        out.extend(b"\r\n");
        for section in &self.sections {
            for (name, value) in section
                .name
                .iter()
                .map(|name| ("Name", name.as_str()))
                .chain(section.attributes.iter().map(|(name, value)| (name.as_str(), value.as_str())))
            {
                write_attribute(&mut out, name, value);
            }
            out.extend(b"\r\n");
        }
        out
    }

    /// Adds a main attribute, unless there is nothing to say. What could start another line becomes a blank.
    pub(crate) fn push(&mut self, name: &str, value: &str) {
        let value = one_line(value);
        if !value.is_empty() {
            self.attributes.push((name.to_owned(), value));
        }
    }

    /// Says the digest of an entry.
    pub(crate) fn push_digest(&mut self, entry: &str, digest: String) {
        self.sections.push(Section {
            name: Some(entry.to_owned()),
            attributes: vec![("SHA-256-Digest".to_owned(), digest)],
            lines: 0..0,
            with_blank: 0..0,
        });
    }
}

pub(crate) fn find<'a>(attributes: &'a [(String, String)], name: &str) -> Option<&'a str> {
    attributes.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// Whether this can be the name of an attribute.
pub(crate) fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    name.len() <= ATTRIBUTE
        && bytes.next().is_some_and(|first| first.is_ascii_alphanumeric())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// A value on one line, without what could be taken for the beginning of another.
pub(crate) fn one_line(value: &str) -> String {
    let value: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    value.trim().to_owned()
}

/// A name from an archive, fit to be shown.
pub(crate) fn safe_display(name: &str) -> String {
    let shown: String = name.chars().take(120).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if shown.len() < name.len() { format!("{shown}…") } else { shown }
}

fn write_attribute(out: &mut Vec<u8>, name: &str, value: &str) {
    let mut length = name.len() + 2;
    out.extend(name.bytes());
    out.extend(b": ");
    for c in value.chars() {
        if length + c.len_utf8() > LINE {
            out.extend(b"\r\n ");
            length = 1;
        }
        out.extend(c.encode_utf8(&mut [0; 4]).bytes());
        length += c.len_utf8();
    }
    out.extend(b"\r\n");
}

/// Where a line ends, and where the next one starts.
fn line_end(bytes: &[u8], at: usize) -> (usize, usize) {
    let Some(length) = memchr::memchr2(b'\r', b'\n', &bytes[at..]) else { return (bytes.len(), bytes.len()) };
    let end = at + length;
    (end, if bytes[end..].starts_with(b"\r\n") { end + 2 } else { end + 1 })
}

fn sections(bytes: &[u8]) -> Result<Vec<Section>, Error> {
    let mut found = Vec::new();
    let (mut lines, mut start, mut at) = (Vec::<Vec<u8>>::new(), 0, 0);
    while at < bytes.len() {
        let (end, next) = line_end(bytes, at);
        let line = &bytes[at..end];
        match line {
            [] => {
                if !lines.is_empty() || found.is_empty() {
                    found.push(section(&lines, start..at, next)?);
                }
                lines.clear();
                start = next;
            }
            // Lines are joined before they are decoded: some writers cut in the middle of a character.
            [b' ', rest @ ..] => match lines.last_mut() {
                Some(last) => last.extend(rest),
                None => return Err(malformed("a line continues nothing")),
            },
            _ => lines.push(line.to_vec()),
        }
        at = next;
    }
    if !lines.is_empty() || found.is_empty() {
        found.push(section(&lines, start..bytes.len(), bytes.len())?);
    }
    Ok(found)
}

fn section(lines: &[Vec<u8>], range: std::ops::Range<usize>, blank_end: usize) -> Result<Section, Error> {
    let mut section =
        Section { name: None, attributes: Vec::new(), with_blank: range.start..blank_end, lines: range };
    for line in lines {
        let line = std::str::from_utf8(line).map_err(|_| malformed("a line is not UTF-8"))?;
        let Some((name, value)) = line.split_once(':').filter(|(name, _)| is_name(name)) else {
            return Err(malformed(&format!("the line `{}` is not `Name: Value`", safe_display(line))));
        };
        let value = value.strip_prefix(' ').unwrap_or(value);
        if find(&section.attributes, name).is_some()
            || (section.name.is_some() && name.eq_ignore_ascii_case("name"))
        {
            return Err(Error::refused(Why::Duplicate, format!("the manifest has the attribute `{name}` twice")));
        }
        if name.eq_ignore_ascii_case("name") && section.attributes.is_empty() && section.name.is_none() {
            if value.len() > NAME {
                return Err(malformed("a section's name is too long"));
            }
            section.name = Some(value.to_owned());
        } else {
            section.attributes.push((name.to_owned(), value.to_owned()));
        }
    }
    Ok(section)
}

fn malformed(what: &str) -> Error {
    Error::refused(Why::Malformed, format!("the manifest cannot be read: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(text: &[u8]) -> Vec<(String, String)> {
        Manifest::read(text).unwrap().attributes
    }

    #[test]
    fn given_a_manifest_when_it_is_written_and_read_then_it_is_the_same_in_lines_of_72_bytes() {
        let mut manifest = Manifest::default();
        manifest.push("Manifest-Version", "1.0");
        manifest.push("Title", &"long title with ünïcode ✓ ".repeat(9));
        manifest.push("Description", "two\r\nInjected: lines");
        manifest.push("Empty", "");
        manifest.push_digest("data/a", "AAAA".to_owned());
        manifest.push_digest(&"b".repeat(100), "BBBB".to_owned());
        let bytes = manifest.write();
        assert!(bytes.split(|&byte| byte == b'\n').all(|line| line.len() <= LINE + 1));
        assert!(std::str::from_utf8(&bytes).unwrap().split("\r\n ").count() > 2);
        let read = Manifest::read(&bytes).unwrap();
        assert_eq!(read.attributes, manifest.attributes);
        assert_eq!(read.get("description"), Some("two  Injected: lines"));
        assert_eq!(read.get("Injected"), None);
        let named = |manifest: &Manifest| -> Vec<_> {
            manifest.sections.iter().map(|section| (section.name.clone(), section.attributes.clone())).collect()
        };
        assert_eq!(named(&read), named(&manifest));
    }

    #[test]
    fn given_other_spellings_when_they_are_read_then_they_say_the_same() {
        let expected = vec![("A".to_owned(), "é1".to_owned()), ("B".to_owned(), "2".to_owned())];
        for text in ["A: é1\r\nB: 2\r\n\r\n", "A: é1\nB: 2\n", "A: é1\rB: 2\r\r", "A: é\n 1\nB:2"] {
            assert_eq!(attributes(text.as_bytes()), expected, "{text:?}");
        }
        // Cut in the middle of a character.
        assert_eq!(attributes(b"A: \xc3\r\n \xa91\r\nB: 2\r\n"), expected);
    }

    #[test]
    fn given_what_is_no_manifest_when_it_is_read_then_it_is_refused() {
        for text in
            [" A: 1", "A", "A b: 1", ": 1", "A: 1\na: 2", "A: \u{0}".replace('\u{0}', "\u{fffd}x\nB").as_str()]
        {
            assert!(Manifest::read(text.as_bytes()).is_err(), "{text:?}");
        }
        assert!(Manifest::read(b"A: \xff\n").is_err());
    }

    #[test]
    fn given_sections_when_they_are_read_then_their_bytes_are_known() {
        let text = b"A: 1\r\n\r\nName: x\r\nD: 2\r\n\r\nName: y\r\nD: 3\r\n";
        let manifest = Manifest::read(text).unwrap();
        let lines: Vec<&[u8]> = manifest.sections.iter().map(|section| &text[section.lines.clone()]).collect();
        let blank: Vec<&[u8]> =
            manifest.sections.iter().map(|section| &text[section.with_blank.clone()]).collect();
        assert_eq!(lines, [&b"Name: x\r\nD: 2\r\n"[..], b"Name: y\r\nD: 3\r\n"]);
        assert_eq!(blank, [&b"Name: x\r\nD: 2\r\n\r\n"[..], b"Name: y\r\nD: 3\r\n"]);
    }
}
