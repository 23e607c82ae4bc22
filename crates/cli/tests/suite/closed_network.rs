//! Refusals that name who was wanted, and rules that follow from them.

use ringfence_testkit::place::{PRIVATE, PUBLIC};
use ringfence_testkit::{Answer, Folder, Outcome};

use super::internet::Online;

/// `ringfence WORDS`, with its own state.
fn ringfence(online: &Online, state: &Folder, words: &[&str]) -> Outcome {
    let program = online.ringfence().args(words.iter().copied());
    program.env("XDG_STATE_HOME", state.path()).run()
}

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

#[test]
fn g1_a_run_without_any_rule_says_which_hosts_were_wanted() {
    let online = Online::new();
    online.net.forget();
    let script = "curl -sS http://web.example.org/; curl -sS https://web.example.org/; \
                  curl -sS --noproxy '*' https://other.example.org:8443/; true";
    let outcome = online.inside_with(&[], script).expect_code(0);
    says(
        &outcome.stderr,
        &[
            "web.example.org:80",
            "web.example.org:443",
            "other.example.org:8443",
            "not-in-allowlist",
            "to allow: --allow other.example.org:8443",
            "CONNECT tunnel failed, response 403",
        ],
    );
    says(&outcome.stdout, &["host is not on the allow list"]);
    assert_eq!(online.net.packets(), Vec::<String>::new());
}

#[test]
fn g1_no_network_is_nothing_but_loopback() {
    let online = Online::new();
    online.net.forget();
    let closed = ["--no-network"];
    let script = "curl -sS http://web.example.org/; env | grep -ci _proxy; true";
    let outcome = online.inside_with(&closed, script).expect_code(0);
    assert_eq!(outcome.stdout, "0\n");
    assert!(!outcome.stderr.contains("web.example.org:80"));
    assert_eq!(online.net.packets(), Vec::<String>::new());
}

#[test]
fn pip_is_told_not_to_ask_again_where_nothing_is_allowed() {
    let online = Online::new();
    let script = "echo \"retries ${PIP_RETRIES-unset}\"";
    for (flags, expected) in [
        (&[][..], "retries 0\n"),
        (&["--env", "PIP_RETRIES=3"], "retries 3\n"),
        (&["--allow", "web.example.org"], "retries unset\n"),
        (&["--no-network"], "retries unset\n"),
    ] {
        let outcome = online.inside_with(flags, script).expect_code(0);
        assert_eq!(outcome.stdout, expected, "{flags:?}");
    }
}

#[test]
fn an_allowed_host_that_leads_nowhere_is_told_and_on_record() {
    let (online, state) = (Online::new(), Folder::new());
    let zone = online.net.zone();
    zone.set("gone.example.org", Answer::no_such_name());
    let flags = [
        "run",
        "--allow",
        "gone.example.org",
        "--allow",
        "web.example.org:81",
    ];
    let script = "curl -sS http://gone.example.org/ http://web.example.org:81/; true";
    let words = [&flags[..], &["--", "sh", "-c", script]].concat();
    let outcome = ringfence(&online, &state, &words).expect_code(0);
    let told = [
        "gone.example.org:80",
        "unresolved",
        "web.example.org:81",
        "unreachable",
    ];
    says(&outcome.stderr, &told);
    says(&outcome.stderr, &["has no address", "does not answer"]);
    assert!(!outcome.stderr.contains("to allow:"), "{}", outcome.stderr);
    let log = ringfence(&online, &state, &["policy", "log", "--blocked"]);
    says(&log.expect_code(0).stdout, &told);
}

#[test]
fn a_private_address_has_a_hint_that_helps() {
    let (online, state) = (Online::new(), Folder::new());
    online.net.zone().set("db.example.org", PRIVATE);
    let ask = "curl -sS http://db.example.org/";
    let run = |flags: &[&str]| {
        let words = [
            &["run", "--allow", "db.example.org"],
            flags,
            &["--", "sh", "-c", ask],
        ];
        ringfence(&online, &state, &words.concat())
    };
    let refused = run(&[]);
    let hint = format!("to allow: --allow {PRIVATE}:80");
    says(&refused.stderr, &["private-address", &hint]);
    let allowed = run(&["--allow", &format!("{PRIVATE}:80")]).expect_code(0);
    assert_eq!(allowed.stderr, "");
    let allowed = run(&["--allow", "10.1.0.0/16:80"]).expect_code(0);
    assert_eq!(allowed.stderr, "");
}

#[test]
fn a_port_of_the_host_is_opened_by_its_flag() {
    let online = Online::new();
    let ask = "python3 -c '
import socket
try:
    print(socket.create_connection((\"host.ringfence.internal\", 9), 5).recv(1))
except OSError as error:
    print(type(error).__name__)
'";
    let refused = online.inside_with(&[], ask);
    says(
        &refused.stderr,
        &["host-port-not-allowed", "to allow: --host-port 9"],
    );
    let tried = online
        .inside_with(&["--host-port", "9"], ask)
        .expect_code(0);
    // Nobody is there, which is told as that.
    says(&tried.stderr, &["host.ringfence.internal:9", "unreachable"]);
    let wrong = online.inside_with(&["--host-port", "0"], "true");
    says(&wrong.expect_code(125).stderr, &["flag --host-port"]);
}

#[test]
fn what_a_run_was_refused_is_allowed_with_one_command() {
    let (online, state) = (Online::new(), Folder::new());
    online.net.zone().set("other.example.org", PUBLIC);
    let script = "curl -sS http://web.example.org/ http://other.example.org/ >/dev/null; true";
    let command = ["run", "--", "sh", "-c", script];
    let refused = ringfence(&online, &state, &command).expect_code(0);
    says(
        &refused.stderr,
        &["web.example.org:80", "other.example.org:80"],
    );
    let wrong = ["allow", "third.example.org", "--run", "last"];
    let wrong = ringfence(&online, &state, &wrong).expect_code(1);
    says(&wrong.stderr, &["not-refused"]);
    assert!(!online.arena.folder.has("ringfence.toml"));
    let one = ["allow", "web.example.org", "--run", "last"];
    let one = ringfence(&online, &state, &one).expect_code(0);
    assert_eq!(one.stdout, "+ allow web.example.org:80\n");
    let refused = ringfence(&online, &state, &command).expect_code(0);
    assert!(
        !refused.stderr.contains("web.example.org:80"),
        "{}",
        refused.stderr
    );
    let rest = ringfence(&online, &state, &["allow", "--run", "last"]).expect_code(0);
    assert_eq!(rest.stdout, "+ allow other.example.org:80\n");
    let allowed = ringfence(&online, &state, &command).expect_code(0);
    assert!(!allowed.stderr.contains("refused"), "{}", allowed.stderr);
    let denied = ["deny", "other.example.org:80", "--json"];
    let denied = ringfence(&online, &state, &denied).expect_code(0);
    says(&denied.stdout, &["\"removed\"", "\"trusted\": true"]);
    let refused = ringfence(&online, &state, &command).expect_code(0);
    says(&refused.stderr, &["other.example.org:80", "denied-by-rule"]);
    let nothing = ringfence(&online, &state, &["allow", "--run", "last"]).expect_code(1);
    says(&nothing.stderr, &["nothing-refused"]);
}

/// The log has the runs of all projects; what code of another one wanted is not
/// allowed in this one.
#[test]
fn g1_the_last_run_is_that_of_the_project() {
    let (online, state) = (Online::new(), Folder::new());
    let other = online.arena.folder.join("other");
    std::fs::create_dir(&other).expect("a folder");
    let other = other.to_str().expect("a plain path");
    let want = |host: &str| format!("curl -sS http://{host}/ >/dev/null; true");
    let run = |flags: &[&str], host: &str| {
        let command = want(host);
        let words = [&["run"], flags, &["--", "sh", "-c", &command]].concat();
        ringfence(&online, &state, &words).expect_code(0)
    };
    let none = ringfence(&online, &state, &["allow", "--run", "last"]).expect_code(1);
    says(&none.stderr, &["audit-no-run"]);
    run(&[], "web.example.org");
    run(&["--cwd", other], "evil.example.org");
    let allowed = ringfence(&online, &state, &["allow", "--run", "last"]).expect_code(0);
    assert_eq!(allowed.stdout, "+ allow web.example.org:80\n");
    let there = ["allow", "--run", "last", "--cwd", other, "--dry-run"];
    let there = ringfence(&online, &state, &there).expect_code(0);
    assert_eq!(there.stdout, "+ allow evil.example.org:80\n");
}
