//! What the two files say together: which keys are accepted, which are refused and why, and who is admitted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::files::KeyFiles;
use super::in_force::{InForce, KeyList};
use super::{Key, checked_line, record};

/// Who is admitted.
#[derive(Clone, Debug, PartialEq)]
pub enum Reach {
    /// Everyone on this machine: no key was ever in force, or the directory was opened on purpose.
    Anyone,
    /// Holders of this number of keys.
    Holders(usize),
    /// No one, and why.
    NoOne(String),
}

/// A key that is not accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct RefusedKey {
    /// What it is listed and removed by.
    pub id: String,
    /// Why it is refused.
    pub reason: String,
}

/// All keys of a directory at one time.
#[derive(Debug, PartialEq)]
pub(super) struct KeySet {
    pub(super) keys: Arc<Vec<Arc<Key>>>,
    pub(super) refused: Vec<RefusedKey>,
    pub(super) reach: Reach,
    /// Whether the directory should record something that it does not.
    pub(super) unsettled: bool,
    recorded: bool,
}

/// One line of the key file.
pub(super) struct Line {
    /// With its line feed. What is refused is kept as it is.
    pub(super) text: Vec<u8>,
    pub(super) key: Result<Arc<Key>, String>,
}

impl KeySet {
    pub(super) fn read(files: &KeyFiles) -> Self {
        let in_force = files.read_in_force();
        let lines = files.read_lines(&in_force);
        let recorded = in_force != InForce::Unrecorded;
        match (lines, &in_force) {
            (Ok(None), InForce::Unrecorded | InForce::Open) => Self::without_keys(Reach::Anyone, recorded),
            (Ok(None), InForce::Keys(listed)) => {
                let mut set = Self::without_keys(closed("keys were in force and the key file is missing"), true);
                set.refused = missing(listed, &BTreeSet::new());
                set
            }
            (Ok(None), InForce::Unreadable(reason)) => {
                let reason = format!(
                    "the key file is missing and `.banyan/keys.in-force`, which says whether keys were in force, cannot be read: {reason}"
                );
                Self::without_keys(Reach::NoOne(reason), true)
            }
            (Err(reason), _) => {
                Self::without_keys(Reach::NoOne(format!("the key file cannot be read: {reason}")), recorded)
            }
            (Ok(Some(lines)), _) => Self::judge(&lines, &in_force),
        }
    }

    /// Keeps a running server closed when every trace of its keys disappears.
    pub(super) fn stay_closed_after(&mut self, before: &Self) {
        if self.reach == Reach::Anyone && !self.recorded && before.reach != Reach::Anyone {
            self.reach = closed("keys were in force and their files are missing");
        }
    }

    fn without_keys(reach: Reach, recorded: bool) -> Self {
        Self { keys: Arc::default(), refused: Vec::new(), reach, unsettled: false, recorded }
    }

    fn judge(lines: &[Line], in_force: &InForce) -> Self {
        let sound = accepted(lines);
        let (mut keys, mut refused, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
        for line in lines {
            let verdict = match &line.key {
                Err(reason) => Err(reason.clone()),
                Ok(key) if !sound.contains_key(&key.id) => Err("its id is used by another key, too".to_owned()),
                Ok(key) => match in_force {
                    InForce::Keys(listed) if listed.get(&key.id) != Some(&line.checksum()) => {
                        Err("it is not among the keys in force: the key file is older, or of another directory"
                            .to_owned())
                    }
                    InForce::Open => Err("it is from before the directory was opened on purpose".to_owned()),
                    _ => Ok(Arc::clone(key)),
                },
            };
            let id = line.id();
            // A line that is there twice is one key.
            if seen.insert((id.clone(), line.text.clone())) {
                match verdict {
                    Ok(key) => keys.push(key),
                    Err(reason) => refused.push(RefusedKey { id, reason }),
                }
            }
        }
        if let InForce::Keys(listed) = in_force {
            refused.extend(missing(listed, &lines.iter().map(Line::id).collect()));
        }
        let reach = match (keys.len(), refused.is_empty()) {
            (0, true) => closed("keys were in force and the last one was removed"),
            (0, false) => closed("keys are in force and none of them is accepted (`banyan key ls` says why)"),
            (count, _) => Reach::Holders(count),
        };
        let unsettled = matches!(in_force, InForce::Unrecorded | InForce::Unreadable(_));
        let recorded = *in_force != InForce::Unrecorded;
        Self { keys: Arc::new(keys), refused, reach, unsettled, recorded }
    }
}

/// The keys of lines, by id. A key whose id another one has, too, is none of them.
pub(super) fn accepted(lines: &[Line]) -> KeyList {
    let mut found: BTreeMap<&str, Option<&Line>> = BTreeMap::new();
    for line in lines {
        let Ok(key) = &line.key else { continue };
        let known = found.entry(&key.id).or_insert(Some(line));
        if known.is_some_and(|known| known.text != line.text) {
            *known = None;
        }
    }
    found.into_iter().filter_map(|(id, line)| Some((id.to_owned(), line?.checksum()))).collect()
}

/// Keys that are in force and not in the key file.
fn missing(listed: &KeyList, there: &BTreeSet<String>) -> Vec<RefusedKey> {
    let lost = listed.keys().filter(|id| !there.contains(*id));
    lost.map(|id| RefusedKey { id: id.clone(), reason: "it is missing in the key file".to_owned() }).collect()
}

fn closed(reason: &str) -> Reach {
    Reach::NoOne(reason.to_owned())
}

impl Line {
    pub(super) fn of(key: Key) -> Self {
        match record::encode(&key) {
            Ok(text) => Self { text, key: Ok(Arc::new(key)) },
            Err(error) => Self { text: Vec::new(), key: Err(checked_line::reason(&error)) },
        }
    }

    /// The lines of a key file. The file's first form is read only while there is no record of keys in force, which every later
    /// form comes with.
    pub(super) fn split(text: &[u8], in_force: &InForce) -> Vec<Self> {
        if *in_force == InForce::Unrecorded
            && let Some(keys) = record::decode_unchecked(text)
        {
            let line = |(value, key): (serde_json::Value, Result<Key, String>)| match key {
                Ok(key) => Self::of(key),
                Err(reason) => Self { text: format!("{value}\n").into_bytes(), key: Err(reason) },
            };
            return keys.into_iter().map(line).collect();
        }
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        lines.map(|line| Self { text: line.to_vec(), key: record::decode(line).map(Arc::new) }).collect()
    }

    /// What the line is listed and removed by: the key's id, or one made of the text where there is no telling.
    pub(super) fn id(&self) -> String {
        match &self.key {
            Ok(key) => key.id.clone(),
            Err(_) => format!("refused-{:08x}", crc32c::crc32c(&self.text)),
        }
    }

    /// Whether the text of the line contains this id.
    pub(super) fn mentions(&self, id: &str) -> bool {
        self.text.windows(id.len()).any(|part| part == id.as_bytes())
    }

    pub(super) fn checksum(&self) -> String {
        checked_line::checksum(&self.text).unwrap_or_default().to_owned()
    }
}
