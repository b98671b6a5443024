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

/// What a tenant sees of a search: what the best say, and their scores. A score is rounded, because entries grow older between searches.
fn seen(caller: &dyn Door, query: &str) -> Vec<(Value, String)> {
    let answer = answer(caller, json!({"query": query, "limit": 3}));
    let hits = answer["hits"].as_array().unwrap();
    hits.iter().map(|hit| (hit["snippet"].clone(), format!("{:.4}", hit["score"].as_f64().unwrap()))).collect()
}

#[test]
fn scores_and_their_order_do_not_depend_on_what_others_say() {
    let queries = ["bird", "bird tree", "\"the bird\"", "bir*", "\"the bi*\"", "bird_tree", "bird -stone"];
    let store = Banyan::in_memory(Options::default()).unwrap();
    let (red, blue) = (tenant(&store, "red"), tenant(&store, "blue"));
    let (red, blue) = (door(&red), door(&blue));
    let (red_session, blue_session) = (red.session(), blue.session());
    for number in 0..40 {
        let (birds, trees) = ("bird ".repeat(number % 5), "tree ".repeat(number % 3));
        let filler = "leaf ".repeat(number * 7 % 11);
        red.say(&red_session, &format!("{birds}the bird sat in a tree {filler}{trees}"));
        red.say(&red_session, &format!("bird_tree {filler} stone"));
    }
    let alone = queries.map(|query| seen(red, query));
    // Another tenant makes common words rare, others common, and the usual entry longer.
    for number in 0..80 {
        blue.say(&blue_session, &"bird ".repeat(1 + number % 2 * 300));
        blue.say(&blue_session, &format!("tree stone {}", "wind ".repeat(number * 20)));
    }
    for (query, alone) in queries.iter().zip(&alone) {
        assert_eq!(alone.len(), 3, "{query}");
        assert_eq!(seen(red, query), *alone, "{query}");
    }
}
