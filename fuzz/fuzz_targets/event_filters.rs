//! What a subscriber asks for: refused in words, or read, and what is read is written and read the same.

#![no_main]

use banyan_model::{ErrorCode, EventFilter, EventType};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, json};

fuzz_target!(|data: &[u8]| {
    let Ok(config) = std::str::from_utf8(data) else { return };
    if let Ok(named) = config.parse::<EventType>() {
        assert_eq!(named.as_str(), config);
    }
    for event_type in EventType::ALL {
        match EventFilter::parse(event_type, Some(config)) {
            Ok(filter) => {
                assert_eq!(filter.event_type, event_type);
                assert_eq!(EventFilter::parse(event_type, Some(&written(&filter))), Ok(filter));
            }
            Err(error) => assert_eq!(error.code, ErrorCode::InvalidRequest),
        }
    }
});

fn written(filter: &EventFilter) -> String {
    let mut config = Map::new();
    if let Some(session_id) = &filter.session_id {
        config.insert("session_id".into(), json!(session_id));
    }
    if let Some(roles) = &filter.roles {
        config.insert("roles".into(), json!(roles));
    }
    if let Some(metadata) = &filter.metadata {
        config.insert("metadata".into(), json!(metadata));
    }
    json!(config).to_string()
}
