//! Event payloads as JSON, and what a subscription may ask for.

use banyan_model::*;
use serde_json::json;

#[test]
fn given_each_event_type_when_its_name_is_read_then_it_is_that_type() {
    for event_type in EventType::ALL {
        assert_eq!(event_type.as_str().parse(), Ok(event_type));
        assert_eq!(serde_json::to_value(event_type).unwrap(), json!(event_type.as_str()));
    }
    assert_eq!("session::renamed".parse::<EventType>().unwrap_err().code, ErrorCode::InvalidRequest);
}

#[test]
fn given_a_custom_root_entry_when_its_event_is_written_then_it_is_the_contracts_payload() {
    let payload = EventPayload::MessageAdded(MessageAddedEvent {
        session_id: "s_1".into(),
        entry_id: "e_1".into(),
        parent_id: None,
        message: None,
        custom: Some(CustomPayload { custom_type: "t".into(), data: Json::null() }),
        origin: None,
        timestamp: 7,
    });

    let expected = json!({
        "session_id": "s_1", "entry_id": "e_1", "parent_id": null,
        "custom": {"custom_type": "t", "data": null}, "timestamp": 7
    });
    assert_eq!(payload.event_type(), EventType::MessageAdded);
    assert_eq!(serde_json::to_value(&payload).unwrap(), expected);
}

#[test]
fn given_no_config_null_or_an_empty_one_when_it_is_parsed_then_everything_passes() {
    for event_type in EventType::ALL {
        for config in [None, Some("null"), Some("{}"), Some(r#"{"metadata":null}"#)] {
            assert_eq!(EventFilter::parse(event_type, config), Ok(EventFilter::all(event_type)));
        }
    }
}

#[test]
fn given_every_key_of_a_message_config_when_it_is_parsed_then_the_filter_holds_them() {
    let config = r#"{"session_id":"s_1","roles":["assistant","custom"],"metadata":{"owner":"u_1"}}"#;

    let filter = EventFilter::parse(EventType::MessageUpdated, Some(config));

    let expected = EventFilter {
        event_type: EventType::MessageUpdated,
        session_id: Some("s_1".into()),
        roles: Some(vec![Role::Assistant, Role::Custom]),
        metadata: json!({"owner": "u_1"}).as_object().cloned(),
    };
    assert_eq!(filter, Ok(expected));
}

#[test]
fn given_a_config_that_does_not_fit_when_it_is_parsed_then_the_error_names_the_type_and_the_fault() {
    let refused = [
        (EventType::MessageAdded, r#"{"sesion_id":"s_1"}"#, "unknown field `sesion_id`"),
        (EventType::MessageAdded, r#"{"roles":["robot"]}"#, "unknown variant `robot`"),
        (EventType::MessageUpdated, r#"{"session_id":5}"#, "invalid type"),
        (EventType::Created, r#"{"session_id":"s_1"}"#, "unknown field `session_id`"),
        (EventType::Created, r#"{"roles":[]}"#, "unknown field `roles`"),
        (EventType::StatusChanged, r#"{"roles":[]}"#, "unknown field `roles`"),
        (EventType::MetaUpdated, r#"{"roles":[]}"#, "unknown field `roles`"),
        (EventType::Deleted, r#"{"metadata":[]}"#, "invalid type"),
        (EventType::Deleted, "[]", "invalid type"),
    ];
    for (event_type, config, fault) in refused {
        let error = EventFilter::parse(event_type, Some(config)).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidRequest);
        assert!(error.message.starts_with(&format!("invalid {event_type} config: ")), "{error}");
        assert!(error.message.contains(fault), "{error}");
    }
}
