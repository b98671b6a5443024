//! Markdown and HTML: examples to read, hostile content, and what is taken out.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    reason = "a test fails by panicking"
)]

#[path = "session_log/given.rs"]
mod given;

use banyan_formats::audit::Facts;
use banyan_formats::document::{Head, Html, Markdown, Picture};
use banyan_formats::redact::Redactor;
use banyan_model::*;
use given::{Session, any_session, assistant, call, result, session, user};
use proptest::prelude::*;
use serde_json::json;

fn head(session: &Session) -> Head {
    Head { meta: session.meta.clone(), facts: Facts::of_metadata(session.meta.metadata.as_ref()) }
}

fn markdown(session: &Session) -> String {
    let mut document = Markdown::new(Vec::new(), &head(session)).unwrap();
    session.entries.iter().for_each(|entry| document.entry(entry).unwrap());
    String::from_utf8(document.finish(&[]).unwrap()).unwrap()
}

fn html(session: &Session) -> String {
    let picture = |id: &AttachmentId| {
        (id.as_str() == "a_1").then(|| Picture { mime: "image/png".to_owned(), data: "iVBO".to_owned() })
    };
    let mut document = Html::new(Vec::new(), &head(session)).unwrap();
    session.entries.iter().for_each(|entry| document.entry(entry, &mut { picture }).unwrap());
    String::from_utf8(document.finish(&[]).unwrap()).unwrap()
}

#[test]
fn given_a_conversation_when_it_is_written_as_markdown_then_a_person_can_read_it() {
    let session = session(&[
        user("Explain `main`."),
        assistant(
            json!([{"type": "thinking", "text": "hm\nso"}, {"type": "text", "text": "I look:\n```rust\nfn"}, call("c1")]),
            "function_call",
        ),
        result("c1", "a ``` b\n"),
        json!({"role": "assistant", "content": [], "model": "m_1", "provider": "p", "stop_reason": "error", "error_message": "No *credit*"}),
        json!({"custom_type": "unseen", "data": {"x": 1}}),
    ]);
    let expected = "\
# A title

- Session: s\\_1
- Status: idle
- Messages: 0
- Created: 2024-06-07 22:40:00 UTC
- Changed: 2024-06-07 22:40:09 UTC
- Directory: /repo

## User · 2024-06-07 22:40:00 UTC

Explain `main`.

## Assistant (m-1) · 2024-06-07 22:40:01 UTC

> *Thinking*
>
> hm
> so

I look:
```rust
fn
```

**Call** `read`

```json
{
  \"path\": \"a.rs\"
}
```

**Result** `read`

````
a ``` b
````

## Assistant (m\\_1) · 2024-06-07 22:40:03 UTC

> **Error:** No \\*credit\\*
";
    assert_eq!(markdown(&session), expected);
}

const HOSTILE: &str = "</div></pre></title></style><script>alert(1)</script><img src=x onerror=alert(1)>\" onload=\"x' onclick='y &lt; \u{0}\u{1b}";

#[test]
fn given_hostile_content_everywhere_when_it_is_written_as_html_then_all_of_it_is_text() {
    let mut session = session(&[
        user(HOSTILE),
        json!({"role": "assistant", "model": HOSTILE, "provider": HOSTILE, "stop_reason": "error", "error_message": HOSTILE, "content": [
            {"type": "thinking", "text": HOSTILE}, {"type": "text", "text": HOSTILE},
            {"type": "function_call", "id": HOSTILE, "function_id": HOSTILE, "arguments": {HOSTILE: HOSTILE}},
            {"type": "image", "mime": HOSTILE, "data": HOSTILE}, {"type": "image", "mime": "image/png", "data": HOSTILE},
            {"type": "image", "mime": "text/html", "data": "AAAA"},
            {"type": "file", "attachment_id": HOSTILE, "name": HOSTILE, "mime": HOSTILE, "size": 1}]}),
        json!({"role": "function_result", "function_call_id": HOSTILE, "function_id": HOSTILE, "is_error": true,
            "content": [{"type": "text", "text": HOSTILE}]}),
        json!({"role": "custom", "custom_type": HOSTILE, "display": HOSTILE, "content": []}),
    ]);
    session.meta = SessionMeta {
        title: HOSTILE.to_owned(),
        description: HOSTILE.to_owned(),
        session_id: HOSTILE.into(),
        status_reason: Some(HOSTILE.to_owned()),
        metadata: json!({"cwd": HOSTILE, "model": HOSTILE}).as_object().cloned(),
        ..session.meta
    };
    let page = html(&session);
    harmless(&page);
    assert_eq!(page.matches("alert(1)").count() / 2, 22, "all of it is there to read");
    assert!(!page.contains("<img"));
}

/// Checks that a page has nothing but the tags and attributes that it is made of.
fn harmless(page: &str) {
    const TAGS: &[&str] = &[
        "!doctype", "html", "head", "meta", "title", "style", "body", "main", "header", "h1", "h2", "p", "dl",
        "dt", "dd", "article", "span", "small", "div", "pre", "code", "details", "summary", "img", "footer", "ul",
        "li",
    ];
    const ATTRIBUTES: &[&str] =
        &["html", "lang", "charset", "http-equiv", "content", "name", "dir", "class", "open", "alt", "src"];
    let (before, rest) = page.split_once("<style>").unwrap();
    let (style, after) = rest.split_once("</style>").unwrap();
    assert!(!style.contains(['<', '@']) && !style.contains("url"));
    for part in [before, after] {
        for tag in part.split('<').skip(1) {
            let (tag, text) = tag.split_once('>').expect("a tag has an end");
            assert!(!text.contains('>'), "{text}");
            let mut outside = String::new();
            for (at, piece) in tag.split('"').enumerate() {
                if at % 2 == 0 {
                    outside.push_str(piece);
                    outside.push(' ');
                }
            }
            let mut words = outside.split([' ', '=']).filter(|word| !word.is_empty());
            let name = words.next().unwrap().trim_start_matches('/');
            assert!(TAGS.contains(&name), "{tag}");
            for word in words {
                assert!(ATTRIBUTES.contains(&word), "{word} in {tag}");
            }
            if let Some((_, source)) = tag.split_once("src=\"") {
                assert!(source.starts_with("data:image/"), "{tag}");
            }
        }
    }
    assert!(before.contains("default-src 'none'; img-src data:; style-src 'sha256-"));
    assert!(!page.contains("<script") && !page.contains("http://") && !page.contains("https://"));
}

#[test]
fn given_pictures_when_they_are_written_as_html_then_they_are_in_the_page() {
    let page = html(&session(&[json!({"role": "user", "content": [
        {"type": "image", "mime": "image/jpeg", "data": "/9j/4A=="},
        {"type": "image", "mime": "image/png", "data": "", "attachment_id": "a_1"},
        {"type": "file", "attachment_id": "a_1", "name": "shot.png", "mime": "image/png", "size": 3},
        {"type": "file", "attachment_id": "a_2", "name": "notes.txt", "mime": "text/plain", "size": 1234}]})]));
    harmless(&page);
    for shown in [
        r#"<img alt="Picture" src="data:image/jpeg;base64,/9j/4A==">"#,
        r#"<img alt="Picture" src="data:image/png;base64,iVBO">"#,
        r#"<img alt="shot.png" src="data:image/png;base64,iVBO">"#,
        r#"File: <span dir="auto">notes.txt</span>, text/plain, 1.2 kB"#,
    ] {
        assert!(page.contains(shown), "{shown}\n{page}");
    }
}

#[test]
fn given_branches_when_they_are_written_then_they_fold_and_are_closed() {
    let session = session(&[user("root"), user("other"), user("deeper"), user("main")]);
    let mut page = Html::new(Vec::new(), &head(&session)).unwrap();
    page.entry(&session.entries[0], &mut |_| None).unwrap();
    page.begin_branch(2).unwrap();
    page.entry(&session.entries[1], &mut |_| None).unwrap();
    page.begin_branch(1).unwrap();
    page.entry(&session.entries[2], &mut |_| None).unwrap();
    page.end_branch().unwrap();
    let page = String::from_utf8(page.finish(&[]).unwrap()).unwrap();
    assert_eq!((page.matches("<details").count(), page.matches("</details>").count()), (2, 2));
    assert!(page.contains("<summary>Another branch: 2 entries</summary>"));
}

#[test]
fn given_secrets_when_a_document_is_redacted_then_they_are_gone_and_listed() {
    let key = format!("ghp_{}", "aB3d".repeat(9));
    let session = session(&[user(&format!("use {key}, or {key}")), user(&key)]);
    let mut redactor = Redactor::new();
    let entries: Vec<SessionEntry> =
        session.entries.iter().map(|entry| redactor.entry(entry.clone()).unwrap()).collect();
    let mut document = Markdown::new(Vec::new(), &head(&session)).unwrap();
    entries.iter().for_each(|entry| document.entry(entry).unwrap());
    let text = String::from_utf8(document.finish(redactor.findings()).unwrap()).unwrap();
    assert!(!text.contains(&key));
    assert!(text.ends_with(
        "Taken out of this document:\n\n- github-token in entry e0, 2 times\n- github-token in entry e1\n"
    ));
    let mut page = Html::new(Vec::new(), &head(&session)).unwrap();
    entries.iter().for_each(|entry| page.entry(entry, &mut |_| None).unwrap());
    let page = String::from_utf8(page.finish(redactor.findings()).unwrap()).unwrap();
    assert!(!page.contains(&key) && page.contains("<li>github-token in entry e0, 2 times</li>"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn given_any_session_when_it_is_written_as_html_then_the_page_is_harmless(session in any_session()) {
        harmless(&html(&session));
    }

    #[test]
    fn given_any_session_when_it_is_written_as_markdown_then_every_question_is_there(session in any_session()) {
        let text = markdown(&session);
        let questions = session.entries.iter().filter(|entry| matches!(entry, SessionEntry::Message(it)
            if it.message.parse().unwrap().role() == Role::User)).count();
        prop_assert!(text.matches("\n## User · ").count() >= questions);
    }
}
