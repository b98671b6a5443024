//! Listing a page of 50 sessions, in every order, with and without a filter, in a small and in a large directory.

use banyan::{Banyan, block_on};
use banyan_model::{ListOrder, ListRequest, Object};

use crate::append_one_writer::micros;
use crate::directory::{Directory, FEW, RARE};
use crate::report::{Row, Section};
use crate::rounds::{Latencies, Measured, Turn, interleaved};
use crate::session;
use crate::workbench::{Outcome, Workbench};

const SMALL: usize = 1000;
const PAGE: usize = 50;
const ORDERS: [ListOrder; 3] = [ListOrder::UpdatedDesc, ListOrder::CreatedDesc, ListOrder::CreatedAsc];

/// A filter, and how many sessions a page of the small and of the large directory then has.
struct Case {
    what: &'static str,
    metadata: Option<Object>,
    small: usize,
    large: usize,
}

pub(crate) fn run(bench: &Workbench) -> Outcome<Section> {
    let calls = bench.pick(300, 60);
    let directory = bench.directory()?;
    let dir = bench.scratch()?;
    let small = Directory::make(&dir.path().join("small"), SMALL)?;
    let (small, large) = (session::open(&small.dir)?, session::open(&directory.dir)?);
    let cases = cases();
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for case in &cases {
        for order in ORDERS {
            for (store, shown) in [(&small, case.small), (&large, case.large)] {
                turns.push(Box::new(move || list(calls, store, case, order, shown)));
            }
        }
    }
    let taken = interleaved(bench.rounds(), turns)?;
    small.close()?;
    large.close()?;
    let mut section = Section::default();
    for (case, taken) in cases.iter().zip(taken.chunks(2 * ORDERS.len())) {
        let pairs: Vec<(&Measured, &Measured)> = taken.chunks(2).map(|pair| (&pair[0], &pair[1])).collect();
        section.rows.extend(rows(case, &pairs, directory.sessions));
        let orders: Vec<String> = ORDERS
            .iter()
            .zip(&pairs)
            .map(|(order, (small, large))| format!("`{}` {} and {}", order.as_str(), micros(small), micros(large)))
            .collect();
        section.method.push(format!(
            "List, {}, {SMALL} and {} sessions: {}.",
            case.what,
            directory.sessions,
            orders.join("; ")
        ));
    }
    Ok(section)
}

/// The slowest order, and the order that suffers most from the directory's size.
fn rows(case: &Case, pairs: &[(&Measured, &Measured)], sessions: usize) -> Vec<Row> {
    let Some(slowest) = pairs.iter().map(|(_, large)| *large).max_by(|a, b| a.median.total_cmp(&b.median)) else {
        return Vec::new();
    };
    let mut rows = vec![
        Row::shown(
            format!("list page, {}, {sessions} sessions, the slowest order, p50", case.what),
            micros(slowest),
        )
        .target("<= 2 ms", slowest.median <= 2000.0),
    ];
    let ratio = |pair: &&(&Measured, &Measured)| pair.1.median / pair.0.median;
    let widest = pairs.iter().max_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    // Pages of different lengths cannot be compared.
    if let Some((small, large)) = widest.filter(|_| case.small == case.large) {
        let ratio = large.median / small.median;
        rows.push(
            Row::shown(format!("the same, beside {SMALL} sessions, the order that differs most"), micros(large))
                .beside(micros(small))
                .ratio(ratio)
                .target("<= 3x", ratio <= 3.0),
        );
    }
    rows
}

fn cases() -> [Case; 5] {
    let only = |key: &str, value: &str| Some(Object::from_iter([(key.to_owned(), value.into())]));
    [
        Case { what: "no filter", metadata: None, small: PAGE, large: PAGE },
        Case {
            what: "a filter that half of them match",
            metadata: only("plan", "free"),
            small: PAGE,
            large: PAGE,
        },
        Case { what: "a filter that one in 1,000 matches", metadata: only("owner", "u_7"), small: 1, large: PAGE },
        Case { what: "a filter that five match", metadata: only("owner", RARE), small: FEW, large: FEW },
        Case { what: "a filter that none match", metadata: only("owner", "nobody"), small: 0, large: 0 },
    ]
}

fn list(calls: usize, store: &Banyan, case: &Case, order: ListOrder, expected: usize) -> Outcome<f64> {
    let request = ListRequest {
        limit: Some(PAGE),
        metadata: case.metadata.clone(),
        order: Some(order),
        ..ListRequest::default()
    };
    let mut took = Latencies::of(calls, || {
        let shown = block_on(store.list(request.clone()))?.sessions.len();
        if shown != expected {
            return Err(format!("{} with {}: {shown} sessions, not {expected}", order.as_str(), case.what).into());
        }
        Ok(())
    })?;
    Ok(took.percentile(0.5))
}
