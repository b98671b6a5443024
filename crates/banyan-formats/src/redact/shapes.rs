//! The shapes of secrets: one table. A shape is a line here, and an example in the tests below.

use std::sync::LazyLock;

use regex::{Captures, Regex, RegexSet};

use super::placeholder;

/// The shape of one kind of secret.
pub(super) struct Shape {
    pub(super) kind: &'static str,
    regex: Regex,
}

/// All shapes, and the one pass that says which of them are worth trying.
pub(super) struct Shapes {
    all: Vec<Shape>,
    set: RegexSet,
}

/// Kind, and what it looks like. The group `secret`, where there is one, is what is replaced; otherwise all of it is. Those
/// that know more about what they look for stand first, so that a key is called by its own name.
const TABLE: &[(&str, &str)] = &[
    (
        "private-key",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
    ),
    ("jwt", r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    ("anthropic-key", r"\bsk-ant-[A-Za-z0-9_-]{16,}"),
    ("openrouter-key", r"\bsk-or-(?:v1-)?[A-Za-z0-9]{16,}"),
    ("openai-key", r"\bsk-(?:proj-|svcacct-|admin-|None-)?[A-Za-z0-9_-]{20,}"),
    ("github-token", r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})"),
    ("gitlab-token", r"\bgl(?:pat|ptt|dt|rt|cbt|soat)-[A-Za-z0-9_-]{20,}"),
    ("slack-token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-[0-9]-[A-Za-z0-9-]{10,}"),
    ("slack-webhook", r"https://hooks\.slack\.com/(?:services|workflows)/(?P<secret>[A-Za-z0-9/_+-]{16,})"),
    (
        "discord-webhook",
        r"https://(?:\w+\.)?discord(?:app)?\.com/api/webhooks/(?P<secret>[0-9]+/[A-Za-z0-9_-]{16,})",
    ),
    ("google-api-key", r"\bAIza[0-9A-Za-z_-]{35}"),
    ("google-oauth-token", r"\bya29\.[0-9A-Za-z_-]{20,}"),
    ("aws-access-key", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b"),
    (
        "aws-secret-key",
        r#"(?i)aws_?(?:secret)?_?(?:access)?_?key(?:_?id)?["']?\s*[:=]\s*["']?(?P<secret>[A-Za-z0-9/+]{40})\b"#,
    ),
    ("azure-storage-key", r"(?i)AccountKey=(?P<secret>[A-Za-z0-9+/]{40,}={0,2})"),
    ("stripe-key", r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("huggingface-token", r"\bhf_[A-Za-z0-9]{30,}"),
    ("groq-key", r"\bgsk_[A-Za-z0-9]{20,}"),
    ("xai-key", r"\bxai-[A-Za-z0-9]{20,}"),
    ("perplexity-key", r"\bpplx-[A-Za-z0-9]{20,}"),
    ("replicate-token", r"\br8_[A-Za-z0-9]{30,}"),
    ("npm-token", r"\bnpm_[A-Za-z0-9]{36}"),
    ("pypi-token", r"\bpypi-[A-Za-z0-9_-]{50,}"),
    ("sendgrid-key", r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("twilio-key", r"\bSK[0-9a-f]{32}\b"),
    ("telegram-token", r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"),
    ("digitalocean-token", r"\bdo[opr]_v1_[a-f0-9]{32,}"),
    ("vault-token", r"\bhv[bsr]\.[A-Za-z0-9_-]{20,}"),
    ("banyan-key", r"\bbanyan_[A-Za-z0-9]+_[0-9a-f]{32,}"),
    ("password-in-url", r#"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"'\[]*:(?P<secret>[^\s/@"'\[]+)@"#),
    ("authorization", r"(?i)\bauthorization\s*[:=]\s*(?:basic|token|digest)\s+(?P<secret>[A-Za-z0-9+/=._~-]{8,})"),
    ("bearer-token", r"(?i)\bbearer\s+(?P<secret>[A-Za-z0-9._~+/-]{16,}=*)"),
    (
        "assigned-secret",
        r#"(?i)[A-Z0-9_.-]*(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|access[_-]?token|auth[_-]?token|private[_-]?key|client[_-]?secret)[A-Z0-9_]*(?:=["']?|["']?\s*:\s*["'])(?P<secret>[^\s"',;&\[<>(){}$]{8,})"#,
    ),
];

/// The table, ready for use.
pub(super) static SHAPES: LazyLock<Shapes> = LazyLock::new(Shapes::new);

impl Shapes {
    fn new() -> Self {
        // That every line of the table is a pattern is shown by a test.
        let all =
            TABLE.iter().filter_map(|(kind, pattern)| Some(Shape { kind, regex: Regex::new(pattern).ok()? }));
        let set = RegexSet::new(TABLE.iter().map(|(_, pattern)| pattern)).unwrap_or_else(|_| RegexSet::empty());
        Self { all: all.collect(), set }
    }

    /// The shapes that a text has somewhere.
    pub(super) fn matching(&self, text: &str) -> impl Iterator<Item = &Shape> {
        self.set.matches(text).into_iter().filter_map(|at| self.all.get(at))
    }
}

impl Shape {
    /// The text with each of them replaced, and how many there were.
    pub(super) fn replace(&self, text: &str) -> (String, u64) {
        let mut count = 0;
        let replaced = self.regex.replace_all(text, |found: &Captures<'_>| {
            count += 1;
            let whole = found.get(0).map_or("", |whole| whole.as_str());
            match (found.get(0), found.name("secret")) {
                (Some(all), Some(secret)) => {
                    let (from, to) = (secret.start() - all.start(), secret.end() - all.start());
                    format!("{}{}{}", &whole[..from], placeholder(self.kind), &whole[to..])
                }
                _ => placeholder(self.kind),
            }
        });
        (replaced.into_owned(), count)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
