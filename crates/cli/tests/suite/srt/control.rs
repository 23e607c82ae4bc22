//! `--control-fd`: settings that change while the command runs.

use std::fs::{File, OpenOptions};
use std::io::Write;

use ringfence_testkit::{Started, wait_until};
use serde_json::{Value, json};

use super::case::{Speaker, settings, with};
use crate::suite::internet::Online;

/// Asks for a page each time a file `go` appears, until one `end` does.
const ASKING: &str = "readlink /proc/self/fd/* > behind; while [ ! -e end ]; do \
    if [ -e go ]; then rm go; \
    curl -s -o /dev/null -w '%{http_code}\\n' http://web.example.org/ >> said; fi; \
    sleep 0.01; done";

/// A command whose settings come through a pipe.
struct Running {
    online: Online,
    channel: File,
    command: Started,
}

impl Running {
    fn new(speaker: &Speaker, first: &Value) -> Self {
        Self::with(speaker, first, ASKING)
    }

    fn with(speaker: &Speaker, first: &Value, script: &str) -> Self {
        let online = Online::new();
        let folder = &online.arena.folder;
        online.outside("mkfifo channel").expect_code(0);
        let open = OpenOptions::new().read(true).write(true).clone();
        let channel = open.open(folder.join("channel")).expect("a pipe");
        let file = folder.write("s.json", &first.to_string());
        let command = online
            .net
            .program("sh")
            .args(["-c", "exec \"$0\" \"$@\" 7< channel"])
            .args(speaker.words())
            .args(["--control-fd", "7", "-s"])
            .args([file])
            .args(["-c", script])
            .folder(folder.path())
            .start();
        Self {
            online,
            channel,
            command,
        }
    }

    fn send(&mut self, line: &str) {
        writeln!(self.channel, "{line}").expect("a line that is sent");
    }

    /// The answers so far.
    fn said(&self) -> Vec<String> {
        let path = self.online.arena.folder.join("said");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Asks once more.
    fn ask(&self) -> String {
        let before = self.said().len();
        self.online.arena.folder.write("go", "");
        assert!(wait_until(|| self.said().len() > before), "no answer");
        self.said().last().cloned().unwrap_or_default()
    }

    /// Asks until the answer is this.
    #[track_caller]
    fn comes_to(&self, status: &str) {
        assert!(wait_until(|| self.ask() == status), "{:?}", self.said());
    }

    /// Lets the command end; what it said on standard error.
    fn end(self) -> String {
        let folder = &self.online.arena.folder;
        folder.write("end", "");
        let outcome = self.command.finish().expect_code(0);
        assert!(!folder.read("behind").contains("channel"));
        outcome.stderr
    }
}

fn allowing(hosts: &[&str]) -> Value {
    with("network", json!({"allowedDomains": hosts}))
}

#[test]
fn g6_later_settings_hold_from_the_next_connection_on() {
    change(&Speaker::Ours);
}

/// Takes a host away and gives it back while a command runs.
pub(super) fn change(speaker: &Speaker) {
    let mut running = Running::new(speaker, &allowing(&["web.example.org"]));
    running.comes_to("200");
    let mut narrow = settings();
    // Only the network changes: the command goes on writing.
    narrow["filesystem"]["allowWrite"] = json!([]);
    running.send(&narrow.to_string());
    running.comes_to("403");
    running.send(&allowing(&["*.example.org"]).to_string());
    running.comes_to("200");
    let stderr = running.end();
    assert!(!stderr.contains("Invalid config"), "{stderr}");
}

/// Asks all the time, by several clients and on connections that are kept.
const LOAD: &str = "for client in 1 2 3 4 5 6; do (while [ ! -e end ]; do \
    curl -s -o /dev/null -o /dev/null -o /dev/null -w '%{http_code}\\n' --noproxy '*' \
    http://web.example.org/ http://web.example.org/ http://api.example.org/ >> said; done) & done; \
    readlink /proc/self/fd/* > behind; wait";

#[test]
fn g6_a_denial_holds_under_load() {
    let hosts = ["web.example.org", "api.example.org"];
    let mut running = Running::with(&Speaker::Ours, &allowing(&hosts), LOAD);
    let closed = settings();
    // So many later answers are of requests that came after the line held.
    let more = |running: &Running, wanted: &str| {
        let before = running.said().len();
        let came = || {
            let said = running.said();
            said[before..].iter().filter(|code| *code == wanted).count() >= 60
        };
        assert!(
            wait_until(came),
            "{wanted}: {:?}",
            &running.said()[before..]
        );
    };
    for _ in 0..4 {
        more(&running, "200");
        assert!(!running.online.net.connections().is_empty());
        running.send(&closed.to_string());
        more(&running, "403");
        running.online.net.forget();
        more(&running, "403");
        assert_eq!(running.online.net.connections().len(), 0);
        running.send(&allowing(&hosts).to_string());
    }
    more(&running, "200");
    running.end();
}

#[test]
fn g6_a_line_that_cannot_be_used_changes_nothing() {
    let mut running = Running::new(&Speaker::Ours, &allowing(&["web.example.org"]));
    running.comes_to("200");
    let long = format!("{{\"x\": \"{}\"}}", "a".repeat(2 << 20));
    let unsupported = with(
        "network",
        json!({"mitmProxy": {"socketPath": "/s", "domains": ["a.test"]}}),
    );
    for line in ["nonsense", "{}", "", &long, &unsupported.to_string()] {
        running.send(line);
    }
    running.send(&allowing(&["web.example.org", "api.example.org"]).to_string());
    assert_eq!(running.ask(), "200");
    running.send(&settings().to_string());
    running.comes_to("403");
    let said = running.said();
    let changes = said.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!(changes, 1, "{said:?}");
    let stderr = running.end();
    let notes = stderr.matches("Invalid config on control fd 7").count();
    assert_eq!(notes, 4, "{stderr}");
}

#[test]
fn g10_a_channel_that_cannot_be_read_runs_nothing() {
    let online = Online::new();
    let file = online.arena.folder.write("s.json", &settings().to_string());
    for redirection in ["7> written", "7>&-", "7< ."] {
        let script = format!("exec \"$0\" \"$@\" {redirection}");
        let outcome = online
            .net
            .program("sh")
            .args(["-c", &script])
            .args(Speaker::Ours.words())
            .args(["--control-fd", "7", "-s"])
            .args([&file])
            .args(["touch", "ran"])
            .folder(online.arena.folder.path())
            .run()
            .expect_code(1);
        assert!(
            outcome.stderr.contains("--control-fd 7"),
            "{}",
            outcome.stderr
        );
        assert!(!online.arena.folder.has("ran"), "{redirection}");
    }
}
