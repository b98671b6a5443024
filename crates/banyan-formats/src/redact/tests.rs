#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::borrow::Cow;
use std::collections::BTreeSet;

use banyan_model::Json;
use regex::Regex;

use super::super::{Finding, Redactor};
use super::TABLE;

/// A secret of each kind as it stands in a sentence. None of them opens anything; they are put together here so that no
/// scanner takes this file for a leak.
fn examples() -> Vec<(&'static str, String, String)> {
    let letters = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6";
    let hex = "0123456789abcdef0123456789abcdef";
    let of = |prefix: &str, length: usize| format!("{prefix}{}", letters.repeat(3).get(..length).unwrap());
    let plain = |kind, secret: String| (kind, format!("use {secret} there"), secret);
    let within =
        |kind, before: &str, secret: String, after: &str| (kind, format!("{before}{secret}{after}"), secret);
    let pem = format!("-----BEGIN RSA {0}-----\nMIIE\nabc\n-----END RSA {0}-----", "PRIVATE KEY");
    vec![
        plain("private-key", pem),
        plain("jwt", format!("{}.{}.{}", of("eyJ", 12), of("eyJ", 12), of("", 20))),
        plain("anthropic-key", of("sk-ant-api03-", 40)),
        plain("openrouter-key", of("sk-or-v1-", 40)),
        plain("openai-key", of("sk-proj-", 40)),
        plain("github-token", of("ghp_", 36)),
        plain("gitlab-token", of("glpat-", 20)),
        plain("slack-token", of("xoxb-", 24)),
        within("slack-webhook", "https://hooks.slack.com/services/", of("T0", 30), ""),
        within("discord-webhook", "https://discord.com/api/webhooks/", of("123456/", 30), ""),
        plain("google-api-key", of("AIza", 35)),
        plain("google-oauth-token", of("ya29.", 30)),
        plain("aws-access-key", format!("AKIA{}", "IOSFODNN7EXAMPLE".replace('7', "2"))),
        within("aws-secret-key", "aws_secret_access_key = ", of("", 40), ""),
        within("azure-storage-key", "AccountName=a;AccountKey=", format!("{}==", of("", 86)), ";"),
        plain("stripe-key", of("sk_live_", 24)),
        plain("huggingface-token", of("hf_", 34)),
        plain("groq-key", of("gsk_", 40)),
        plain("xai-key", of("xai-", 40)),
        plain("perplexity-key", of("pplx-", 40)),
        plain("replicate-token", of("r8_", 37)),
        plain("npm-token", of("npm_", 36)),
        plain("pypi-token", of("pypi-", 60)),
        plain("sendgrid-key", format!("{}.{}", of("SG.", 22), of("", 43))),
        plain("twilio-key", format!("SK{hex}")),
        plain("telegram-token", of("123456789:AA", 33)),
        plain("digitalocean-token", format!("dop_v1_{hex}{hex}")),
        plain("vault-token", of("hvs.", 24)),
        plain("banyan-key", format!("banyan_1a2b_{hex}")),
        within("password-in-url", "postgres://admin:", "hunter2-and-more".to_owned(), "@db.example/app"),
        within("authorization", "Authorization: Basic ", "dXNlcjpwYXNz".to_owned(), ""),
        within("bearer-token", "authorization: Bearer ", of("", 30), ""),
        within("assigned-secret", "export DB_PASSWORD=", "correct-horse".to_owned(), " # here"),
    ]
}

#[test]
fn every_shape_is_a_pattern_and_has_an_example() {
    for (kind, pattern) in TABLE {
        assert!(Regex::new(pattern).is_ok(), "{kind}");
    }
    let shown: BTreeSet<&str> = examples().into_iter().map(|(kind, ..)| kind).collect();
    assert_eq!(shown, TABLE.iter().map(|(kind, _)| *kind).collect());
}

#[test]
fn given_a_secret_in_a_sentence_when_it_is_redacted_then_only_the_secret_is_gone_and_its_kind_is_listed() {
    for (kind, sentence, secret) in examples() {
        let mut redactor = Redactor::new();
        let clean = redactor.text(&sentence, "entry e").into_owned();
        assert_eq!(clean, sentence.replace(&secret, &format!("[redacted:{kind}]")));
        let finding = Finding { kind: kind.to_owned(), place: "entry e".to_owned(), count: 1 };
        assert_eq!(redactor.findings(), [finding]);
        assert_eq!(Redactor::new().text(&clean, "again"), clean, "{kind}: what is clean stays as it is");
    }
}

#[test]
fn given_json_when_it_is_redacted_then_numbers_order_and_other_strings_stay() {
    let mut redactor = Redactor::new();
    let json = Json::from_text(
        r#"{"z":1.50,"a":["ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7b","x\"y"],"password":"p","Api-Key":{"k":"v"},"token_count":3,"cookie":null,"after":"t"}"#,
    );
    let clean = redactor.json(&json.unwrap(), "entry e");
    assert_eq!(
        clean.get(),
        r#"{"z":1.50,"a":["[redacted:github-token]","x\"y"],"password":"[redacted:named-secret]","Api-Key":{"k":"v"},"token_count":3,"cookie":null,"after":"t"}"#
    );
    let kinds: Vec<(&str, u64)> = redactor.findings().iter().map(|it| (it.kind.as_str(), it.count)).collect();
    assert_eq!(kinds, [("github-token", 1), ("named-secret", 1)]);
}

#[test]
fn given_ordinary_text_when_it_is_redacted_then_nothing_happens() {
    let ordinary = [
        "The password is checked by `check_password(password: &str)`.",
        "Set api_key to your key; token: string; secret santa",
        "see https://example.com/a:b@c and user@example.com, sk-8 and eyJ",
        "fn bearer(token: Token) -> bool { bearer == token }",
        "let access_key = ACCESS_KEY;",
    ];
    for text in ordinary {
        let mut redactor = Redactor::new();
        assert!(matches!(redactor.text(text, ""), Cow::Borrowed(_)), "{text}: {:?}", redactor.findings());
    }
    let picture = "AKIAIOSFODNN2EXAMPLE".repeat(40);
    assert_eq!(Redactor::new().text(&picture, ""), picture, "a picture in base64 is no place to look");
}
