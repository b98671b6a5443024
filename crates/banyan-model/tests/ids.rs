//! Ids, positions and error codes in their text form.

use banyan_model::*;
use uuid::Uuid;

const UUID: Uuid = Uuid::from_u128(0x0193_2f4e_8c00_7abc_8def_0123_4567_89ab);

#[test]
fn given_a_uuid_when_ids_are_made_of_it_then_each_has_its_prefix_and_gives_the_uuid_back() {
    let (session, entry, attachment) =
        (SessionId::from_uuid(UUID), EntryId::from_uuid(UUID), AttachmentId::from_uuid(UUID));

    assert_eq!(session.as_str(), "s_01932f4e8c007abc8def0123456789ab");
    assert_eq!(entry.as_str(), "e_01932f4e8c007abc8def0123456789ab");
    assert_eq!(attachment.as_str(), "a_01932f4e8c007abc8def0123456789ab");
    assert_eq!([session.as_uuid(), entry.as_uuid(), attachment.as_uuid()], [Some(UUID); 3]);
}

#[test]
fn given_a_callers_own_id_when_its_uuid_is_asked_for_then_there_is_none() {
    let own = ["", "e_", "my entry", "e_01932F4E8C007ABC8DEF0123456789AB", "s_01932f4e8c007abc8def0123456789ab"];
    for id in own {
        assert_eq!(EntryId::from(id).as_uuid(), None, "{id}");
    }
}

#[test]
fn given_positions_when_they_are_written_then_they_sort_as_text_and_read_back() {
    let positions = [
        Position::BEGINNING,
        Position::new(CommitNo(1), 0),
        Position::new(CommitNo(1), 15),
        Position::new(CommitNo(1), 16),
        Position::new(CommitNo(0xffff_ffff_ffff), 0xff_ffff),
    ];

    let texts = positions.map(|position| position.to_string());

    assert_eq!(texts[3], "000000000001-000010");
    assert!(texts.is_sorted());
    assert_eq!(texts.map(|text| text.parse::<Position>().unwrap()), positions);
    assert_eq!("0".parse(), Ok(Position::BEGINNING));
}

#[test]
fn given_text_that_is_no_position_when_it_is_read_then_it_is_an_invalid_cursor() {
    for text in
        ["", "1", "1-1", "000000000001", "00000000000A-000000", "000000000001-00000g", "+00000000001-000000"]
    {
        let error = text.parse::<Position>().unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidCursor, "{text}");
    }
}

#[test]
fn given_an_error_when_it_is_displayed_then_the_code_stands_before_the_sentence() {
    let error = Error::not_found(&"s_1".into());

    assert_eq!(error.to_string(), "session/not_found: there is no session `s_1`; create or ensure it first");
    assert!(ErrorCode::ALL.iter().all(|code| {
        let family = if *code == ErrorCode::Forbidden { "auth/" } else { "session/" };
        code.as_str().starts_with(family)
    }));
}
