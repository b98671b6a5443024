//! Appends through a bus, beside a function that does nothing, and a reply that is streamed to many.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use banyan_iii::link::{Call, CallFailed, Connection, Engine, Link, Service, function_frame, trigger_frame};
use banyan_iii::wire::{ErrorBody, RegisterTrigger};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::bus::{Bus, EMPTY, found};
use crate::report::{Row, Section};
use crate::rounds::{Latencies, Measured, Turn, interleaved};
use crate::workbench::{Outcome, Workbench};
use crate::writers::{CLIENT_THREADS, WRITERS, While, as_tasks};

const WITHIN: Duration = Duration::from_secs(20);
/// How long an answer is waited for under load.
const ANSWERED: Duration = Duration::from_millis(500);
const MANY: usize = 100;

pub(crate) fn run(bench: &Workbench) -> Outcome<Section> {
    let time = While {
        // The worker sees how often it is called after a quarter of a second at most.
        before: Duration::from_secs(1),
        counted: bench.pick(Duration::from_secs(3), Duration::from_secs(1)),
    };
    let dir = bench.scratch()?;
    let bus = Bus::start(dir.path())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (callers, appends) = callers(&runtime, &bus)?;
    let nothing = instead(&appends, EMPTY);

    let streamed = [create(&runtime, &callers[0])?, create(&runtime, &callers[0])?];
    // Bound before the first token.
    let _one = client(&runtime, &bus, 1, &streamed[0])?;
    let _many = client(&runtime, &bus, MANY, &streamed[1])?;
    let replies: Vec<String> =
        streamed.iter().map(|id| begin_reply(&runtime, &callers[0], id)).collect::<Outcome<_>>()?;
    let tokens = bench.pick(400, 100);
    let medians = [RefCell::default(), RefCell::default()];
    let turns: Vec<Turn<'_>> = vec![
        Box::new(|| appended(&runtime, &callers, &appends, time)),
        Box::new(|| rate(&callers, &nothing, time)),
        Box::new(|| stream(&runtime, &callers[0], &streamed[0], &replies[0], tokens, &medians[0])),
        Box::new(|| stream(&runtime, &callers[0], &streamed[1], &replies[1], tokens, &medians[1])),
    ];
    let measured = interleaved(bench.rounds(), turns)?;
    let [one_median, many_median] = medians.map(|medians| crate::rounds::measured(medians.into_inner()));
    let (one_median, many_median) = (one_median?, many_median?);
    let [appends, empty, one, many] = measured.as_slice() else {
        return Err("not everything was measured".into());
    };
    let ratio = appends.median / empty.median;
    let cost = many.median / one.median;
    Ok(Section {
        rows: vec![
            Row::shown("durable append of 1 KiB through a bus, 64 callers", per_second(appends))
                .beside(format!("a worker's empty function {}", per_second(empty)))
                .ratio(ratio)
                .target(">= 0.60x".to_owned(), ratio >= 0.6),
            Row::shown("a token by `extend-message`, streamed to 100 bound consumers, mean", micros(many))
                .beside(format!("to one {}", micros(one)))
                .ratio(cost)
                .target("<= 1.10x".to_owned(), cost <= 1.1),
            Row::shown("the same, p50", micros(&many_median))
                .beside(format!("to one {}", micros(&one_median)))
                .ratio(many_median.median / one_median.median),
        ],
        method: vec![format!(
            "Bus: {}. The bus, session-manager and the empty worker are processes of their own; {WRITERS} callers have a connection each. \
             An engine copies a function's schemas with every call; the empty function's are an object each, and those of session-manager are text by the time that is counted: the first second is not. Bound consumers are {MANY} functions of one process. A token is the next one when the one before was answered.",
            bus.kind
        )],
        losing: vec![],
    })
}

/// A function, and what it is called with.
type Request = (String, String);

/// Callers, each with a session of its own and what it says there.
fn callers(runtime: &Runtime, bus: &Bus) -> Outcome<(Vec<Arc<Link>>, Vec<Request>)> {
    let callers: Vec<Arc<Link>> = (0..WRITERS).map(|_| client(runtime, bus, 0, "")).collect::<Outcome<_>>()?;
    let sessions = callers.iter().map(|link| create(runtime, link)).collect::<Outcome<Vec<String>>>()?;
    let appends = sessions.iter().map(|id| ("session::append".to_owned(), append(id).to_string())).collect();
    Ok((callers, appends))
}

/// The same requests to another function.
fn instead(requests: &[Request], function: &str) -> Vec<Request> {
    requests.iter().map(|(_, body)| (function.to_owned(), body.clone())).collect()
}

/// A client with so many functions that are bound to a session's updates.
fn client(runtime: &Runtime, bus: &Bus, bound: usize, session: &str) -> Outcome<Arc<Link>> {
    let service = Arc::new(Consumer { bound, session: session.to_owned(), stem: uuid(session, bound) });
    let link = runtime.block_on(async { Link::open(Engine::Url(bus.url.clone()), service) });
    runtime.block_on(link.stands())?;
    // Whatever was offered before this call is known by its answer.
    runtime.block_on(found(&link))?;
    Ok(Arc::new(link))
}

fn uuid(session: &str, bound: usize) -> String {
    format!("{session}-{bound}")
}

/// Whoever is told of a session's updates, so many times.
struct Consumer {
    bound: usize,
    session: String,
    stem: String,
}

impl Service for Consumer {
    fn offers(&self) -> Vec<String> {
        let anything = json!({"type": "object"});
        let function = |at: usize| format!("bench::hear-{}-{at}", self.stem);
        let config = json!({"session_id": self.session});
        let functions = (0..self.bound).map(|at| function_frame(&function(at), "Hears.", &anything, &anything));
        let bindings = (0..self.bound).map(|at| {
            trigger_frame(&format!("{}-{at}", self.stem), "session::message-updated", &function(at), &config)
        });
        functions.chain(bindings).collect()
    }

    fn identity(&self) -> String {
        let name = format!("bench-{}-{}", std::process::id(), std::ptr::from_ref(self).addr());
        json!({"name": name, "runtime": "rust", "version": "0", "os": "any", "pid": std::process::id()})
            .to_string()
    }

    fn call(self: Arc<Self>, _: Call) -> BoxFuture<'static, Result<String, ErrorBody<'static>>> {
        Box::pin(async { Ok("{}".to_owned()) })
    }

    fn bind(self: Arc<Self>, _: &Arc<Connection>, _: RegisterTrigger<'_>) -> Result<(), ErrorBody<'static>> {
        Ok(())
    }

    fn unbind(self: Arc<Self>, _: &str) {}
    fn connected(self: Arc<Self>, _: &Arc<Connection>) {}
    fn lost(self: Arc<Self>) {}
}

fn rate(callers: &[Arc<Link>], requests: &[Request], time: While) -> Outcome<f64> {
    let done = as_tasks(time, CLIENT_THREADS, |at| {
        let link = Arc::clone(&callers[at]);
        let request = Arc::new(requests[at].clone());
        Ok(move || {
            let (link, request) = (Arc::clone(&link), Arc::clone(&request));
            async move {
                match link.call(&request.0, &request.1, ANSWERED).await {
                    // Engines lose an answer now and then that comes too fast: docs/iii.md.
                    Ok(_) | Err(CallFailed::TimedOut(_)) => Ok(()),
                    Err(error) => Err(error.into()),
                }
            }
        })
    })?;
    Ok(done.per_second)
}

/// The rate of appends. What follows must not be measured beside the index that catches up.
fn appended(runtime: &Runtime, callers: &[Arc<Link>], appends: &[Request], time: While) -> Outcome<f64> {
    let rate = rate(callers, appends, time)?;
    let search = json!({"query": "anything", "limit": 1}).to_string();
    let until = Instant::now() + WITHIN;
    while Instant::now() < until {
        // An answer that the engine lost is asked for again.
        let found = runtime.block_on(callers[0].call("session::search", &search, ANSWERED)).ok();
        let found: Option<Value> = found.map(|found| serde_json::from_str(found.get())).transpose()?;
        if found.is_some_and(|found| found["complete"] == true) {
            return Ok(rate);
        }
    }
    Err("the search index does not catch up".into())
}

/// How long a token takes on average. The median goes to `medians`.
fn stream(
    runtime: &Runtime,
    link: &Link,
    session: &str,
    entry: &str,
    tokens: usize,
    medians: &RefCell<Vec<f64>>,
) -> Outcome<f64> {
    let request = json!({"session_id": session, "entry_id": entry, "text": "token "}).to_string();
    let mut took = Latencies::of(tokens, || {
        runtime.block_on(link.call("session::extend-message", &request, WITHIN))?;
        Ok(())
    })?;
    medians.borrow_mut().push(took.percentile(0.5));
    Ok(took.mean())
}

fn ask(runtime: &Runtime, link: &Link, function: &str, request: &Value) -> Outcome<Value> {
    let answer = runtime.block_on(link.call(function, &request.to_string(), WITHIN))?;
    Ok(serde_json::from_str(answer.get())?)
}

fn create(runtime: &Runtime, link: &Link) -> Outcome<String> {
    let created = ask(runtime, link, "session::create", &json!({}))?;
    Ok(created["session_id"].as_str().ok_or("a session has an id")?.to_owned())
}

fn begin_reply(runtime: &Runtime, link: &Link, session: &str) -> Outcome<String> {
    let message = json!({"role": "assistant", "content": [{"type": "text", "text": ""}], "model": "m",
        "provider": "p", "stop_reason": "end", "timestamp": 0});
    let appended = ask(runtime, link, "session::append", &json!({"session_id": session, "message": message}))?;
    Ok(appended["entry_id"].as_str().ok_or("an entry has an id")?.to_owned())
}

fn append(session: &str) -> Value {
    let content = json!([{"type": "text", "text": "x".repeat(1024)}]);
    json!({"session_id": session, "message": {"role": "user", "content": content, "timestamp": 0}})
}

fn per_second(measured: &Measured) -> String {
    format!("{:.0}/s ({:.0} to {:.0})", measured.median, measured.lowest, measured.highest)
}

fn micros(measured: &Measured) -> String {
    format!("{:.0} us ({:.0} to {:.0})", measured.median, measured.lowest, measured.highest)
}
