//! `run --ask`: a host that no rule allows is asked about on the terminal.

use ringfence_testkit::place::{METADATA, PRIVATE, PUBLIC};
use ringfence_testkit::{Folder, Outcome};

use super::internet::Online;

/// Starts a command on a terminal of its own and answers each question with the
/// next of the answers; prints all that the terminal showed. The answer `-` is
/// none, `^Z` stops the run, which is woken once it stands still, and `TEXT` in
/// `TEXT>ANSWER` is typed when the command says that it is ready.
const ON_A_TERMINAL: &str = r#"
import os, pty, signal, sys
answers, command = sys.argv[1].split(","), sys.argv[2:]
typed, _, answers[0] = answers[0].rpartition(">")
child, master = pty.fork()
if child == 0:
    os.execv(command[0], command)
shown, asked = b"", 0
def answer(text):
    if text == "^Z":
        os.write(master, b"\x1a")
        os.waitpid(child, os.WUNTRACED)
        os.kill(child, signal.SIGCONT)
    elif text != "-":
        os.write(master, text.encode() + b"\n")
while True:
    try:
        piece = os.read(master, 4096)
    except OSError:
        break
    if not piece:
        break
    shown += piece
    if typed and b"ready" in shown:
        os.write(master, typed[:1].encode())
        while b"wants" not in shown:
            shown += os.read(master, 4096)
        os.write(master, typed[1:].encode() + b"\n")
        typed = ""
    if shown.count(b"[N]ot? ") > asked:
        answer(answers[asked])
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

#[test]
fn g1_a_question_that_nobody_answers_is_a_no() {
    let terminal = Terminal::new();
    let flags = ["--ask-hold", "1300"];
    let outcome = terminal.run("-", &flags, TWICE).expect_code(0);
    says(
        &outcome,
        &["not answered", "got 403\ngot 403\n", "asked 1\n"],
    );
}

#[test]
fn g9_after_three_questions_that_nobody_answered_nobody_is_asked() {
    let terminal = Terminal::new();
    let script = "for n in 1 2 3 4 5; do \
        curl -s -o /dev/null -w 'got %{http_code}\\n' http://h$n.example.org/; done";
    let outcome = terminal.run("-", &["--ask-hold", "200"], script);
    let outcome = outcome.expect_code(0);
    let count = |part: &str| outcome.stdout.matches(part).count();
    let counts = ["got 403\n", "the command wants", "not answered"].map(count);
    assert_eq!(counts, [5, 3, 3], "{outcome:?}");
}

#[test]
fn a_run_that_is_stopped_at_a_question_asks_again_when_it_goes_on() {
    let terminal = Terminal::new();
    let script = format!("{TWICE}; stty -a | grep -o ' icanon'; test -t 0 && echo mine");
    let outcome = terminal.run("^Z,r", &[], &script).expect_code(0);
    says(
        &outcome,
        &["got 200\ngot 200\n icanon\nmine\n", "asked 2\n"],
    );
}

/// The command sees the first letter of a word, and has its question come
/// before the rest of it is typed, which would be an answer.
#[test]
fn g1_the_end_of_a_word_that_was_typed_to_the_command_is_no_answer() {
    let terminal = Terminal::new();
    let script = "stty raw -echo; echo ready; head -c1 >/dev/null; stty sane; \
        curl -s -o /dev/null -w 'got %{http_code}\\n' http://web.example.org/";
    let outcome = terminal.run("go>n", &[], script).expect_code(0);
    says(&outcome, &["got 403\n", "asked 1\n"]);
    let outcome = terminal.run("stop>n", &[], script).expect_code(0);
    says(&outcome, &["got 403\n", "asked 1\n"]);
    assert!(!terminal.online.arena.folder.has("ringfence.toml"));
}

/// A sequence that the command leaves unfinished must not swallow the question.
#[test]
fn g1_the_terminal_is_in_order_before_a_question() {
    let terminal = Terminal::new();
    let script = format!("printf '\\033(0\\033[8m\\033]0;'; {TWICE}");
    let outcome = terminal.run("n", &[], &script).expect_code(0);
    let order = "\u{18}\u{1b}\\\u{f}\u{1b}(B\u{1b}[0m";
    let found = outcome.stdout.find(order);
    let asked = outcome.stdout.find("ringfence: the command wants");
    assert!(found.is_some() && found < asked, "{outcome:?}");
}
