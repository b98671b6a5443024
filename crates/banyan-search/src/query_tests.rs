use super::*;

fn clause(parts: &[&str], whole: Option<&str>, ending: Ending) -> Clause {
    Clause {
        parts: parts.iter().map(|part| (*part).to_owned()).collect(),
        whole: whole.map(str::to_owned),
        ending,
    }
}

fn exact(parts: &[&str]) -> Clause {
    clause(parts, None, Ending::Exact)
}

fn wanted(typed: &str) -> Vec<Clause> {
    Query::parse(typed).wanted
}

#[test]
fn words_and_phrases_must_all_be_there() {
    assert_eq!(wanted("Fix the  bug"), [exact(&["fix"]), exact(&["the"]), exact(&["bug"])]);
    assert_eq!(wanted("\"fix the\" bug"), [exact(&["fix", "the"]), exact(&["bug"])]);
    assert_eq!(wanted("say\"hello world\""), [exact(&["say"]), exact(&["hello", "world"])]);
    assert_eq!(wanted("\"never closed here"), [exact(&["never", "closed", "here"])]);
    assert_eq!(wanted("twice twice"), [exact(&["twice"])]);
}

#[test]
fn identifiers_are_asked_for_whole_and_by_their_parts() {
    assert_eq!(wanted("fn_name"), [clause(&["fn", "name"], Some("fn_name"), Ending::Exact)]);
    assert_eq!(wanted("camelCase()"), [clause(&["camel", "case"], Some("camelcase"), Ending::Exact)]);
    assert_eq!(wanted("self.fn_name"), [exact(&["self", "fn", "name"])]);
    assert_eq!(wanted("fn_name.rs"), [exact(&["fn", "name", "rs"])]);
    assert_eq!(wanted("src/foo/bar.rs"), [exact(&["src", "foo", "bar", "rs"])]);
    assert_eq!(wanted("std::io::Read"), [exact(&["std", "io", "read"])]);
    assert_eq!(wanted("E0308"), [exact(&["e0308"])]);
    assert_eq!(wanted("数据"), [exact(&["数", "据"])]);
}

#[test]
fn a_star_at_the_end_asks_for_a_beginning() {
    assert_eq!(wanted("comp*"), [clause(&["comp"], None, Ending::Prefix)]);
    assert_eq!(wanted("readFi*"), [clause(&["read", "fi"], Some("readfi"), Ending::Prefix)]);
    assert_eq!(wanted("\"go to ma*\""), [clause(&["go", "to", "ma"], None, Ending::Prefix)]);
    assert_eq!(wanted("a*b * c."), [exact(&["a", "b"]), exact(&["c"])]);
}

#[test]
fn a_dash_leaves_out_and_two_dashes_are_a_flag() {
    let query = Query::parse("error -warning -\"not found\" --release - -- a-b");
    assert_eq!(query.wanted, [exact(&["error"]), exact(&["release"]), exact(&["a", "b"])]);
    assert_eq!(query.unwanted, [exact(&["warning"]), exact(&["not", "found"])]);
}

#[test]
fn nothing_to_look_for_is_nothing() {
    for typed in ["", "   ", "\"\"", "\"", "*", "-", "::", "-word"] {
        assert!(Query::parse(typed).is_empty(), "{typed:?}");
    }
}

#[test]
fn very_much_is_cut() {
    let typed: Vec<String> = (0..100).map(|n| format!("w{n}")).collect();
    assert_eq!(wanted(&typed.join(" ")).len(), 32);
    assert_eq!(wanted(&typed.join("."))[0].parts.len(), 32);
}
