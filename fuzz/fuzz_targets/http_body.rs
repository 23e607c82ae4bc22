//! Chunked bodies: any split of the bytes gives the same end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringfence_egress::fuzzing::body_end;

fuzz_target!(|input: (u8, &[u8])| {
    let (size, bytes) = input;
    let whole = body_end([bytes]);
    assert_eq!(body_end(bytes.chunks(usize::from(size).max(1))), whole);
    if let Some((end, true)) = whole {
        assert!(bytes[..end].ends_with(b"\r\n\r\n"));
        assert_eq!(body_end([&bytes[..end]]), whole);
        assert_eq!(body_end([&bytes[..end - 1]]), Some((end - 1, false)));
    }
});
