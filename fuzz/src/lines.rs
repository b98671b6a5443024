//! Lines of a session's log.

/// How a line of ours begins.
const OURS: &[u8] = b"{\"schema_version\":";

/// What stands before the checksum, and what after.
const KEY: &[u8] = b",\"crc\":\"";
const END: &[u8] = b"\"}";

/// The line, without its line feed, with a checksum that holds if it is one of ours and has none at all.
/// A checksum that is there stays as it is, so that damage is tried as well.
pub fn sealed(line: &[u8]) -> Vec<u8> {
    let mut line = line.to_vec();
    if line.starts_with(OURS) && !has_checksum(&line) {
        let crc = crc32c::crc32c(&line);
        line.extend_from_slice(KEY);
        line.extend_from_slice(format!("{crc:08x}").as_bytes());
        line.extend_from_slice(END);
    }
    line
}

/// A file whose lines are sealed. A last line without a line feed stays open.
pub fn sealed_file(file: &[u8]) -> Vec<u8> {
    let mut sealed_lines = Vec::with_capacity(file.len());
    for line in file.split_inclusive(|byte| *byte == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(line) => {
                sealed_lines.extend_from_slice(&sealed(line));
                sealed_lines.push(b'\n');
            }
            None => sealed_lines.extend_from_slice(line),
        }
    }
    sealed_lines
}

fn has_checksum(line: &[u8]) -> bool {
    let tail = line.len().checked_sub(KEY.len() + 8 + END.len()).map(|at| &line[at..]);
    tail.is_some_and(|tail| tail.starts_with(KEY) && tail.ends_with(END))
}
