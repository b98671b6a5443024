//! Large archives are read and written piece by piece.

use std::io::{Read, Seek, SeekFrom, Write};

use banyan_formats::opa::*;
use banyan_model::*;

use crate::given::*;

/// So many bytes that do not pack, made as they are read.
struct Noise {
    left: u64,
    state: u64,
}

impl Read for Noise {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let most = into.len().min(usize::try_from(self.left).unwrap());
        for eight in into[..most].chunks_mut(8) {
            self.state =
                self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            eight.copy_from_slice(&self.state.to_le_bytes()[..eight.len()]);
        }
        self.left -= most as u64;
        Ok(most)
    }
}

fn noise(size: u64) -> Noise {
    Noise { left: size, state: size }
}

fn digest(mut input: impl Read) -> String {
    use sha2::Digest;
    let mut sha = sha2::Sha256::new();
    std::io::copy(&mut input, &mut sha).unwrap();
    sha.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// How much memory the process has had at most, in bytes.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
}

/// Writes a session with one large attachment and many messages into a file, reads it back, and says how much memory that took.
fn through_a_file(attachment_size: u64, messages: u64) {
    let mut file = tempfile::tempfile().unwrap();
    let mut meta = attachment(AttachmentId::from("a_1"), "noise.bin", "application/x-noise", b"");
    (meta.size, meta.sha256) = (attachment_size, digest(noise(attachment_size)));
    let head = Head::of(&Session::new(Vec::new()).meta);
    let mut writer =
        Writer::new(std::io::BufWriter::new(&mut file), head, &Prompt::GoOn, Options::default()).unwrap();
    let block = ContentBlock::File(meta.file_block());
    writer.attachment(&meta, &mut noise(attachment_size)).unwrap();
    let message = |at: u64| {
        let text = ContentBlock::text(format!("message {at} {}", "words and words ".repeat(40)));
        let content = if at == 0 { vec![text, block.clone()] } else { vec![text] };
        AgentMessage::User(UserMessage { content, timestamp: i64::try_from(at).unwrap() })
    };
    let id = |at: u64| EntryId::from(format!("e_{at:032x}"));
    let history = |history: &mut HistoryWriter<'_>| {
        (0..messages)
            .try_for_each(|at| history.write(Entry { entry_id: &id(at), message: &message(at), origin: None }))
    };
    writer.history(history).unwrap();
    let (mut out, written) = writer.finish().unwrap();
    out.flush().unwrap();
    drop(out);
    assert_eq!((written.messages, written.attachments, written.missing), (messages, 1, 0));

    file.seek(SeekFrom::Start(0)).unwrap();
    let archive = Archive::open(file, &Policy::default()).unwrap();
    assert!(archive.extension().unwrap().is_true());
    let stored = archive.attachments().next().unwrap();
    assert_eq!(digest(archive.read(&stored.path).unwrap()), meta.sha256);
    let mut entries = archive.messages(|_| Some(meta.attachment_id.clone())).unwrap();
    for at in 0..messages {
        let entry = entries.next().unwrap().unwrap();
        assert_eq!((entry.entry_id, &entry.message), (id(at), &message(at)));
    }
    assert!(entries.next().is_none());
}

#[test]
fn an_archive_that_does_not_fit_its_share_of_memory_is_read_and_written() {
    through_a_file(48 << 20, 30_000);
    let Some(peak) = peak() else { return };
    assert!(peak < 200 << 20, "{} MiB", peak >> 20);
}

/// The same with two gigabytes: `cargo test -- --ignored two_gigabytes`, alone in its process.
#[test]
#[ignore = "takes a minute and two gigabytes of disk"]
fn two_gigabytes() {
    through_a_file(2 << 30, 400_000);
    let Some(peak) = peak() else { return };
    assert!(peak < 200 << 20, "{} MiB", peak >> 20);
}
