//! SOCKS messages: a length is within the bytes, more bytes change nothing, a destination is
//! canonical.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringfence_egress::fuzzing::socks_messages;
use ringfence_policy::Target;

fuzz_target!(|bytes: &[u8]| {
    let (lengths, target) = socks_messages(bytes);
    for (kind, length) in lengths.into_iter().enumerate() {
        let Some(length) = length else { continue };
        assert!(length <= bytes.len() && length <= 4 + 256 + 256);
        let (exact, _) = socks_messages(&bytes[..length]);
        assert_eq!(exact[kind], Some(length));
        let (shorter, _) = socks_messages(&bytes[..length - 1]);
        assert_eq!(shorter[kind], None);
    }
    if let Some(text) = target {
        let target = Target::parse(&text).expect("a destination reads back");
        assert_eq!(target.to_string(), text);
    }
});
