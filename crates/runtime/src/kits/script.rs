//! The script that sets a sandbox up, and then becomes the command.

/// What every script begins with. `put` writes a file, `step` runs a command
/// and shows what it printed only when it fails.
const BEGINNING: &str = r#"# Sets the sandbox up with the kits of this run, then becomes the command.
kit=
# Steps are written for bash as often as for sh.
shell=$(command -v bash) || shell=/bin/sh
fail() {
    printf 'ringfence: kit %s: %s\n' "$kit" "$1" >&2
    exit 125
}
home() {
    mkdir -p -m 0700 -- "$HOME" 2>/dev/null && [ -w "$HOME" ] ||
        fail "the home folder $HOME cannot be written inside; do not set HOME"
}
put() {
    if [ "$4" = keep ] && { [ -e "$2" ] || [ -L "$2" ]; }; then
        return
    fi
    [ ! -d "$2" ] && mkdir -p -- "${2%/*}" && cp -- "$1" "$2" && chmod "$3" "$2" ||
        fail "cannot write $2"
}
step() {
    what=$1
    shift
    log=$(mktemp) || fail "cannot make a temporary file"
    "$@" </dev/null >"$log" 2>&1
    code=$?
    if [ "$code" -ne 0 ]; then
        cat "$log" >&2
        fail "$what failed with exit code $code"
    fi
    rm -f "$log"
}
"#;

/// A script while it is written.
pub(super) struct Script(String);

impl Script {
    pub(super) fn new() -> Self {
        Self(BEGINNING.to_owned())
    }

    /// A line: a word of ours, and words that are taken as they are.
    fn line(&mut self, word: &str, words: &[&str], end: &str) {
        self.0.push_str(word);
        for word in words {
            self.0.push(' ');
            self.0.push_str(&quoted(word));
        }
        self.0.push_str(end);
        self.0.push('\n');
    }

    /// Whose lines follow.
    pub(super) fn kit(&mut self, name: &str) {
        self.0.push_str("kit=");
        self.0.push_str(&quoted(name));
        self.0.push('\n');
    }

    /// Makes the home folder.
    pub(super) fn home(&mut self) {
        self.0.push_str("home\n");
    }

    /// Writes a file; `target` may begin with a variable of the script.
    pub(super) fn put(&mut self, source: &str, target: &Target<'_>, mode: u32, existing: &str) {
        self.0.push_str("put ");
        self.0.push_str(&quoted(source));
        self.0.push(' ');
        self.0.push_str(&target.text());
        self.line("", &[&format!("{mode:04o}"), existing], "");
    }

    /// Runs a command and waits for it.
    pub(super) fn step(&mut self, what: &str, words: &[&str]) {
        let words: Vec<&str> = std::iter::once(what).chain(words.iter().copied()).collect();
        self.line("step", &words, "");
    }

    /// Runs a file of lines by `bash`, or by `sh` where there is none, and waits for it.
    pub(super) fn shell_step(&mut self, what: &str, file: &str) {
        let (what, file) = (quoted(what), quoted(file));
        for part in ["step ", &what, " \"$shell\" ", &file, "\n"] {
            self.0.push_str(part);
        }
    }

    /// Starts a command and goes on.
    pub(super) fn start(&mut self, words: &[&str]) {
        self.line("", words, " </dev/null >/dev/null 2>&1 &");
    }

    pub(super) fn finish(mut self) -> String {
        self.0.push_str("exec \"$@\"\n");
        self.0
    }
}

/// Where a file goes.
pub(super) enum Target<'a> {
    /// Below the home folder inside.
    Home(&'a str),
    /// At a path.
    At(&'a str),
}

impl Target<'_> {
    fn text(&self) -> String {
        match self {
            Self::Home(below) => format!("\"$HOME\"/{}", quoted(below)),
            Self::At(path) => quoted(path),
        }
    }
}

/// A word that a shell takes as it is.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn run(script: &str, words: &[&str], home: &str) -> (Option<i32>, String, String) {
        let done = Command::new("/bin/sh")
            .args(["-c", script, "setup.sh"])
            .args(words)
            .env("HOME", home)
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (done.status.code(), text(done.stdout), text(done.stderr))
    }

    #[test]
    fn words_are_taken_as_they_are() {
        for word in ["a b", "it's", "$HOME", "`id`", "\"", "-n", "a\nb", "*", ""] {
            let mut script = Script::new();
            script.kit(word);
            script.step("x", &["test", word, "=", word]);
            let (code, out, _) = run(&script.finish(), &["printf", "%s", word], "/");
            assert_eq!((code, out.as_str()), (Some(0), word), "{word:?}");
        }
    }

    #[test]
    fn a_failing_step_ends_it_with_what_was_printed() {
        let mut script = Script::new();
        script.kit("forge");
        script.step(
            "install step 1",
            &["sh", "-c", "echo out; echo err >&2; exit 7"],
        );
        let (code, out, err) = run(&script.finish(), &["echo", "never"], "/");
        assert_eq!((code, out.as_str()), (Some(125), ""));
        let told = "out\nerr\nringfence: kit forge: install step 1 failed with exit code 7\n";
        assert_eq!(err, told);
    }

    #[test]
    fn lines_are_run_by_bash_where_there_is_one() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("lines");
        std::fs::write(&file, "set -o pipefail; cat <(echo x) >/dev/null").unwrap();
        let mut script = Script::new();
        script.shell_step("install step 1", file.to_str().unwrap());
        let script = script.finish();
        let (code, out, err) = run(&script, &["echo", "go"], "/");
        assert_eq!((code, out.as_str(), err.as_str()), (Some(0), "go\n", ""));
        // Without bash, by sh.
        std::fs::write(&file, "true").unwrap();
        let bare = format!("command() {{ return 127; }}\n{script}");
        let (code, ..) = run(&bare, &["true"], "/");
        assert_eq!(code, Some(0));
    }

    #[test]
    fn files_are_written_with_their_modes_and_kept_where_wanted() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(path("source"), "new").unwrap();
        std::fs::write(path("there"), "old").unwrap();
        let mut script = Script::new();
        script.home();
        script.put(&path("source"), &Target::Home("a b/c'd"), 0o640, "replace");
        script.put(&path("source"), &Target::At(&path("there")), 0o644, "keep");
        let (code, _, err) = run(&script.finish(), &["true"], &path("home"));
        assert_eq!((code, err.as_str()), (Some(0), ""));
        let written = path("home/a b/c'd");
        assert_eq!(std::fs::read_to_string(&written).unwrap(), "new");
        let mode = std::fs::metadata(&written).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        assert_eq!(std::fs::read_to_string(path("there")).unwrap(), "old");
    }

    #[test]
    fn a_folder_in_the_place_of_a_file_ends_it() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(path("source"), "new").unwrap();
        std::fs::create_dir(path("there")).unwrap();
        let mut script = Script::new();
        script.put(
            &path("source"),
            &Target::At(&path("there")),
            0o644,
            "replace",
        );
        let (code, _, _) = run(&script.finish(), &["true"], "/");
        assert_eq!(code, Some(125));
        assert_eq!(std::fs::read_dir(path("there")).unwrap().count(), 0);
    }

    #[test]
    fn what_is_started_is_not_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let pipe = place.path().join("pipe");
        let mode = rustix::fs::Mode::RWXU;
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
        let mut script = Script::new();
        // Ends only when somebody writes, which is after the command has ended.
        script.start(&["cat", pipe.to_str().unwrap()]);
        let (code, out, _) = run(&script.finish(), &["echo", "go"], "/");
        assert_eq!((code, out.as_str()), (Some(0), "go\n"));
        std::fs::write(&pipe, "end").unwrap();
    }
}
