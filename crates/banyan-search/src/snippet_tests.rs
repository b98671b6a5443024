use super::*;

/// The snippet with matches in brackets.
fn shown(text: &str, typed: &str) -> String {
    let pieces = snippet(text, &Query::parse(typed)).into_iter();
    pieces
        .map(|piece| match piece.kind {
            PieceKind::Match => format!("[{}]", piece.text),
            PieceKind::Around => piece.text,
        })
        .collect()
}

#[test]
fn what_matches_is_marked() {
    assert_eq!(shown("The quick fox", "quick"), "The [quick] fox");
    assert_eq!(shown("Quick and QUICK", "quick"), "[Quick] and [QUICK]");
    assert_eq!(shown("see src/main.rs now", "src/main.rs"), "see [src/main.rs] now");
    assert_eq!(shown("call readFile(x)", "readfile"), "call [readFile](x)");
    assert_eq!(shown("call readFile(x)", "file"), "call read[File](x)");
    assert_eq!(shown("compiler", "comp*"), "[compiler]");
    assert_eq!(shown("to be or not to be", "\"to be\""), "[to be] or not [to be]");
    assert_eq!(shown("中文搜索", "搜索"), "中文[搜索]");
}

#[test]
fn a_long_text_is_shown_around_the_best_place() {
    let text = format!("{} alpha {} alpha beta {}", "x ".repeat(300), "y ".repeat(300), "z ".repeat(300));
    let shown = shown(&text, "alpha beta");
    assert!(shown.starts_with("… ") && shown.ends_with(" …"), "{shown}");
    assert!(shown.contains("y [alpha] [beta] z"), "{shown}");
    assert!(shown.len() < 300, "{shown}");
}

#[test]
fn a_snippet_is_one_line_of_plain_text() {
    assert_eq!(shown("a\n\n\tb <b>c</b>\u{1b}[1m", "b"), "a [b] <[b]>c</[b]> [1m");
    assert_eq!(shown("nothing here", "absent"), "nothing here");
    assert_eq!(shown("", "absent"), "");
}

#[test]
fn a_long_run_is_marked_as_far_as_it_is_known() {
    let long = "x".repeat(1000);
    let expected = format!("[{}]{} …", "x".repeat(128), "x".repeat(240 - 128));
    assert_eq!(shown(&long, &format!("{}*", "x".repeat(10))), expected);
}
