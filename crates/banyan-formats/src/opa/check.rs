//! One pass over a whole archive, before anything of it is taken.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::{self, Read, Seek};

use super::archive::{Archive, File, History, Kind};
use super::container::{Container, Stored};
use super::digest::{Algorithm, Digesting, Digests, hex};
use super::error::{Error, Why};
use super::extension::{EXTENSION_URI, Extension, FOLDER, INFO, Info, Sum};
use super::index::{self, Asset};
use super::limits::Limits;
use super::manifest::{Manifest, safe_display};
use super::path;
use super::signature::{self, MANIFEST, Papers};
use super::sources;
use super::split::{Document, Piece};

const ATTACHMENTS: &str = "session/attachments/";
/// How much is unpacked at a time.
const BUFFER: usize = 128 << 10;
/// How many names a reason or a remark lists.
const LISTED: usize = 10;

/// Reads an archive to its end.
pub(crate) fn check<R: Read + Seek + Send>(reader: R, limits: &Limits) -> Result<Archive<R>, Error> {
    let zip = Container::open(reader, limits)?;
    let Some(entry) = zip.find(MANIFEST) else {
        return Err(Error::refused(
            Why::MissingPart,
            format!("there is no `{MANIFEST}`: this is not an OPA archive"),
        ));
    };
    let bytes = zip.bytes(entry, limits.part_size)?;
    let manifest = Manifest::read(&bytes)?;
    let mut remarks = Vec::new();
    let layout = Layout::of(&manifest, &zip, &mut remarks)?;
    let papers = Papers::read(&zip, bytes, limits)?;

    let mut pass = Pass { zip: &zip, limits, layout: &layout, buffer: vec![0; BUFFER], seen: Seen::default() };
    let wanted = wanted(&manifest, &papers);
    let mut digests = HashMap::new();
    for entry in zip.entries.iter().filter(|entry| !entry.is_directory()) {
        digests.insert(entry.name.clone(), pass.read(entry, &wanted)?);
    }
    let Seen { prompt, history, kept, index, info, sources } = pass.seen;

    let signature = signature::verify(&papers, &manifest, &zip, &digests, &mut remarks);
    check_sources(&sources, &zip, &mut remarks)?;
    let index = read_index(index, &zip, &mut remarks)?;
    let files = files(&zip, &layout, &sources, &index, &digests);
    let extension = info.and_then(|info| own_extension(&info, &zip, &digests, &mut remarks));
    let by_path = files.iter().enumerate().map(|(at, file)| (file.path.clone(), at)).collect();
    Ok(Archive {
        prompt: prompt.unwrap_or_default(),
        limits: limits.clone(),
        zip,
        manifest,
        files,
        by_path,
        history,
        kept,
        signature,
        extension,
        remarks,
    })
}

/// Where the manifest says that things are.
struct Layout {
    prompt: String,
    history: Option<String>,
    index: String,
}

impl Layout {
    fn of<R: Read + Seek + Send>(
        manifest: &Manifest,
        zip: &Container<R>,
        remarks: &mut Vec<String>,
    ) -> Result<Self, Error> {
        for required in ["Manifest-Version", "OPA-Version"] {
            if manifest.get(required).is_none_or(str::is_empty) {
                return Err(Error::refused(Why::MissingPart, format!("the manifest has no `{required}`")));
            }
        }
        let version = manifest.get("OPA-Version").unwrap_or_default();
        if version.split('.').next() != Some("0") {
            remarks.push(format!("OPA-Version is {}; this reader knows 0.1", safe_display(version)));
        }
        let named = |attribute: &str, default: &str| -> Result<(String, bool), Error> {
            let given = manifest.get(attribute).map(str::trim).filter(|value| !value.is_empty());
            let path = given.unwrap_or(default);
            path::check(attribute, path)?;
            if given.is_some() && path::source_flaw(path).is_some() {
                let detail =
                    format!("the {attribute} `{}` is one of the archive's own papers", safe_display(path));
                return Err(Error::refused(Why::UnsafePath, detail));
            }
            Ok((path.to_owned(), given.is_some()))
        };
        let (prompt, _) = named("Prompt-File", "prompt.md")?;
        let (history, is_named) = named("Session-File", "session/history.json")?;
        let (data, _) = named("Data-Root", "data/")?;
        let missing = |what: &str, path: &str| {
            Error::refused(Why::MissingPart, format!("the {what} `{}` is missing", safe_display(path)))
        };
        if zip.find(&prompt).is_none() {
            return Err(missing("prompt", &prompt));
        }
        let has_history = zip.find(&history).is_some();
        if is_named && !has_history {
            return Err(missing("history that the manifest names,", &history));
        }
        if !has_history && zip.entries.iter().any(|entry| entry.name.starts_with("session/")) {
            remarks.push(format!("there is a `session/` without `{history}`"));
        }
        if has_history && history == prompt {
            return Err(Error::refused(Why::Malformed, "the manifest names one file as prompt and as history"));
        }
        let index = format!("{}/INDEX.json", data.trim_end_matches('/'));
        Ok(Self { prompt, history: has_history.then_some(history), index })
    }

    fn kind(&self, name: &str, sources: &Sources) -> Kind {
        match name {
            _ if name == self.prompt => Kind::Prompt,
            _ if Some(name) == self.history.as_deref() => Kind::History,
            _ if name.starts_with(FOLDER) => Kind::Own,
            _ if name.starts_with("META-INF/extensions/") => Kind::Extension,
            _ if name.starts_with("META-INF/") => Kind::Papers,
            _ if name.starts_with(ATTACHMENTS) || sources.safe.contains(name) => Kind::Attachment,
            _ if name == self.index => Kind::Index,
            _ => Kind::Data,
        }
    }
}

/// Which digests a signature needs the entries with.
fn wanted(manifest: &Manifest, papers: &Papers) -> Vec<Algorithm> {
    let mut wanted = BTreeSet::new();
    if papers.is_signed() {
        let named = manifest.sections.iter().flat_map(|section| &section.attributes);
        wanted.extend(named.filter_map(|(name, _)| Algorithm::named(name.strip_suffix("-Digest")?)));
    }
    wanted.into_iter().collect()
}

/// Attachments that messages name.
#[derive(Default)]
struct Sources {
    safe: HashSet<String>,
    flawed: Vec<String>,
}

/// What the pass found.
#[derive(Default)]
struct Seen {
    prompt: Option<String>,
    history: Option<History>,
    kept: Option<Vec<u8>>,
    index: Option<Vec<u8>>,
    info: Option<Vec<u8>>,
    sources: Sources,
}

struct Pass<'a, R> {
    zip: &'a Container<R>,
    limits: &'a Limits,
    layout: &'a Layout,
    buffer: Vec<u8>,
    seen: Seen,
}

impl<R: Read + Seek + Send> Pass<'_, R> {
    /// Reads one entry to its end.
    fn read(&mut self, entry: &Stored, wanted: &[Algorithm]) -> Result<Digests, Error> {
        let name = entry.name.as_str();
        let is_said = name == self.layout.prompt || Some(name) == self.layout.history.as_deref();
        let is_ours = is_said && !wanted.contains(&Algorithm::Sha256) && self.zip.find(INFO).is_some();
        let more = if is_ours { &[Algorithm::Sha256][..] } else { &[] };
        let mut content = Digesting::new(self.zip.content(entry)?, &[wanted, more].concat());
        if name == self.layout.prompt {
            let bytes = collect(entry, &mut content, self.limits.prompt_size)?;
            let text = String::from_utf8(bytes);
            let text = text.map_err(|_| {
                Error::refused(Why::Malformed, format!("the prompt `{}` is not UTF-8", safe_display(name)))
            })?;
            self.seen.prompt = Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text));
        } else if Some(name) == self.layout.history.as_deref() {
            if entry.size <= self.limits.kept_history {
                let bytes = collect(entry, &mut content, self.limits.kept_history)?;
                self.history(name, bytes.as_slice())?;
                self.seen.kept = Some(bytes);
            } else {
                self.history(name, &mut content)?;
            }
        } else if name == self.layout.index {
            if entry.size <= self.limits.part_size / 4 {
                self.seen.index = Some(collect(entry, &mut content, self.limits.part_size)?);
            }
        } else if name == INFO {
            self.seen.info = Some(collect(entry, &mut content, self.limits.part_size)?);
        }
        loop {
            match content.read(&mut self.buffer) {
                Ok(0) => return Ok(content.finish()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::of_entry(name, error)),
            }
        }
    }

    fn history(&mut self, name: &str, input: impl Read) -> Result<(), Error> {
        let mut history = History {
            path: name.to_owned(),
            session_id: None,
            created_at: None,
            updated_at: None,
            messages: 0,
            is_python: false,
            fields: Vec::new(),
        };
        let mut document = Document::new(input, self.limits.message_size);
        while let Some(piece) = document.next()? {
            match piece {
                Piece::Field(key, value) => {
                    let text: serde_json::Value = serde_json::from_str(value).map_err(|error| {
                        let detail =
                            format!("the field `{}` of the history is not JSON: {error}", safe_display(&key));
                        Error::refused(Why::Malformed, detail)
                    })?;
                    let text = text.as_str().map(str::to_owned);
                    match key.as_str() {
                        "session_id" => history.session_id = text.filter(|id| !id.is_empty()),
                        "created_at" => history.created_at = text,
                        "updated_at" => history.updated_at = text,
                        "version" => history.is_python = true,
                        _ => {}
                    }
                    history.fields.push((key, value.to_owned()));
                }
                Piece::Message(text) => {
                    history.messages += 1;
                    let sources = &mut self.seen.sources;
                    sources::collect(text, &mut |path| sources.add(path, self.limits))?;
                }
            }
        }
        history.is_python &= !history.fields.iter().any(|(key, _)| key == "opa_version");
        self.seen.history = Some(history);
        Ok(())
    }
}

impl Sources {
    fn add(&mut self, source: &str, limits: &Limits) {
        if let Some(flaw) = path::source_flaw(source) {
            if self.flawed.len() < LISTED {
                self.flawed.push(format!("`{}` {flaw}", safe_display(source)));
            }
        } else if !self.safe.contains(source) && self.safe.len() < limits.entries {
            self.safe.insert(source.to_owned());
        }
    }
}

fn collect(entry: &Stored, content: &mut impl Read, limit: u64) -> Result<Vec<u8>, Error> {
    if entry.size > limit {
        let detail = format!("`{}` has {} bytes; at most {limit} are read", safe_display(&entry.name), entry.size);
        return Err(Error::refused(Why::TooLarge, detail));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(entry.size).unwrap_or_default());
    content.read_to_end(&mut bytes).map_err(|error| Error::of_entry(&entry.name, error))?;
    Ok(bytes)
}

/// A source that leads outside refuses the archive; one that leads nowhere is a remark.
fn check_sources<R: Read + Seek + Send>(
    sources: &Sources,
    zip: &Container<R>,
    remarks: &mut Vec<String>,
) -> Result<(), Error> {
    let is_missing = |path: &&String| zip.find(path).is_none_or(Stored::is_directory);
    let mut missing: Vec<&String> = sources.safe.iter().filter(is_missing).collect();
    missing.sort_unstable();
    let mut missing: Vec<String> =
        missing.into_iter().map(|path| format!("`{}` is missing", safe_display(path))).collect();
    if !sources.flawed.is_empty() {
        let all: Vec<String> = sources.flawed.iter().cloned().chain(missing.into_iter().take(LISTED)).collect();
        let detail = format!("messages name attachments that are not in the archive: {}", all.join(", "));
        return Err(Error::refused(Why::UnsafePath, detail));
    }
    let more = missing.len().saturating_sub(LISTED);
    missing.truncate(LISTED);
    remarks.extend(missing.into_iter().map(|path| format!("the attachment {path}")));
    if more > 0 {
        remarks.push(format!("{more} more attachments are missing"));
    }
    Ok(())
}

fn read_index<R: Read + Seek + Send>(
    index: Option<Vec<u8>>,
    zip: &Container<R>,
    remarks: &mut Vec<String>,
) -> Result<HashMap<String, Asset>, Error> {
    let Some(bytes) = index else { return Ok(HashMap::new()) };
    let Some(assets) = index::read(&bytes) else {
        remarks.push("the index of the data cannot be read".to_owned());
        return Ok(HashMap::new());
    };
    let mut missing = 0;
    for path in assets.keys() {
        path::check("path in the index", path)?;
        missing += u64::from(zip.find(path).is_none());
    }
    if missing > 0 {
        remarks.push(format!("the index of the data names {missing} files that are not in the archive"));
    }
    Ok(assets)
}

fn files<R: Read + Seek + Send>(
    zip: &Container<R>,
    layout: &Layout,
    sources: &Sources,
    index: &HashMap<String, Asset>,
    digests: &HashMap<String, Digests>,
) -> Vec<File> {
    let entries = zip.entries.iter().filter(|entry| !entry.is_directory());
    let file = |entry: &Stored| {
        let about = index.get(&entry.name).cloned().unwrap_or_default();
        let sha256 = digests.get(&entry.name).and_then(|digests| digests.get(Algorithm::Sha256)).map(hex);
        File {
            kind: layout.kind(&entry.name, sources),
            path: entry.name.clone(),
            size: entry.size,
            crc32: entry.crc32,
            content_type: about.content_type,
            description: about.description,
            sha256,
        }
    };
    entries.map(file).collect()
}

/// The session's own records, and which of the visible files are no longer as they were with them.
fn own_extension<R: Read + Seek + Send>(
    info: &[u8],
    zip: &Container<R>,
    digests: &HashMap<String, Digests>,
    remarks: &mut Vec<String>,
) -> Option<Extension> {
    let info: Info = match serde_json::from_slice(info) {
        Ok(info) => info,
        Err(_) => {
            remarks.push(format!("the extension `{EXTENSION_URI}` cannot be read and is left out"));
            return None;
        }
    };
    if info.version != 1 {
        let version = info.version;
        remarks.push(format!(
            "the extension `{EXTENSION_URI}` has version {version}, which is newer, and is left out"
        ));
        return None;
    }
    let is_same = |path: &str, sum: &Sum| {
        let Some(entry) = zip.find(path) else { return false };
        let sha256 = digests.get(path).and_then(|digests| digests.get(Algorithm::Sha256)).map(hex);
        (entry.size, entry.crc32) == (sum.size, sum.crc32) && (sum.sha256.is_none() || sum.sha256 == sha256)
    };
    let changed = info.files.iter().filter(|(path, sum)| !is_same(path, sum)).map(|(path, _)| path.clone());
    let mut changed: Vec<String> = changed.collect();
    // What was added that messages may show is a change as well.
    let added = zip.entries.iter().map(|entry| &entry.name).filter(|name| {
        !name.ends_with('/') && !name.starts_with("META-INF/") && !info.files.contains_key(name.as_str())
    });
    changed.extend(added.cloned());
    let files = zip.entries.iter().filter(|entry| entry.name != INFO);
    let files = files.filter_map(|entry| entry.name.strip_prefix(FOLDER)).filter(|name| !name.is_empty());
    Some(Extension { files: files.map(str::to_owned).collect(), changed })
}
