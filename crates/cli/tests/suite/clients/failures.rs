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

/// Runs a command with a file system of four pages at `$XDG_STATE_HOME`, of
/// which one is free, and copies the log out of it.
const FULL: &str = "mount -t tmpfs -o size=16k,mode=755 none \"$XDG_STATE_HOME\" || exit 99
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
fn g7_connections_are_refused_while_nothing_can_be_written_down() {
    let host = Host::new();
    let (state, copy) = (Folder::new(), Folder::new());
    let script = "status() { curl -s -o /dev/null -w '%{http_code}\n' \"$@\"; }
        for i in 1 2 3 4 5 6 7 8 9 10 11 12; do status http://web.example.org/; done
        for url in http://web.example.org/ http://api.example.org/ http://other.test/; do
            curl -si $url | grep Reason; curl -si --noproxy '*' $url | grep Reason
        done
        curl -sSi https://web.example.org/ | grep Reason
        curl -sS --noproxy '*' https://web.example.org/";
    let allow = ["--allow", "web.example.org", "--allow", "api.example.org"];
    let program = host
        .net()
        .program("unshare")
        .args(unshare().iter().copied());
    let outcome = program
        .args(["--", "sh", "-c", FULL, copy.text()])
        .args([ringfence().path()])
        .args(["run"].into_iter().chain(allow))
        .args(["--", "sh", "-c", script])
        .env("XDG_STATE_HOME", state.path())
        .folder(&host.online.arena.folder)
        .run()
        .expect_code(35);

    let (codes, reasons): (Vec<&str>, Vec<&str>) =
        outcome.stdout.lines().partition(|line| line.len() == 3);
    let open = codes.iter().filter(|code| **code == "200").count();
    assert!((1..12).contains(&open), "{codes:?}");
    assert!(codes[open..].iter().all(|code| *code == "403"), "{codes:?}");
    // Whose lookup cannot be written down gets no address either.
    let unwritten = "X-Ringfence-Reason: audit-unavailable";
    let refused = "X-Ringfence-Reason: not-in-allowlist";
    let told = [
        unwritten, unwritten, unwritten, unwritten, refused, unwritten,
    ];
    assert_eq!(reasons, told);
    // What left is what was written down.
    let log = read_log(&copy);
    let whole = log
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    let written = whole
        .filter(|line| line.contains(r#""verdict":"allowed""#) && !line.contains(r#""via":"dns""#));
    assert_eq!(written.count(), open, "{log}");
    assert_eq!(host.net().connections().len(), open);
    host.asked_only_for("web.example.org");
}
