//! A message that grows while it is watched.

use banyan_formats::history::*;
use banyan_model::StopReason;
use serde_json::json;

use crate::given::*;
use crate::store::{json, projector};

fn watching() -> Projector {
    let mut projector = projector(Disclosure::Public);
    projector.set_standing(Standing::Running);
    projector.push(Entry::of_message("u1".into(), user(vec![text("hi")], 1), None));
    let said = assistant(vec![thinking("hm"), text("Hel"), text("")], StopReason::End, 2);
    projector.push(Entry::of_message("a1".into(), said, None));
    projector
}

fn delta(part: usize, text: &str, main: bool) -> Change {
    let (interaction_id, role) = ("u1".to_owned(), Speaker::Assistant);
    Change::Grew(Delta { interaction_id, role, part, text: text.to_owned(), main })
}

#[test]
fn given_text_at_the_end_of_a_block_when_it_is_told_then_it_is_a_delta_of_its_part() {
    let mut watching = watching();
    assert_eq!(watching.grow(&"a1".into(), 1, "lo"), delta(1, "lo", true));
    assert_eq!(watching.grow(&"a1".into(), 0, "m"), delta(0, "m", false));
    assert_eq!(watching.grow(&"a1".into(), 0, ""), Change::Nothing);
    let now = json(&watching.open().unwrap().message);
    assert_eq!((&now["parts"][0]["content"], &now["parts"][1]["text"]), (&json!("hmm"), &json!("Hello")));
    assert_eq!(
        (&now["activity_parts"][0]["content"], &now["response_text_main"]),
        (&json!("hmm"), &json!("Hello"))
    );
}

#[test]
fn given_the_first_text_of_an_empty_block_when_it_is_told_then_the_message_comes_whole() {
    let mut watching = watching();
    assert_eq!(watching.grow(&"a1".into(), 2, "!"), Change::Whole);
    assert_eq!(watching.grow(&"a1".into(), 2, "!"), delta(2, "!", true));
}

#[test]
fn given_a_message_that_was_replaced_when_it_only_grew_then_it_is_a_delta() {
    let mut watching = watching();
    let with =
        |thought: &str, said: &str| assistant(vec![thinking(thought), text(said), text("")], StopReason::End, 2);
    assert_eq!(watching.update(&"a1".into(), with("hm", "Hello")), delta(1, "lo", true));
    assert_eq!(watching.update(&"a1".into(), with("hm", "Hello")), Change::Nothing);
    assert_eq!(watching.update(&"a1".into(), with("hmm", "Hello!")), Change::Whole);
    assert_eq!(watching.update(&"a1".into(), with("hm", "Bye")), Change::Whole);
    assert_eq!(json(&watching.open().unwrap().message)["parts"][1]["text"], "Bye");
}

#[test]
fn given_an_entry_of_an_older_message_when_it_changes_then_it_is_elsewhere() {
    let mut watching = watching();
    assert_eq!(watching.grow(&"u1".into(), 0, "!"), Change::Elsewhere);
    let finished = watching.push(Entry::of_message("u2".into(), user(vec![text("next")], 3), None)).unwrap();
    assert_eq!(finished.entries, ["a1"]);
    assert_eq!(finished.message.status, Some(Status::Complete));
    assert_eq!(watching.grow(&"a1".into(), 1, "!"), Change::Elsewhere);
    assert_eq!(watching.grow(&"u2".into(), 0, "!"), Change::Whole);
}

#[test]
fn given_a_session_that_stops_working_when_the_message_is_asked_for_then_it_has_ended() {
    let mut watching = watching();
    assert_eq!(watching.open().unwrap().message.status, Some(Status::Streaming));
    watching.set_standing(Standing::Over);
    let ended = &watching.open().unwrap().message;
    assert_eq!((ended.status, ended.processed_at.is_some()), (Some(Status::Complete), true));
}

#[test]
fn given_a_question_with_a_picture_when_its_text_grows_then_it_comes_whole() {
    let mut watching = projector(Disclosure::Public);
    watching.push(Entry::of_message("u1".into(), user(vec![text("a"), image("AAAA")], 1), None));
    assert_eq!(watching.grow(&"u1".into(), 0, "b"), Change::Whole);
    let now = json(&watching.open().unwrap().message);
    assert_eq!((&now["text_content"], &now["parts"][0]["text"]), (&json!("ab"), &json!("ab")));
}
