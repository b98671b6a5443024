//! What people type into a search: never refused for its form, and cut as texts are.

#![no_main]

use banyan_search::Query;
use banyan_search::words::{Kind, Words};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(typed) = std::str::from_utf8(data) else { return };
    let mut place = 0;
    for word in Words::of(typed) {
        assert!(!word.text.is_empty() && word.from < word.to);
        assert!(typed.is_char_boundary(word.from) && typed.is_char_boundary(word.to));
        assert_eq!(word.place, place);
        if word.kind == Kind::Part {
            place += 1;
        }
    }
    let query = Query::parse(typed);
    assert!(query.wanted.len() + query.unwanted.len() <= 32);
    for clause in query.wanted.iter().chain(&query.unwanted) {
        assert!(!clause.parts.is_empty() && clause.parts.len() <= 32);
        assert!(clause.parts.iter().all(|part| !part.is_empty()));
    }
    assert!(query.is_empty() || place > 0);
});
