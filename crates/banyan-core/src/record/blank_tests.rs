//! What is left of a record whose content was erased.

use banyan_model::{Json, Raw, Revision};

use super::tests::{line_of, one_of_each};
use super::*;

/// What of each record is text that a person or a program wrote.
const CONTENT: [&str; 6] = ["hi ", "\"by\"", "1.50", "why", "sha256", "\"new\""];

#[test]
fn a_blanked_record_is_as_long_and_in_its_place_and_says_nothing() {
    for record in one_of_each() {
        let line = line_of(&record);
        let Ok(blanked) = blank(&line) else {
            let parsed = parse_full(&line).unwrap().record;
            let is_bare = matches!(
                parsed,
                StoredRecord::Own(
                    Record::LeafMoved(_)
                        | Record::Detached(_)
                        | Record::Adopted(_)
                        | Record::Begun(_)
                        | Record::LeafPut(_)
                )
            );
            assert!(is_bare && blank(&line) == Err(NotBlanked::NoContent), "{record:?}");
            continue;
        };
        let text = String::from_utf8(blanked.clone()).unwrap();
        assert_eq!((text.len(), text.ends_with('\n')), (line.len(), true), "{text}");
        assert!(!CONTENT.iter().any(|content| text.contains(content)), "{text}");
        let (before, after) = (Head::parse(&line).unwrap(), Head::parse(&blanked).unwrap());
        assert_eq!((before.envelope, false), (after.envelope, before.erased));
        assert!(after.erased && after.blobs.is_empty() && after.origin.is_none(), "{text}");
        assert_eq!(std::mem::discriminant(&shape_of(&before.kind)), std::mem::discriminant(&after.kind), "{text}");
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
        parse_full(&blanked).unwrap();
        assert_eq!(plain_message(&blanked), None);
        assert_eq!(blank(&blanked).unwrap(), blanked);
        let mut flipped = blanked.clone();
        flipped[20] ^= 1;
        assert!(Head::parse(&flipped).is_err());
    }
}

/// The kind that is left of a record when it is blanked.
fn shape_of<'a>(kind: &HeadKind<'a>) -> HeadKind<'a> {
    match kind {
        HeadKind::Attached(_) => HeadKind::Erased,
        other => other.clone(),
    }
}

#[test]
fn a_blanked_record_keeps_the_structure_and_who_reaches_the_session() {
    let Record::Created(created) = &one_of_each()[0] else { panic!("the first is created") };
    let line = blank(&line_of(&one_of_each()[0])).unwrap();
    let expected = Created { title: String::new(), description: String::new(), ..created.clone() };
    assert_eq!(parse_full(&line).unwrap().record, StoredRecord::Own(Record::Created(expected)));
    let Record::Grew(grew) = &one_of_each()[4] else { panic!("the fifth grew") };
    let line = blank(&line_of(&one_of_each()[4])).unwrap();
    let adds = grew.adds.iter().map(|add| Add { text: String::new(), origin: None, ..add.clone() }).collect();
    let expected = Record::Grew(Grew { adds, ..grew.clone() });
    assert_eq!(parse_full(&line).unwrap().record, StoredRecord::Own(expected));
}

#[test]
fn the_shortest_message_of_each_role_can_be_blanked() {
    let messages = [
        r#"{"role":"user","content":[],"timestamp":1e15}"#,
        r#"{"role":"assistant","content":[],"model":"","provider":"","stop_reason":"end","timestamp":7}"#,
        r#"{"role":"function_result","function_call_id":"","function_id":"","content":[],"timestamp":7}"#,
        r#"{"timestamp":7,"role":"custom","custom_type":"","content":[]}"#,
    ];
    for message in messages {
        let settled = Settled {
            entry_id: "e".into(),
            revision: Revision(1),
            blobs: vec![],
            message: Raw::from_text(message.to_owned()).unwrap(),
        };
        let line = line_of(&Record::Settled(settled));
        assert_eq!(blank(&line).unwrap().len(), line.len());
    }
    for data in ["7", "\"\"", "{}", "[1]", "12345"] {
        let record = CustomRecord {
            entry_id: "e".into(),
            parent_id: None,
            origin: None,
            blobs: vec![],
            custom_type: "t".into(),
            data: Json::from_text(data).unwrap(),
        };
        let line = line_of(&Record::Custom(record));
        assert_eq!(blank(&line).unwrap().len(), line.len());
    }
}

#[test]
fn lines_of_session_manager_are_blanked_too() {
    let entry = r#""entry":{"kind":"message","id":"e1","parent_id":null,"timestamp":5,"origin":{"by":"x"},"message":{"role":"user","content":[{"type":"text","text":"secret"}],"timestamp":5}}"#;
    let meta = r#""meta":{"session_id":"s","title":"secret","description":"secret","status":"error","status_reason":"secret","metadata":{"owner":"u"},"message_count":1,"created_at":1,"updated_at":2}"#;
    for line in [
        format!(r#"{{"type":"entry",{entry}}}"#),
        format!(r#"{{"type":"append",{entry},{meta}}}"#),
        format!(r#"{{"type":"meta",{meta}}}"#),
    ] {
        let blanked = String::from_utf8(blank(line.as_bytes()).unwrap()).unwrap();
        assert_eq!(blanked.len(), line.len());
        assert!(!blanked.contains("secret") && blanked.contains(r#""erased":true"#), "{blanked}");
        assert!(!line.contains("meta") || blanked.contains(r#"{"owner":"u"}"#), "{blanked}");
        let kinds =
            [&line, &blanked].map(|line| std::mem::discriminant(&Head::parse(line.as_bytes()).unwrap().kind));
        assert_eq!(kinds[0], kinds[1]);
        parse_full(blanked.as_bytes()).unwrap();
    }
}
