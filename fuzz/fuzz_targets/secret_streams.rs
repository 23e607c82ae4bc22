//! Secrets and placeholders in streams, and encoded bodies: any split of the
//! bytes gives the same, and no value comes through.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use ringfence_egress::fuzzing::{Scrubbing, Watching, decoded};

const VALUES: [&str; 3] = ["s%25\\u0\"/é+k", "aaaaaaaabaaaaaaaa", "key-\u{1f600}&<12>"];
const HELD: &str = "rf-0123456789abcdef0123456789abcdef";
const ENCODINGS: [&str; 5] = ["gzip", "deflate", "br", "zstd", "zstd, gzip"];

static SCRUBBING: LazyLock<Scrubbing> = LazyLock::new(|| Scrubbing::of(&VALUES));
static WHOLE: LazyLock<Scrubbing> = LazyLock::new(|| Scrubbing::of_whole(&VALUES));
static WATCHING: LazyLock<Watching> = LazyLock::new(|| Watching::of(HELD));

fn holds(text: &[u8], value: &str) -> bool {
    text.windows(value.len())
        .any(|part| part == value.as_bytes())
}

fuzz_target!(|input: (u8, &[u8])| {
    let (choice, bytes) = input;
    let size = usize::from(choice >> 3) + 1;
    let pieces = || bytes.chunks(size);
    match usize::from(choice & 7) {
        0 | 1 => {
            let whole = WHOLE.scrubbed([bytes]);
            assert_eq!(WHOLE.scrubbed(pieces()), whole);
            let at_once = SCRUBBING.scrubbed([bytes]);
            for out in [whole, at_once, SCRUBBING.scrubbed(pieces())] {
                for value in VALUES {
                    assert!(!holds(&out, value));
                    assert!(!holds(bytes, value) || out != bytes);
                }
            }
        }
        2 => {
            let whole = WATCHING.notices([bytes]);
            assert_eq!(WATCHING.notices(pieces()), whole);
            assert!(whole || !holds(bytes, HELD));
        }
        number => {
            let encoding = ENCODINGS[number - 3];
            assert_eq!(decoded(encoding, pieces()), decoded(encoding, [bytes]));
        }
    }
});
