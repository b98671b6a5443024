//! Secrets in the strings of a JSON text. Everything else of the text stays as it is, digit by digit.

use std::borrow::Cow;

use super::{Redactor, placeholder};

/// What a value under a telling name is listed as.
const NAMED: &str = "named-secret";

/// Names of fields whose text is a secret whatever it looks like. Written without case, `-` and `_`.
const NAMES: &[&str] = &[
    "accesstoken",
    "apikey",
    "apitoken",
    "authorization",
    "authtoken",
    "awssecretaccesskey",
    "bearertoken",
    "clientsecret",
    "cookie",
    "idtoken",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "proxyauthorization",
    "refreshtoken",
    "secret",
    "secretaccesskey",
    "secretkey",
    "sessiontoken",
    "setcookie",
    "xapikey",
];

/// A JSON text with the secrets in its strings replaced.
pub(super) fn redacted<'t>(json: &'t str, place: &str, redactor: &mut Redactor) -> Cow<'t, str> {
    let mut out = String::new();
    let mut copied = 0;
    let mut named_secret = false;
    let mut at = 0;
    let bytes = json.as_bytes();
    while at < bytes.len() {
        if bytes[at] != b'"' {
            // A number or a literal ends what a name said; a list or an object under it keeps its own names.
            named_secret &= matches!(bytes[at], b':' | b' ' | b'\n' | b'\r' | b'\t');
            at += 1;
            continue;
        }
        let end = string_end(bytes, at);
        let literal = &json[at..end];
        let is_name = bytes[end..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
        if let Ok(text) = serde_json::from_str::<Cow<'_, str>>(literal) {
            let clean = match named_secret && !is_name && !text.is_empty() {
                true if text.starts_with("[redacted:") => Cow::Borrowed(&*text),
                true => {
                    redactor.note(NAMED, place, 1);
                    Cow::Owned(placeholder(NAMED))
                }
                false => redactor.text(&text, place),
            };
            if clean != text {
                out.push_str(&json[copied..at]);
                out.push_str(&serde_json::to_string(&clean).unwrap_or_else(|_| "\"\"".to_owned()));
                copied = end;
            }
            named_secret = is_name && is_secret_name(&text);
        }
        at = end;
    }
    match copied {
        0 => Cow::Borrowed(json),
        _ => {
            out.push_str(&json[copied..]);
            Cow::Owned(out)
        }
    }
}

/// Whether a text is long and nothing but base64: a picture or a seal, in which shapes would be found by chance.
pub(super) fn is_binary(text: &str) -> bool {
    text.len() > 512 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte))
}

fn is_secret_name(name: &str) -> bool {
    let plain: String = name.chars().filter(|c| !"-_ ".contains(*c)).map(|c| c.to_ascii_lowercase()).collect();
    NAMES.contains(&plain.as_str())
}

/// Where the string literal that begins here ends, its closing quote included.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}
