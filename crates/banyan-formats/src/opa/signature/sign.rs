//! Signing, in the form that most verifiers take: PKCS#7, detached, without attributes, over a signature file that has the
//! digest of the manifest, which has the digests of the entries.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cms::cert::{CertificateChoices, IssuerAndSerialNumber};
use cms::content_info::{CmsVersion, ContentInfo};
use cms::signed_data::{
    CertificateSet, EncapsulatedContentInfo, SignedData, SignerIdentifier, SignerInfo, SignerInfos,
};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256,
    RsaKeyPair,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use x509_cert::Certificate;
use x509_cert::der::asn1::{Null, ObjectIdentifier, OctetString, OctetStringRef, SetOfVec};
use x509_cert::der::{Any, Decode, Encode, Tag};
use x509_cert::spki::{AlgorithmIdentifier, AlgorithmIdentifierOwned};

use super::super::digest::Algorithm;
use super::super::error::Error;
use super::super::manifest::Manifest;
use super::block::{
    DATA, EC, P256, P384, SHA256, SHA256_ECDSA, SHA256_RSA, SHA384, SHA384_ECDSA, SIGNED_DATA, Signer,
};

/// A key and its certificate, ready to sign.
pub struct SigningKey {
    key: Key,
    certificates: Vec<Certificate>,
    signer: Signer,
}

enum Key {
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
}

impl SigningKey {
    /// Reads a private key (PKCS#8, PKCS#1 or SEC 1, not encrypted) and its certificate, both in PEM. More certificates may
    /// follow the first one, and go into the archive with it.
    pub fn from_pem(key: &[u8], certificates: &[u8]) -> Result<Self, Error> {
        let mut read = Vec::new();
        for der in CertificateDer::pem_slice_iter(certificates) {
            let der = der.map_err(|error| invalid(format!("the certificate cannot be read: {error}")))?;
            let certificate = Certificate::from_der(der.as_ref());
            let certificate =
                certificate.map_err(|error| invalid(format!("the certificate cannot be read: {error}")))?;
            read.push((certificate, der.to_vec()));
        }
        let Some((certificate, der)) = read.first() else {
            return Err(invalid("there is no certificate in the file; it must be PEM".into()));
        };
        let signer = Signer::of(certificate, der.clone());
        let key = Key::read(key, certificate)?;
        let public = certificate.tbs_certificate.subject_public_key_info.subject_public_key.as_bytes();
        if public != Some(key.public()) {
            return Err(invalid("the certificate is for another key".into()));
        }
        Ok(Self { key, certificates: read.into_iter().map(|(certificate, _)| certificate).collect(), signer })
    }

    /// Whose certificate it is.
    pub fn signer(&self) -> &Signer {
        &self.signer
    }

    /// The entry that the signature goes into.
    pub(crate) fn entry(&self) -> &'static str {
        match self.key {
            Key::Rsa(_) => "META-INF/SIGNATURE.RSA",
            Key::P256(_) | Key::P384(_) => "META-INF/SIGNATURE.EC",
        }
    }

    /// The signature file for a manifest.
    pub(crate) fn signature_file(&self, manifest: &[u8]) -> Vec<u8> {
        let mut file = Manifest::default();
        file.push("Signature-Version", "1.0");
        file.push("SHA-256-Digest-Manifest", &STANDARD.encode(Algorithm::Sha256.of(manifest)));
        file.write()
    }

    /// The signature over a signature file.
    pub(crate) fn sign(&self, file: &[u8]) -> Result<Vec<u8>, Error> {
        let (signature, algorithm, digest) = self.key.sign(file)?;
        let first = self.certificates.first().ok_or_else(|| invalid("there is no certificate".into()))?;
        let first = &first.tbs_certificate;
        let id =
            IssuerAndSerialNumber { issuer: first.issuer.clone(), serial_number: first.serial_number.clone() };
        let failed = |error: x509_cert::der::Error| invalid(format!("the signature cannot be written: {error}"));
        let info = SignerInfo {
            version: CmsVersion::V1,
            sid: SignerIdentifier::IssuerAndSerialNumber(id),
            digest_alg: digest.clone(),
            signed_attrs: None,
            signature_algorithm: algorithm,
            signature: OctetString::new(signature).map_err(failed)?,
            unsigned_attrs: None,
        };
        let certificates = self.certificates.iter().cloned().map(CertificateChoices::Certificate);
        let certificates: Vec<CertificateChoices> = certificates.collect();
        let data = SignedData {
            version: CmsVersion::V1,
            digest_algorithms: SetOfVec::try_from(vec![digest]).map_err(failed)?,
            encap_content_info: EncapsulatedContentInfo { econtent_type: DATA, econtent: None },
            certificates: Some(CertificateSet(SetOfVec::try_from(certificates).map_err(failed)?)),
            crls: None,
            signer_infos: SignerInfos(SetOfVec::try_from(vec![info]).map_err(failed)?),
        };
        let content = Any::encode_from(&data).map_err(failed)?;
        ContentInfo { content_type: SIGNED_DATA, content }.to_der().map_err(failed)
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey").field("signer", &self.signer.subject).finish_non_exhaustive()
    }
}

impl Key {
    fn read(pem: &[u8], certificate: &Certificate) -> Result<Self, Error> {
        let key = PrivateKeyDer::from_pem_slice(pem).map_err(|error| {
            invalid(format!("the private key cannot be read: {error}; it must be PEM and not encrypted"))
        })?;
        let rejected =
            |error: ring::error::KeyRejected| invalid(format!("the private key is not usable: {error}"));
        let public = &certificate.tbs_certificate.subject_public_key_info.algorithm;
        if public.oid != EC {
            let pair = match &key {
                PrivateKeyDer::Pkcs1(key) => RsaKeyPair::from_der(key.secret_pkcs1_der()),
                PrivateKeyDer::Pkcs8(key) => RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()),
                _ => return Err(invalid("the certificate is for another kind of key".into())),
            };
            return pair.map(Self::Rsa).map_err(rejected);
        }
        let curve = public.parameters.as_ref().and_then(|curve| curve.decode_as::<ObjectIdentifier>().ok());
        let (algorithm, kind): (_, fn(EcdsaKeyPair) -> Self) = match curve {
            Some(P256) => (&ECDSA_P256_SHA256_ASN1_SIGNING, Self::P256),
            Some(P384) => (&ECDSA_P384_SHA384_ASN1_SIGNING, Self::P384),
            _ => return Err(invalid("of EC keys only those on P-256 and P-384 can sign".into())),
        };
        let pkcs8 = match &key {
            PrivateKeyDer::Pkcs8(key) => key.secret_pkcs8_der().to_vec(),
            PrivateKeyDer::Sec1(key) => wrapped(key.secret_sec1_der(), public)?,
            _ => return Err(invalid("the certificate is for another kind of key".into())),
        };
        EcdsaKeyPair::from_pkcs8(algorithm, &pkcs8, &SystemRandom::new()).map(kind).map_err(rejected)
    }

    fn public(&self) -> &[u8] {
        match self {
            Self::Rsa(pair) => pair.public_key().as_ref(),
            Self::P256(pair) | Self::P384(pair) => pair.public_key().as_ref(),
        }
    }

    /// A signature, what it is called and which digest is in it.
    fn sign(
        &self,
        message: &[u8],
    ) -> Result<(Vec<u8>, AlgorithmIdentifierOwned, AlgorithmIdentifierOwned), Error> {
        let failed = |_: ring::error::Unspecified| invalid("the private key does not sign".into());
        let random = SystemRandom::new();
        let with_null = |oid| AlgorithmIdentifier { oid, parameters: Some(Any::from(Null)) };
        Ok(match self {
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).map_err(failed)?;
                (signature, with_null(SHA256_RSA), with_null(SHA256))
            }
            Self::P256(pair) | Self::P384(pair) => {
                let signature = pair.sign(&random, message).map_err(failed)?.as_ref().to_vec();
                let (oid, digest) =
                    if matches!(self, Self::P256(_)) { (SHA256_ECDSA, SHA256) } else { (SHA384_ECDSA, SHA384) };
                (signature, AlgorithmIdentifier { oid, parameters: None }, with_null(digest))
            }
        })
    }
}

/// A SEC 1 key as PKCS#8, which is the same with the algorithm around it.
fn wrapped(sec1: &[u8], algorithm: &AlgorithmIdentifierOwned) -> Result<Vec<u8>, Error> {
    let failed = |error: x509_cert::der::Error| invalid(format!("the private key cannot be read: {error}"));
    let mut fields = 0_u8.to_der().map_err(failed)?;
    algorithm.encode_to_vec(&mut fields).map_err(failed)?;
    OctetStringRef::new(sec1).and_then(|key| key.encode_to_vec(&mut fields)).map_err(failed)?;
    Any::new(Tag::Sequence, fields).and_then(|key| key.to_der()).map_err(failed)
}

fn invalid(detail: String) -> Error {
    Error::Invalid(detail)
}
