//! `run --ask`: a host that no rule allows is asked about on the terminal.

use ringfence_testkit::place::{METADATA, PRIVATE, PUBLIC};
use ringfence_testkit::{Folder, Outcome};

use super::internet::Online;

/// Starts a command on a terminal of its own and answers each question with the
/// next of the answers; prints all that the terminal showed.
const ON_A_TERMINAL: &str = r#"
import os, pty, sys
answers, command = sys.argv[1].split(","), sys.argv[2:]
child, master = pty.fork()
if child == 0:
    os.execv(command[0], command)
shown, asked = b"", 0
while True:
    try:
        piece = os.read(master, 4096)
    except OSError:
        break
    if not piece:
        break
    shown += piece
    if shown.count(b"[N]ot? ") > asked:
        os.write(master, answers[asked].encode() + b"\n")
        asked += 1
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
sys.stdout.write(shown.decode(errors="replace").replace("\r", ""))
sys.stdout.write(f"\nasked {asked}\n")
sys.exit(status)
"#;

struct Terminal {
    online: Online,
    state: Folder,
}

impl Terminal {
    fn new() -> Self {
        let online = Online::new();
        online.net.zone().set("other.example.org", PUBLIC);
        Self {
            online,
            state: Folder::new(),
        }
    }

    fn run(&self, answers: &str, flags: &[&str], script: &str) -> Outcome {
        let command = [&["run", "--ask"], flags, &["--", "sh", "-c", script]].concat();
        self.online
            .net
            .program("/usr/bin/python3")
            .args(["-c", ON_A_TERMINAL, answers])
            .args([super::ringfence().path()])
            .args(command)
            .folder(self.online.arena.folder.path())
            .env("XDG_STATE_HOME", self.state.path())
            .run()
    }

    fn ringfence(&self, words: &[&str]) -> Outcome {
        let program = self.online.ringfence().args(words.iter().copied());
        program.env("XDG_STATE_HOME", self.state.path()).run()
    }
}

const TWICE: &str =
    "for n in 1 2; do curl -s -o /dev/null -w 'got %{http_code}\\n' http://web.example.org/; done";

#[track_caller]
fn says(outcome: &Outcome, parts: &[&str]) {
    for part in parts {
        assert!(outcome.stdout.contains(part), "no {part:?} in {outcome:?}");
    }
}

#[test]
fn g1_what_is_not_approved_stays_refused_and_is_asked_about_once() {
    let terminal = Terminal::new();
    terminal.online.net.forget();
    let outcome = terminal.run("n", &[], TWICE).expect_code(0);
    says(
        &outcome,
        &[
            "wants web.example.org:80",
            "got 403\ngot 403\n",
            "asked 1\n",
        ],
    );
    let packets = terminal.online.net.packets();
    assert_eq!(packets, Vec::<String>::new());
}

#[test]
fn once_is_for_those_who_wait() {
    let terminal = Terminal::new();
    let outcome = terminal.run("o,", &[], TWICE).expect_code(0);
    says(&outcome, &["got 200\n", "got 403\n", "asked 2\n"]);
}

#[test]
fn for_this_run_is_a_rule_with_its_origin() {
    let terminal = Terminal::new();
    let outcome = terminal.run("r", &[], TWICE).expect_code(0);
    says(&outcome, &["got 200\ngot 200\n", "asked 1\n"]);
    let log = terminal
        .ringfence(&["policy", "log", "--json"])
        .expect_code(0);
    says(&log, &["asked for this run", "web.example.org:80"]);
    assert!(!terminal.online.arena.folder.has("ringfence.toml"));
}

#[test]
fn for_this_project_is_there_in_the_next_run() {
    let terminal = Terminal::new();
    let outcome = terminal.run("project", &[], TWICE).expect_code(0);
    says(&outcome, &["got 200\ngot 200\n", "asked 1\n", "added to "]);
    let text = terminal.online.arena.folder.read("ringfence.toml");
    assert!(text.contains("allow = [\"web.example.org:80\"]"), "{text}");
    let next = terminal
        .ringfence(&["run", "--", "sh", "-c", TWICE])
        .expect_code(0);
    assert_eq!(
        (next.stdout.as_str(), next.stderr.as_str()),
        ("got 200\ngot 200\n", "")
    );
}

#[test]
fn g3_denies_ceilings_and_special_addresses_are_not_asked_about() {
    let terminal = Terminal::new();
    let zone = terminal.online.net.zone();
    zone.set("db.example.org", PRIVATE);
    let folder = &terminal.online.arena.folder;
    folder.write(
        "ceiling.yaml",
        "version: 1\nnetwork: {allow: [db.example.org]}\n",
    );
    let get = |url: &str| format!("curl -s -o /dev/null -w 'got %{{http_code}}\\n' http://{url}/");
    for (flags, url) in [
        (&["--deny", "web.example.org"][..], "web.example.org"),
        (&["--ceiling", "ceiling.yaml"], "web.example.org"),
        (&[], PRIVATE),
        (&[], METADATA),
    ] {
        let outcome = terminal.run("r", flags, &get(url)).expect_code(0);
        says(&outcome, &["got 403\n", "asked 0\n"]);
    }
    // A name is approved, not whatever address it turns out to have.
    let outcome = terminal
        .run("r", &[], &get("db.example.org"))
        .expect_code(0);
    says(&outcome, &["got 403\n", "asked 1\n", "private-address"]);
}

#[test]
fn the_command_has_its_terminal_back_after_the_answer() {
    let terminal = Terminal::new();
    let script = format!("{TWICE}; test -t 0 && test -t 1 && stty size >/dev/null && echo mine");
    let outcome = terminal.run("r", &[], &script).expect_code(0);
    says(&outcome, &["got 200\ngot 200\nmine\n"]);
}

#[test]
fn g10_without_a_terminal_nobody_can_be_asked() {
    let terminal = Terminal::new();
    let outcome = terminal.ringfence(&["run", "--ask", "--", "touch", "ran"]);
    let outcome = outcome.expect_code(125);
    assert!(
        outcome.stderr.contains("error[no-terminal]"),
        "{}",
        outcome.stderr
    );
    assert!(!terminal.online.arena.folder.has("ran"));
    let closed = terminal.ringfence(&["run", "--ask", "--no-network", "--", "true"]);
    closed.expect_code(125);
}
