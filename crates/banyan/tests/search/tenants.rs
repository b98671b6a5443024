//! Nobody finds what is not theirs.

use banyan::{Access, Banyan, Options, Scope};
use serde_json::{Value, json};

use super::{answer, found, found_by, sorted};
use crate::support::*;

const NOTHING: [Value; 0] = [];

fn tenant(store: &Banyan, name: &str) -> Banyan {
    let Value::Object(pairs) = json!({"tenant": name}) else { unreachable!() };
    store.with_access(Access { scope: Scope::of(pairs), read_only: false })
}

#[test]
fn tenants_find_their_own_and_nothing_else() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let (red, blue) = (tenant(&store, "red"), tenant(&store, "blue"));
    let (all, red, blue) = (door(&store), door(&red), door(&blue));
    let red_session = red.session();
    let blue_session = blue.session();
    let of_red = red.say(&red_session, "secret of red");
    let of_blue = blue.say(&blue_session, "secret of blue");
    assert_eq!(found(all, "secret").len(), 2);
    assert_eq!(found(red, "secret"), sorted([of_red.clone()]));
    assert_eq!(found(blue, "secret"), sorted([of_blue.clone()]));
    assert_eq!(found_by(red, json!({"query": "secret", "session_id": blue_session})), NOTHING);
    assert_eq!(found_by(red, json!({"query": "secret", "metadata": {"tenant": "blue"}})), NOTHING);
    assert_eq!(found_by(red, json!({"query": "blue"})), NOTHING);
    // Pages do not tell how much there is of others.
    let page = answer(red, json!({"query": "secret", "limit": 1}));
    assert_eq!(page["next_cursor"], Value::Null);
    // Nobody is left who may see it.
    let Value::Object(other) = json!({"tenant": "blue"}) else { unreachable!() };
    let nobody = tenant(&store, "red").with_access(Access { scope: Scope::of(other), read_only: true });
    assert_eq!(found(door(&nobody), "secret"), NOTHING);
}

#[test]
fn a_session_that_changes_hands_is_found_by_its_new_owner_only() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let (red, blue) = (tenant(&store, "red"), tenant(&store, "blue"));
    let (all, red, blue) = (door(&store), door(&red), door(&blue));
    let session = red.session();
    let entry = red.say(&session, "wandering");
    assert_eq!(found(red, "wandering"), sorted([entry.clone()]));
    all.ok("set-meta", json!({"session_id": session, "metadata": {"tenant": "blue"}}));
    // Even before the index has heard of it.
    assert_eq!(red.ok("search", json!({"query": "wandering"}))["hits"], json!([]));
    assert_eq!(found(red, "wandering"), NOTHING);
    assert_eq!(found(blue, "wandering"), [entry]);
}
