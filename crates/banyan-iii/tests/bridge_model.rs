//! Random calls by everyone at once: the main itself, a bridge to it, and a bridge that only knows the published protocol.
//! Each answer and each event is compared with a plain model of the contract, over restarts and kills of the main.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, dead_code, reason = "each test program uses a part of what they share")]

#[path = "bridge/doors.rs"]
mod doors;
#[path = "bridge/mains.rs"]
mod mains;
#[path = "../../banyan/tests/support/mod.rs"]
mod support;

use banyan::{Banyan, Options, verify};
use doors::OverBanyan;
use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::{Value, json};
use support::model::Model;
use support::step::{Step, named, steps};
use support::*;
use tempfile::TempDir;

proptest! {
    #![proptest_config(Config { cases: cases(16), max_shrink_iters: 2000, failure_persistence: None, ..Config::default() })]

    #[test]
    fn a_main_behaves_as_the_model_whoever_calls(
        callers in prop::collection::vec(0..3_u8, 60),
        tiny_blobs: bool,
        steps in steps(60),
    ) {
        let mut run = Run::new(tiny_blobs);
        for (step, caller) in steps.iter().zip(callers.iter().cycle()) {
            run.take(step, *caller);
        }
        run.check();
        run.stop(Stop::Kill);
        run.check();
        run.stop(Stop::Close);
        run.check();
        run.verify();
    }
}

fn cases(few: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(few)
}

enum Stop {
    Close,
    Kill,
}

struct Run {
    tiny_blobs: bool,
    model: Model,
    main: Banyan,
    /// Remembers sessions as it left them, whatever others did since.
    bridge: OverBanyan,
    dir: TempDir,
    heard: Vec<(String, Value)>,
    ears: Ears,
}

impl Run {
    fn new(tiny_blobs: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let main = Banyan::open(dir.path(), options(tiny_blobs)).unwrap();
        let ears = Ears::open(&main);
        let bridge = OverBanyan::to(main.clone());
        Self { tiny_blobs, model: Model::default(), main, bridge, dir, heard: Vec::new(), ears }
    }

    fn take(&mut self, step: &Step, caller: u8) {
        match step {
            Step::Reopen => self.stop(Stop::Close),
            Step::Kill => self.stop(Stop::Kill),
            Step::Check { .. } => self.check(),
            call => {
                let (function, request) = call.request(&self.model).unwrap();
                let main = self.main.clone();
                let by_published = self.fits_the_published_protocol(call);
                let published = OverBanyan::published_to(main.clone());
                let door: &dyn Door = match caller {
                    1 => &self.bridge,
                    2 if by_published => &published,
                    _ => &main,
                };
                let got = door.call(function, request.clone());
                let expected =
                    self.model.answer(function, &request, got.as_ref().unwrap_or(&Value::Null), &self.main);
                let got = got.as_ref().map_err(|refusal| refusal.code.as_str());
                assert_eq!(got, expected.as_ref().map_err(|code| *code), "{function} {request} by {caller}");
                self.listen();
            }
        }
    }

    /// The published protocol has no attachments, and copies none.
    fn fits_the_published_protocol(&self, step: &Step) -> bool {
        match step {
            Step::Attach { .. } | Step::Detach { .. } => false,
            Step::Fork { session, .. } => {
                named(&self.model, *session).1.is_none_or(|session| session.attachments.is_empty())
            }
            _ => true,
        }
    }

    fn listen(&mut self) {
        for heard in self.ears.heard() {
            let (event_type, mut payload) = heard.said();
            if event_type == "session::deleted" {
                payload["timestamp"] = Value::Null;
            }
            self.heard.push((event_type, payload));
        }
        let expected = self.model.events.iter().map(|told| (told.event_type.to_owned(), told.payload.clone()));
        assert_eq!(self.heard, expected.collect::<Vec<_>>());
    }

    fn stop(&mut self, how: Stop) {
        match how {
            Stop::Close => self.main.close().unwrap(),
            Stop::Kill => self.dir = copied(self.dir.path()),
        }
        self.bridge = OverBanyan::new();
        self.main = Banyan::open(self.dir.path(), options(self.tiny_blobs)).unwrap();
        self.bridge = OverBanyan::to(self.main.clone());
        self.ears = Ears::open(&self.main);
    }

    /// Everyone sees what the model has.
    fn check(&self) {
        let main = self.main.clone();
        let doors: [Box<dyn Door>; 3] = [
            Box::new(main.clone()),
            Box::new(OverBanyan::to(main.clone())),
            Box::new(OverBanyan::published_to(main)),
        ];
        for store in &doors {
            for session in self.model.sessions.values() {
                let id = &session.meta["session_id"];
                assert_eq!(&store.meta(id), &session.meta);
                for entry in &session.entries {
                    assert_eq!(&store.entry(id, &entry["id"]), entry);
                }
                let path = store.ok("messages", json!({"session_id": id, "include_custom": true, "limit": 500}));
                let expected: Vec<&Value> = session.path().iter().map(|entry| &entry["id"]).collect();
                assert_eq!(json!(ids(&path["messages"])), json!(expected));
            }
            let listed = store.ok("list", json!({"order": "created_asc", "limit": 500}));
            let count = listed["sessions"].as_array().unwrap().len();
            assert_eq!(count, self.model.sessions.len());
        }
    }

    fn verify(self) {
        self.main.close().unwrap();
        drop((self.main, self.bridge, self.ears));
        let mut report = verify::verify(self.dir.path(), &()).unwrap();
        // Content that is not used any more waits there for a day.
        report.findings.retain(|finding| !finding.file.starts_with(".banyan/aside/"));
        assert_eq!(report.findings, []);
    }
}

fn options(tiny_blobs: bool) -> Options {
    let mut options = Options::default();
    if tiny_blobs {
        options.blob_threshold = 100;
    }
    options
}
