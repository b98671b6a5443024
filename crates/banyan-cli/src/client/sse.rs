//! Reading a stream of server-sent events.

use std::io::{self, BufRead};

/// A block of the stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Block {
    /// The position to come back with, when the block has one.
    pub(super) id: Option<String>,
    /// The type of the event.
    pub(super) event: String,
    /// What it says; none when the block only sets the position.
    pub(super) data: Option<String>,
}

/// Reads the next block, skipping comments. None at the end; what is cut off there does not count.
pub(super) fn read(input: &mut impl BufRead) -> io::Result<Option<Block>> {
    let mut block = Block::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        input.read_until(b'\n', &mut line)?;
        if line.pop() != Some(b'\n') {
            return Ok(None);
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if line.is_empty() {
            if block != Block::default() {
                return Ok(Some(block));
            }
            continue;
        }
        let text =
            std::str::from_utf8(&line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => block.id = Some(value.to_owned()),
            "event" => block.event = value.to_owned(),
            "data" => match &mut block.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => block.data = Some(value.to_owned()),
            },
            // A comment has no name before its colon; whatever else there is may be ignored.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Block, read};

    fn blocks(mut text: &[u8]) -> Vec<Block> {
        std::iter::from_fn(|| read(&mut text).unwrap_or_default()).collect()
    }

    fn block(id: Option<&str>, event: &str, data: Option<&str>) -> Block {
        Block { id: id.map(str::to_owned), event: event.to_owned(), data: data.map(str::to_owned) }
    }

    #[test]
    fn blocks_end_with_an_empty_line_and_comments_are_skipped() {
        let text = b": hello\n\nid: 1-0\nevent: session::created\ndata: {\"a\":\"b: c\"}\n\n:\n\nid:2-0\r\ndata:{}\r\n\r\n";
        assert_eq!(
            blocks(text),
            [block(Some("1-0"), "session::created", Some("{\"a\":\"b: c\"}")), block(Some("2-0"), "", Some("{}"))]
        );
    }

    #[test]
    fn a_position_may_stand_alone_and_data_may_have_several_lines() {
        assert_eq!(
            blocks(b"id: 7\n\nevent: e\ndata: a\ndata:\ndata:  b\n\n"),
            [block(Some("7"), "", None), block(None, "e", Some("a\n\n b"))]
        );
    }

    #[test]
    fn what_is_cut_off_does_not_count() {
        for text in ["id: 1\ndata: x\n", "id: 1\ndata: x", "id: 1\ndata: x\n\r"] {
            assert_eq!(blocks(text.as_bytes()), []);
        }
    }
}
