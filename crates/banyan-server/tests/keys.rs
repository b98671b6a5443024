//! Keys: what is kept of them, who manages them, and when they stop working.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::wire::{Server, settings, until};
use banyan_server::{KeyError, KeyStore, NewKey, Reach, ServeError, Settings};
use serde_json::json;

fn new_key(name: &str) -> NewKey {
    NewKey { name: name.to_owned(), ..NewKey::default() }
}

fn bearer(text: &str) -> String {
    format!("authorization: Bearer {text}\r\n")
}

/// A server with one key that may do everything.
async fn with_operator() -> (Server, String) {
    let dir = tempfile::tempdir().unwrap();
    let (_, text) = KeyStore::open(dir.path()).create(new_key("operator"), 0).unwrap();
    (Server::start_in(dir, settings()).await, bearer(&text))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_makes_lists_and_removes_keys() {
    let (server, operator) = with_operator().await;
    let wish = json!({"name": "tenant", "scope": {"owner": "u_1"}, "read_only": true, "requests_per_second": 5});
    let made = server.ask("POST", "/v1/keys", &operator, &wish.to_string()).await;
    assert_eq!((made.status, made.header("cache-control")), (201, Some("no-store")));
    let mut made = made.json();
    let text = made.as_object_mut().unwrap().remove("key").unwrap().as_str().unwrap().to_owned();
    let id = made["id"].as_str().unwrap().to_owned();
    let created_at = made["created_at"].as_i64().unwrap();
    assert!(created_at > 1_700_000_000_000);
    let mut expected = wish;
    expected["id"] = json!(id);
    expected["created_at"] = json!(created_at);
    assert_eq!(made, expected);

    let listed = server.get("/v1/keys", &operator).await;
    assert!(!listed.text().contains(&text) && !listed.text().contains("hash"), "{listed:?}");
    assert_eq!(listed.json()["keys"].as_array().unwrap().len(), 2);
    assert_eq!(listed.json()["keys"][1], expected);

    let list = async || server.ask("POST", "/v1/call/session::list", &bearer(&text), "{}").await;
    assert_eq!(list().await.status, 200);
    // It may not manage keys itself.
    for (method, path) in
        [("GET", "/v1/keys".to_owned()), ("POST", "/v1/keys".to_owned()), ("DELETE", format!("/v1/keys/{id}"))]
    {
        let answer = server.ask(method, &path, &bearer(&text), "{\"name\":\"mine\"}").await;
        assert_eq!((answer.status, answer.code().as_str()), (403, "auth/forbidden"), "{method}");
    }
    assert_eq!(server.ask("DELETE", &format!("/v1/keys/{id}"), &operator, "").await.status, 204);
    let answer = list().await;
    assert_eq!((answer.status, answer.code().as_str()), (401, "auth/unauthenticated"));
    assert!(answer.header("www-authenticate").is_some());
    let again = server.ask("DELETE", &format!("/v1/keys/{id}"), &operator, "").await;
    assert_eq!((again.status, again.code().as_str()), (404, "auth/key_not_found"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wishes_that_make_no_sense_are_refused() {
    let (server, operator) = with_operator().await;
    for wish in [
        "",
        "{}",
        "[]",
        r#"{"name":""}"#,
        r#"{"name":"a","scop":{}}"#,
        r#"{"name":"a","scope":[]}"#,
        r#"{"name":"a","requests_per_second":0}"#,
    ] {
        let answer = server.ask("POST", "/v1/keys", &operator, wish).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "session/invalid_request"), "{wish}");
    }
    assert_eq!(KeyStore::open(server.data()).all().len(), 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_another_process_makes_or_removes_counts() {
    let (server, _) = with_operator().await;
    let elsewhere = KeyStore::open(server.data());
    let (key, text) = elsewhere.create(new_key("second"), 0).unwrap();
    let status = async || server.ask("POST", "/v1/call/session::list", &bearer(&text), "{}").await.status;
    // It works at once.
    assert_eq!(status().await, 200);
    elsewhere.remove(&key.id).unwrap();
    until("it works no more", async || status().await == 401).await;
    server.stop().await;
}

#[test]
fn only_a_hash_is_kept_in_a_file_of_the_owner() {
    let dir = tempfile::tempdir().unwrap();
    let keys = KeyStore::open(dir.path());
    let (key, text) = keys.create(new_key("one"), 0).unwrap();
    let secret = text.rsplit('_').next().unwrap();
    assert_eq!(keys.find(&text), Some(key.clone()));
    let shorter = &text[..text.len() - 1];
    let other_id = text.replace(&key.id, "00000000");
    for wrong in [
        shorter,
        &other_id,
        &format!("{text}0"),
        secret,
        "",
        "banyan_",
        "banyan__",
        &format!("banyan_{}_", key.id),
    ] {
        assert_eq!(keys.find(wrong), None, "{wrong}");
    }
    for file in files(dir.path()) {
        let content = std::fs::read(&file).unwrap();
        assert!(!content.windows(16).any(|part| part == &secret.as_bytes()[..16]), "{}", file.display());
        #[cfg(unix)]
        if file.ends_with("keys.json") {
            let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}

#[test]
fn a_key_is_removed_by_its_id_whatever_others_are_called() {
    let dir = tempfile::tempdir().unwrap();
    let keys = KeyStore::open(dir.path());
    let (first, _) = keys.create(new_key("one"), 0).unwrap();
    let (second, _) = keys.create(new_key(&first.id), 0).unwrap();
    let (third, _) = keys.create(new_key(&first.id), 0).unwrap();
    let left = || keys.all().iter().map(|key| key.id.clone()).collect::<Vec<_>>();
    keys.remove(&first.id).unwrap();
    assert_eq!(left(), [second.id.clone(), third.id.clone()]);
    assert!(matches!(keys.remove(&first.id), Err(KeyError::Refused(_))), "two are called that");
    keys.remove(&second.id).unwrap();
    assert_eq!(left(), std::slice::from_ref(&third.id));
    keys.remove(&first.id).unwrap();
    assert_eq!(left(), [""; 0]);
}

fn files(dir: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

const CHILD: &str = "BANYAN_TEST_KEYS_OF";
const EACH: usize = 40;

/// Runs in processes of its own, for the test below.
#[test]
fn makes_keys_when_asked_to() {
    let Ok(dir) = std::env::var(CHILD) else { return };
    let keys = KeyStore::open(Path::new(&dir));
    for at in 0..EACH {
        keys.create(new_key(&format!("{}-{at}", std::process::id())), 0).unwrap();
    }
}

#[test]
fn two_processes_that_make_keys_lose_none() {
    let dir = tempfile::tempdir().unwrap();
    let make = || {
        Command::new(std::env::current_exe().unwrap())
            .args(["keys::makes_keys_when_asked_to", "--exact"])
            .env(CHILD, dir.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    for mut child in [make(), make(), make()] {
        assert!(child.wait().unwrap().success());
    }
    let keys = KeyStore::open(dir.path()).all();
    let names: std::collections::BTreeSet<&str> = keys.iter().map(|key| key.name.as_str()).collect();
    assert_eq!((keys.len(), names.len()), (3 * EACH, 3 * EACH));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_key_file_is_damaged_or_gone_stays_closed_and_so_does_the_next() {
    let (server, operator) = with_operator().await;
    let file = server.data().join(".banyan/keys.json");
    let sound = std::fs::read(&file).unwrap();
    let log = crate::wire::log();
    for damage in [Some(""), Some("{\"keys\":"), Some("{\"keys\":[]}"), Some("{}"), Some("\0\0\0\0"), None] {
        match damage {
            Some(damage) => std::fs::write(&file, damage).unwrap(),
            None => std::fs::remove_file(&file).unwrap(),
        }
        until("the key is refused", async || server.get("/v1/keys", &operator).await.status == 401).await;
        assert_eq!(server.get("/v1/keys", "").await.status, 401, "{damage:?}");
        // A start on it refuses every call, too.
        let memory = banyan::Banyan::in_memory(banyan::Options::default()).unwrap();
        let next = banyan_server::start(memory, server.data(), settings()).await.unwrap();
        assert!(matches!(next.keys().reach(), Reach::NoOne(_)), "{damage:?}");
        assert_eq!(get(next.address(), "/v1/keys", &operator).await, 401);
        next.stop().await;
        // What it was before counts again.
        std::fs::write(server.data().join("sound"), &sound).unwrap();
        std::fs::rename(server.data().join("sound"), &file).unwrap();
        until("the key counts", async || server.get("/v1/keys", &operator).await.status == 200).await;
    }
    until("it was logged", async || log.text().contains("every call is refused")).await;
    std::fs::remove_file(&file).unwrap();
    until("the key is refused", async || server.get("/v1/keys", &operator).await.status == 401).await;
    let refused = server.get("/v1/keys", "").await;
    assert!(refused.text().contains("keys were in force and the key file is missing"), "{refused:?}");
    KeyStore::open(server.data()).reset_to_open().unwrap();
    until("it is open", async || server.get("/v1/keys", "").await.status == 200).await;
    server.stop().await;
}

async fn get(address: std::net::SocketAddr, path: &str, headers: &str) -> u16 {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = crate::wire::request("GET", path, headers, "");
    tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await.unwrap();
    crate::wire::Answer::read(&mut stream).await.unwrap().status
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_loses_its_last_key_stays_closed() {
    let (server, operator) = with_operator().await;
    let id = server.get("/v1/keys", &operator).await.json()["keys"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(server.ask("DELETE", &format!("/v1/keys/{id}"), &operator, "").await.status, 204);
    for headers in ["", &operator] {
        let refused = server.get("/v1/keys", headers).await;
        assert_eq!((refused.status, refused.code().as_str()), (401, "auth/unauthenticated"));
        assert!(refused.text().contains("the last one was removed"), "{refused:?}");
    }
    let (_, text) = KeyStore::open(server.data()).create(new_key("next"), 0).unwrap();
    assert_eq!(server.get("/v1/keys", &bearer(&text)).await.status, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_past_loopback_needs_a_key_at_the_start_and_later() {
    let everywhere = Settings { listen: "0.0.0.0:0".parse().unwrap(), ..settings() };
    let dir = tempfile::tempdir().unwrap();
    let memory = || banyan::Banyan::in_memory(banyan::Options::default()).unwrap();
    let started = banyan_server::start(memory(), dir.path(), everywhere.clone()).await;
    assert!(matches!(started.err(), Some(ServeError::Unprotected(_))));

    let keys = KeyStore::open(dir.path());
    let (key, text) = keys.create(new_key("only"), 0).unwrap();
    let server = Server::start_in(dir, everywhere).await;
    let port = server.address().port();
    let ask = async |headers: &str| {
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let request = crate::wire::request("POST", "/v1/call/session::list", headers, "{}");
        tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await.unwrap();
        crate::wire::Answer::read(&mut stream).await.unwrap().status
    };
    assert_eq!((ask(&bearer(&text)).await, ask("").await), (200, 401));
    keys.remove(&key.id).unwrap();
    until("the key is gone", async || ask(&bearer(&text)).await == 401).await;
    assert_eq!(ask("").await, 401, "without any key nobody is let in");
    std::fs::remove_file(server.data().join(".banyan/keys.json")).unwrap();
    for _ in 0..3 {
        assert_eq!(ask("").await, 401);
    }
    server.running.stop().await;
}
