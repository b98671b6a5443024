//! Archives that somebody made to do harm are refused whole, and say why.

use banyan_formats::opa::*;
use serde_json::json;

use crate::given::*;

fn why(bytes: &[u8]) -> Why {
    refusal(bytes).why
}

#[test]
fn names_that_lead_outside_or_nowhere_are_refused() {
    for name in ["../x", "a/../../x", "/x", "C:/x", "a\\b", "a//b", "./a", "a\nb", "a\0b", ".."] {
        assert_eq!(why(&archive(&[(name, b"x")])), Why::UnsafePath, "{name:?}");
    }
    for name in ["data/v1..v2.diff", "..data/x", "data/a b.txt", "data/ü.txt", "data/"] {
        open(&archive(&[(name, b"")])).unwrap();
    }
}

#[test]
fn names_that_are_not_utf8_are_refused() {
    let mut bytes = archive(&[("data/AAAA", b"x")]);
    for at in 0..bytes.len() - 4 {
        if &bytes[at..at + 4] == b"AAAA" {
            bytes[at] = 0xff;
        }
    }
    assert_eq!(why(&bytes), Why::UnsafePath);
}

#[test]
fn a_name_that_differs_between_directory_and_entry_is_refused() {
    let mut bytes = archive(&[("data/AAAA", b"x")]);
    let last = bytes.windows(4).rposition(|four| four == b"AAAA").unwrap();
    bytes[last] = b'B';
    assert_eq!(why(&bytes), Why::NotAnArchive);
}

#[test]
fn values_of_the_manifest_that_lead_outside_are_refused() {
    for attribute in [
        "Prompt-File: ../prompt.md",
        "Session-File: /etc/passwd",
        "Data-Root: data/../..",
        "Prompt-File: META-INF/x",
    ] {
        let manifest = format!("Manifest-Version: 1.0\r\nOPA-Version: 0.1\r\n{attribute}\r\n\r\n");
        let bytes = zip(&[("META-INF/MANIFEST.MF", manifest.as_bytes()), ("prompt.md", b"x")]);
        assert_eq!(why(&bytes), Why::UnsafePath, "{attribute}");
    }
}

#[test]
fn sources_that_lead_outside_are_refused_in_every_dialect() {
    for block in [
        json!({"type": "image", "source": {"type": "attachment", "path": "../x"}}),
        json!({"type": "image", "path": "/etc/passwd", "media_type": "image/png"}),
        json!({"type": "file", "source": {"path": "META-INF/MANIFEST.MF"}}),
        json!({"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image", "path": "a\\b"}]}),
    ] {
        let bytes = with_messages(&json!([{"role": "user", "content": [block]}]));
        assert_eq!(why(&bytes), Why::UnsafePath, "{block}");
    }
    // What a tool is called with is not a source, and may name any path.
    let call = json!([{"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n",
        "input": {"path": "../../etc/passwd", "source": {"path": "/x"}}}]}]);
    open(&with_messages(&call)).unwrap();
}

#[test]
fn paths_of_the_index_that_lead_outside_are_refused() {
    let index = json!({"assets": [{"path": "../x"}]}).to_string();
    assert_eq!(why(&archive(&[("data/INDEX.json", index.as_bytes())])), Why::UnsafePath);
    let bytes = archive(&[("data/INDEX.json", b"[{\"path\":\"data/none\"}]")]);
    assert_eq!(open(&bytes).unwrap().remarks().len(), 1);
}

#[test]
fn what_is_there_twice_is_refused() {
    assert_eq!(why(&archive(&[("prompt.md", b"other")])), Why::Duplicate);
    let manifest = format!("{}Title: a\r\ntitle: b\r\n", MANIFEST.trim_end_matches("\r\n").to_owned() + "\r\n");
    assert_eq!(why(&zip(&[("META-INF/MANIFEST.MF", manifest.as_bytes()), ("prompt.md", b"x")])), Why::Duplicate);
    let history = br#"{"opa_version":"0.1","messages":[],"messages":[{"role":"user","content":"x"}]}"#;
    assert_eq!(why(&archive(&[("session/history.json", history)])), Why::Duplicate);
}

/// Finds the directory's record of an entry and changes it.
fn with_record(bytes: &[u8], name: &str, change: impl Fn(&mut [u8])) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let at = bytes
        .windows(46 + name.len())
        .rposition(|record| record.starts_with(b"PK\x01\x02") && record.ends_with(name.as_bytes()))
        .unwrap();
    change(&mut bytes[at..]);
    bytes
}

#[test]
fn links_and_devices_are_refused() {
    let bytes = archive(&[("data/link", b"/etc/passwd")]);
    for mode in [0o120_777_u32, 0o060_644, 0o020_644, 0o010_644, 0o140_644] {
        let changed = with_record(&bytes, "data/link", |record| {
            record[5] = 3;
            record[38..42].copy_from_slice(&(mode << 16).to_le_bytes());
        });
        assert_eq!(why(&changed), Why::NotAFile, "{mode:o}");
    }
    let fine = with_record(&bytes, "data/link", |record| {
        record[5] = 3;
        record[38..42].copy_from_slice(&(0o100_644_u32 << 16).to_le_bytes());
    });
    open(&fine).unwrap();
}

#[test]
fn encryption_and_other_packing_are_refused() {
    let bytes = archive(&[("data/x", b"x")]);
    assert_eq!(why(&with_record(&bytes, "data/x", |record| record[8] |= 1)), Why::Unsupported);
    assert_eq!(why(&with_record(&bytes, "data/x", |record| record[10] = 12)), Why::Unsupported);
}

#[test]
fn sizes_and_checksums_that_lie_are_refused() {
    let bytes = archive(&[("data/x", b"some content")]);
    assert_eq!(why(&with_record(&bytes, "data/x", |record| record[24] -= 1)), Why::Damaged);
    assert_eq!(why(&with_record(&bytes, "data/x", |record| record[24] += 1)), Why::Damaged);
    assert_eq!(why(&with_record(&bytes, "data/x", |record| record[16] ^= 1)), Why::Damaged);
    // The packed size reaches into what follows.
    assert_eq!(why(&with_record(&bytes, "data/x", |record| record[21] = 255)), Why::NotAnArchive);
}

#[test]
fn entries_that_share_their_bytes_are_refused() {
    let bytes = archive(&[("data/a", b"the same"), ("data/b", b"the same")]);
    let first = bytes.windows(6).position(|name| name == b"data/a").unwrap() - 30;
    let changed = with_record(&bytes, "data/b", |record| {
        record[42..46].copy_from_slice(&u32::try_from(first).unwrap().to_le_bytes());
    });
    assert_eq!(why(&changed), Why::NotAnArchive);
}

#[test]
fn bombs_are_refused() {
    let zeros = vec![0; 8 << 20];
    assert_eq!(why(&archive(&[("data/zeros", &zeros)])), Why::TooLarge);
    let limits = Limits { entries: 3, ..Limits::default() };
    let many = archive(&[("data/a", b""), ("data/b", b"")]);
    let refused = Archive::open(std::io::Cursor::new(&many), &Policy { limits, bare_signatures: false });
    assert_eq!(refused.unwrap_err().refusal().unwrap().why, Why::TooLarge);
    let deep = format!("{{\"messages\":[{}{}]}}", "[".repeat(5000), "]".repeat(5000));
    assert_eq!(why(&archive(&[("session/history.json", deep.as_bytes())])), Why::TooLarge);
}

#[test]
fn missing_parts_are_refused() {
    assert_eq!(why(&zip(&[("prompt.md", b"x")])), Why::MissingPart);
    assert_eq!(why(&zip(&[("META-INF/MANIFEST.MF", MANIFEST.as_bytes())])), Why::MissingPart);
    for manifest in ["Manifest-Version: 1.0\r\n", "OPA-Version: 0.1\r\n", "", "\r\n"] {
        let bytes = zip(&[("META-INF/MANIFEST.MF", manifest.as_bytes()), ("prompt.md", b"x")]);
        assert_eq!(why(&bytes), Why::MissingPart, "{manifest:?}");
    }
    let manifest = "Manifest-Version: 1.0\r\nOPA-Version: 0.1\r\nSession-File: session/history.json\r\n";
    assert_eq!(why(&zip(&[("META-INF/MANIFEST.MF", manifest.as_bytes()), ("prompt.md", b"x")])), Why::MissingPart);
    assert_eq!(why(&archive(&[("session/history.json", b"{\"opa_version\":\"0.1\"}")])), Why::MissingPart);
}

#[test]
fn what_is_not_what_it_must_be_is_refused() {
    for history in [
        "",
        "null",
        "[]",
        "{\"messages\":3}",
        "{\"messages\":[{]}",
        "{\"messages\":[{\"a\":}]}",
        "{\"messages\":[]",
    ] {
        assert_eq!(why(&archive(&[("session/history.json", history.as_bytes())])), Why::Malformed, "{history}");
    }
    assert_eq!(why(&archive(&[("session/history.json", b"{\"messages\":[\"\xff\"]}")])), Why::Malformed);
    assert_eq!(why(b"not a zip file"), Why::NotAnArchive);
    assert_eq!(why(b""), Why::NotAnArchive);
}

#[test]
fn an_archive_that_is_cut_anywhere_or_goes_on_is_refused() {
    let bytes = sample("spec_full.opa");
    for length in (0..bytes.len()).step_by(97) {
        assert!(open(&bytes[..length]).is_err(), "{length}");
    }
    let mut longer = bytes;
    longer.extend(b"more");
    assert!(open(&longer).is_err());
}

#[test]
fn signatures_that_lost_a_half_are_refused() {
    for name in ["META-INF/SIGNATURE.SF", "META-INF/SIGNATURE.RSA"] {
        assert_eq!(why(&archive(&[(name, b"Signature-Version: 1.0\r\n")])), Why::Signature, "{name}");
    }
}
