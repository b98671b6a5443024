//! Others judge: opa-archive from PyPI writes what we read and reads what we write; openssl and jarsigner verify what we sign, and
//! openssl signs what we verify. What is not installed is said aloud.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use banyan_formats::opa::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::given::*;
use crate::writing;

/// Says loudly that a test did not run. Written past the test harness, which keeps what tests print to itself.
pub(crate) fn skip(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}

pub(crate) fn run(command: &mut Command) -> Result<String, String> {
    let name = format!("{command:?}");
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{name}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(said);
    }
    Err(format!("{name}: {said}{}", String::from_utf8_lossy(&output.stderr).trim()))
}

fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients")
}

/// A Python that has opa-archive.
fn python() -> Result<PathBuf, String> {
    static INSTALLED: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let install = || {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("opa-archive");
        let python = place.join("bin/python");
        if !python.exists() {
            run(Command::new("python3").args(["-m", "venv"]).arg(&place))?;
        }
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
        run(Command::new(&python).args(pip).arg(clients().join("opa-requirements.txt")))?;
        Ok(python)
    };
    INSTALLED.get_or_init(install).clone()
}

#[test]
fn what_opa_archive_writes_is_read() {
    let python = match python() {
        Ok(python) => python,
        Err(why) => return skip("what_opa_archive_writes_is_read", &why),
    };
    let folder = tempfile::tempdir().unwrap();
    run(Command::new(python).arg(clients().join("opa_archive.py")).arg("write").arg(folder.path())).unwrap();
    let mut read = Vec::new();
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(&path).unwrap();
        let archive = open(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        let coverage = archive.signature().coverage.as_str();
        if name != "plain.opa" {
            let (entries, report) = taken(&archive);
            assert_eq!((report.messages, report.unplaced_count, entries.len()), (6, 0, 7), "{name}: {report:?}");
            let (again, _) = Session::imported(&bytes).written(Options::default());
            assert_eq!(history(&again)["messages"], history(&bytes)["messages"], "{name}");
            assert_eq!(open(&again).unwrap().manifest().get("X-Own"), Some("value"));
        }
        assert_eq!(coverage, if name.starts_with("signed") { "partial" } else { "none" }, "{name}");
        read.push(name);
    }
    assert!(read.contains(&"full.opa".to_owned()) && read.contains(&"plain.opa".to_owned()), "{read:?}");
}

#[test]
fn what_is_written_is_right_by_the_rules_of_opa_archive() {
    let python = match python() {
        Ok(python) => python,
        Err(why) => return skip("what_is_written_is_right_by_the_rules_of_opa_archive", &why),
    };
    for plain in [false, true] {
        let (bytes, _) = writing::session().written(Options { plain, sign: None });
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let said = run(Command::new(&python).arg(clients().join("opa_archive.py")).arg("judge").arg(file.path()))
            .unwrap();
        assert!(said.contains("3 messages"), "{said}");
    }
}

/// A key and a certificate that openssl made.
struct Made {
    folder: tempfile::TempDir,
}

impl Made {
    fn new(kind: &[&str]) -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("openssl");
        command.args(["req", "-x509", "-nodes", "-days", "3650", "-subj", "/CN=Somebody", "-newkey"]).args(kind);
        command.args(["-keyout", "key.pem", "-out", "cert.pem"]).current_dir(folder.path());
        run(&mut command)?;
        Ok(Self { folder })
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder.path().join(name)).unwrap()
    }

    fn key(&self) -> SigningKey {
        SigningKey::from_pem(&self.read("key.pem"), &self.read("cert.pem")).unwrap()
    }

    fn openssl(&self, args: &[&str]) -> Result<String, String> {
        run(Command::new("openssl").args(args).current_dir(self.folder.path()))
    }
}

const KINDS: [(&[&str], &str); 3] = [
    (&["rsa:2048"], "META-INF/SIGNATURE.RSA"),
    (&["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], "META-INF/SIGNATURE.EC"),
    (&["ec", "-pkeyopt", "ec_paramgen_curve:P-384"], "META-INF/SIGNATURE.EC"),
];

#[test]
fn openssl_and_jarsigner_verify_what_is_signed() {
    let has_jarsigner =
        run(&mut Command::new("jarsigner")).is_ok() || run(Command::new("jarsigner").arg("-help")).is_ok();
    if !has_jarsigner {
        skip("openssl_and_jarsigner_verify_what_is_signed", "there is no jarsigner here; openssl judges alone");
    }
    for (kind, block) in KINDS {
        let made = match Made::new(kind) {
            Ok(made) => made,
            Err(why) => return skip("openssl_and_jarsigner_verify_what_is_signed", &why),
        };
        let key = made.key();
        let (bytes, written) = writing::session().written(Options { plain: false, sign: Some(&key) });
        assert_eq!(written.signed_by.as_deref(), Some("CN=Somebody"));
        let place = |name: &str| made.folder.path().join(name);
        std::fs::write(place("signed.opa"), &bytes).unwrap();
        std::fs::write(place("signature.sf"), file(&bytes, "META-INF/SIGNATURE.SF")).unwrap();
        std::fs::write(place("block.der"), file(&bytes, block)).unwrap();
        for tool in ["cms", "smime"] {
            let verify = [
                tool,
                "-verify",
                "-binary",
                "-inform",
                "DER",
                "-in",
                "block.der",
                "-content",
                "signature.sf",
                "-CAfile",
                "cert.pem",
                "-purpose",
                "any",
                "-out",
                "out",
            ];
            made.openssl(&verify).unwrap_or_else(|error| panic!("{kind:?}: {error}"));
        }
        if has_jarsigner {
            let said =
                run(Command::new("jarsigner").args(["-verify", "signed.opa"]).current_dir(made.folder.path()))
                    .unwrap();
            assert!(said.contains("jar verified"), "{kind:?}: {said}");
        }
        let archive = open(&bytes).unwrap();
        assert_eq!(archive.signature().coverage, Coverage::Full, "{kind:?}");
        assert!(archive.signature().signer.as_ref().unwrap().is_among(&made.read("cert.pem")));
    }
}

#[test]
fn keys_are_read_in_every_form() {
    let made = match Made::new(KINDS[0].0) {
        Ok(made) => made,
        Err(why) => return skip("keys_are_read_in_every_form", &why),
    };
    made.openssl(&["rsa", "-in", "key.pem", "-traditional", "-out", "pkcs1.pem"]).unwrap();
    assert!(String::from_utf8(made.read("pkcs1.pem")).unwrap().contains("BEGIN RSA PRIVATE KEY"));
    SigningKey::from_pem(&made.read("pkcs1.pem"), &made.read("cert.pem")).unwrap();
    let other = Made::new(KINDS[1].0).unwrap();
    other.openssl(&["ec", "-in", "key.pem", "-out", "sec1.pem"]).unwrap();
    assert!(String::from_utf8(other.read("sec1.pem")).unwrap().contains("BEGIN EC PRIVATE KEY"));
    SigningKey::from_pem(&other.read("sec1.pem"), &other.read("cert.pem")).unwrap();
    let refused = SigningKey::from_pem(&other.read("key.pem"), &made.read("cert.pem")).unwrap_err();
    assert!(matches!(refused, Error::Invalid(_)), "{refused:?}");
    let refused =
        SigningKey::from_pem(&Made::new(KINDS[0].0).unwrap().read("key.pem"), &made.read("cert.pem")).unwrap_err();
    assert!(refused.to_string().contains("another key"), "{refused}");
    assert!(SigningKey::from_pem(b"", b"").is_err());
}

fn sha(bytes: &[u8]) -> String {
    STANDARD.encode(Sha256::digest(bytes))
}

/// Signs as opa-ruby does (detached, with attributes, sections digested with their blank line) and as opa-archive does
/// (attached, with attributes), by way of openssl.
#[test]
fn what_openssl_signs_in_the_forms_of_others_is_verified() {
    let (prompt, data): (&[u8], &[u8]) = (b"Hello", b"1,2");
    let section = |name: &str, bytes: &[u8]| format!("Name: {name}\r\nSHA-256-Digest: {}\r\n\r\n", sha(bytes));
    let (first, second) = (section("prompt.md", prompt), section("data/x.csv", data));
    let manifest = format!("{MANIFEST}{first}{second}");
    let file = format!(
        "Signature-Version: 1.0\r\nSHA-256-Digest-Manifest: {}\r\n\r\n{}{}",
        sha(manifest.as_bytes()),
        section("prompt.md", first.as_bytes()),
        section("data/x.csv", second.as_bytes()),
    );
    for (kind, block) in KINDS {
        let made = match Made::new(kind) {
            Ok(made) => made,
            Err(why) => return skip("what_openssl_signs_in_the_forms_of_others_is_verified", &why),
        };
        std::fs::write(made.folder.path().join("sf"), &file).unwrap();
        for form in [
            &["smime", "-sign"][..],
            &["smime", "-sign", "-nodetach"],
            &["cms", "-sign", "-noattr"],
            &["cms", "-sign", "-keyid"],
        ] {
            let rest = [
                "-binary", "-md", "sha256", "-in", "sf", "-signer", "cert.pem", "-inkey", "key.pem", "-outform",
                "DER", "-out", "block",
            ];
            made.openssl(&[form, &rest].concat()).unwrap();
            let signature = made.read("block");
            let build = |prompt: &[u8], data: &[u8], file: &str| {
                zip(&[
                    ("META-INF/MANIFEST.MF", manifest.as_bytes()),
                    ("META-INF/SIGNATURE.SF", file.as_bytes()),
                    (block, &signature),
                    ("prompt.md", prompt),
                    ("data/x.csv", data),
                ])
            };
            let bytes = build(prompt, data, &file);
            let archive = open(&bytes).unwrap_or_else(|error| panic!("{kind:?} {form:?}: {error}"));
            assert_eq!(archive.signature().coverage, Coverage::Full);
            for tampered in [
                build(b"Bye", data, &file),
                build(prompt, b"3", &file),
                build(prompt, data, &format!("{file}\r\n")),
            ] {
                assert_eq!(refusal(&tampered).why, Why::Signature, "{kind:?} {form:?}");
            }
        }
        made.openssl(&[
            "cms", "-sign", "-noattr", "-binary", "-md", "sha1", "-in", "sf", "-signer", "cert.pem", "-inkey",
            "key.pem", "-outform", "DER", "-out", "weak",
        ])
        .unwrap();
        let weak = made.read("weak");
        let bytes = zip(&[
            ("META-INF/MANIFEST.MF", manifest.as_bytes()),
            ("META-INF/SIGNATURE.SF", file.as_bytes()),
            (block, &weak),
            ("prompt.md", prompt),
            ("data/x.csv", data),
        ]);
        assert_eq!(refusal(&bytes).why, Why::Signature);
    }
}
