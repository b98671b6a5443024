//! A JSON object on one line that ends with its checksum: `{…,"crc":"<8 hex>"}`. The checksum is CRC-32C over the bytes
//! before `,"crc":`, as in the lines of session files.

use serde::Serialize;
use serde::de::DeserializeOwned;

const CRC: &[u8] = b",\"crc\":\"";

/// The line of a value, with its line feed. The value must be a JSON object that is not empty.
pub(super) fn encode(value: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = serde_json::to_vec(value)?;
    line.pop();
    let crc = crc32c::crc32c(&line);
    line.extend_from_slice(CRC);
    line.extend_from_slice(format!("{crc:08x}\"}}\n").as_bytes());
    Ok(line)
}

/// The value of a line, given with its line feed, or why the line is refused. A line must be exactly what [`encode`] makes of its
/// value, so that nothing in it goes unread.
pub(super) fn decode<T: Serialize + DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    let covered = covered(line)?;
    let value: T = serde_json::from_slice(&[covered, b"}"].concat()).map_err(|error| reason(&error))?;
    match encode(&value) {
        Ok(again) if again == line => Ok(value),
        _ => Err("it is not in the form that this build writes".to_owned()),
    }
}

/// The checksum of a line that [`decode`] accepts.
pub(super) fn checksum(line: &[u8]) -> Option<&str> {
    let at = line.len().checked_sub(b"00000000\"}\n".len())?;
    std::str::from_utf8(line.get(at..at + 8)?).ok()
}

/// What serde says, without a place in a line that the reader cannot see.
pub(super) fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

fn covered(line: &[u8]) -> Result<&[u8], String> {
    let line = line.strip_suffix(b"\n").ok_or("its end is missing")?;
    let at = line.windows(CRC.len()).rposition(|part| part == CRC).ok_or("it has no checksum")?;
    let (covered, rest) = line.split_at(at);
    let digits = rest.strip_prefix(CRC).and_then(|rest| rest.strip_suffix(b"\"}"));
    if digits != Some(format!("{:08x}", crc32c::crc32c(covered)).as_bytes()) {
        return Err("its checksum differs".to_owned());
    }
    Ok(covered)
}
