//! What happens when a part is gone: network is lost, never gained.

use ringfence_testkit::{Folder, Started, is_root, processes_with, status_of, wait_until};

use super::{Host, read_log};
use crate::suite::ringfence;

/// The living processes of a run other than its supervisor.
fn inhabitants(marker: &str, run: &Started) -> Vec<u32> {
    let mut found = processes_with(marker);
    found.retain(|pid| *pid != run.id() && !status_of(*pid, "State:").starts_with('Z'));
    found
}

#[test]
fn g8_the_death_of_the_supervisor_ends_transfers() {
    let host = Host::new();
    let marker = host.online.arena.folder.text();
    let state = Folder::new();
    for (flags, url) in [
        ("", "https://web.example.org/bytes/1000000000000"),
        (
            "--noproxy '*'",
            "http://web.example.org/bytes/1000000000000",
        ),
    ] {
        let script = format!("curl -sS --limit-rate 1M {flags} {url} -o part -H \"X-Own: $0\"");
        let run = host
            .online
            .ringfence()
            .env("XDG_STATE_HOME", state.path())
            .args(["run", "--allow", "web.example.org", "--"])
            .args(["sh", "-c", &script, marker])
            .start();
        let is_moving = || {
            let part = std::fs::metadata(host.online.arena.folder.join("part"));
            part.is_ok_and(|part| part.len() > 100_000)
        };
        assert!(wait_until(is_moving), "{url}");
        assert!(!inhabitants(marker, &run).is_empty());
        run.signal("KILL");
        let gone = wait_until(|| inhabitants(marker, &run).is_empty());
        assert!(gone, "still there: {:?}", inhabitants(marker, &run));
        run.finish().expect_code(137);
        std::fs::remove_file(host.online.arena.folder.join("part")).expect("a removed file");
    }
}

/// Runs a command with a file system of ten pages at `$XDG_STATE_HOME`, of which
/// seven are free, and copies the log out of it.
const FULL: &str = "mount -t tmpfs -o size=40k,mode=755 none \"$XDG_STATE_HOME\" || exit 99
    head -c 12288 /dev/zero > \"$XDG_STATE_HOME/full\"
    setpriv --inh-caps=-all --ambient-caps=-all \"$@\"
    code=$?
    cp -r \"$XDG_STATE_HOME/ringfence\" \"$0\" && exit $code";

/// How the tests' user gets a mount namespace of its own.
fn unshare() -> &'static [&'static str] {
    if is_root() {
        &["--mount"]
    } else {
        &["--mount", "--user", "--map-current-user", "--keep-caps"]
    }
}

#[test]
fn g7_nothing_goes_on_that_cannot_be_written_down() {
    let host = Host::new();
    let (state, copy) = (Folder::new(), Folder::new());
    let script = "for i in $(seq 60); do
            curl -s -o /dev/null -w '%{http_code}\n' http://web.example.org/
        done; echo over";
    let program = host
        .net()
        .program("unshare")
        .args(unshare().iter().copied());
    let outcome = program
        .args(["--", "sh", "-c", FULL, copy.text()])
        .args([ringfence().path()])
        .args(["run", "--allow", "web.example.org"])
        .args(["--", "sh", "-c", script])
        .env("XDG_STATE_HOME", state.path())
        .folder(&host.online.arena.folder)
        .run()
        .expect_code(125);
    assert!(
        outcome.stderr.contains("cannot be trusted"),
        "{}",
        outcome.stderr
    );

    // Some went out, then one was refused or the command was ended.
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    let open = lines.iter().filter(|line| **line == "200").count();
    assert!(
        (1..60).contains(&open) && !lines.contains(&"over"),
        "{lines:?}"
    );
    assert!(lines[..open].iter().all(|line| *line == "200"), "{lines:?}");
    // What left is what was written down.
    let log = read_log(&copy);
    let whole = log
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    let written = whole
        .filter(|line| line.contains(r#""verdict":"allowed""#) && !line.contains(r#""via":"dns""#));
    assert_eq!(written.count(), host.net().connections().len(), "{log}");
    assert!(host.net().connections().len() >= open);
    host.asked_only_for("web.example.org");
}
