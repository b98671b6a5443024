//! The archives that were collected: written by the five libraries, made by hand to the text of the format, and hostile.

use std::io::Cursor;

use banyan_formats::opa::*;

use crate::given::*;

/// What a sample's outcome is: taken with this coverage and these words among the remarks, or refused for this reason.
enum Outcome {
    Taken { coverage: &'static str, messages: u64, remarks: &'static [&'static str] },
    Refused(Why, &'static str),
}

use Outcome::{Refused, Taken};

const fn plain(messages: u64) -> Outcome {
    Taken { coverage: "none", messages, remarks: &[] }
}

const fn signed(coverage: &'static str, messages: u64) -> Outcome {
    Taken { coverage, messages, remarks: &[] }
}

const SAMPLES: &[(&str, Outcome)] = &[
    ("benign_dotdot_in_name.opa", plain(0)),
    ("hostile_absolute.opa", Refused(Why::UnsafePath, "/etc/evil")),
    ("hostile_attachment_traversal.opa", Refused(Why::UnsafePath, "../../../etc/passwd")),
    ("hostile_dotdot.opa", Refused(Why::UnsafePath, "../evil.txt")),
    ("hostile_duplicate_prompt.opa", Refused(Why::Duplicate, "prompt.md")),
    ("hostile_no_manifest.opa", Refused(Why::MissingPart, "META-INF/MANIFEST.MF")),
    ("hostile_not_utf8_prompt.opa", Refused(Why::Malformed, "not UTF-8")),
    (
        "hostile_session_dir_without_history.opa",
        Taken { coverage: "none", messages: 0, remarks: &["without `session/history.json`"] },
    ),
    ("hostile_signed_extra_unsigned_entry.opa", signed("partial", 7)),
    ("hostile_signed_md5_digests.opa", Refused(Why::Signature, "MD5")),
    ("hostile_signed_sha1_digests.opa", Refused(Why::Signature, "SHA1")),
    ("hostile_zipbomb_64MiB.opa", Refused(Why::TooLarge, "more than 250 times")),
    ("jarsigner_signed_rsa.opa", Taken { coverage: "none", messages: 7, remarks: &["SIGNATUR.SF"] }),
    ("java_full.opa", plain(5)),
    ("java_signed_rsa.opa", signed("partial", 5)),
    ("js_full.opa", plain(5)),
    ("js_plain.opa", plain(0)),
    ("js_signed_rsa.opa", signed("full", 5)),
    ("js_signed_rsa_TAMPERED_prompt.opa", Refused(Why::Signature, "`prompt.md` is not what was signed")),
    ("php_full.opa", plain(4)),
    ("php_signed_rsa.opa", Refused(Why::Signature, "not PKCS#7")),
    ("py_custom_paths.opa", plain(1)),
    ("py_data_index.opa", plain(0)),
    ("py_plain.opa", plain(0)),
    ("py_session_spec_shape.opa", plain(5)),
    (
        "py_signed_rsa.opa",
        Taken {
            coverage: "partial",
            messages: 7,
            remarks: &["session/attachments/image.png` is missing", "session/attachments/report.pdf` is missing"],
        },
    ),
    ("repo_java_ai-feed-summary.opa", signed("partial", 0)),
    ("repo_java_code-review.opa", plain(0)),
    ("repo_java_pirate-news.opa", signed("partial", 0)),
    ("spec_full.opa", plain(7)),
    ("spec_future_version.opa", Taken { coverage: "none", messages: 0, remarks: &["OPA-Version is 2.0"] }),
    ("spec_lf_manifest_ruby_style.opa", plain(0)),
    ("spec_no_prompt_file_attr.opa", plain(0)),
    ("spec_signed_max_interop.opa", signed("full", 7)),
    ("spec_unknown_blocks.opa", plain(4)),
];

#[test]
fn every_sample_has_the_outcome_that_its_list_says() {
    for (name, outcome) in SAMPLES {
        let bytes = sample(name);
        match (open(&bytes), outcome) {
            (Ok(archive), Taken { coverage, messages, remarks }) => {
                assert_eq!(archive.signature().coverage.as_str(), *coverage, "{name}");
                assert_eq!(archive.history().map_or(0, |history| history.messages), *messages, "{name}");
                for remark in *remarks {
                    assert!(
                        archive.remarks().iter().any(|said| said.contains(remark)),
                        "{name}: {:?}",
                        archive.remarks()
                    );
                }
                assert_eq!(archive.remarks().len(), remarks.len(), "{name}: {:?}", archive.remarks());
                let (entries, report) = taken(&archive);
                assert_eq!(report.messages, *messages, "{name}");
                assert!(report.entries <= entries.len() as u64, "{name}");
                // Reading it again gives the same entries under the same ids.
                assert_eq!(taken(&open(&bytes).unwrap()).0, entries, "{name}");
            }
            (Err(error), Refused(why, words)) => {
                let refusal = error.refusal().unwrap_or_else(|| panic!("{name}: {error:?}"));
                assert_eq!(refusal.why, *why, "{name}: {refusal}");
                assert!(refusal.detail.contains(words), "{name}: {refusal}");
            }
            (Ok(archive), Refused(..)) => panic!("{name} is not refused: {archive:?}"),
            (Err(error), Taken { .. }) => panic!("{name} is refused: {error}"),
        }
    }
    let files = std::fs::read_dir(fixtures()).unwrap().map(|entry| entry.unwrap().file_name());
    let samples = files.filter(|name| name.to_string_lossy().ends_with(".opa")).count();
    assert_eq!(samples, SAMPLES.len(), "every sample is in the list");
}

#[test]
fn the_uncovered_entries_of_signed_samples_are_named() {
    let uncovered = |name: &str| {
        let bytes = sample(name);
        match open(&bytes).unwrap().signature().coverage.clone() {
            Coverage::Partial { uncovered } => uncovered,
            other => panic!("{name}: {other:?}"),
        }
    };
    assert_eq!(uncovered("hostile_signed_extra_unsigned_entry.opa"), ["data/injected.txt"]);
    assert_eq!(uncovered("py_signed_rsa.opa"), ["prompt.md", "session/history.json"]);
    assert_eq!(uncovered("repo_java_pirate-news.opa"), ["prompt.md", "data/INDEX.json", "data/feed.xml"]);
    assert_eq!(
        uncovered("java_signed_rsa.opa"),
        [
            "prompt.md",
            "session/history.json",
            "session/attachments/image.png",
            "session/attachments/report.pdf",
            "data/INDEX.json",
            "data/q1/north.csv"
        ]
    );
}

#[test]
fn every_source_that_leads_outside_is_named_in_the_refusal() {
    let refusal = refusal(&sample("hostile_attachment_traversal.opa"));
    for source in ["../../../etc/passwd", "/etc/shadow", "session/attachments/missing.bin", "META-INF/MANIFEST.MF"]
    {
        assert!(refusal.detail.contains(source), "{refusal}");
    }
}

#[test]
fn the_bomb_is_within_a_limit_that_is_set_high_enough() {
    let limits = Limits { ratio: 2000, ..Limits::default() };
    let policy = Policy { limits, bare_signatures: false };
    let bytes = sample("hostile_zipbomb_64MiB.opa");
    assert!(Archive::open(Cursor::new(&bytes), &policy).is_ok());
    let limits = Limits { ratio: 2000, total_size: 32 << 20, ..Limits::default() };
    let refused = Archive::open(Cursor::new(&bytes), &Policy { limits, bare_signatures: false });
    assert_eq!(refused.unwrap_err().refusal().unwrap().why, Why::TooLarge);
}

#[test]
fn the_form_of_opa_php_is_verified_and_taken_when_that_is_asked_for() {
    let bytes = sample("php_signed_rsa.opa");
    let policy = Policy { bare_signatures: true, ..Policy::default() };
    let archive = Archive::open(Cursor::new(&bytes), &policy).unwrap();
    assert_eq!(archive.signature().coverage, Coverage::Full);
    assert_eq!(archive.signature().form, Some(Form::Bare));
    let signer = archive.signature().signer.clone().unwrap();
    assert_eq!(signer.subject, "CN=Research RSA");
    assert!(signer.is_among(&sample("signer_rsa.cert.pem")));
    assert!(!signer.is_among(&sample("py_signed_rsa.cert.pem")));
}

#[test]
fn prompts_and_manifests_are_read_in_every_dialect() {
    let title = |name: &str| {
        let bytes = sample(name);
        let archive = open(&bytes).unwrap();
        archive.manifest().get("Title").unwrap().to_owned()
    };
    assert_eq!(
        title("java_full.opa"),
        "Full (java) with a title that is long enough to be folded over the seventy-two byte limit é"
    );
    assert_eq!(title("spec_lf_manifest_ruby_style.opa"), "LF only");
    let bytes = sample("py_custom_paths.opa");
    let archive = open(&bytes).unwrap();
    assert_eq!(archive.history().unwrap().path, "session/other.json");
    assert!(archive.history().unwrap().is_python);
    assert!(!archive.prompt().is_empty());
    let bytes = sample("py_data_index.opa");
    let archive = open(&bytes).unwrap();
    let file = archive.file("data/q1/north.csv").unwrap();
    assert_eq!((file.description.as_deref(), file.mime()), (Some("Q1 north"), "text/csv"));
    assert_eq!(archive.file("META-INF/extensions/tool-config/config.json").unwrap().kind, Kind::Extension);
}
