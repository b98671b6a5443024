//! Bodies of calls: what is taken and what is refused before any rule is looked at.

use banyan_model::*;

#[test]
fn given_an_empty_body_when_it_is_read_then_it_is_a_request_without_fields() {
    assert_eq!(read_request(b" \n"), Ok(CreateRequest::default()));
    assert_eq!(read_request(b"{}"), Ok(CreateRequest::default()));
}

#[test]
fn given_nulls_and_unknown_fields_when_a_request_is_read_then_they_count_as_left_out() {
    let body = br#"{"title":null,"metadata":null,"_caller_worker_id":"w"}"#;

    assert_eq!(read_request(body), Ok(CreateRequest::default()));
}

#[test]
fn given_malformed_bodies_when_they_are_read_then_each_is_an_invalid_request() {
    let refused: [&[u8]; 9] = [
        b"null",
        br#"["s_1"]"#,
        br#""s_1""#,
        b"{}",
        br#"{"session_id":"s_1","limit":-1}"#,
        br#"{"session_id":"s_1","roles":["robot"]}"#,
        br#"{"session_id":"s_1"} {}"#,
        b"{\"session_id\":\"\xff\"}",
        b"{\"session_id\":\"s_1\",\"unknown\":\"\xff\"}",
    ];
    for body in refused {
        let error = read_request::<MessagesRequest>(body).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidRequest, "{}", String::from_utf8_lossy(body));
    }
}

/// A request to append a message with results inside results, the tag of each first or last.
fn nested_results(levels: usize, tag_first: bool) -> String {
    let (first, last) =
        if tag_first { (r#""type":"function_result","#, "") } else { ("", r#","type":"function_result""#) };
    let mut block = r#"{"type":"text","text":"[[\"{{"}"#.to_owned();
    for _ in 0..levels {
        block = format!(r#"{{{first}"function_call_id":"c","content":[{block}]{last}}}"#);
    }
    let message = format!(r#"{{"role":"user","timestamp":7,"content":[{block}]}}"#);
    format!(r#"{{"session_id":"s","message":{message}}}"#)
}

#[test]
fn given_a_request_as_deep_as_allowed_when_it_is_written_then_it_can_be_read_again() {
    for tag_first in [true, false] {
        let body = nested_results(58, tag_first);

        let request: AppendRequest = read_request(body.as_bytes()).unwrap();

        let written = serde_json::to_vec(&request).unwrap();
        assert_eq!(read_request(&written), Ok(request));
    }
}

#[test]
fn given_a_request_that_is_too_deep_when_it_is_read_then_it_is_refused_whatever_the_order_of_its_fields() {
    for tag_first in [true, false] {
        let body = nested_results(59, tag_first);

        let refused = read_request::<AppendRequest>(body.as_bytes());

        let expected = "the request nests deeper than 120 levels; flatten it or pass the deep part as a string";
        assert_eq!(refused, Err(Error::invalid_request(expected)));
    }
}

#[test]
fn given_many_brackets_that_do_not_nest_when_a_request_is_read_then_it_is_taken() {
    let title = "[{".repeat(500);
    let body = format!(r#"{{"title":"{title}\"","metadata":{{"a":[{}[]]}}}}"#, "[],".repeat(500));

    let request: CreateRequest = read_request(body.as_bytes()).unwrap();

    assert_eq!(request.title, Some(format!("{title}\"")));
}
