//! Clients of anything that is not HTTP, on any port.

use ringfence_audit::Verdict;

use super::{Client, Host};

#[test]
fn raw_clients() {
    let host = Host::new();
    for (program, to, script) in [
        (
            "redis-cli",
            "web.example.org:6379",
            "test $(redis-cli -h web.example.org PING) = PONG",
        ),
        (
            "bash",
            "v4.example.org:5432",
            "bash -c 'exec 3<>/dev/tcp/v4.example.org/5432 && echo hello >&3 \
             && read -ru 3 line && test $line = hello'",
        ),
        (
            "bash",
            "[2a0f:ffff::10]:5432",
            "bash -c 'exec 3<>/dev/tcp/2a0f:ffff::10/5432 && echo hello >&3 \
             && read -ru 3 line && test $line = hello'",
        ),
        // The server counts once it has seen the client's end.
        (
            "socat",
            "v6.example.org:7",
            "printf hello | socat -t 60 - tcp:v6.example.org:7 | grep -x 'total 5'",
        ),
        // The server speaks first, and the client never.
        (
            "bash",
            "web.example.org:25",
            "bash -c 'exec 3<>/dev/tcp/web.example.org/25 && read -ru 3 line \
             && test \"${line%% *}\" = 220'",
        ),
    ] {
        host.check(&Client {
            via: "transparent",
            program,
            to,
            script,
        });
    }
}

#[test]
fn what_is_refused_is_reset_whatever_the_client_says() {
    let host = Host::new();
    host.write("talk.py", include_str!("scripts/talk.py"));
    for way in ["silent", "speaking", "done"] {
        let script = format!("/usr/bin/python3 talk.py {way} web.example.org 5432");
        let run = host.run(&["--allow", "web.example.org"], &script);
        assert_eq!(run.expect_code(0).stdout(), "reset\n", "{way}");
        host.sent_nothing();
    }
}

#[test]
fn a_server_that_is_not_there_is_told_as_that() {
    let host = Host::new();
    host.write("talk.py", include_str!("scripts/talk.py"));
    host.net().zone().set("nobody.test", "45.1.1.1");
    for (name, why) in [
        ("nobody.test", "unreachable"),
        ("web.example.org", "unreachable"),
        ("missing.test", "unresolved"),
    ] {
        let script = format!("/usr/bin/python3 talk.py silent {name} 9");
        let to = format!("{name}:9");
        let run = host.run(&["--allow", &to], &script).expect_code(0);
        assert_eq!(run.stdout(), "reset\n", "{to}");
        let stderr = &run.outcome.stderr;
        assert!(stderr.starts_with("ringfence: not reached:"), "{stderr}");
        assert!(stderr.contains(&format!("{why}: {to}")), "{stderr}");
        // The question to the resolver is written down, then the connection.
        assert_eq!(run.lookups(Verdict::Allowed), [name]);
        let allowed = run.told();
        let allowed = allowed.iter().filter(|line| line.starts_with("allowed"));
        let told = (why == "unreachable").then(|| format!("allowed {to} transparent python {to}"));
        assert!(allowed.eq(&Vec::from_iter(told)));
        assert_eq!(run.refusals(why), 1, "{to}");
    }
}
