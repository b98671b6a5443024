//! JSON for people to read.

/// Lays out JSON text over several lines. Numbers and strings stay as they are, digit by digit.
pub(crate) fn indented(compact: &str) -> String {
    let mut out = String::with_capacity(compact.len() * 2);
    let mut depth = 0;
    let (mut in_string, mut escaped) = (false, false);
    let mut chars = compact.chars().peekable();
    while let Some(c) = chars.next() {
        if in_string {
            out.push(c);
            in_string = escaped || c != '"';
            escaped = c == '\\' && !escaped;
            continue;
        }
        match c {
            '{' | '[' => {
                out.push(c);
                match chars.next_if(|next| matches!(next, '}' | ']')) {
                    Some(end) => out.push(end),
                    None => {
                        depth += 1;
                        break_line(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth -= 1;
                break_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                break_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => {
                in_string = c == '"';
                out.push(c);
            }
        }
    }
    out
}

fn break_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::indented;

    #[test]
    fn lays_out_what_is_inside_and_leaves_strings_and_numbers_alone() {
        let compact = r#"{"a":[1.50,{}],"b\"":"{,:}\\","c":[],"d":null}"#;
        let laid_out = r#"{
  "a": [
    1.50,
    {}
  ],
  "b\"": "{,:}\\",
  "c": [],
  "d": null
}"#;
        assert_eq!(indented(compact), laid_out);
    }
}
