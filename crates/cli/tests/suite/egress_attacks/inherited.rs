//! Sockets of the machine that the command is started with.

use ringfence_testkit::place::PRIVATE;

use super::{Host, host};
use crate::suite::ringfence;

/// Runs the program behind a socket of the machine.
fn hand_over(host: &Host, way: &str, fence: &[String], port: &str) -> i32 {
    host.net().forget();
    let attack = ["/usr/bin/python3", "inherited.py", way, PRIVATE, port].map(str::to_owned);
    let program = host.net().program("/usr/bin/python3");
    let words = ["hand_over.py", way].map(str::to_owned).into_iter();
    let outcome = program
        .args(words.chain(fence.iter().cloned()).chain(attack))
        .folder(host.online.arena.folder.path())
        .run();
    outcome.code()
}

#[test]
fn g1_a_socket_that_is_standard_input_is_no_way_out() {
    let host = host();
    host.write("inherited.py", include_str!("scripts/inherited.py"));
    host.write("hand_over.py", include_str!("scripts/hand_over.py"));
    let binary = ringfence().path().display().to_string();
    for flags in [&["--no-network"][..], &["--allow", "web.example.org"]] {
        let words = [&[binary.as_str(), "run"], flags, &["--"]].concat();
        let fence: Vec<String> = words.into_iter().map(str::to_owned).collect();
        for (way, port) in [
            ("connected", "5432"),
            ("fresh", "5432"),
            ("datagram", "9999"),
        ] {
            assert_eq!(hand_over(&host, way, &[], port), 0, "{way} outside");
            assert!(host.net().saw("inherited"), "{way} outside");
            hand_over(&host, way, &fence, port);
            assert!(!host.net().saw("inherited"), "{way} {flags:?}");
            host.sent_nothing();
        }
    }
}
