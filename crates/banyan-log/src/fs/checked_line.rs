//! A small state as one line of JSON that ends with its checksum: `{…,"crc":"<8 hex>"}`. The checksum is CRC-32C over the
//! bytes before `,"crc":`.

use serde::Serialize;
use serde::de::DeserializeOwned;

const CRC: &[u8] = b",\"crc\":\"";

/// The line for a value that is a JSON object, with its line feed.
pub(crate) fn encode(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec(value).unwrap_or_default();
    text.pop();
    let crc = crc32c::crc32c(&text);
    text.extend_from_slice(CRC);
    text.extend_from_slice(format!("{crc:08x}\"}}\n").as_bytes());
    text
}

/// The value of one line, with its line feed. `None` if the checksum differs or the value has another form.
pub(crate) fn decode<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    let covered = covered(line)?;
    serde_json::from_slice(&[covered, b"}"].concat()).ok()
}

fn covered(line: &[u8]) -> Option<&[u8]> {
    let (covered, rest) = line.split_at(memchr::memmem::rfind(line, CRC)?);
    let digits = rest.strip_prefix(CRC)?.strip_suffix(b"\"}\n")?;
    (digits == format!("{:08x}", crc32c::crc32c(covered)).as_bytes()).then_some(covered)
}
