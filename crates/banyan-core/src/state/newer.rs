//! Records that a newer Banyan wrote: the session is read as far as it is understood, and is not written to.

use super::node::Place;
use super::{SessionState, StateFault};
use crate::record::{NewerRecord, needed};

/// Why a session is read-only in this build: it has records that this build does not understand and may not skip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Newer {
    /// What the first of them is, and which Banyan is needed.
    pub reason: String,
    /// The oldest Banyan that understands all of them, as far as they say it.
    pub needs: Option<String>,
    /// The number of the first of them.
    pub seq: u64,
}

impl SessionState {
    /// Records that this build does not understand and may not skip, if the session has any. It is read-only then.
    pub fn newer(&self) -> Option<&Newer> {
        self.newer.as_deref()
    }

    pub(super) fn apply_newer(
        &mut self,
        record: &NewerRecord,
        seq: u64,
        place: Place,
        faults: &mut Vec<StateFault>,
    ) {
        faults.push(StateFault::Newer(record.to_string()));
        let newer =
            self.newer.get_or_insert_with(|| Box::new(Newer { reason: record.to_string(), needs: None, seq }));
        if version_of(record.needs.as_deref()) > version_of(newer.needs.as_deref()) {
            newer.needs.clone_from(&record.needs);
        }
        if record.may_set_metadata() {
            self.doubt_metadata(&mut Vec::new());
        }
        if let Some(salvaged) = &record.salvage {
            self.apply_salvaged(salvaged, place, &mut Vec::new());
        }
    }

    /// Takes over what a fork's base has of records that are not understood, up to where it was forked.
    pub(super) fn inherit_newer(&mut self, base: &SessionState, up_to: u64) {
        self.newer = base.newer.clone().filter(|newer| newer.seq <= up_to);
    }

    /// What is wrong only because a record before it is not understood is no damage.
    pub(super) fn keep_certain(&self, faults: &mut Vec<StateFault>) {
        if self.newer.is_some() {
            faults.retain(|fault| {
                matches!(
                    fault,
                    StateFault::Newer(_)
                        | StateFault::Damaged(_)
                        | StateFault::Gap { .. }
                        | StateFault::Repeated(_)
                )
            });
        }
    }
}

/// What a session's error says is needed.
impl Newer {
    /// The Banyan that is needed, in words.
    pub fn needed(&self) -> String {
        needed(self.needs.as_deref())
    }
}

/// A version as numbers, for comparing. What is no number counts as none.
fn version_of(version: Option<&str>) -> Option<Vec<u64>> {
    Some(version?.split(['.', '-', '+']).map_while(|part| part.parse().ok()).collect())
}
