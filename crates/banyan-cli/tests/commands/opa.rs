//! OPA archives through the command: out and in again, signed, changed on the way, of others, hostile, over a server.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Place, assistant, user};
use serde_json::{Value, json};

fn sample(name: &str) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../banyan-formats/tests/fixtures/opa");
    dir.join(name).to_str().unwrap().to_owned()
}

/// A session with branches, a revision, a custom entry, an attachment that is shown and one that is not.
fn furnished() -> Place {
    let place = Place::new();
    let entries = place.session("alpha", "The first", &["root", "first try"]);
    let put = |name: &str, data: &str| {
        let request = json!({"session_id": "alpha", "name": name, "mime": "text/plain", "data": data});
        place.call("session::put-attachment", &request)
    };
    let shown = put("shown.txt", "c2hvd24=")["attachment"].clone();
    put("aside.txt", "YXNpZGU=");
    let file = json!({"type": "file", "attachment_id": shown["attachment_id"], "name": "shown.txt",
        "mime": "text/plain", "size": 5});
    let message = json!({"role": "user", "content": [{"type": "text", "text": "look"}, file], "timestamp": 5});
    place.call("session::append", &json!({"session_id": "alpha", "message": message}));
    let call = json!([{"type": "function_call", "id": "c1", "function_id": "read", "arguments": {"p": 1.50}}]);
    let asks = place.call("session::append", &json!({"session_id": "alpha", "message": assistant(call)}));
    place.call("session::append", &json!({"session_id": "alpha", "custom": {"custom_type": "note", "data": 1}}));
    let last = place.call("session::append", &json!({"session_id": "alpha", "message": user("and now?")}));
    let other = json!({"session_id": "alpha", "message": user("other"), "parent_id": entries[0]});
    place.call("session::append", &other);
    let revised = json!({"session_id": "alpha", "entry_id": entries[1], "content": [{"type": "text", "text": "second try"}]});
    place.call("session::update-message", &revised);
    assert_ne!(asks["entry_id"], last["entry_id"]);
    place.call("session::set-active-leaf", &json!({"session_id": "alpha", "entry_id": last["entry_id"]}));
    place
}

/// Everything that callers can see of a session.
fn everything(place: &Place, id: &str) -> Value {
    let of = json!({"session_id": id});
    let tree = place.call("session::tree", &of);
    let entry = |node: &Value| {
        place.call("session::get-message", &json!({"session_id": id, "entry_id": node["entry_id"]}))
    };
    let entries: Vec<Value> = tree["entries"].as_array().unwrap().iter().map(entry).collect();
    let attachments = place.call("session::list-attachments", &of);
    let content = |attachment: &Value| {
        let request = json!({"session_id": id, "attachment_id": attachment["attachment_id"]});
        place.call("session::get-attachment", &request)
    };
    let contents: Vec<Value> = attachments["attachments"].as_array().unwrap().iter().map(content).collect();
    json!({"tree": tree, "entries": entries, "contents": contents, "meta": place.call("session::get", &of)})
}

/// The messages of the active path.
fn path_of(place: &Place, id: &str) -> Vec<Value> {
    let page = place.call("session::messages", &json!({"session_id": id}));
    page["messages"].as_array().unwrap().iter().map(|item| item["message"].clone()).collect()
}

fn exported(place: &Place, dir: &Path, more: &[&str]) -> (PathBuf, String) {
    let file = dir.join("alpha.opa");
    let words = ["export", "alpha", "--to", "opa", "--force", "-o", file.to_str().unwrap()];
    let said = place.run(&[&words, more].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    (file, said.err)
}

fn imported(place: &Place, file: &Path) -> Value {
    place.run(&["import", file.to_str().unwrap(), "--json"]).ok().json_lines().remove(0)["sessions"][0].clone()
}

#[test]
fn given_a_session_when_it_travels_as_an_archive_then_it_is_the_same_and_once_is_enough() {
    let (here, there) = (furnished(), Place::new());
    let dir = tempfile::tempdir().unwrap();
    let (file, said) = exported(&here, dir.path(), &[]);
    assert!(said.contains("4 messages, 2 attachments, the session's own records"), "{said}");
    let dry = there.run(&["import", "--dry-run", file.to_str().unwrap()]);
    assert_eq!((dry.code, dry.err.as_str()), (Some(0), "Nothing was changed.\n"));
    assert!(dry.out.contains("alpha “The first” (new)\n  7 entries added, 2 attachments"), "{}", dry.out);
    assert!(dry.out.contains("signature: none"), "{}", dry.out);
    assert!(!there.dir().exists(), "a dry run makes no directory");
    let summary = imported(&there, &file);
    assert_eq!((&summary["added"], &summary["attachments"]), (&json!(7), &json!(2)), "{summary}");
    assert_eq!((&summary["invented"], &summary["not_placed"]), (&json!([]), &json!([])));
    assert_eq!(everything(&there, "alpha"), everything(&here, "alpha"));
    let again = imported(&there, &file);
    assert_eq!((&again["added"], &again["unchanged"], &again["attachments"]), (&json!(0), &json!(7), &json!(0)));
    assert_eq!(everything(&there, "alpha"), everything(&here, "alpha"));
    // An equal session makes an equal archive.
    let first = fs::read(&file).unwrap();
    let (file, _) = exported(&there, dir.path(), &[]);
    assert!(fs::read(&file).unwrap() == first);
}

#[test]
fn given_a_plain_archive_when_it_comes_back_then_the_path_is_the_same_and_nothing_else_is_told() {
    let (here, there) = (furnished(), Place::new());
    let dir = tempfile::tempdir().unwrap();
    let (file, said) = exported(&here, dir.path(), &["--plain"]);
    assert!(said.contains("1 attachment, no records of the session's own (plain)"), "{said}");
    let summary = imported(&there, &file);
    assert_eq!((&summary["added"], &summary["attachments"]), (&json!(5), &json!(1)), "{summary}");
    let id = summary["session_id"].as_str().unwrap();
    let (mut told, said) = (path_of(&there, id), path_of(&here, "alpha"));
    // The attachment has another id there, and nothing else differs.
    told[2]["content"][1]["attachment_id"] = said[2]["content"][1]["attachment_id"].clone();
    assert_eq!(told, said);
    assert_eq!(imported(&there, &file)["unchanged"], 5);
    assert_eq!(path_of(&there, id).len(), 5);
}

#[test]
fn given_a_key_when_a_session_is_exported_then_the_archive_is_signed_and_verified() {
    let place = furnished();
    let dir = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["banyan.test".to_owned()]).unwrap();
    let (key, cert) = (dir.path().join("key.pem"), dir.path().join("cert.pem"));
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    fs::write(&cert, made.cert.pem()).unwrap();
    let words = ["--key", key.to_str().unwrap(), "--cert", cert.to_str().unwrap()];
    let (file, said) = exported(&place, dir.path(), &words);
    assert!(said.contains("Signed by "), "{said}");
    let name = file.to_str().unwrap();
    let verified = place.run(&["verify", name, "--json"]).ok().json_lines().remove(0);
    assert_eq!((&verified["coverage"], &verified["form"]), (&json!("full"), &json!("pkcs7")));
    let there = Place::new();
    assert_eq!(imported(&there, &file)["signature"]["coverage"], "full");
    assert_eq!(everything(&there, "alpha"), everything(&place, "alpha"));
    let without = place.run(&["export", "alpha", "--to", "opa", "--cert", words[3], "--json"]);
    assert_eq!(without.refusal(), (Some(2), "cli/usage".to_owned()));
    let html = place.run(&["export", "alpha", "--to", "html", "--plain", "--json"]);
    assert_eq!(html.refusal(), (Some(1), "session/invalid_request".to_owned()));
}

#[test]
fn given_archives_of_others_when_they_are_verified_then_the_coverage_is_told() {
    let place = Place::new();
    let verify = |name: &str| place.run(&["verify", &sample(name), "--json"]);
    for (name, coverage, code) in [
        ("js_signed_rsa.opa", "full", 0),
        ("php_signed_rsa.opa", "full", 0),
        ("java_signed_rsa.opa", "partial", 0),
        ("py_plain.opa", "none", 0),
        ("js_signed_rsa_TAMPERED_prompt.opa", "broken", 1),
        ("hostile_signed_md5_digests.opa", "broken", 1),
    ] {
        let said = verify(name);
        assert_eq!((said.code, &said.json_lines()[0]["coverage"]), (Some(code), &json!(coverage)), "{name}");
    }
    let partial = verify("hostile_signed_extra_unsigned_entry.opa").json_lines().remove(0);
    assert_eq!(partial["uncovered"], json!(["data/injected.txt"]));
    assert_eq!(verify("hostile_dotdot.opa").refusal(), (Some(1), "opa/refused".to_owned()));
    let said = place.run(&["verify", &sample("js_signed_rsa_TAMPERED_prompt.opa")]);
    assert!(said.out.starts_with("broken: ") && said.out.contains("`prompt.md`"), "{}", said.out);
    assert!(!place.dir().exists(), "verifying a file opens no data directory");
}

#[test]
fn given_archives_of_others_when_they_are_imported_then_they_are_told_and_the_same_twice() {
    for (name, entries) in [
        ("py_session_spec_shape.opa", 6),
        ("java_full.opa", 6),
        ("js_full.opa", 6),
        ("php_full.opa", 5),
        ("spec_lf_manifest_ruby_style.opa", 1),
        ("spec_full.opa", 9),
        ("py_data_index.opa", 1),
    ] {
        let place = Place::new();
        let file = PathBuf::from(sample(name));
        let first = imported(&place, &file);
        assert_eq!((&first["created"], &first["added"]), (&json!(true), &json!(entries)), "{name}: {first}");
        let id = first["session_id"].as_str().unwrap();
        let before = everything(&place, id);
        let again = imported(&place, &file);
        assert_eq!((&again["added"], &again["updated"], &again["attachments"]), (&json!(0), &json!(0), &json!(0)));
        assert_eq!(everything(&place, id), before, "{name}");
    }
}

#[test]
fn given_two_archives_of_one_session_when_both_are_imported_then_no_message_is_lost() {
    let place = Place::new();
    let (first, second) = (PathBuf::from(sample("js_full.opa")), PathBuf::from(sample("spec_full.opa")));
    let id = imported(&place, &first)["session_id"].as_str().unwrap().to_owned();
    let before = path_of(&place, &id);
    let other = imported(&place, &second);
    assert_eq!((other["session_id"].as_str().unwrap(), &other["created"]), (&*id, &json!(false)));
    assert_eq!(other["added"].as_u64().unwrap() + other["unchanged"].as_u64().unwrap(), 9, "{other}");
    assert_eq!(path_of(&place, &id), before, "the path stays where it was");
    let all = everything(&place, &id);
    let alone = Place::new();
    imported(&alone, &second);
    for message in path_of(&alone, &id) {
        let entries = all["entries"].as_array().unwrap();
        assert!(entries.iter().any(|entry| entry["entry"]["message"] == message), "{message}");
    }
    imported(&place, &second);
    imported(&place, &first);
    assert_eq!(everything(&place, &id), all, "again changes nothing");
}

#[test]
fn given_hostile_archives_when_they_are_imported_then_they_are_refused_whole_with_the_reason() {
    let place = Place::new();
    for (name, reason) in [
        ("hostile_absolute.opa", "(unsafe_path)"),
        ("hostile_attachment_traversal.opa", "(unsafe_path)"),
        ("hostile_dotdot.opa", "(unsafe_path)"),
        ("hostile_duplicate_prompt.opa", "(duplicate)"),
        ("hostile_no_manifest.opa", "(missing_part)"),
        ("hostile_not_utf8_prompt.opa", "(malformed)"),
        ("hostile_signed_md5_digests.opa", "(signature)"),
        ("hostile_signed_sha1_digests.opa", "(signature)"),
        ("hostile_zipbomb_64MiB.opa", "(too_large)"),
        ("js_signed_rsa_TAMPERED_prompt.opa", "(signature)"),
    ] {
        let said = place.run(&["import", &sample(name)]);
        assert_eq!(said.code, Some(1), "{name}: {said:?}");
        assert!(said.err.contains(reason), "{name}: {}", said.err);
    }
    assert_eq!(place.call("session::list", &json!({}))["sessions"], json!([]));
}

#[test]
fn given_a_server_when_an_archive_goes_in_and_out_then_it_is_as_with_a_directory() {
    let (here, there) = (furnished(), Place::new());
    let dir = tempfile::tempdir().unwrap();
    let (file, _) = exported(&here, dir.path(), &[]);
    let served = there.serve();
    let said = there.ask(&served, &["import", file.to_str().unwrap()]);
    assert!(said.out.contains("7 entries added, 2 attachments"), "{said:?}");
    let back = dir.path().join("back.opa");
    let words = ["export", "alpha", "--to", "opa", "-o", back.to_str().unwrap()];
    assert_eq!(there.ask(&served, &words).code, Some(0));
    assert!(fs::read(&back).unwrap() == fs::read(&file).unwrap());
    assert_eq!(served.stop("TERM"), Some(0));
    assert_eq!(everything(&there, "alpha"), everything(&here, "alpha"));
}
