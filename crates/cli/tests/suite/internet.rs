//! A host in a small internet to run the binary on, and the tests of that
//! internet itself: what the sandbox is later refused works outside.

use std::path::Path;
use std::time::Duration;

use ringfence_testkit::place::{
    self, BLACK_HOLE, METADATA, NAMESERVER, OTHER_PUBLIC, PRIVATE, PUBLIC, PUBLIC_NAMESERVER,
    PUBLIC6,
};
use ringfence_testkit::{
    Answer, Internet, Outcome, Program, Service, Transport, is_root, own_ids, processes_with,
    status_of, wait_until,
};

use super::arena::{Arena, refused};
use super::ringfence;

/// A working folder on a host that is online.
pub(crate) struct Online {
    pub(crate) net: Internet,
    pub(crate) arena: Arena,
}

impl Online {
    pub(crate) fn new() -> Self {
        Self {
            net: Internet::start(),
            arena: Arena::new(),
        }
    }

    /// The binary under test, in the working folder.
    pub(crate) fn ringfence(&self) -> Program {
        let program = self.net.program(ringfence().path());
        program.folder(self.arena.folder.path())
    }

    /// Runs a script on the host.
    pub(crate) fn outside(&self, script: &str) -> Outcome {
        self.net.sh(script, self.arena.folder.path())
    }

    /// `ringfence run FLAGS -- sh -c SCRIPT`.
    pub(crate) fn inside_with(&self, flags: &[&str], script: &str) -> Outcome {
        let words = ["run"].into_iter().chain(flags.iter().copied());
        let command = ["--", "sh", "-c", script];
        self.ringfence().args(words.chain(command)).run()
    }

    /// Runs an attack outside, where it must work and send something, then
    /// inside with `flags`, where it must be refused and send nothing.
    #[track_caller]
    pub(crate) fn refuses(&self, flags: &[&str], attack: &str) -> Outcome {
        self.net.forget();
        self.outside(attack).expect_code(0);
        let sent = self.net.packets();
        assert!(!sent.is_empty(), "`{attack}` sends nothing outside");
        self.net.forget();
        let outcome = refused(attack, self.inside_with(flags, attack));
        let sent = self.net.packets();
        assert!(sent.is_empty(), "`{attack}` sent {sent:?}");
        outcome
    }

    fn folder(&self) -> &Path {
        self.arena.folder.path()
    }
}

/// Runs a script on the host of a fresh internet and returns what it printed.
#[track_caller]
fn works(net: &Internet, script: &str) -> String {
    let outcome = net.sh(script, "/");
    assert_eq!(outcome.code(), 0, "`{script}`: {outcome:?}");
    outcome.stdout
}

#[test]
fn the_host_has_the_same_user_who_can_do_no_more() {
    let online = Online::new();
    let (user, group) = own_ids();
    let script = "id -u; id -g; pwd; touch made; grep CapEff /proc/self/status | cut -f2";
    let stdout = online.outside(script).expect_code(0).stdout;
    let capable = stdout.lines().last().unwrap_or_default();
    let folder = online.folder().display();
    assert!(stdout.starts_with(&format!("{user}\n{group}\n{folder}\n")));
    assert_eq!(capable.trim_start_matches('0').is_empty(), !is_root());
    let about = std::fs::metadata(online.folder().join("made")).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&about), user);
}

#[test]
fn a_closed_sandbox_works_on_that_host_and_stays_closed() {
    let online = Online::new();
    let run = online
        .ringfence()
        .args(["run", "--no-network", "--", "true"]);
    run.run().expect_code(0);
    for attack in [
        "curl -sS -m 5 http://web.example.org/",
        "curl -sS -m 5 https://api.example.org/",
        &format!("curl -sS -m 5 http://{PUBLIC}/"),
        &format!("curl -sS -m 5 http://[{PUBLIC6}]/"),
        &format!("curl -sS -m 5 http://{METADATA}/"),
        &format!("dig +tries=1 +time=1 @{NAMESERVER} web.example.org"),
        &format!("./attack tcp {PRIVATE} 5432"),
    ] {
        online.refuses(&["--no-network"], attack);
    }
    let outcome = online.inside_with(&["--no-network"], &format!("./attack udp {PUBLIC} 443"));
    refused("udp", outcome);
    assert!(online.net.packets().is_empty() && online.net.datagrams().is_empty());
}

#[test]
fn names_and_addresses_of_the_world_are_reached_over_http() {
    let net = Internet::start();
    for (url, to) in [
        ("http://v4.example.org/", "45.0.0.10:80"),
        ("http://v6.example.org:8080/", "[2a0f:ffff::10]:8080"),
        ("https://v4.example.org/", "45.0.0.10:443"),
        ("https://v6.example.org:8443/", "[2a0f:ffff::10]:8443"),
        ("http://private.test/", "10.1.2.3:80"),
        ("https://private6.test/", "[fd00:1234::5]:443"),
        ("http://shared.test/", "100.64.0.9:80"),
        ("http://reserved.test/", "203.0.113.10:80"),
        ("http://192.168.7.7/", "192.168.7.7:80"),
        ("https://46.0.0.7/", "46.0.0.7:443"),
        ("http://127.0.0.1:8080/", "127.0.0.1:8080"),
        ("http://[::1]:8080/", "[::1]:8080"),
        ("http://loopback.test:8080/", "127.0.0.1:8080"),
    ] {
        let shown = works(&net, &format!("curl -4sS {url} || curl -6sS {url}"));
        assert!(shown.contains(&format!(r#""to":"{to}""#)), "{url}: {shown}");
    }
    let shown = works(&net, &format!("curl -sS http://{METADATA}/latest/"));
    assert!(shown.contains("metadata-secret"), "{shown}");
}

#[test]
fn the_servers_tell_what_they_saw() {
    let net = Internet::start();
    let shown = works(
        &net,
        "curl -4sS -H 'X-One: 1' -d body https://web.example.org/path",
    );
    for part in [
        r#""method":"POST""#,
        r#""target":"/path""#,
        r#""host":"web.example.org""#,
        r#"["X-One","1"]"#,
        r#""body_bytes":4"#,
        r#""sni":"web.example.org""#,
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let [connection] = &net.connections()[..] else {
        panic!("{:?}", net.connections());
    };
    assert_eq!(connection.service, Service::Https);
    assert_eq!(connection.from.ip().to_string(), place::HOST);
    assert_eq!(connection.saw[0], "sni web.example.org");
    assert!(connection.saw[1].starts_with("POST /path HTTP/1.1\r\n"));
    assert_eq!(connection.saw[2], "body");
    assert!(net.saw("X-One: 1") && net.saw("web.example") && !net.saw("another"));
    net.forget();
    assert!(net.connections().is_empty() && net.dns_log().is_empty());
}

#[test]
fn everything_that_leaves_the_host_is_seen() {
    let online = Online::new();
    assert!(online.net.packets().is_empty());
    for (attack, packet) in [
        (format!("./attack tcp {PUBLIC} 7"), "tcp 45.0.0.10:7"),
        (format!("./attack tcp {PUBLIC6} 7"), "tcp [2a0f:ffff::10]:7"),
        // Nobody listens, nobody is there, nobody answers.
        (format!("! ./attack tcp {PUBLIC} 9"), "tcp 45.0.0.10:9"),
        ("! ./attack tcp 45.1.1.1 80".into(), "tcp 45.1.1.1:80"),
        (format!("! curl -m 1 {BLACK_HOLE}"), "tcp 45.0.9.1:80"),
        (format!("./attack udp {PUBLIC} 443"), "udp 45.0.0.10:443"),
        (format!("./attack udp {PUBLIC6} 4"), "udp [2a0f:ffff::10]:4"),
    ] {
        online.net.forget();
        online.outside(&attack).expect_code(0);
        assert!(online.net.packets().iter().all(|seen| seen == packet));
        assert!(!online.net.packets().is_empty(), "{attack}");
    }
    online.outside(&format!("echo hello | socat - udp:{PUBLIC}:9999"));
    let datagrams = online.net.datagrams();
    assert_eq!(datagrams.last().unwrap().text, "hello\n");
    assert_eq!(datagrams.last().unwrap().to.to_string(), "45.0.0.10:9999");
}

#[test]
fn the_resolver_records_every_question() {
    let net = Internet::start();
    let short = |arguments: &str| works(&net, &format!("dig +short {arguments}"));
    assert_eq!(short("api.example.org"), "45.0.0.11\n");
    assert_eq!(short("Api.Example.ORG. AAAA"), "2a0f:ffff::11\n");
    assert_eq!(short("+tcp nothing.test TXT"), "");
    assert_eq!(
        short(&format!("@{PUBLIC_NAMESERVER} other.test")),
        "46.0.0.7\n"
    );
    let log = net.dns_log();
    let shown: Vec<String> = log.iter().map(ToString::to_string).collect();
    let expected = [
        "api.example.org A",
        "api.example.org AAAA",
        "nothing.test TXT",
        "other.test A",
    ];
    assert_eq!(shown, expected);
    let udp = log.iter().map(|query| query.transport == Transport::Udp);
    assert_eq!(udp.collect::<Vec<_>>(), [true, true, false, true]);
    assert_eq!(log[3].to.to_string(), PUBLIC_NAMESERVER);
    assert_eq!(net.dns_queries()[2], "nothing.test");
}

#[test]
fn the_resolver_answers_in_every_way() {
    let net = Internet::start();
    let zone = net.zone();
    zone.set("many.test", [PUBLIC, OTHER_PUBLIC, PUBLIC6]);
    zone.set("alias.test", Answer::alias("many.test"));
    zone.set("loop.test", Answer::alias("loop.test"));
    zone.set("broken.test", Answer::server_failure());
    zone.set("fresh.test", Answer::addresses(&[PUBLIC]).ttl(0));
    let slow = Answer::addresses(&[PUBLIC]).after(Duration::from_millis(200));
    zone.set("slow.test", slow);
    zone.set("quiet.test", Answer::silence());
    zone.set_in_turn("turns.test", vec![PUBLIC.into(), PRIVATE.into()]);
    for (question, answer) in [
        ("+short many.test", "45.0.0.10\n45.0.0.11"),
        ("+short alias.test", "many.test.\n45.0.0.10\n45.0.0.11"),
        ("alias.test AAAA", "CNAME\tmany.test."),
        ("many.test TXT", "status: NOERROR"),
        ("nobody.test", "status: NXDOMAIN"),
        ("broken.test", "status: SERVFAIL"),
        ("loop.test", "status: SERVFAIL"),
        ("fresh.test", "\t0\tIN\tA\t45.0.0.10"),
        ("+short slow.test", PUBLIC),
        ("+short turns.test", PUBLIC),
        ("+short turns.test", PRIVATE),
        ("+short turns.test", PRIVATE),
    ] {
        let shown = works(&net, &format!("dig {question}"));
        assert!(shown.contains(answer), "{question}: {shown}");
    }
    let quiet = net.sh("dig +tries=1 +time=1 quiet.test", "/");
    assert_eq!(quiet.code(), 9, "{}", quiet.stdout);
}

#[test]
fn an_answer_that_is_too_long_for_udp_comes_over_tcp() {
    let net = Internet::start();
    let truncated = Answer::addresses(&[PUBLIC]).only_over_tcp();
    net.zone().set("truncated.test", truncated);
    let many: Vec<String> = (1..200).map(|last| format!("45.0.1.{last}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    net.zone().set("long.test", Answer::addresses(&many));
    for (name, count) in [("truncated.test", 1), ("long.test", 199)] {
        net.forget();
        let shown = works(&net, &format!("getent ahostsv4 {name} | grep -c STREAM"));
        assert_eq!(shown, format!("{count}\n"), "{name}");
        let log = net.dns_log();
        let transports = [Transport::Udp, Transport::Tcp];
        assert!(
            transports
                .iter()
                .all(|one| log.iter().any(|query| query.transport == *one))
        );
    }
}

#[test]
fn a_program_ends_with_the_thread_that_started_it() {
    let net = Internet::start();
    let program = std::thread::scope(|scope| {
        let started = scope.spawn(|| {
            let program = net.program("sleep").args(["1000"]).start();
            assert!(wait_until(|| status_of(program.id(), "Name:") == "sleep"));
            program
        });
        started.join().unwrap().id()
    });
    assert!(wait_until(|| status_of(program, "State:").starts_with('Z')));
}

#[test]
fn nothing_is_left_of_an_internet() {
    let net = Internet::start();
    let files = net.files().display().to_string();
    let folder = files.trim_end_matches("/files");
    assert!(!processes_with(folder).is_empty());
    // In a session of its own, and nobody's child.
    let script = format!("setsid sh -c 'sleep 1000; : {folder}/program' > /dev/null 2>&1 &");
    net.sh(&script, "/").expect_code(0);
    let program = format!("{folder}/program");
    // While a process becomes another program it has no arguments to be seen.
    assert!(wait_until(|| !processes_with(&program).is_empty()));
    drop(net);
    assert!(wait_until(|| processes_with(folder).is_empty()));
    assert!(!Path::new(folder).exists());
}
