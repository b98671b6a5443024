#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::*;

/// The value that an outline says there is.
fn value_of(found: Found<'_>) -> Value {
    match found.spelled().as_bytes()[0] {
        b'"' => found.text().unwrap().into(),
        b'[' => found.items().map(value_of).collect(),
        b'{' => {
            found.fields().map(|(key, value)| (key.into_owned(), value_of(value))).collect::<Map<_, _>>().into()
        }
        _ => found.read().unwrap(),
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "(?s).{0,20}".prop_map(Value::from),
        "[a-z\\\\\"\n\u{1}é]{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec(("(?s).{0,9}", inner), 0..6)
                .prop_map(|fields| fields.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

proptest! {
    #[test]
    fn every_value_is_found_however_it_is_spelled(value in any_value()) {
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap(), format!(" {value}\r\n")] {
            let outline = Outline::of_any(&text).unwrap();
            prop_assert_eq!(value_of(outline.root()), serde_json::from_str::<Value>(&text).unwrap());
            let json = outline.root().json().unwrap();
            prop_assert_eq!(json, Json::vouched(&text).unwrap());
        }
    }

    #[test]
    fn what_serde_refuses_is_refused_and_nothing_else(
        value in any_value(), at in any::<prop::sample::Index>(), cut in 0..3_usize, put in "[-+0-9.eE\"\\\\u{}\\[\\],:tfn\u{1} é]{0,3}",
    ) {
        let mut text: Vec<char> = value.to_string().chars().collect();
        let from = at.index(text.len() + 1);
        let to = (from + cut).min(text.len());
        text.splice(from..to, put.chars());
        let text: String = text.into_iter().collect();
        let accepted = serde_json::from_str::<IgnoredAny>(&text).is_ok();
        prop_assert_eq!(Outline::of_any(&text).is_some(), accepted, "{}", text);
    }
}

#[test]
fn what_is_not_an_object_says_why() {
    assert_eq!(Outline::of("[1]").err().as_deref(), Some("not an object"));
    assert_eq!(Outline::of("").err().as_deref(), Some("EOF while parsing a value at line 1 column 0"));
    assert!(Outline::of("{\"a\":1").err().unwrap().contains("EOF"));
}

#[test]
fn whatever_could_be_stumbled_over_is_not_plain() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let odd = [r#""\ud800""#, r#""\uDC00""#, "1e9", "[1, 2]", " 1", &"1".repeat(400), &deep(101), &deep(5000)];
    for text in odd {
        assert!(!Outline::of_any(text).unwrap().plain, "{text}");
    }
    for text in [r#""\u00e9\n""#, "-1.5", "[1,[]]", r#"{"a":{}}"#, &deep(100)] {
        assert!(Outline::of_any(text).unwrap().plain, "{text}");
    }
    assert_eq!(Outline::of_any(&deep(200)).unwrap().root().json(), None);
}

#[test]
fn fields_are_found_by_name_and_what_does_not_fit_is_missing() {
    sought! {
        struct Few<'a> {
            said: Cow<'a, str> = "said",
            sure: bool = "sure",
            count: u64 = "count",
            rest: Found<'a> = "rest",
        }
    }
    let read = |line: &str| {
        let outline = Outline::of(line).unwrap();
        let few = Few::of(Some(outline.root()));
        json!([few.said, few.sure, few.count, few.rest.map(Found::spelled)])
    };
    assert_eq!(read(r#"{"s\u0061id":"a\n","sure":true,"count":7,"rest":[ ]}"#), json!(["a\n", true, 7, "[ ]"]));
    assert_eq!(read(r#"{"said":"first","said":"last","x":{"sure":true}}"#), json!(["last", null, null, null]));
    for odd in ["null", "-7", "[1]", "{\"a\":{}}", "1e999"] {
        let all = read(&format!(r#"{{"said":{odd},"sure":{odd},"count":{odd}}}"#));
        assert_eq!(all, json!([null, null, null, null]), "{odd}");
    }
    assert!(Few::of(None).said.is_none());
}
