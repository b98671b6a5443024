//! What a signature covers, and what breaks it.

use banyan_formats::opa::*;

use crate::given::*;
use crate::writing;

fn key() -> SigningKey {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
    parameters.distinguished_name.push(rcgen::DnType::CommonName, "Somebody");
    let certificate = parameters.self_signed(&key).unwrap();
    SigningKey::from_pem(key.serialize_pem().as_bytes(), certificate.pem().as_bytes()).unwrap()
}

fn files(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let archive = Archive::examine(std::io::Cursor::new(bytes), &Limits::default()).unwrap();
    archive.files().iter().map(|entry| (entry.path.clone(), file(bytes, &entry.path))).collect()
}

fn packed(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let files: Vec<(&str, &[u8])> = files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())).collect();
    zip(&files)
}

#[test]
fn what_is_signed_is_covered_whole() {
    let key = key();
    for plain in [false, true] {
        let (bytes, written) = writing::session().written(Options { plain, sign: Some(&key) });
        let archive = open(&bytes).unwrap();
        assert_eq!(archive.signature().coverage, Coverage::Full);
        assert_eq!(archive.signature().form, Some(Form::Pkcs7));
        assert!(archive.signature().signer.as_ref().unwrap().subject.contains("Somebody"));
        assert_eq!(written.signed_by, archive.signature().signer.as_ref().map(|signer| signer.subject.clone()));
        assert_eq!(archive.extension().is_some_and(Extension::is_true), !plain);
    }
}

#[test]
fn every_change_to_what_is_signed_breaks_it() {
    let (bytes, _) = writing::session().written(Options { plain: false, sign: Some(&key()) });
    let whole = files(&bytes);
    assert_eq!(
        open(&packed(&whole)).unwrap().signature().coverage,
        Coverage::Full,
        "packing again changes nothing"
    );
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        let (path, content) = &mut changed[at];
        let last = content.len() - 3;
        content[last] ^= 1;
        let path = path.clone();
        let examined = Archive::examine(std::io::Cursor::new(packed(&changed)), &Limits::default());
        // A change can also make the file unreadable, which is refused before.
        if let Ok(examined) = examined {
            assert_eq!(examined.signature().coverage.as_str(), "broken", "{path}");
        }
        assert!(open(&packed(&changed)).is_err(), "{path}");
        let mut without = whole.clone();
        without.remove(at);
        assert!(open(&packed(&without)).is_err(), "without {path}");
    }
}

#[test]
fn what_is_added_is_not_covered_and_named() {
    let (bytes, _) = writing::session().written(Options { plain: true, sign: Some(&key()) });
    let mut more = files(&bytes);
    more.push(("data/added.txt".into(), b"x".to_vec()));
    let archive = packed(&more);
    let coverage = open(&archive).unwrap().signature().coverage.clone();
    assert_eq!(coverage, Coverage::Partial { uncovered: vec!["data/added.txt".into()] });
}

#[test]
fn a_signature_that_is_taken_off_leaves_none() {
    let (bytes, _) = writing::session().written(Options { plain: true, sign: Some(&key()) });
    let mut rest = files(&bytes);
    rest.retain(|(path, _)| !path.starts_with("META-INF/SIGNATURE"));
    assert_eq!(open(&packed(&rest)).unwrap().signature().coverage, Coverage::None);
}
