//! What people do all day works inside, offline and without extra flags.

use std::path::{Path, PathBuf};

use ringfence_testkit::{Folder, Outcome, Program, is_root};

use super::terminal::Screen;
use super::{inside, inside_with, ringfence};

/// Runs a script with `set -e` and expects it to succeed without refusals.
#[track_caller]
fn works(folder: &Folder, script: &str) -> String {
    let outcome = inside(folder.path(), &format!("set -e\n{script}")).expect_code(0);
    assert!(!outcome.stderr.contains("refused"), "{}", outcome.stderr);
    outcome.stdout
}

/// The same with bash.
#[track_caller]
fn works_in_bash(folder: &Folder, script: &str) -> String {
    ringfence()
        .args(["run", "--", "bash", "-ec", script])
        .folder(folder.path())
        .run()
        .expect_code(0)
        .stdout
}

/// A program on `PATH`; some live in root's home, where others cannot go.
fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

const AUTHOR: &str = "export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org \
    GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.org";

#[test]
fn git_makes_a_repository_and_its_history() {
    let folder = Folder::new();
    let script = format!(
        "{AUTHOR}
        git init -q -b main repo
        cd repo
        echo one > file
        git add file
        git commit -qm first
        git checkout -q -b other
        echo two >> file
        git commit -qam second
        git checkout -q main
        git merge -q other
        git branch -d other >&2
        git tag v1
        echo three >> file
        git stash -q
        git stash pop -q
        git checkout -q -- file
        git gc -q
        git fsck --no-dangling 2>&1
        git status --short
        git log --format=%s"
    );
    assert_eq!(works(&folder, &script), "second\nfirst\n");
    assert_eq!(folder.read("repo/file"), "one\ntwo\n");
}

#[test]
fn git_works_in_a_repository_from_outside() {
    let folder = Folder::new();
    let outside = format!(
        "{AUTHOR}; git init -q -b main && echo one > file && git add file && git commit -qm first"
    );
    ringfence_testkit::sh(&outside, folder.path()).expect_code(0);
    let script = format!(
        "{AUTHOR}
        echo two > file
        git diff --stat >&2
        git commit -qam second
        git checkout -q -b branch
        git log --format=%s"
    );
    assert_eq!(works(&folder, &script), "second\nfirst\n");
    let log = ringfence_testkit::sh("git log --format=%s branch", folder.path()).expect_code(0);
    assert_eq!(log.stdout, "second\nfirst\n");
}

#[test]
fn git_clones_from_a_path() {
    let folder = Folder::new();
    let script = format!(
        "{AUTHOR}
        git init -q -b main origin
        echo one > origin/file
        git -C origin add file
        git -C origin commit -qm first
        git clone -q origin copy
        git clone -q --bare origin bare
        git -C copy pull -q
        cat copy/file"
    );
    assert_eq!(works(&folder, &script), "one\n");
}

#[test]
fn git_clones_from_a_place_that_is_shown() {
    let (origin, folder) = (Folder::new(), Folder::new());
    let outside = format!(
        "{AUTHOR}; git init -q -b main && echo one > file && git add file && git commit -qm first"
    );
    ringfence_testkit::sh(&outside, origin.path()).expect_code(0);
    let shown = origin.path().to_str().expect("a plain path");
    let script = format!("git clone -q {shown} copy");
    inside_with(folder.path(), &["--read", shown], &script).expect_code(0);
    assert_eq!(folder.read("copy/file"), "one\n");
}

#[test]
fn git_adds_a_work_tree() {
    let folder = Folder::new();
    let script = format!(
        "{AUTHOR}
        git init -q -b main repo
        cd repo
        echo one > file
        git add file
        git commit -qm first
        git worktree add -q -b side ../side
        cd ../side
        echo two > file
        git commit -qam second
        cd ../repo
        git worktree list | wc -l
        git log --format=%s side"
    );
    assert_eq!(works(&folder, &script), "2\nsecond\nfirst\n");
}

/// Writes a wheel, which is a zip archive, with nothing but Python.
const WHEEL: &str = r#"
import zipfile
with zipfile.ZipFile("tiny-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("tiny.py", "answer = 42\n")
    about = "tiny-1.0.dist-info/"
    wheel.writestr(about + "METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
    wheel.writestr(about + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(about + "RECORD", "tiny.py,,\n" + about + "METADATA,,\n" + about + "WHEEL,,\n" + about + "RECORD,,\n")
"#;

#[test]
fn pip_installs_a_wheel_into_an_environment() {
    let folder = Folder::new();
    folder.write("make_wheel.py", WHEEL);
    let script = "python3 make_wheel.py
        python3 -m venv env
        env/bin/pip --disable-pip-version-check install -q --no-index ./tiny-1.0-py3-none-any.whl
        env/bin/python -c 'import tiny; print(tiny.answer)'";
    assert_eq!(works(&folder, script), "42\n");
}

#[test]
fn npm_installs_a_folder() {
    let folder = Folder::new();
    folder.write(
        "package/package.json",
        r#"{"name": "tiny", "version": "1.0.0"}"#,
    );
    folder.write("package/index.js", "module.exports = 42;\n");
    folder.write(
        "app/package.json",
        r#"{"name": "app", "version": "1.0.0", "scripts": {"test": "node -p 'require(\"tiny\")'"}}"#,
    );
    let script = "cd app
        npm install --offline --no-audit --no-fund ../package >&2
        npm test --silent";
    // npm keeps logs in the home folder, and does without.
    let outcome = inside(folder.path(), &format!("set -e\n{script}")).expect_code(0);
    assert_eq!(outcome.stdout, "42\n");
}

#[test]
fn cargo_builds_and_runs_a_crate() {
    let Some(cargo) = on_path("cargo") else {
        assert!(!is_root(), "cargo is missing");
        println!("skipped: no cargo that this user can reach");
        return;
    };
    let folder = Folder::new();
    folder.write(
        "Cargo.toml",
        "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
    );
    folder.write("src/main.rs", "fn main() { println!(\"{}\", 6 * 7) }\n");
    // Cargo tries to lock its cache in the home folder, and does without.
    let script = format!("{} run -q --offline", cargo.display());
    let outcome = inside(folder.path(), &script).expect_code(0);
    assert_eq!(outcome.stdout, "42\n");
}

#[test]
fn make_builds_in_parallel() {
    let folder = Folder::new();
    folder.write(
        "Makefile",
        "all: a b c\n\tcat a b c > all\n%: %.in\n\tcp $< $@\n",
    );
    for name in ["a.in", "b.in", "c.in"] {
        folder.write(name, name);
    }
    works(&folder, "make -s -j4");
    assert_eq!(folder.read("all"), "a.inb.inc.in");
    assert_eq!(works(&folder, "make -q a && echo current"), "current\n");
}

#[test]
fn a_c_program_is_compiled() {
    let folder = Folder::new();
    folder.write(
        "a.c",
        "#include <stdio.h>\nint main(void) { puts(\"built\"); return 0; }\n",
    );
    assert_eq!(works(&folder, "cc -o a a.c && ./a"), "built\n");
}

#[test]
fn tar_packs_and_unpacks() {
    let folder = Folder::new();
    let script = "mkdir -p in/sub out
        echo one > in/one
        echo two > in/sub/two
        ln -s one in/link
        chmod 640 in/one
        tar czf in.tar.gz in
        tar xzf in.tar.gz -C out
        stat -c %a out/in/one
        readlink out/in/link
        cat out/in/sub/two";
    assert_eq!(works(&folder, script), "640\none\ntwo\n");
}

#[test]
fn sqlite_keeps_a_database() {
    let folder = Folder::new();
    let script = "sqlite3 data.db 'pragma journal_mode=wal; create table t(n); insert into t values (40), (2);' >&2
        sqlite3 data.db 'select sum(n) from t'";
    assert_eq!(works(&folder, script), "42\n");
}

#[test]
fn java_compiles_and_runs() {
    let folder = Folder::new();
    folder.write(
        "Hello.java",
        "class Hello { public static void main(String[] a) { System.out.println(6 * 7); } }\n",
    );
    assert_eq!(works(&folder, "javac Hello.java && java Hello"), "42\n");
}

#[test]
fn pipelines_and_fifos_work() {
    let folder = Folder::new();
    let script = "mkfifo pipe
        seq 1000 > pipe &
        sort -rn < pipe | head -n 1
        seq 100000 | grep -c 7 | tr -d '\\n' | wc -c";
    assert_eq!(works(&folder, script), "1000\n5\n");
}

#[test]
fn here_documents_and_temporary_files_work() {
    let folder = Folder::new();
    let script = "name=$(mktemp)
        cat > \"$name\" <<END
        words
END
        cat \"$name\"
        mktemp -d > made
        mktemp -p . local.XXXX > made
        python3 -c 'import tempfile; tempfile.TemporaryFile().write(b\"x\")'";
    assert_eq!(works(&folder, script).trim(), "words");
}

#[test]
fn here_documents_and_process_substitution_work_in_bash() {
    let folder = Folder::new();
    let script = "cat <(echo one) <(echo two); cat <<< three; echo four > >(cat); wait";
    assert_eq!(works_in_bash(&folder, script), "one\ntwo\nthree\nfour\n");
}

#[test]
fn the_usual_devices_work() {
    let folder = Folder::new();
    let script = "echo x > /dev/null
        head -c 8 /dev/zero | wc -c
        head -c 8 /dev/urandom | wc -c
        head -c 8 /dev/random | wc -c
        ls /dev/shm
        echo x > /dev/shm/file
        echo x > /dev/full && exit 1
        echo end";
    assert_eq!(works(&folder, script), "8\n8\n8\nend\n");
}

#[test]
fn the_terminal_can_be_written_to() {
    let screen = Screen::new();
    screen.line("\"$RF\" run -- sh -c 'echo shown > /dev/tty' > out; echo code=$?");
    screen.shows_line("code=0");
    screen.shows_line("shown");
    assert_eq!(screen.folder().read("out"), "");
}

const ASYNCIO: &str = r#"
import asyncio, sys

async def answer(reader, writer):
    writer.write((await reader.readline()).upper())
    await writer.drain()
    writer.close()

async def ask(reader, writer):
    writer.write(b"hello\n")
    await writer.drain()
    print((await reader.readline()).decode(), end="")
    writer.close()

async def main():
    if sys.argv[1] == "unix":
        server = await asyncio.start_unix_server(answer, "socket")
        await ask(*await asyncio.open_unix_connection("socket"))
    else:
        host = sys.argv[1]
        server = await asyncio.start_server(answer, host, 0)
        port = server.sockets[0].getsockname()[1]
        await ask(*await asyncio.open_connection(host, port))
    server.close()

asyncio.run(main())
"#;

#[test]
fn python_serves_a_socket_file() {
    let folder = Folder::new();
    folder.write("serve.py", ASYNCIO);
    assert_eq!(works(&folder, "python3 serve.py unix"), "HELLO\n");
}

#[test]
fn python_serves_its_own_loopback() {
    let folder = Folder::new();
    folder.write("serve.py", ASYNCIO);
    let script = "python3 serve.py 127.0.0.1; python3 serve.py ::1; python3 serve.py localhost";
    assert_eq!(works(&folder, script), "HELLO\nHELLO\nHELLO\n");
}

const NODE: &str = r#"
const net = require("net");
const where = process.argv[2] === "unix" ? "./socket" : {port: 0, host: "127.0.0.1"};
const server = net.createServer(socket => socket.end("hello\n"));
server.listen(where, () => {
    const to = typeof where === "string" ? where : server.address();
    const target = typeof to === "string" ? {path: to} : {port: to.port, host: to.address};
    const client = net.connect(target);
    client.pipe(process.stdout);
    client.on("close", () => server.close());
});
"#;

#[test]
fn node_serves_a_socket_file_and_loopback() {
    let folder = Folder::new();
    folder.write("serve.js", NODE);
    let script = "node serve.js unix; node serve.js tcp";
    assert_eq!(works(&folder, script), "hello\nhello\n");
}

#[test]
fn processes_inside_talk_over_loopback() {
    let folder = Folder::new();
    folder.write("page", "served\n");
    let script = "python3 -u -m http.server --bind 127.0.0.1 0 > log 2>&1 &
        while ! grep -q 'port' log 2>/dev/null; do sleep 0.02; done
        port=$(sed -n 's/.*port \\([0-9]*\\).*/\\1/p' log)
        python3 -c \"import urllib.request as r; print(r.urlopen('http://127.0.0.1:$port/page').read().decode(), end='')\"";
    assert_eq!(works(&folder, script), "served\n");
}

#[test]
fn shared_memory_and_locks_work() {
    let folder = Folder::new();
    folder.write(
        "share.py",
        "import multiprocessing as m\n\
         def put(q, n): q.put(n * n)\n\
         if __name__ == '__main__':\n\
         \x20   q = m.Queue()\n\
         \x20   all = [m.Process(target=put, args=(q, n)) for n in range(4)]\n\
         \x20   [p.start() for p in all]\n\
         \x20   print(sum(q.get() for _ in all))\n\
         \x20   [p.join() for p in all]\n",
    );
    assert_eq!(works(&folder, "python3 share.py"), "14\n");
    assert_eq!(works(&folder, "flock lock echo locked"), "locked\n");
}

#[test]
fn files_are_the_starters_own_afterwards() {
    use std::os::unix::fs::MetadataExt;
    let folder = Folder::new();
    works(
        &folder,
        "umask 027; mkdir made; echo x > made/file; ln -s file made/link",
    );
    let own = std::fs::metadata(folder.path()).expect("the folder");
    for name in ["made", "made/file", "made/link"] {
        let made = std::fs::symlink_metadata(folder.join(name)).expect("an entry");
        assert_eq!((made.uid(), made.gid()), (own.uid(), own.gid()), "{name}");
    }
    let mode = std::fs::metadata(folder.join("made/file"))
        .expect("a file")
        .mode();
    assert_eq!(mode & 0o777, 0o640);
}

#[test]
fn files_change_as_outside() {
    let folder = Folder::new();
    let script = "echo one > a
        mv a b
        ln b c
        cp -p b d
        chmod 755 d
        touch -d 2001-02-03 d
        truncate -s 100 b
        rm c
        mkdir -p x/y/z
        rmdir x/y/z
        rm -r x
        ls";
    assert_eq!(works(&folder, script), "b\nd\n");
    assert_eq!(std::fs::metadata(folder.join("b")).expect("b").len(), 100);
}

#[test]
fn a_script_with_an_interpreter_line_runs() {
    let folder = Folder::new();
    let path = folder.write("script", "#!/usr/bin/env bash\necho \"run $1\"\n");
    make_executable(&path);
    let outcome = run_words(&folder, &["./script", "now"]);
    assert_eq!(outcome.expect_code(0).stdout, "run now\n");
}

#[test]
fn a_program_of_the_folder_is_found_on_a_path_of_ones_own() {
    let folder = Folder::new();
    make_executable(&folder.write("bin/own-tool", "#!/bin/sh\necho tool\n"));
    let path = std::env::var("PATH").unwrap_or_default();
    let outcome = ringfence()
        .args(["run", "--", "own-tool"])
        .env("PATH", format!("{}:{path}", folder.join("bin").display()))
        .folder(folder.path())
        .run();
    assert_eq!(outcome.expect_code(0).stdout, "tool\n");
}

#[test]
fn the_environment_is_what_the_flags_say() {
    let folder = Folder::new();
    let outcome = ringfence()
        .args(["run", "--env", "A=b c=d", "--pass-env", "WANTED", "--"])
        .args(["sh", "-c", "echo \"$A,$WANTED,$UNWANTED,$PWD,$RINGFENCE\""])
        .env("WANTED", "yes")
        .env("UNWANTED", "no")
        .folder(folder.path())
        .run()
        .expect_code(0);
    assert_eq!(
        outcome.stdout,
        format!("b c=d,yes,,{},1\n", folder.path().display())
    );
}

fn run_words(folder: &Folder, words: &[&str]) -> Outcome {
    let words = ["run", "--"].into_iter().chain(words.iter().copied());
    ringfence().args(words).folder(folder.path()).run()
}

fn make_executable(path: &Path) {
    Program::new("chmod")
        .args(["755".as_ref(), path.as_os_str()])
        .run()
        .expect_code(0);
}
