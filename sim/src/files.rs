//! What the files say by themselves, without the code that wrote them.

use std::collections::BTreeSet;

use serde_json::Value;

/// Checks the files of a store that was closed, by path: every line is whole, is numbered without a gap and has
/// the checksum of its bytes; every blob that is needed is there. Gives the blobs that no line names.
pub fn check(files: &[(String, Vec<u8>)]) -> Vec<String> {
    let mut named = BTreeSet::new();
    let mut needed = BTreeSet::new();
    for (path, bytes) in files.iter().filter(|(path, _)| path.ends_with(".jsonl")) {
        assert!(bytes.last().is_none_or(|byte| *byte == b'\n'), "{path} ends with a whole line");
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).enumerate();
        let records: Vec<Value> = lines.map(|(at, line)| check_line(path, at, line)).collect();
        named.extend(records.iter().flat_map(blobs_of));
        let detached: Vec<&Value> = records.iter().filter(|it| it["type"] == "detached").collect();
        let gone =
            |it: &&Value| detached.iter().any(|gone| gone["attachment_id"] == it["attachment"]["attachment_id"]);
        needed.extend(records.iter().filter(|it| !gone(it)).flat_map(blobs_of));
    }
    let blobs = files.iter().filter(|(path, _)| path.contains("/blobs/"));
    let stored: BTreeSet<String> = blobs.map(|(path, _)| path.rsplit('/').next().unwrap().to_owned()).collect();
    assert_eq!(needed.difference(&stored).collect::<Vec<_>>(), Vec::<&String>::new(), "blobs that are missing");
    stored.difference(&named).cloned().collect()
}

fn check_line(path: &str, at: usize, line: &[u8]) -> Value {
    let shown = || format!("{path}, line {}: {}", at + 1, String::from_utf8_lossy(line));
    let record: Value = serde_json::from_slice(line).unwrap_or_else(|error| panic!("{error}: {}", shown()));
    assert_eq!(record["seq"], serde_json::json!(at), "{}", shown());
    let key = b",\"crc\":";
    let end = line.windows(key.len()).rposition(|window| window == key).unwrap_or_else(|| panic!("{}", shown()));
    assert_eq!(record["crc"], format!("{:08x}", crc32c::crc32c(&line[..end])), "{}", shown());
    record
}

fn blobs_of(record: &Value) -> Vec<String> {
    let refs = record["blobs"].as_array().into_iter().flatten().map(|blob| &blob[1]);
    refs.chain([&record["blob"]]).filter_map(|hash| hash.as_str().map(str::to_owned)).collect()
}
