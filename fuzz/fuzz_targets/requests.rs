//! The body of every call: refused or read, and what is read is written and read the same.

#![no_main]

use std::fmt::Debug;

use banyan_model::{
    AppendManyRequest, AppendRequest, CreateRequest, DeleteAttachmentRequest, DeleteRequest, EnsureRequest,
    ExtendMessageRequest, ForkRequest, GetAttachmentRequest, GetMessageRequest, GetRequest,
    ListAttachmentsRequest, ListRequest, MessagesRangeRequest, MessagesRequest, MessagesTailRequest,
    PutAttachmentRequest, SetActiveLeafRequest, SetMetaRequest, SetStatusRequest, TreeRequest,
    UpdateMessageRequest, read_request,
};
use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;

fuzz_target!(|body: &[u8]| {
    round_trip::<AppendManyRequest>(body);
    round_trip::<AppendRequest>(body);
    round_trip::<CreateRequest>(body);
    round_trip::<DeleteAttachmentRequest>(body);
    round_trip::<DeleteRequest>(body);
    round_trip::<EnsureRequest>(body);
    round_trip::<ExtendMessageRequest>(body);
    round_trip::<ForkRequest>(body);
    round_trip::<GetAttachmentRequest>(body);
    round_trip::<GetMessageRequest>(body);
    round_trip::<GetRequest>(body);
    round_trip::<ListAttachmentsRequest>(body);
    round_trip::<ListRequest>(body);
    round_trip::<MessagesRangeRequest>(body);
    round_trip::<MessagesRequest>(body);
    round_trip::<MessagesTailRequest>(body);
    round_trip::<PutAttachmentRequest>(body);
    round_trip::<SetActiveLeafRequest>(body);
    round_trip::<SetMetaRequest>(body);
    round_trip::<SetStatusRequest>(body);
    round_trip::<TreeRequest>(body);
    round_trip::<UpdateMessageRequest>(body);
});

fn round_trip<Request: DeserializeOwned + Serialize + PartialEq + Debug>(body: &[u8]) {
    if let Ok(request) = read_request::<Request>(body) {
        let written = serde_json::to_vec(&request).expect("a request has a JSON form");
        assert!(!written.iter().any(|byte| matches!(byte, b'\n' | b'\r')), "a request fits on one line");
        assert_eq!(read_request(&written), Ok(request));
    }
}
