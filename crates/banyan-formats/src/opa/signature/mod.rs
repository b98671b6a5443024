//! Signatures: what an archive's is worth, and how one is made.
//!
//! The format's own steps leave a hole: nothing compares the entries with the digests that were signed. Here every entry is
//! compared, and a signature says which entries it covers.

mod block;
mod sign;

use std::collections::HashMap;
use std::io::{Read, Seek};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

pub use self::block::Signer;
pub use self::sign::SigningKey;
use super::container::Container;
use super::digest::{Algorithm, Digests};
use super::error::Error;
use super::limits::Limits;
use super::manifest::{Manifest, find, safe_display};

pub(crate) const MANIFEST: &str = "META-INF/MANIFEST.MF";
pub(crate) const SIGNATURE: &str = "META-INF/SIGNATURE.SF";
const BLOCKS: [&str; 3] = ["META-INF/SIGNATURE.RSA", "META-INF/SIGNATURE.EC", "META-INF/SIGNATURE.DSA"];
/// How many bytes a block may have.
const BLOCK: u64 = 1 << 20;

/// What an archive's signature is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Which entries it covers.
    pub coverage: Coverage,
    /// How it is made; none when there is none, or when it cannot be read.
    pub form: Option<Form>,
    /// Whose certificate it was made with. That it is in the archive does not make it trustworthy.
    pub signer: Option<Signer>,
}

/// Which entries a signature covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// Every entry, and every entry is as it was signed.
    Full,
    /// Only some entries. What is not covered can be anybody's.
    Partial {
        /// The entries that are not covered.
        uncovered: Vec<String>,
    },
    /// There is no signature.
    None,
    /// There is one and it does not hold.
    Broken {
        /// Why, for people.
        reason: String,
    },
}

impl Coverage {
    /// The coverage as one word.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Partial { .. } => "partial",
            Self::None => "none",
            Self::Broken { .. } => "broken",
        }
    }
}

/// How a signature is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// PKCS#7, as the format demands.
    Pkcs7,
    /// A certificate and a bare signature, as opa-php writes them.
    Bare,
}

/// The files that make a signature.
pub(crate) struct Papers {
    manifest: Vec<u8>,
    signature: Option<Vec<u8>>,
    blocks: Vec<Vec<u8>>,
}

impl Papers {
    pub(crate) fn read<R: Read + Seek + Send>(
        zip: &Container<R>,
        manifest: Vec<u8>,
        limits: &Limits,
    ) -> Result<Self, Error> {
        let signature = zip.find(SIGNATURE).map(|entry| zip.bytes(entry, limits.part_size)).transpose()?;
        let blocks = BLOCKS.into_iter().filter_map(|name| zip.find(name));
        let blocks = blocks.map(|entry| zip.bytes(entry, BLOCK)).collect::<Result<_, _>>()?;
        Ok(Self { manifest, signature, blocks })
    }

    pub(crate) fn is_signed(&self) -> bool {
        self.signature.is_some() || !self.blocks.is_empty()
    }
}

/// Judges the signature of an archive whose entries have been read.
pub(crate) fn verify<R: Read + Seek + Send>(
    papers: &Papers,
    manifest: &Manifest,
    zip: &Container<R>,
    digests: &HashMap<String, Digests>,
    remarks: &mut Vec<String>,
) -> Signature {
    if !papers.is_signed() {
        let other = zip.entries.iter().find(|entry| {
            let name = entry.name.strip_prefix("META-INF/");
            name.is_some_and(|name| !name.contains('/') && name.to_ascii_uppercase().ends_with(".SF"))
        });
        if let Some(entry) = other {
            let name = safe_display(&entry.name);
            remarks.push(format!(
                "`{name}` signs a JAR file; an OPA archive has `{SIGNATURE}`, so this one counts as unsigned"
            ));
        }
        return Signature { coverage: Coverage::None, form: None, signer: None };
    }
    match holds(papers, manifest, zip, digests) {
        Ok(signature) => signature,
        Err(reason) => Signature { coverage: Coverage::Broken { reason }, form: None, signer: None },
    }
}

fn holds<R: Read + Seek + Send>(
    papers: &Papers,
    manifest: &Manifest,
    zip: &Container<R>,
    digests: &HashMap<String, Digests>,
) -> Result<Signature, String> {
    let Some(signed) = &papers.signature else { return Err(format!("there is a signature and no `{SIGNATURE}`")) };
    let Some(first) = papers.blocks.first() else {
        return Err(format!("`{SIGNATURE}` has no signature beside it"));
    };
    let file = Manifest::read(signed).map_err(|error| format!("`{SIGNATURE}`: {error}"))?;
    if file.get("Signature-Version").is_none() {
        return Err(format!("`{SIGNATURE}` has no `Signature-Version`"));
    }
    refuse_weak(&file)?;
    refuse_weak(manifest)?;
    let algorithm = check_manifest(&file, &papers.manifest)?;
    let (form, signer) = block::verify(first, signed, algorithm)?;
    for block in papers.blocks.iter().skip(1) {
        block::verify(block, signed, algorithm)?;
    }
    check_sections(&file, manifest, &papers.manifest)?;
    let coverage = check_entries(manifest, zip, digests)?;
    Ok(Signature { coverage, form: Some(form), signer: Some(signer) })
}

/// MD5 and SHA-1 refuse a signature, wherever they turn up in it.
fn refuse_weak(manifest: &Manifest) -> Result<(), String> {
    let all = manifest.sections.iter().map(|section| &section.attributes).chain([&manifest.attributes]);
    for (name, _) in all.flatten() {
        let name = name.to_ascii_uppercase();
        let Some((digest, _)) = name.split_once("-DIGEST") else { continue };
        if matches!(digest, "MD2" | "MD4" | "MD5" | "SHA" | "SHA1" | "SHA-1") {
            return Err(format!("it uses {digest} digests, which are refused"));
        }
    }
    Ok(())
}

/// The digest of the whole manifest. At least one that is accepted must be there, and all of those must be right.
fn check_manifest(file: &Manifest, bytes: &[u8]) -> Result<Algorithm, String> {
    let mut found = None;
    for (name, value) in &file.attributes {
        let name = name.to_ascii_uppercase();
        let Some(algorithm) = name.strip_suffix("-DIGEST-MANIFEST").and_then(Algorithm::named) else { continue };
        if !is_digest(value, &algorithm.of(bytes)) {
            return Err("the manifest is not the one that was signed".to_owned());
        }
        found.get_or_insert(algorithm);
    }
    found.ok_or_else(|| format!("`{SIGNATURE}` has no digest of the manifest by SHA-256, SHA-384 or SHA-512"))
}

/// The digests of the manifest's sections, which writers take with or without the blank line at the end. Either is safe: the whole
/// manifest was compared before.
fn check_sections(file: &Manifest, manifest: &Manifest, bytes: &[u8]) -> Result<(), String> {
    let known: HashMap<&str, _> =
        manifest.sections.iter().filter_map(|section| Some((section.name.as_deref()?, section))).collect();
    for section in &file.sections {
        let Some(name) = section.name.as_deref() else { continue };
        let Some(signed) = known.get(name) else {
            return Err(format!("`{}` was signed and is not in the manifest", safe_display(name)));
        };
        let lines = &bytes[signed.lines.clone()];
        let bare = lines.strip_suffix(b"\r\n").or_else(|| lines.strip_suffix(b"\n")).unwrap_or(lines);
        let with_blank = &bytes[signed.with_blank.clone()];
        for (algorithm, value) in given(&section.attributes) {
            if ![lines, with_blank, bare].into_iter().any(|bytes| is_digest(value, &algorithm.of(bytes))) {
                return Err(format!("what the manifest says of `{}` is not what was signed", safe_display(name)));
            }
        }
    }
    Ok(())
}

/// The step that the format forgot: entries against the digests that were signed.
fn check_entries<R: Read + Seek + Send>(
    manifest: &Manifest,
    zip: &Container<R>,
    digests: &HashMap<String, Digests>,
) -> Result<Coverage, String> {
    let mut covered = HashMap::new();
    for section in &manifest.sections {
        let Some(name) = section.name.as_deref() else { continue };
        let shown = safe_display(name);
        if covered.insert(name, ()).is_some() {
            return Err(format!("the manifest speaks of `{shown}` twice"));
        }
        let mut is_covered = false;
        for (algorithm, value) in given(&section.attributes) {
            let Some(digests) = digests.get(name) else {
                return Err(format!("the signed entry `{shown}` is missing"));
            };
            if !digests.get(algorithm).is_some_and(|digest| is_digest(value, digest)) {
                return Err(format!("the entry `{shown}` is not what was signed"));
            }
            is_covered = true;
        }
        if !is_covered {
            covered.remove(name);
        }
    }
    let is_paper = |name: &str| name == MANIFEST || name == SIGNATURE || BLOCKS.contains(&name);
    let entries = zip.entries.iter().filter(|entry| !entry.is_directory() && !is_paper(&entry.name));
    let uncovered = entries.filter(|entry| !covered.contains_key(entry.name.as_str()));
    let uncovered: Vec<String> = uncovered.map(|entry| entry.name.clone()).collect();
    Ok(if uncovered.is_empty() { Coverage::Full } else { Coverage::Partial { uncovered } })
}

/// The digests of a section that are accepted.
fn given(attributes: &[(String, String)]) -> impl Iterator<Item = (Algorithm, &str)> {
    Algorithm::ALL.into_iter().filter_map(|algorithm| {
        let names = match algorithm {
            Algorithm::Sha256 => ["SHA-256-Digest", "SHA256-Digest"],
            Algorithm::Sha384 => ["SHA-384-Digest", "SHA384-Digest"],
            Algorithm::Sha512 => ["SHA-512-Digest", "SHA512-Digest"],
        };
        names.into_iter().find_map(|name| find(attributes, name)).map(|value| (algorithm, value))
    })
}

fn is_digest(base64: &str, digest: &[u8]) -> bool {
    STANDARD.decode(base64.trim()).is_ok_and(|given| given == digest)
}
