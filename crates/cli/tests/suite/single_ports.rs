//! A machine without netfilter: ports that the policy names are served one by
//! one, and no others.

use super::internet::Online;
use super::{ringfence, under_filter};

/// A filter that knows no netfilter, as in a kernel without it.
const WITHOUT_NETFILTER: &str = "[
    (LOAD, 0, 0, 0), (EQUAL, 0, 5, SOCKET),
    (LOAD, 0, 0, 16), (EQUAL, 0, 3, 16),
    (LOAD, 0, 0, 32), (EQUAL, 0, 1, 12),
    (RETURN, 0, 0, ERRNO | 93), (RETURN, 0, 0, ALLOW),
]";

#[test]
fn without_nf_tables_the_named_ports_work_and_others_are_refused() {
    let online = Online::new();
    let binary = ringfence().path();
    let binary = binary.to_str().unwrap();
    let filtered = under_filter(WITHOUT_NETFILTER);
    let run = |flags: &[&str], script: &str| {
        let words = ["-c", &filtered, binary, "run"];
        let command = ["--", "sh", "-c", script];
        let words = words.iter().chain(flags).chain(&command);
        let program = online.net.program("/usr/bin/python3");
        program.args(words).folder(online.arena.folder.path()).run()
    };
    let report = online.arena.folder.path().join("report.json");
    let flags = [
        "--allow",
        "web.example.org:8443",
        "--report",
        report.to_str().unwrap(),
    ];
    let client = "curl -sS --noproxy '*' --max-time 20 -o /dev/null";
    run(&flags, &format!("{client} https://web.example.org:8443/")).expect_code(0);
    let written = std::fs::read_to_string(&report).unwrap();
    assert!(written.contains("without nf_tables"), "{written}");

    // Refused in words on a usual port, and by the kernel on any other.
    online.net.forget();
    let refused = run(&flags, &format!("{client} -f http://other.test/"));
    assert_eq!(refused.code(), 22, "{refused:?}");
    let closed = run(&flags, &format!("{client} http://web.example.org:9000/"));
    assert_eq!(closed.code(), 7, "{closed:?}");
    assert_eq!(online.net.packets(), Vec::<String>::new());
}
