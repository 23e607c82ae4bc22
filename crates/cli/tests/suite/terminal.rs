//! A person at a terminal: keys, job control, sizes, full-screen programs.
//!
//! tmux is the terminal. Each test has a server of its own.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use ringfence_testkit::{Folder, wait_until};

use super::{inside, inside_with, ringfence};

/// The binary under test, to be typed into a shell.
pub(super) fn binary() -> PathBuf {
    std::env::var_os("RINGFENCE_BIN").map_or_else(
        || PathBuf::from(env!("CARGO_BIN_EXE_ringfence")),
        PathBuf::from,
    )
}

/// A shell in a terminal. In it, `$RF` is the binary under test.
pub(super) struct Screen {
    socket: Folder,
    folder: Folder,
}

impl Screen {
    pub(super) fn new() -> Self {
        let screen = Self {
            socket: Folder::new(),
            folder: Folder::new(),
        };
        let shell = "exec env PS1='ready> ' HISTFILE= PROMPT_COMMAND= bash --noprofile --norc -i";
        screen.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "100",
            "-y",
            "40",
            shell,
        ]);
        screen.shows("ready>");
        screen
    }

    /// Where the shell is.
    pub(super) fn folder(&self) -> &Folder {
        &self.folder
    }

    fn tmux(&self, words: &[&str]) -> String {
        let output = Command::new("tmux")
            .arg("-S")
            .arg(self.socket.join("socket"))
            .args(words)
            .current_dir(self.folder.path())
            .env("TERM", "xterm")
            .env("RF", binary())
            .env_remove("TMUX")
            .stdin(Stdio::null())
            .output()
            .expect("tmux");
        assert!(
            output.status.success(),
            "tmux {words:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Types a line.
    pub(super) fn line(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
        self.key("Enter");
    }

    /// Presses a key, such as `C-c`.
    pub(super) fn key(&self, name: &str) {
        self.tmux(&["send-keys", name]);
    }

    /// What can be seen.
    pub(super) fn text(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-J"])
    }

    /// Waits until a line of the screen has `text` in it.
    #[track_caller]
    pub(super) fn shows(&self, text: &str) {
        let shown = wait_until(|| self.text().contains(text));
        assert!(shown, "{text:?} does not show up in:\n{}", self.text());
    }

    /// Waits until a line of the screen is `text`.
    #[track_caller]
    pub(super) fn shows_line(&self, text: &str) {
        let shown = wait_until(|| self.text().lines().any(|line| line.trim_end() == text));
        assert!(shown, "no line is {text:?} in:\n{}", self.text());
    }

    /// Waits until a file in the shell's folder is not empty, and reads it.
    #[track_caller]
    fn file(&self, name: &str) -> String {
        let has_text = || std::fs::read(self.folder.join(name)).is_ok_and(|text| !text.is_empty());
        assert!(wait_until(has_text), "no {name}:\n{}", self.text());
        self.folder.read(name)
    }

    /// Rows and columns, as `stty size` prints them.
    fn size(&self) -> String {
        self.tmux(&["display-message", "-p", "#{pane_height} #{pane_width}"])
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = Command::new("tmux")
            .arg("-S")
            .arg(self.socket.join("socket"))
            .arg("kill-server")
            .stderr(Stdio::null())
            .status();
    }
}

#[test]
fn control_c_ends_the_command_with_130() {
    let screen = Screen::new();
    screen.line("\"$RF\" run -- sh -c 'echo up > up; exec sleep 1000'; echo code=$?");
    screen.file("up");
    screen.key("C-c");
    screen.shows("code=130");
}

#[test]
fn control_c_runs_a_handler_inside() {
    let screen = Screen::new();
    let script = "trap \"echo handled; exit 5\" INT; sleep 1000 & echo up > up; wait";
    screen.line(&format!("\"$RF\" run -- sh -c '{script}'; echo code=$?"));
    screen.file("up");
    screen.key("C-c");
    screen.shows("code=5");
    screen.shows("handled");
}

#[test]
fn control_backslash_ends_the_command_with_131() {
    let screen = Screen::new();
    screen.line("\"$RF\" run -- sh -c 'echo up > up; exec sleep 1000'; echo code=$?");
    screen.file("up");
    screen.key("C-\\");
    screen.shows("code=131");
}

/// It starts no process: a shell that is stopped while it does could not be
/// told from one that runs.
const STOPPABLE: &str = "trap \"echo up > resumed\" CONT
    echo up > up
    until read word; do :; done
    echo \"got $word\"
    exit 3";

#[test]
fn control_z_stops_the_job_and_fg_goes_on() {
    let screen = Screen::new();
    screen.folder().write("script", STOPPABLE);
    screen.line("\"$RF\" run -- sh script");
    screen.file("up");
    screen.key("C-z");
    screen.shows("Stopped");
    screen.line("echo in the shell");
    screen.shows_line("in the shell");
    screen.line("fg");
    screen.file("resumed");
    screen.line("again");
    screen.shows_line("got again");
    screen.line("echo code=$?");
    screen.shows_line("code=3");
}

#[test]
fn control_d_is_the_end_of_input() {
    let screen = Screen::new();
    screen.line("\"$RF\" run -- sh -c 'echo up > up; cat > typed; exit 6'; echo code=$?");
    screen.file("up");
    screen.line("some words");
    screen.key("C-d");
    screen.shows_line("code=6");
    assert_eq!(screen.folder().read("typed"), "some words\n");
}

#[test]
fn a_shell_inside_has_job_control() {
    let screen = Screen::new();
    screen.folder().write("script", STOPPABLE);
    // Quoted so that the line as typed is not taken for the prompt.
    screen.line("\"$RF\" run -- env PS1='in''side> ' bash --noprofile --norc -i; echo code=$?");
    screen.shows("inside>");
    screen.line("sh script");
    screen.file("up");
    screen.key("C-z");
    screen.shows("Stopped");
    screen.line("fg");
    screen.file("resumed");
    screen.line("again");
    screen.shows_line("got again");
    screen.line("exit 9");
    screen.shows_line("code=9");
}

#[test]
fn the_window_has_its_size_inside_and_follows_changes() {
    let screen = Screen::new();
    let script = "stty size > first
        trap \"stty size > second\" WINCH
        echo up > up
        while [ ! -s second ]; do sleep 0.02; done";
    screen.folder().write("script", script);
    screen.line("\"$RF\" run -- sh script; echo code=$?");
    screen.file("up");
    assert_eq!(screen.folder().read("first"), screen.size());
    screen.tmux(&["resize-window", "-x", "71", "-y", "19"]);
    assert_eq!(screen.file("second"), screen.size());
    screen.shows_line("code=0");
}

#[test]
fn the_command_has_a_terminal_with_a_name() {
    let screen = Screen::new();
    screen.line("\"$RF\" run -- sh -c 'tty > name; test -t 0 -a -t 1 -a -t 2'; echo code=$?");
    screen.shows_line("code=0");
    let name = screen.file("name");
    assert!(name.starts_with("/dev/pts/"), "{name}");
}

#[test]
fn the_terminal_inside_can_be_opened_by_name() {
    let screen = Screen::new();
    screen
        .line("\"$RF\" run -- sh -c 'echo to-tty > /dev/tty; echo to-name > $(tty)'; echo code=$?");
    screen.shows_line("code=0");
    screen.shows_line("to-tty");
    screen.shows_line("to-name");
}

#[test]
fn streams_that_are_no_terminal_stay_what_they_are() {
    let screen = Screen::new();
    let script = "test -t 0 || echo pipe >&2; test -t 1 || echo file >&2; test -t 2 && cat";
    screen.line(&format!(
        "echo words | \"$RF\" run -- sh -c '{script}' > out; echo code=$?"
    ));
    screen.shows_line("code=0");
    screen.shows_line("pipe");
    screen.shows_line("file");
    assert_eq!(screen.folder().read("out"), "words\n");
}

#[test]
fn without_a_terminal_of_its_own_a_command_still_works() {
    let screen = Screen::new();
    screen.line("\"$RF\" run --no-tty -- sh -c 'echo plain; exit 5'; echo code=$?");
    screen.shows_line("plain");
    screen.shows_line("code=5");
    screen
        .line("clear; \"$RF\" run --no-tty -- sh -c 'echo up > up; exec sleep 1000'; echo code=$?");
    screen.file("up");
    screen.key("C-c");
    screen.shows("code=130");
}

#[test]
fn without_a_terminal_there_is_none_inside() {
    let outcome =
        inside(Folder::new().path(), "test -t 0 || test -t 1 || test -t 2").expect_code(1);
    assert_eq!(outcome.stderr, "");
    inside(Folder::new().path(), "echo x > /dev/tty").expect_code(2);
}

#[test]
fn asking_for_a_terminal_without_one_is_an_error() {
    let folder = Folder::new();
    let outcome = inside_with(folder.path(), &["--tty"], "echo > ran").expect_code(125);
    assert!(
        outcome.stderr.contains("error[no-terminal]"),
        "{}",
        outcome.stderr
    );
    assert!(!folder.has("ran"));
    let both = ["run", "--tty", "--no-tty", "--", "true"];
    ringfence()
        .args(both)
        .folder(folder.path())
        .run()
        .expect_code(125);
}

#[test]
fn a_terminal_can_be_asked_for_on_every_stream() {
    let screen = Screen::new();
    let script = "test -t 0 -a -t 1 -a -t 2 && echo all";
    screen.line(&format!(
        "\"$RF\" run --tty -- sh -c '{script}' < /dev/null; echo code=$?"
    ));
    screen.shows_line("code=0");
    screen.shows_line("all");
}

#[test]
fn the_terminal_is_as_before_afterwards() {
    let screen = Screen::new();
    screen.line("stty -g > before");
    screen.line("\"$RF\" run -- sh -c 'stty raw -echo; exit 2'; stty -g > after; echo code=$?");
    screen.shows_line("code=0");
    assert_eq!(screen.file("after"), screen.file("before"));
}

#[test]
fn the_terminal_is_as_before_after_an_error() {
    let screen = Screen::new();
    screen.line("stty -g > before");
    screen.line("\"$RF\" run -- no-such-command; \"$RF\" run --time 1 -- true; stty -g > after; echo code=$?");
    screen.shows_line("code=0");
    assert_eq!(screen.file("after"), screen.file("before"));
}

#[test]
fn the_terminal_is_as_before_after_the_time_limit() {
    let screen = Screen::new();
    screen.line("stty -g > before");
    screen.line("\"$RF\" run --time 100ms -- sleep 1000; echo code=$?; stty -g > after");
    screen.shows_line("code=124");
    assert_eq!(screen.file("after"), screen.file("before"));
}

#[test]
fn a_run_in_the_background_leaves_the_terminal_alone() {
    let screen = Screen::new();
    screen.line(
        "\"$RF\" run -- sh -c 'while [ ! -e go ]; do sleep 0.02; done; echo finished > end' &",
    );
    screen.line("echo $((40+2))");
    screen.shows_line("42");
    screen.folder().write("go", "");
    assert_eq!(screen.file("end"), "finished\n");
}

#[test]
fn much_output_arrives_whole() {
    let screen = Screen::new();
    screen.line("\"$RF\" run -- seq 200000; echo code=$?");
    screen.shows_line("code=0");
    screen.shows_line("199999");
    screen.shows_line("200000");
}

#[test]
fn pasted_text_arrives_whole() {
    let screen = Screen::new();
    screen
        .line("\"$RF\" run -- sh -c 'stty -echo; echo up > up; head -n 300 > typed'; echo code=$?");
    screen.file("up");
    let text = "0123456789 0123456789 0123456789\n".repeat(300);
    for part in text.as_bytes().chunks(3300) {
        screen.tmux(&["send-keys", "-l", std::str::from_utf8(part).expect("text")]);
    }
    screen.shows_line("code=0");
    assert_eq!(screen.folder().read("typed"), text);
}

#[test]
fn an_interactive_python_answers() {
    let screen = Screen::new();
    screen.line("\"$RF\" run -- python3 -q; echo code=$?");
    screen.shows(">>>");
    screen.line("6 * 7");
    screen.shows_line("42");
    screen.line("exit(4)");
    screen.shows_line("code=4");
}

#[test]
fn vim_edits_on_the_whole_screen() {
    let screen = Screen::new();
    screen.folder().write("text", "old\n");
    screen.line("\"$RF\" run -- vim -u NONE -n text; echo code=$?");
    screen.shows("old");
    screen.shows("~");
    screen.tmux(&["send-keys", "-l", "cwnew"]);
    screen.shows("new");
    screen.key("Escape");
    screen.line(":wq");
    screen.shows_line("code=0");
    assert_eq!(screen.folder().read("text"), "new\n");
}

#[test]
fn vim_edits_without_a_screen() {
    let folder = Folder::new();
    folder.write("text", "one\ntwo\n");
    let command = [
        "vim",
        "-es",
        "-u",
        "NONE",
        "text",
        "-c",
        "%s/two/three/",
        "-c",
        "wq",
    ];
    let words = ["run", "--"].into_iter().chain(command);
    ringfence()
        .args(words)
        .env("TERM", "xterm")
        .folder(folder.path())
        .run()
        .expect_code(0);
    assert_eq!(folder.read("text"), "one\nthree\n");
}

#[test]
fn top_sees_only_what_is_inside() {
    let outcome = ringfence()
        .args(["run", "--", "top", "-b", "-n1"])
        .env("TERM", "xterm")
        .folder(Folder::new().path())
        .run()
        .expect_code(0);
    assert!(
        outcome.stdout.contains("Tasks:   2 total"),
        "{}",
        outcome.stdout
    );
}
