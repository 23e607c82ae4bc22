//! Heads of requests and responses: what is accepted has one reading, and a rewritten head says
//! the same as the one it was made of.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringfence_egress::fuzzing::{first_bytes, request, response};

fuzz_target!(|bytes: &[u8]| {
    let _ = response(bytes);
    if let Some(words) = first_bytes(bytes) {
        let more = [bytes, b"\r\nmore"].concat();
        assert_eq!(first_bytes(&more), Some(words));
    }
    let Some(head) = request(bytes) else {
        return;
    };
    let text = &bytes[..head.length];
    assert!(text.ends_with(b"\r\n\r\n") && !text.contains(&0));
    let is_bare = |pair: &[u8]| (pair[0] == b'\r') != (pair[1] == b'\n');
    assert!(!text.windows(2).any(is_bare));
    // What a request is must be heard as one, or it would pass unread.
    assert_eq!(first_bytes(text).as_deref(), Some("Http"));
    assert_eq!(request(text).as_ref(), Some(&head));
    if let Some(rewritten) = &head.rewritten {
        let again = request(rewritten).expect("a rewritten head can be read");
        assert_eq!(again.length, rewritten.len());
        assert_eq!((&again.method, &again.path), (&head.method, &head.path));
        assert_eq!(again.framing, head.framing);
        assert!(again.host.is_some() && again.rewritten.is_none());
    }
});
