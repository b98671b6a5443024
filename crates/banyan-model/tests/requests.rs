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
    let refused: [&[u8]; 8] = [
        b"null",
        br#"["s_1"]"#,
        br#""s_1""#,
        b"{}",
        br#"{"session_id":"s_1","limit":-1}"#,
        br#"{"session_id":"s_1","roles":["robot"]}"#,
        br#"{"session_id":"s_1"} {}"#,
        b"{\"session_id\":\"\xff\"}",
    ];
    for body in refused {
        let error = read_request::<MessagesRequest>(body).unwrap_err();
        assert_eq!(
            error.code,
            ErrorCode::InvalidRequest,
            "{}",
            String::from_utf8_lossy(body)
        );
    }
}
