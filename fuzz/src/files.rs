//! Files of the log beside the sessions' own: segments and journals, framed as the log frames them.
//!
//! The input is cut into pieces, each begun by its length in two bytes (little-endian). A piece becomes the body
//! of one frame or entry, whose length and checksum are then right.

/// A segment of the write-ahead log. The input begins with the first commit's number, in eight bytes.
pub fn segment(id: u64, input: &[u8]) -> Vec<u8> {
    let (first_commit, pieces) = input.split_at(input.len().min(8));
    let mut header = [0; 64];
    header[..8].copy_from_slice(b"BANYANW1");
    header[8..16].copy_from_slice(&id.to_le_bytes());
    header[16..16 + first_commit.len()].copy_from_slice(first_commit);
    let crc = crc32c::crc32c(&header[..24]);
    header[24..28].copy_from_slice(&crc.to_le_bytes());
    framed(header.to_vec(), pieces, crc32c::crc32c(&id.to_le_bytes()))
}

/// A file of the journal.
pub fn journal(input: &[u8]) -> Vec<u8> {
    framed(Vec::new(), input, 0)
}

fn framed(mut file: Vec<u8>, input: &[u8], seed: u32) -> Vec<u8> {
    let mut rest = input;
    while let Some((len, after)) = rest.split_first_chunk() {
        let (body, after) = after.split_at(after.len().min(u16::from_le_bytes(*len).into()));
        rest = after;
        file.extend_from_slice(&(body.len() as u32).to_le_bytes());
        file.extend_from_slice(&crc32c::crc32c_append(seed, body).to_le_bytes());
        file.extend_from_slice(body);
    }
    file.extend_from_slice(rest);
    file
}
