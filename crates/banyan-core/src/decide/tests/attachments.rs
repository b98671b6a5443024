//! Files beside the conversation.

use std::collections::BTreeSet;

use banyan_model::{
    AgentMessage, AttachmentId, ContentBlock, DeleteAttachmentRequest, ErrorCode, ForkRequest,
    FunctionResultBlock, PutAttachmentRequest, UserMessage,
};

use super::code;
use crate::content::{attachments_in, drop_image_data};
use crate::decide::{self, AttachmentContent, Ctx};
use crate::limits::Limits;
use crate::record::Record;
use crate::testing::Session;

fn put(name: &str, data: &str) -> PutAttachmentRequest {
    PutAttachmentRequest { session_id: "any".into(), name: name.into(), mime: " ".into(), data: data.into() }
}

fn content() -> AttachmentContent {
    AttachmentContent { size: 3, sha256: "aa".into(), blob: "bb".into() }
}

fn with_attachment() -> (Session, AttachmentId) {
    let mut session = Session::created();
    let request = put(" n ", "YWJj");
    let response = session.decide(|state, ctx| decide::put_attachment(state, &request, content(), ctx)).unwrap();
    assert_eq!(
        (response.attachment.name.as_str(), response.attachment.mime.as_str()),
        ("n", "application/octet-stream")
    );
    assert_eq!(response.block, ContentBlock::File(response.attachment.file_block()));
    (session, response.attachment.attachment_id)
}

#[test]
fn requests_are_checked_in_the_order_of_the_contract() {
    let limits = Limits { max_attachment_bytes: 2, ..Limits::default() };
    assert_eq!(code(decide::checked_attachment(&put(" ", "?"), &limits)), ErrorCode::InvalidRequest);
    assert_eq!(code(decide::checked_attachment(&put("n", "?"), &limits)), ErrorCode::InvalidRequest);
    assert_eq!(code(decide::checked_attachment(&put("n", "YWJj"), &limits)), ErrorCode::AttachmentTooLarge);
    assert_eq!(decide::checked_attachment(&put("n", "YWJj"), &Limits::default()), Ok(b"abc".to_vec()));
}

#[test]
fn an_attachment_that_is_used_cannot_be_deleted_and_others_can_once() {
    let (mut session, id) = with_attachment();
    let request = DeleteAttachmentRequest { session_id: "any".into(), attachment_id: id };
    let used =
        session.decide(|state, ctx| decide::delete_attachment(state, request.clone(), Some(&"e".into()), ctx));
    assert_eq!(code(used), ErrorCode::AttachmentInUse);
    let answers = [(); 2].map(|()| {
        session.decide(|state, ctx| decide::delete_attachment(state, request.clone(), None, ctx)).unwrap().deleted
    });
    assert_eq!(answers, [true, false]);
}

#[test]
fn a_fork_takes_the_attachments_that_it_uses_under_the_same_ids() {
    let (mut session, id) = with_attachment();
    let entry = session.append("a");
    let used = BTreeSet::from([id.clone(), "missing".into()]);
    let request = ForkRequest { session_id: "any".into(), entry_id: entry, title: None };
    let mut ctx = Ctx { now_ms: 9, ids: &mut session.ids, limits: Limits::default() };
    let decision = decide::fork(&session.state, request, &used, &mut ctx).unwrap();
    let [Record::Created(_), Record::Attached(attached)] = decision.records.as_slice() else {
        panic!("{:?}", decision.records)
    };
    assert_eq!(attached.attachment.attachment_id, id);
    assert_eq!(attached.attachment.session_id, decision.response.session_id);
}

#[test]
fn attachments_are_found_and_image_data_dropped_in_function_results_too() {
    let image = |id: Option<&str>| {
        ContentBlock::Image(banyan_model::ImageBlock {
            mime: "image/png".into(),
            data: "AAAA".into(),
            attachment_id: id.map(Into::into),
        })
    };
    let nested = |content| {
        ContentBlock::FunctionResult(FunctionResultBlock { function_call_id: "c".into(), content, is_error: None })
    };
    let content = vec![image(None), nested(vec![image(Some("a_2")), nested(vec![image(Some("a_1"))])])];
    let mut message = AgentMessage::User(UserMessage { content, timestamp: 0 });
    assert_eq!(attachments_in(&message), BTreeSet::from(["a_1".into(), "a_2".into()]));
    drop_image_data(&mut message);
    let json = serde_json::to_string(&message).unwrap();
    assert_eq!((json.matches(r#""data":"AAAA""#).count(), json.matches(r#""data":"""#).count()), (1, 2));
}
