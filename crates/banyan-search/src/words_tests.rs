use super::*;

/// Parts in their places; whole runs in brackets.
fn shown(text: &str) -> String {
    let words: Vec<String> = Words::of(text)
        .map(|word| match word.kind {
            Kind::Part => format!("{}@{}", word.text, word.place),
            Kind::Whole => format!("[{}]@{}", word.text, word.place),
        })
        .collect();
    words.join(" ")
}

#[test]
fn plain_words_take_one_place_each() {
    assert_eq!(shown("The quick, brown fox!"), "the@0 quick@1 brown@2 fox@3");
    assert_eq!(shown(""), "");
    assert_eq!(shown("--- ... ::"), "");
}

#[test]
fn identifiers_are_found_whole_and_by_their_parts() {
    assert_eq!(shown("fn_name"), "[fn_name]@0 fn@0 name@1");
    assert_eq!(shown("readFile then"), "[readfile]@0 read@0 file@1 then@2");
    assert_eq!(shown("HTTPServer2"), "[httpserver2]@0 http@0 server2@1");
    assert_eq!(shown("Base64Encode"), "[base64encode]@0 base64@0 encode@1");
    assert_eq!(shown("__init__ _x"), "init@0 x@1");
    assert_eq!(shown("E0308 sha256 i32"), "e0308@0 sha256@1 i32@2");
}

#[test]
fn paths_flags_and_qualified_names_are_rows_of_parts() {
    assert_eq!(shown("src/foo/bar.rs"), "src@0 foo@1 bar@2 rs@3");
    assert_eq!(shown("std::io::Read"), "std@0 io@1 read@2");
    assert_eq!(shown("--no-default-features"), "no@0 default@1 features@2");
}

#[test]
fn other_scripts_are_not_lost() {
    assert_eq!(shown("数据库abc"), "数@0 据@1 库@2 abc@3");
    assert_eq!(shown("検索エンジン"), "検@0 索@1 エ@2 ン@3 ジ@4 ン@5");
    assert_eq!(shown("한국어"), "한@0 국@1 어@2");
    assert_eq!(shown("Straße ÉTÉ Москва"), "straße@0 été@1 москва@2");
    assert_eq!(shown("naïve x1é plain数据 end"), "naïve@0 x1é@1 plain@2 数@3 据@4 end@5");
}

#[test]
fn what_is_no_word_stays_whole_and_short() {
    let long = "x".repeat(500);
    assert_eq!(shown(&long), format!("{}@0", "x".repeat(128)));
    let base64 = "aB".repeat(40);
    assert_eq!(shown(&base64), format!("{}@0", base64.to_lowercase()));
}

#[test]
fn words_say_where_they_are() {
    let text = "é myName";
    let at: Vec<&str> = Words::of(text).map(|word| &text[word.from..word.to]).collect();
    assert_eq!(at, ["é", "myName", "my", "Name"]);
}
