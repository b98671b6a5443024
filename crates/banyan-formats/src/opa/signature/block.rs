//! The signature itself: PKCS#7 in the forms that are around, and opa-php's own.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cms::cert::CertificateChoices;
use cms::content_info::ContentInfo;
use cms::signed_data::{SignedData, SignerIdentifier, SignerInfo};
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use x509_cert::Certificate;
use x509_cert::der::asn1::OctetStringRef;
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::der::{Decode, Encode};
use x509_cert::ext::pkix::SubjectKeyIdentifier;

use super::super::digest::{Algorithm, hex};
use super::Form;

pub(super) const SIGNED_DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.2");
pub(super) const DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.1");
const CONTENT_TYPE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.3");
const MESSAGE_DIGEST: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.4");
pub(super) const SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");
pub(super) const SHA384: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.2");
const SHA512: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.3");
pub(super) const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
pub(super) const SHA256_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.11");
const SHA384_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.12");
const SHA512_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.13");
pub(super) const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
pub(super) const SHA256_ECDSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");
pub(super) const SHA384_ECDSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.3");
const SHA512_ECDSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.4");
pub(super) const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
pub(super) const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
const DSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10040.4.1");

/// Whose certificate a signature was made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signer {
    /// The name in the certificate.
    pub subject: String,
    /// The SHA-256 of the certificate, in hex.
    pub sha256: String,
    /// The certificate, in DER.
    pub certificate: Vec<u8>,
    /// From when to when the certificate says that it is valid, in seconds since 1970. Nobody looked at a clock.
    pub validity: (u64, u64),
}

impl Signer {
    pub(super) fn of(certificate: &Certificate, der: Vec<u8>) -> Self {
        let times = &certificate.tbs_certificate.validity;
        let seconds = |time: &x509_cert::time::Time| time.to_unix_duration().as_secs();
        Self {
            subject: certificate.tbs_certificate.subject.to_string(),
            sha256: hex(&Algorithm::Sha256.of(&der)),
            certificate: der,
            validity: (seconds(&times.not_before), seconds(&times.not_after)),
        }
    }

    /// Whether this is one of the certificates in a PEM file: those that somebody trusts.
    pub fn is_among(&self, pem: &[u8]) -> bool {
        CertificateDer::pem_slice_iter(pem).flatten().any(|trusted| trusted.as_ref() == self.certificate)
    }
}

/// Verifies a block over the signature file.
pub(super) fn verify(block: &[u8], signed: &[u8], digest: Algorithm) -> Result<(Form, Signer), String> {
    let start = block.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or_default();
    if block[start..].starts_with(b"-----BEGIN CERTIFICATE-----") {
        return bare(block, signed, digest).map(|signer| (Form::Bare, signer));
    }
    pkcs7(block, signed).map(|signer| (Form::Pkcs7, signer))
}

/// A certificate in PEM, and after it the signature in base64.
fn bare(block: &[u8], signed: &[u8], digest: Algorithm) -> Result<Signer, String> {
    const END: &str = "-----END CERTIFICATE-----";
    let text = std::str::from_utf8(block).map_err(|_| "it is neither PKCS#7 nor text".to_owned())?;
    let (_, signature) = text.rsplit_once(END).ok_or("it has no whole certificate")?;
    let signature: String = signature.split_ascii_whitespace().collect();
    let signature = STANDARD.decode(signature).map_err(|_| "the bare signature is not base64".to_owned())?;
    let der = CertificateDer::from_pem_slice(block).map_err(|error| format!("its certificate: {error}"))?;
    let certificate = read_certificate(der.as_ref())?;
    check(&certificate, digest, signed, &signature)?;
    Ok(Signer::of(&certificate, der.to_vec()))
}

fn read_certificate(der: &[u8]) -> Result<Certificate, String> {
    Certificate::from_der(der).map_err(|error| format!("its certificate cannot be read: {error}"))
}

fn pkcs7(block: &[u8], signed: &[u8]) -> Result<Signer, String> {
    let unreadable = |error: x509_cert::der::Error| format!("it is not PKCS#7: {error}");
    let info = ContentInfo::from_der(block).map_err(unreadable)?;
    if info.content_type != SIGNED_DATA {
        return Err("it is PKCS#7 of another kind".to_owned());
    }
    let data: SignedData = info.content.decode_as().map_err(unreadable)?;
    if let Some(content) = &data.encap_content_info.econtent {
        let content: OctetStringRef<'_> = content.decode_as().map_err(unreadable)?;
        if content.as_bytes() != signed {
            return Err("what it was made over is not the signature file".to_owned());
        }
    }
    let mut signer = None;
    for info in data.signer_infos.0.iter() {
        let certificate = certificate_of(&data, &info.sid)?;
        verify_info(info, data.encap_content_info.econtent_type, certificate, signed)?;
        let der = certificate.to_der().map_err(unreadable)?;
        signer.get_or_insert_with(|| Signer::of(certificate, der));
    }
    signer.ok_or_else(|| "nobody signed it".to_owned())
}

fn certificate_of<'a>(data: &'a SignedData, id: &SignerIdentifier) -> Result<&'a Certificate, String> {
    let all = data.certificates.iter().flat_map(|set| set.0.iter());
    let mut all = all.filter_map(|choice| match choice {
        CertificateChoices::Certificate(certificate) => Some(certificate),
        CertificateChoices::Other(_) => None,
    });
    let found = all.find(|certificate| {
        let certificate = &certificate.tbs_certificate;
        match id {
            SignerIdentifier::IssuerAndSerialNumber(id) => {
                id.issuer == certificate.issuer && id.serial_number == certificate.serial_number
            }
            SignerIdentifier::SubjectKeyIdentifier(id) => {
                matches!(certificate.get::<SubjectKeyIdentifier>(), Ok(Some((_, own))) if own == *id)
            }
        }
    });
    found.ok_or_else(|| "the signer's certificate is not in it".to_owned())
}

fn verify_info(
    info: &SignerInfo,
    content_type: ObjectIdentifier,
    certificate: &Certificate,
    signed: &[u8],
) -> Result<(), String> {
    let digest = match info.digest_alg.oid {
        SHA256 => Algorithm::Sha256,
        SHA384 => Algorithm::Sha384,
        SHA512 => Algorithm::Sha512,
        other => return Err(format!("it uses the digest {other}, which is refused")),
    };
    // Some name the key's algorithm here, some the pair of both.
    let named = match info.signature_algorithm.oid {
        RSA | EC => Some(digest),
        SHA256_RSA | SHA256_ECDSA => Some(Algorithm::Sha256),
        SHA384_RSA | SHA384_ECDSA => Some(Algorithm::Sha384),
        SHA512_RSA | SHA512_ECDSA => Some(Algorithm::Sha512),
        other => return Err(format!("it uses the algorithm {other}, which is not verified")),
    };
    if named != Some(digest) {
        return Err("it names two digests".to_owned());
    }
    let signature = info.signature.as_bytes();
    let Some(attributes) = &info.signed_attrs else { return check(certificate, digest, signed, signature) };
    let one = |oid: ObjectIdentifier| {
        let mut found = attributes.iter().filter(|attribute| attribute.oid == oid);
        let value = found.next().filter(|attribute| attribute.values.len() == 1)?.values.get(0)?;
        found.next().is_none().then_some(value)
    };
    let digested: Option<OctetStringRef<'_>> = one(MESSAGE_DIGEST).and_then(|value| value.decode_as().ok());
    if digested.is_none_or(|digested| digested.as_bytes() != digest.of(signed)) {
        return Err("the signature file is not the one that was signed".to_owned());
    }
    let kind: Option<ObjectIdentifier> = one(CONTENT_TYPE).and_then(|value| value.decode_as().ok());
    if kind != Some(content_type) {
        return Err("its attributes speak of something else".to_owned());
    }
    let attributes = attributes.to_der().map_err(|error| format!("its attributes: {error}"))?;
    check(certificate, digest, &attributes, signature)
}

/// Whether the key in a certificate made a signature over a message.
fn check(certificate: &Certificate, digest: Algorithm, message: &[u8], signature: &[u8]) -> Result<(), String> {
    let key = &certificate.tbs_certificate.subject_public_key_info;
    let curve = || {
        let parameters = key.algorithm.parameters.as_ref();
        parameters.and_then(|curve| curve.decode_as::<ObjectIdentifier>().ok())
    };
    let algorithm: &dyn VerificationAlgorithm = match (key.algorithm.oid, digest) {
        (RSA, Algorithm::Sha256) => &signature::RSA_PKCS1_2048_8192_SHA256,
        (RSA, Algorithm::Sha384) => &signature::RSA_PKCS1_2048_8192_SHA384,
        (RSA, Algorithm::Sha512) => &signature::RSA_PKCS1_2048_8192_SHA512,
        (EC, digest) => match (curve(), digest) {
            (Some(P256), Algorithm::Sha256) => &signature::ECDSA_P256_SHA256_ASN1,
            (Some(P256), Algorithm::Sha384) => &signature::ECDSA_P256_SHA384_ASN1,
            (Some(P384), Algorithm::Sha256) => &signature::ECDSA_P384_SHA256_ASN1,
            (Some(P384), Algorithm::Sha384) => &signature::ECDSA_P384_SHA384_ASN1,
            _ => {
                return Err(
                    "its curve and digest are not verified; P-256 and P-384 with SHA-256 or SHA-384 are".into()
                );
            }
        },
        (DSA, _) => return Err("it was made with a DSA key; RSA and EC keys are verified".to_owned()),
        (other, _) => return Err(format!("it was made with a key of type {other}; RSA and EC keys are verified")),
    };
    let key = key.subject_public_key.as_bytes().ok_or("its key cannot be read")?;
    let checked = UnparsedPublicKey::new(algorithm, key).verify(message, signature);
    checked.map_err(|_| {
        "the signature was not made with the key in its certificate over this signature file".to_owned()
    })
}
