//! A secret that takes the place of its placeholder in a body: whoever decodes
//! that finds all of it, whatever stands before.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringfence_egress::fuzzing::substituted;

const HELD: &str = "rf-0123456789abcdef0123456789abcdef";
/// Its first characters are digits of every escape.
const SECRET: &str = "1234abcdefABCDEF0987";
const KINDS: [&str; 5] = [
    "application/x-www-form-urlencoded",
    "application/json",
    "text/plain",
    "multipart/form-data; boundary=x",
    "application/grpc",
];

fn holds(text: &[u8], value: &[u8]) -> bool {
    text.windows(value.len()).any(|part| part == value)
}

/// As lenient servers read it.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let digits = digits.filter(|two| two.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let value = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        match (byte, value) {
            (b'%', Some(value)) => {
                out.push(value);
                rest = &after[2..];
            }
            _ => {
                out.push(*byte);
                rest = after;
            }
        }
    }
    out
}

fuzz_target!(|input: (u8, &[u8])| {
    let (choice, before) = input;
    let kind = KINDS[usize::from(choice) % KINDS.len()];
    let body = [before, HELD.as_bytes(), b" and on"].concat();
    let Some(out) = substituted(HELD, SECRET, &body, kind) else {
        return;
    };
    assert!(!holds(&out, HELD.as_bytes()));
    match kind {
        "application/json" => {
            let escaped: Vec<String> = SECRET
                .bytes()
                .map(|byte| format!("\\u{byte:04x}"))
                .collect();
            assert!(holds(&out, escaped.concat().as_bytes()));
        }
        "application/grpc" => panic!("it tells lengths"),
        _ => assert!(holds(&unescaped(&out), SECRET.as_bytes())),
    }
});
