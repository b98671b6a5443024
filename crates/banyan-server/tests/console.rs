//! The page that shows a session: how it is served, and what it does in a real browser.

#[path = "console/browser.rs"]
mod browser;

use crate::client::Client;
use crate::server::Server;
use browser::in_chromium;

#[test]
fn a_session_is_shown_as_it_is_written() {
    in_chromium("live", &Server::start());
}

#[test]
fn every_type_of_part_is_shown() {
    in_chromium("parts", &Server::start());
}

#[test]
fn hostile_content_runs_nothing() {
    in_chromium("hostile", &Server::start());
}

#[test]
fn what_is_said_when_there_is_nothing_to_see() {
    in_chromium("access", &Server::start());
}

#[test]
fn a_key_is_asked_for() {
    in_chromium("access", &Server::start_with_key());
}

#[test]
fn the_page_is_for_browsers() {
    let client = Client::new();
    let asked = |accept| client.send("GET", "/sessions/s_1", &[("accept", accept)], b"");
    for accept in ["text/html,application/xhtml+xml", "*/*"] {
        let page = asked(accept);
        assert!(matches!(page.status, 200 | 501), "{accept}: {}", page.status);
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    }
    assert_eq!(asked("application/json").refused(), (406, "http/not_acceptable".to_owned()));
}

#[test]
fn a_page_that_was_left_out_says_how_to_get_it() {
    let client = Client::new();
    let page = client.get("/sessions/s_1");
    let text = String::from_utf8(page.bytes.clone()).unwrap();
    assert_eq!(page.status == 501, text.contains("make console"), "{}", page.status);
}

#[test]
fn the_page_may_do_little_and_loads_its_own_files_only() {
    let client = Client::of(Server::start_with_key());
    let page = client.get("/sessions/a%20name");
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'"));
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    let html = String::from_utf8(page.bytes.clone()).unwrap();
    assert!(!html.contains("http://") && !html.contains("https://"));
    if page.status == 501 {
        return;
    }
    let tag = page.header("etag").unwrap();
    assert_eq!(client.send("GET", "/sessions/another", &[("if-none-match", tag)], b"").status, 304);
    let files: Vec<&str> = html.split('"').filter(|text| text.starts_with("/console/")).collect();
    assert_eq!(files.len(), 2, "a style and a script");
    for file in files {
        let plain = client.get(file);
        assert_eq!(plain.status, 200, "{file}");
        assert_eq!(plain.header("cache-control"), Some("public, max-age=31536000, immutable"));
        let kind = plain.header("content-type").unwrap();
        assert!(matches!(kind, "text/css; charset=utf-8" | "text/javascript; charset=utf-8"), "{kind}");
        let again = client.send("GET", file, &[("if-none-match", plain.header("etag").unwrap())], b"");
        assert_eq!((again.status, again.bytes.len()), (304, 0));
        let packed = client.send("HEAD", file, &[("accept-encoding", "gzip")], b"");
        assert_eq!(packed.header("content-encoding"), Some("gzip"));
        assert!(packed.header("vary").unwrap().contains("accept-encoding"));
    }
}

#[test]
fn other_files_are_not_there() {
    let client = Client::new();
    for file in ["made-up.js", "index.html", ".gitignore", "..%2F..%2FCargo.toml", "%ff"] {
        let (status, _) = client.get(&format!("/console/{file}")).refused();
        assert!(matches!(status, 400 | 404), "{file}: {status}");
    }
}
