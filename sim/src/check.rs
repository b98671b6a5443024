//! What must hold of a store that is open again after something went wrong.

use banyan::{Banyan, block_on};
use serde_json::json;

use crate::events::{self, Told};
use crate::model::Model;
use crate::observe::observe;
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
    let found = observe(store);
    expected.allows(&found);
    let told = events::replay(store);
    if let Some(live) = &expected.live {
        events::check_same(live, &told);
    }
    events::check_leads_to(&told, &found);
    go_on(store, found, told)
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
