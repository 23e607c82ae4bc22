//! Questions to the name server: an answer is small, belongs to its question and reads well.
#![no_main]

use hickory_proto::op::{Message, MessageType};
use libfuzzer_sys::fuzz_target;
use ringfence_egress::fuzzing::dns_answer;

fuzz_target!(|message: &[u8]| {
    let Some(answer) = dns_answer(message) else {
        return;
    };
    assert!(answer.len() <= 512);
    assert_eq!(answer[..2], message[..2]);
    let read = Message::from_vec(&answer).expect("an answer can be read");
    assert_eq!(read.metadata.message_type, MessageType::Response);
    assert!(!read.metadata.truncation);
    // An answer is no question: two name servers never talk to each other.
    assert_eq!(dns_answer(&answer), None);
    if let Ok(question) = Message::from_vec(message)
        && !read.queries.is_empty()
    {
        assert_eq!(read.queries, question.queries);
    }
});
