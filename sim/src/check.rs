//! What must hold of a store that is open again after something went wrong.

use std::sync::Arc;

use banyan::{Banyan, block_on};
use banyan_model::{Event, Position};
use serde_json::json;

use crate::dice::Dice;
use crate::events::{self, Told};
use crate::model::Model;
use crate::observe::{observe, observe_with};
use crate::predict::Call;

/// What is known of a store before it is opened again.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    /// What was acknowledged.
    pub acknowledged: Model,
    /// The same with the call that was under way, if one was, and it.
    pub under_way: Option<(Call, Model)>,
    /// What subscribers were told, if somebody listened all the time.
    pub live: Option<Vec<Told>>,
}

impl Expected {
    /// Tells whether the call under way was done, and panics when what was found may not be.
    pub fn allows(&self, found: &Model) -> bool {
        let as_acknowledged = found.in_words_of(&self.acknowledged);
        if as_acknowledged == self.acknowledged {
            return false;
        }
        let Some((call, after)) = &self.under_way else {
            panic!("not what was acknowledged:\n{}", self.acknowledged.differences(&as_acknowledged));
        };
        let as_after = found.in_words_of(after);
        assert!(
            as_after == *after,
            "neither without nor with the call under way, {call:?}\nwithout:\n{}\nwith:\n{}",
            self.acknowledged.differences(&as_acknowledged),
            after.differences(&as_after),
        );
        true
    }
}

/// Checks everything that can be read, and that writing goes on. Gives what the store holds afterwards.
pub fn check(store: &Banyan, expected: &Expected) -> Model {
    let seen = Seen::of(store);
    seen.check(expected);
    seen.go_on(store)
}

/// How many events are asked for again.
const LAST: usize = 8;

/// Everything that can be read of a store.
pub struct Seen {
    found: Model,
    /// Function, request and answer of every call that was made for it.
    answers: Vec<(String, String, String)>,
    events: Vec<Arc<Event>>,
    told: Vec<Told>,
}

impl Seen {
    /// Reads it.
    pub fn of(store: &Banyan) -> Self {
        let mut answers = Vec::new();
        let found = observe_with(&mut |function, request| {
            let (request, answer) = ask(store, function, request.to_string());
            let read = serde_json::from_str(&answer).unwrap();
            answers.push((function.to_owned(), request, answer));
            read
        });
        let events = events::all(store);
        let told = events::told(&events);
        Self { found, answers, events, told }
    }

    /// Tells whether the call under way was done, and panics when this may not be.
    pub fn check(&self, expected: &Expected) -> bool {
        let done = expected.allows(&self.found);
        if let Some(live) = &expected.live {
            events::check_same(live, &self.told);
        }
        events::check_leads_to(&self.told, &self.found);
        done
    }

    /// Reads it again from another store whose files are the same: every answer and the last events are the same to
    /// the byte. Of the single messages, which pages have shown already, only some are asked for.
    pub fn check_same(&self, store: &Banyan, dice: &mut Dice) {
        for (function, request, answer) in &self.answers {
            if function == "session::get-message" && !dice.percent(25) {
                continue;
            }
            let (_, again) = ask(store, function, request.clone());
            assert_eq!(*answer, again, "{function} {request}");
        }
        let (before, last) = self.events.split_at(self.events.len().saturating_sub(LAST));
        let start = before.last().map_or(Position::BEGINNING, |event| event.position);
        assert_eq!(last, events::all_after(store, start));
    }

    /// Checks that writing goes on. Gives what the store holds afterwards.
    pub fn go_on(&self, store: &Banyan) -> Model {
        go_on(store, self.found.clone(), self.told.clone())
    }
}

fn ask(store: &Banyan, function: &str, request: String) -> (String, String) {
    let answer = block_on(store.call(function, request.as_bytes()));
    let answer = answer.unwrap_or_else(|error| panic!("{function} {request}: {error}"));
    (request, answer)
}

/// Appends to every session and makes one more; each is told after everything that was ever told.
fn go_on(store: &Banyan, found: Model, told: Vec<Told>) -> Model {
    let mut model = found;
    let mut live = told;
    let mut subscription = events::subscribe(store, banyan::Start::Now).unwrap();
    let message = json!({"role": "user", "content": [{"type": "text", "text": "and on"}], "timestamp": 1});
    let ids: Vec<String> = model.sessions.keys().cloned().collect();
    let appends = ids.iter().map(|id| Call::new("session::append", json!({"session_id": id, "message": message})));
    // Its title names no worker: nobody misses it, and nobody takes it for their own.
    let create = Call::new("session::create", json!({"title": "- afterwards"}));
    for call in appends.chain([create]) {
        let answer = block_on(store.call(call.function, call.request.to_string().as_bytes()));
        let answer = answer.unwrap_or_else(|error| panic!("writing does not go on: {call:?}: {error}"));
        model = call.learn(call.predict(&model), &serde_json::from_str(&answer).unwrap());
        let events = events::drain(&mut subscription).unwrap();
        assert_eq!(events.len(), 1, "{call:?}: {events:?}");
        assert!(live.last().is_none_or(|last| last.position < events[0].position), "{events:?} comes last");
        live.extend(events);
    }
    let again = observe(store);
    assert!(again == model, "after going on:\n{}", model.differences(&again));
    events::check_same(&live, &events::replay(store));
    model
}
