//! TLS hellos: a verdict never changes with more bytes, and a name is canonical.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringfence_egress::fuzzing::{first_bytes, tls_hello};

fuzz_target!(|bytes: &[u8]| {
    // The same as the content of one record and of two.
    let record = |part: &[u8]| {
        let length = u16::try_from(part.len()).unwrap_or(u16::MAX).to_be_bytes();
        [&[22, 3, 1][..], &length, part].concat()
    };
    let (front, back) = bytes.split_at(bytes.len() / 2);
    let split = [record(front), record(back)].concat();
    for form in [bytes, &record(bytes), &split] {
        let Some(verdict) = tls_hello(form) else {
            assert!(form.len() <= 64 * 1024);
            continue;
        };
        let more = [form, b"\x16\x03\x03\0\x01\0"].concat();
        assert_eq!(tls_hello(&more).as_ref(), Some(&verdict));
        let is_tls = verdict != "NotTls";
        let heard = first_bytes(form);
        assert!(!is_tls || heard.is_some_and(|heard| heard.contains("Tls")));
    }
});
