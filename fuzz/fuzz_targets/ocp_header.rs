//! OCP headers of anybody: whatever they say, they are read in bounded memory or refused, and what is written of them fits and is
//! read again as the same context.

#![no_main]

use banyan_formats::ocp::{
    Headers, LONGEST_HEADER, Uncounted, decode, from_headers, header, merge, read_file, to_headers,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let (name, value) = data.split_at(data.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1));
    let headers = Headers {
        context_id: Some(name.trim_ascii()),
        session: Some(value),
        current_goal: Some(name),
        agent_goal: Some(value),
        ..Headers::default()
    };
    let by_header = from_headers(&headers, 0).received;
    for received in by_header.into_iter().chain(read_file(data, 0)) {
        assert_eq!(merge(&received, &received).context, received.context);
        let lines = to_headers(&received.context, Uncounted::default());
        assert!(lines.iter().all(|(_, value)| value.len() <= LONGEST_HEADER));
        let session = lines.iter().find(|(name, _)| *name == header::SESSION).expect("every context fits in some form");
        let again = decode(session.1.as_bytes()).expect("what was written can be read");
        assert_eq!(again["context_id"], received.context.context_id);
    }
});
