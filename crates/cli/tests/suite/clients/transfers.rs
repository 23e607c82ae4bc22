//! Much data, which arrives whole.

use ringfence_testkit::Started;
use ringfence_testkit::place::port::ECHO_HIGH;

use super::Host;

const SIZE: u64 = 50 << 20;

/// Where [`server`] is.
const SERVER: &str = "v4.example.org:9100";

/// Starts a server that sums uploads up and holds streams back.
fn server(host: &Host) -> Started {
    let server = host.net().program_in_the_world("/usr/bin/python3");
    let server = server
        .args(["-c", include_str!("scripts/server.py")])
        .start();
    let is_up = format!("until curl -sf http://{SERVER}/go; do :; done");
    host.online.outside(&is_up).expect_code(0);
    server
}

/// The sum of as many bytes of filling.
fn sum(host: &Host, of: &str) -> String {
    let outcome = host.online.outside(&format!("{of} | sha256sum"));
    outcome.expect_code(0).stdout
}

#[test]
fn downloads_arrive_whole() {
    let host = Host::new();
    let wanted = sum(&host, &format!("head -c {SIZE} /dev/zero | tr '\\0' x"));
    for flags in ["", "--noproxy '*'"] {
        for scheme in ["http", "https"] {
            let script =
                format!("curl -sSf {flags} {scheme}://web.example.org/bytes/{SIZE} | sha256sum");
            let run = host
                .run(&["--allow", "web.example.org"], &script)
                .expect_code(0);
            assert_eq!(run.stdout(), wanted, "{script}");
            let down: u64 = run.closed().map(|closed| closed.bytes_down).sum();
            assert!(
                (SIZE..SIZE + SIZE / 100).contains(&down),
                "{script}: {down}"
            );
        }
    }
}

/// Makes a file of bytes that never repeat for long.
fn numbers(host: &Host) {
    let script = format!("seq 9999999 | head -c {SIZE} > upload");
    host.online.outside(&script).expect_code(0);
}

#[test]
fn uploads_arrive_whole() {
    let host = Host::new();
    numbers(&host);
    let wanted = sum(&host, "cat upload");
    let mut server = server(&host);
    let url = format!("http://{SERVER}/");
    for flags in ["", "--noproxy '*'", "-p"] {
        let script = format!("curl -sSf -H Expect: {flags} -T upload {url}");
        let run = host.run(&["--allow", SERVER], &script).expect_code(0);
        assert_eq!(Some(run.stdout()), wanted.split(' ').next(), "{flags}");
        let up: u64 = run.closed().map(|closed| closed.bytes_up).sum();
        assert!((SIZE..SIZE + 1000).contains(&up), "{up}");
    }
    server.child().kill().expect("a server to end");
}

#[test]
fn both_ways_at_once_arrive_whole() {
    let host = Host::new();
    numbers(&host);
    let wanted = sum(&host, &format!("(cat upload; printf '\\ntotal {SIZE}\\n')"));
    let script = format!("socat -t 60 - tcp:web.example.org:{ECHO_HIGH} < upload | sha256sum");
    let entry = format!("web.example.org:{ECHO_HIGH}");
    let run = host.run(&["--allow", &entry], &script).expect_code(0);
    assert_eq!(run.stdout(), wanted);
}

#[test]
fn a_stream_is_passed_on_as_it_comes() {
    let host = Host::new();
    let mut server = server(&host);
    for flags in ["", "--noproxy '*'", "-p"] {
        // The second event is sent when the first has arrived.
        let script = format!(
            "curl -sSfN -m 60 {flags} http://{SERVER}/events | {{
                read -r first; curl -sSf {flags} http://{SERVER}/go; read -r second
                echo $first $second
            }}"
        );
        let run = host.run(&["--allow", SERVER], &script).expect_code(0);
        assert_eq!(run.stdout(), "one two\n", "{flags}");
    }
    server.child().kill().expect("a server to end");
}
