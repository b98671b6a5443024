//! Filters: which sessions and events a caller asked for.

use banyan_model::{Event, EventFilter, Object};

/// True when each wanted key is stored with exactly the wanted value. Nothing wanted always matches.
pub fn metadata_matches(wanted: &Object, stored: Option<&Object>) -> bool {
    let Some(stored) = stored else { return wanted.is_empty() };
    wanted.iter().all(|(key, value)| stored.get(key) == Some(value))
}

/// True when an event is what a subscriber asked for.
pub fn event_matches(filter: &EventFilter, event: &Event) -> bool {
    filter.event_type == event.event_type()
        && filter.session_id.as_ref().is_none_or(|wanted| wanted == event.session_id())
        && filter.roles.as_ref().is_none_or(|wanted| event.role.is_some_and(|role| wanted.contains(&role)))
        && filter.metadata.as_ref().is_none_or(|wanted| metadata_matches(wanted, event.metadata.as_deref()))
}

#[cfg(test)]
mod tests {
    use banyan_model::{DeletedEvent, EventPayload, EventType, MessageAddedEvent, Position, Role, SessionId};
    use serde_json::{Value, json};

    use super::*;

    fn object(value: Value) -> Object {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn metadata_matches_whole_values_key_by_key() {
        let stored = object(json!({"owner": "u_1", "tags": ["a", "b"], "deep": {"x": 1, "y": 2}, "none": null}));
        for (wanted, matches) in [
            (json!({}), true),
            (json!({"owner": "u_1"}), true),
            (json!({"deep": {"y": 2, "x": 1}}), true),
            (json!({"none": null}), true),
            (json!({"owner": "u_1", "tags": ["a"]}), false),
            (json!({"deep": {"x": 1}}), false),
            (json!({"missing": null}), false),
        ] {
            assert_eq!(metadata_matches(&object(wanted.clone()), Some(&stored)), matches, "{wanted}");
        }
        assert!(metadata_matches(&object(json!({})), None));
        assert!(!metadata_matches(&object(json!({"owner": null})), None));
    }

    fn added(role: Option<Role>) -> Event {
        let payload = MessageAddedEvent {
            session_id: SessionId::from("s"),
            entry_id: "e".into(),
            parent_id: None,
            message: None,
            custom: None,
            origin: None,
            timestamp: 0,
        };
        Event::new(Position::BEGINNING, EventPayload::MessageAdded(payload), role, None)
    }

    #[test]
    fn an_event_must_match_everything_that_is_asked() {
        let filter = |config: &str| EventFilter::parse(EventType::MessageAdded, Some(config)).unwrap();
        let custom_message = added(Some(Role::Custom));
        let custom_entry = added(None);
        for (config, message, entry) in [
            ("{}", true, true),
            (r#"{"roles":["custom"]}"#, true, false),
            (r#"{"roles":["user"]}"#, false, false),
            (r#"{"roles":[]}"#, false, false),
            (r#"{"session_id":"s"}"#, true, true),
            (r#"{"session_id":"other"}"#, false, false),
            (r#"{"metadata":{}}"#, true, true),
            (r#"{"metadata":{"a":1}}"#, false, false),
        ] {
            assert_eq!(event_matches(&filter(config), &custom_message), message, "{config}");
            assert_eq!(event_matches(&filter(config), &custom_entry), entry, "{config}");
        }
    }

    #[test]
    fn an_event_of_another_type_never_matches() {
        let payload = EventPayload::Deleted(DeletedEvent { session_id: "s".into(), timestamp: 0 });
        let event = Event::new(Position::BEGINNING, payload, None, None);
        assert!(!event_matches(&EventFilter::all(EventType::Created), &event));
        assert!(event_matches(&EventFilter::all(EventType::Deleted), &event));
    }
}
