//! Any history of changes, flushes and rebuilds, against a catalogue that is nothing but a vector.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::support::*;
use banyan_index::{Catalogue, ListPage, ListQuery, Row, Standing, sort_key};
use banyan_model::{ListOrder, Object, SessionId, SessionMeta, SessionStatus};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Everything that the catalogue should know, kept the plain way.
#[derive(Clone, Debug, Default)]
struct Model {
    files: Vec<(Row, BTreeSet<[u8; 32]>)>,
    orphans: BTreeSet<[u8; 32]>,
}

impl Model {
    fn remove(&mut self, gone: impl Fn(&Row) -> bool) {
        let (removed, kept) = std::mem::take(&mut self.files).into_iter().partition(|(row, _)| gone(row));
        self.files = kept;
        let removed: Vec<_> = removed;
        for hash in removed.into_iter().flat_map(|(_, blobs)| blobs) {
            if !self.files.iter().any(|(_, blobs)| blobs.contains(&hash)) {
                self.orphans.insert(hash);
            }
        }
    }

    fn note(&mut self, row: &Row) {
        let key = &row.file.key;
        if row.standing == Standing::Listed {
            self.remove(|old| {
                let file = &old.file.key;
                old.standing == Standing::Listed && file.session_id == key.session_id && file.born != key.born
            });
        }
        let old = self.files.iter().position(|(old, _)| old.file.key == *key);
        let mut blobs = old.map(|i| self.files.remove(i).1).unwrap_or_default();
        for hash in &row.blobs {
            blobs.insert(*hash.as_bytes());
            self.orphans.remove(hash.as_bytes());
        }
        self.files.push((Row { blobs: Vec::new(), ..row.clone() }, blobs));
    }

    fn listed(&self) -> impl Iterator<Item = &Row> {
        self.files.iter().map(|(row, _)| row).filter(|row| row.standing == Standing::Listed)
    }

    fn list(&self, query: &ListQuery<'_>) -> ListPage {
        let place = |meta: &SessionMeta| (sort_key(query.order, meta), meta.session_id.clone());
        let mut metas: Vec<SessionMeta> = self.listed().map(|row| row.meta.as_ref().clone()).collect();
        metas.sort_by_key(place);
        if query.order != ListOrder::CreatedAsc {
            metas.reverse();
        }
        metas.retain(|meta| {
            let after = query.after.is_none_or(|(key, id)| match query.order {
                ListOrder::CreatedAsc => place(meta) > (key, id.clone()),
                ListOrder::CreatedDesc | ListOrder::UpdatedDesc => place(meta) < (key, id.clone()),
            });
            let empty = Object::new();
            let stored = meta.metadata.as_ref().unwrap_or(&empty);
            after
                && query.status.is_none_or(|status| status == meta.status)
                && query
                    .metadata
                    .is_none_or(|wanted| wanted.iter().all(|(key, value)| stored.get(key) == Some(value)))
        });
        let more = metas.len() > query.limit;
        metas.truncate(query.limit);
        ListPage { sessions: metas, more }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Note(Row),
    Forget(SessionId),
    Release(SessionId, String),
    Flush,
    Rebuild,
    Read,
    Pages {
        order: ListOrder,
        status: Option<SessionStatus>,
        metadata: Option<Object>,
        limit: usize,
        deleted: Vec<bool>,
    },
}

fn ids_() -> impl Strategy<Value = String> {
    (0..6u8).prop_map(|i| format!("s{i}"))
}

fn borns() -> impl Strategy<Value = String> {
    (0..3u8).prop_map(|i| format!("b{i}"))
}

fn statuses() -> impl Strategy<Value = SessionStatus> {
    use SessionStatus::{Done, Error, Idle, Working};
    prop::sample::select(vec![Idle, Working, Done, Error])
}

fn values() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![json!(1), json!(1.0), json!("1"), json!(null), json!([1]), json!({"x": 1, "y": 2})])
}

fn metadata() -> impl Strategy<Value = Option<Object>> {
    let pairs = prop::collection::btree_map("[kl]", values(), 0..3);
    let objects = (pairs, prop::bool::weighted(0.1)).prop_map(|(pairs, wide)| {
        let more = (0..40).filter(|_| wide).map(|i| (format!("w{i}"), json!(i)));
        pairs.into_iter().chain(more).collect()
    });
    prop::option::of(objects)
}

fn rows() -> impl Strategy<Value = Row> {
    let times = (-2..3i64, -2..3i64);
    let blobs = prop::collection::vec(0..4u8, 0..3);
    let base = prop::option::of((ids_(), borns()));
    let standing = prop_oneof![4 => Just(Standing::Listed), 1 => Just(Standing::Retained)];
    ((ids_(), borns(), standing), times, statuses(), metadata(), blobs, base).prop_map(
        |((id, born, standing), (created_at, updated_at), status, metadata, blobs, base)| {
            let mut row = with_meta(file(&id, &born), |meta| {
                meta.created_at = created_at;
                meta.updated_at = updated_at;
                meta.status = status;
                meta.metadata = metadata;
            });
            row.standing = standing;
            row.blobs = blobs.iter().map(|i| blob(&i.to_string())).collect();
            Arc::make_mut(&mut row.file).base = base.map(|(id, born)| key(&id, &born));
            row
        },
    )
}

fn steps() -> impl Strategy<Value = Step> {
    let orders = prop::sample::select(vec![ListOrder::CreatedAsc, ListOrder::CreatedDesc, ListOrder::UpdatedDesc]);
    let deleted = prop::collection::vec(prop::bool::weighted(0.2), 0..6);
    let pages = (orders, prop::option::of(statuses()), metadata(), 1..4usize, deleted).prop_map(
        |(order, status, metadata, limit, deleted)| Step::Pages { order, status, metadata, limit, deleted },
    );
    prop_oneof![
        8 => rows().prop_map(Step::Note),
        2 => ids_().prop_map(|id| Step::Forget(SessionId::from(id))),
        1 => (ids_(), borns()).prop_map(|(id, born)| Step::Release(SessionId::from(id), born)),
        2 => Just(Step::Flush),
        1 => Just(Step::Rebuild),
        1 => Just(Step::Read),
        4 => pages,
    ]
}

fn forget(catalogue: &Catalogue, model: &mut Model, session_id: &SessionId) {
    catalogue.forget(session_id);
    model.remove(|row| row.standing == Standing::Listed && row.file.key.session_id == *session_id);
}

fn take(catalogue: &Catalogue, model: &mut Model, step: Step) {
    match step {
        Step::Note(row) => {
            model.note(&row);
            catalogue.note(row);
        }
        Step::Forget(session_id) => forget(catalogue, model, &session_id),
        Step::Release(session_id, born) => {
            let gone = key(session_id.as_str(), &born);
            catalogue.release(&gone);
            model.remove(|row| row.standing == Standing::Retained && row.file.key == gone);
        }
        Step::Flush => catalogue.flush().unwrap(),
        Step::Rebuild => {
            catalogue.flush().unwrap();
            let rows: Vec<Row> = model
                .files
                .iter()
                .map(|(row, blobs)| Row {
                    blobs: blobs.iter().map(|hash| (*hash).into()).collect(),
                    ..row.clone()
                })
                .collect();
            rebuild(catalogue, &rows);
            model.orphans.clear();
        }
        Step::Read => check(catalogue, model),
        Step::Pages { order, status, metadata, limit, deleted } => {
            let mut after: Option<(i64, SessionId)> = None;
            let mut deleted = deleted.into_iter();
            loop {
                let query = ListQuery {
                    order,
                    after: after.as_ref().map(|(key, id)| (*key, id)),
                    status,
                    metadata: metadata.as_ref(),
                    limit,
                };
                let page = catalogue.list(&query).unwrap();
                assert_eq!(page, model.list(&query), "{query:?}");
                let Some(last) = page.sessions.last().filter(|_| page.more) else {
                    break;
                };
                after = Some((sort_key(order, last), last.session_id.clone()));
                if deleted.next() == Some(true) {
                    forget(catalogue, model, &last.session_id);
                }
            }
        }
    }
}

fn check(catalogue: &Catalogue, model: &Model) {
    let by_key = |row: &Row| row.file.key.clone();
    for id in (0..6).map(|i| SessionId::from(format!("s{i}"))) {
        let listed = model.listed().find(|row| row.file.key.session_id == id);
        assert_eq!(catalogue.get(&id).unwrap().as_ref(), listed);
        for born in (0..3).map(|i| format!("b{i}")) {
            let file = key(id.as_str(), &born);
            let known = model.files.iter().find(|(row, _)| row.file.key == file);
            assert_eq!(catalogue.file(&file).unwrap().as_ref(), known.map(|(row, _)| row));
            let blobs: Vec<_> = catalogue.blobs_of(&file).unwrap().iter().map(|hash| *hash.as_bytes()).collect();
            let known: Vec<_> = known.into_iter().flat_map(|(_, blobs)| blobs).copied().collect();
            assert_eq!(blobs, known);
            let mut forks = catalogue.forks(&file).unwrap();
            forks.sort();
            let based = model.files.iter().map(|(row, _)| row).filter(|row| row.file.base.as_ref() == Some(&file));
            let mut known: Vec<_> = based.map(by_key).collect();
            known.sort();
            assert_eq!(forks, known);
        }
    }
    let mut seen = BTreeMap::new();
    catalogue.files(|file| assert!(seen.insert(file.key.clone(), file.standing).is_none())).unwrap();
    let known: BTreeMap<_, _> = model.files.iter().map(|(row, _)| (by_key(row), row.standing)).collect();
    assert_eq!(seen.keys().collect::<Vec<_>>(), known.keys().collect::<Vec<_>>());
    assert!(seen.values().eq(known.values()));
    assert_eq!(catalogue.count().unwrap(), model.listed().count() as u64);
    let orphans: BTreeSet<_> = catalogue.orphans(100).unwrap().iter().map(|hash| *hash.as_bytes()).collect();
    assert_eq!(orphans, model.orphans);
}

fn run(catalogue: &Catalogue, history: Vec<Step>) {
    let mut model = Model::default();
    for step in history {
        take(catalogue, &mut model, step);
    }
    check(catalogue, &model);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_history_in_memory_answers_as_the_model(history in prop::collection::vec(steps(), 0..60)) {
        run(&Catalogue::in_memory().unwrap(), history);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_history_in_a_file_answers_as_the_model(history in prop::collection::vec(steps(), 0..60)) {
        let dir = tempfile::tempdir().unwrap();
        let (catalogue, _) = unready(&dir.path().join("catalogue.sqlite"));
        rebuild(&catalogue, &[]);
        run(&catalogue, history);
    }
}
