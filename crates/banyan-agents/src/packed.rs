//! Files that an agent has packed to save room.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use ruzstd::decoding::StreamingDecoder;

/// No more than this is unpacked: a small file can say that it is endless.
const LARGEST: u64 = 64 << 30;

/// Opens a file to be read. A packed one is unpacked into a file without a name first, so that it can be read from any place on;
/// of a damaged one that is as much as could be unpacked.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    if path.extension().is_none_or(|extension| extension != "zst") {
        return Ok(file);
    }
    let mut plain = tempfile::tempfile()?;
    let packed = StreamingDecoder::new(BufReader::new(file)).map_err(io::Error::other)?;
    if let Err(error) = io::copy(&mut packed.take(LARGEST), &mut plain)
        && plain.stream_position()? == 0
    {
        return Err(error);
    }
    plain.seek(SeekFrom::Start(0))?;
    Ok(plain)
}
