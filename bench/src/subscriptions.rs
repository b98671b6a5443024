//! What an append costs when a thousand subscriptions wait for something else.

use banyan::{Banyan, Start, Subscribe, Subscription, block_on};
use banyan_model::{CreateRequest, EventFilter, EventType, Object, SessionId};

use crate::append_one_writer::micros;
use crate::report::{Row, Section};
use crate::rounds::{Latencies, Turn, interleaved};
use crate::session;
use crate::workbench::{Outcome, Workbench};

const OTHERS: usize = 999;

pub(crate) fn run(bench: &Workbench) -> Outcome<Section> {
    let mut section = Section::default();
    let dir = bench.scratch()?;
    for (how, store) in [
        ("buffered", session::open_buffered(&dir.path().join("buffered"))?),
        ("durable", session::open(&dir.path().join("durable"))?),
    ] {
        measure(bench, &store, how, &mut section)?;
        store.close()?;
    }
    section.method.push(
        "Subscriptions: the one that matches reads its event after each append. Buffered appends, which wait for no \
         flush, hide nothing."
            .to_owned(),
    );
    Ok(section)
}

fn measure(bench: &Workbench, store: &Banyan, how: &str, section: &mut Section) -> Outcome<()> {
    let calls = bench.pick(2000, 500);
    let metadata = owner(0);
    let created = block_on(store.create(CreateRequest { metadata: Some(metadata), ..CreateRequest::default() }))?;
    let id = created.session_id;
    let turns: Vec<Turn<'_>> = vec![
        Box::new(|| cost(calls, store, &id, |_| None)),
        Box::new(|| {
            cost(calls, store, &id, |n| {
                let other = SessionId::from(format!("other {n}"));
                Some(EventFilter { session_id: Some(other), ..EventFilter::all(EventType::MessageAdded) })
            })
        }),
        Box::new(|| {
            cost(calls, store, &id, |n| {
                Some(EventFilter { metadata: Some(owner(n + 1)), ..EventFilter::all(EventType::MessageAdded) })
            })
        }),
    ];
    let taken = interleaved(bench.rounds(), turns)?;
    let [alone, sessions, metadata] = taken.as_slice() else { return Err("not everything was measured".into()) };
    for (what, crowded) in [("for other sessions", sessions), ("for other metadata", metadata)] {
        let ratio = crowded.median / alone.median;
        section.rows.push(
            Row::shown(format!("{how} append with 1,000 subscriptions, {OTHERS} {what}, mean"), micros(crowded))
                .beside(format!("with one {}", micros(alone)))
                .ratio(ratio)
                .target("<= 2x", ratio <= 2.0),
        );
    }
    Ok(())
}

fn owner(number: usize) -> Object {
    Object::from_iter([("owner".to_owned(), format!("u_{number}").into())])
}

/// Microseconds that an append and reading its event take, with one subscription that matches and those others.
fn cost(
    calls: usize,
    store: &Banyan,
    id: &SessionId,
    other: impl Fn(usize) -> Option<EventFilter>,
) -> Outcome<f64> {
    let subscribe = |filter| store.subscribe(Subscribe { filters: vec![filter], start: Start::Now });
    let own = EventFilter { session_id: Some(id.clone()), ..EventFilter::all(EventType::MessageAdded) };
    let mut matching = subscribe(own)?;
    let others = (0..OTHERS).filter_map(other).map(subscribe).collect::<Result<Vec<Subscription>, _>>()?;
    let request = session::append(id, session::user(session::text(0, 1024)));
    let took = Latencies::of(calls, || {
        block_on(store.append(request.clone()))?;
        match matching.try_next()? {
            Some(_) => Ok(()),
            None => Err("an append was not told".into()),
        }
    })?;
    drop(others);
    Ok(took.mean())
}
