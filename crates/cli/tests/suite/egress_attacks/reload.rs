//! G6: a policy that becomes narrower while a connection is being made.

use std::fs::OpenOptions;
use std::io::Write;

use ringfence_testkit::place::{BLACK_HOLE, PUBLIC};
use ringfence_testkit::{Answer, wait_until};
use serde_json::json;

use super::host;
use crate::suite::ringfence;

/// Waits for a server that does not answer, and has something to say to it;
/// meanwhile asks until another host is refused.
const COMMAND: &str = "/usr/bin/python3 wait.py & \
    while [ \"$(curl -s -o /dev/null -w '%{http_code}' http://web.example.org/)\" != 403 ]; do :; done; \
    touch narrowed; wait";
const WAIT: &str = "import socket
try:
    stream = socket.create_connection(('slow.test', 5432), 60)
    stream.sendall(b'said too late\\n')
    stream.recv(100)
except OSError:
    pass
";

fn settings(hosts: &[&str]) -> String {
    json!({
        "network": {"allowedDomains": hosts, "deniedDomains": []},
        "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []}
    })
    .to_string()
}

#[test]
fn g6_a_connection_that_is_being_made_ends_with_its_permission() {
    let host = host();
    let folder = &host.online.arena.folder;
    // Each of them gets a quarter of a second.
    let mut addresses = vec![BLACK_HOLE; 12];
    addresses.push(PUBLIC);
    host.net()
        .zone()
        .set("slow.test", Answer::addresses(&addresses));
    host.write("wait.py", WAIT);
    host.write("s.json", &settings(&["slow.test", "web.example.org"]));
    host.online.outside("mkfifo channel").expect_code(0);
    let mut channel = OpenOptions::new()
        .read(true)
        .write(true)
        .open(folder.join("channel"))
        .unwrap();
    let command = host
        .net()
        .program("sh")
        .args(["-c", "exec \"$0\" \"$@\" 7< channel"])
        .args([ringfence().path()])
        .args(["srt", "--control-fd", "7", "-s", "s.json", "-c", COMMAND])
        .folder(folder.path())
        .start();
    let dialling = format!("tcp {BLACK_HOLE}:5432");
    assert!(wait_until(|| host.net().packets().contains(&dialling)));
    writeln!(channel, "{}", settings(&[])).unwrap();
    assert!(wait_until(|| folder.join("narrowed").exists()));
    host.net().forget();
    command.finish();
    let late = host.net().packets();
    let late: Vec<_> = late
        .iter()
        .filter(|packet| !packet.contains(BLACK_HOLE))
        .collect();
    assert!(late.is_empty(), "{late:?}");
    assert!(!host.net().saw("said too late"));
}
