//! The clients that people use, on a host that is online: each gets through
//! when the policy allows it and is refused when it does not, nothing of what
//! is refused leaves, and one decision is written down each time.

mod certificates;
mod curl;
mod failures;
mod git;
mod http;
mod names;
mod neighbours;
mod parents;
mod programs;
mod raw;
mod transfers;
mod uploads;

use ringfence_audit::{Closed, Decided, Event, EventKind, Group, Subject, Verdict, Via};
use ringfence_testkit::{Folder, Internet, Outcome, Program};

use super::internet::Online;

/// Where the log is below the folder for state.
const LOG: &str = "ringfence/audit/audit.jsonl";

/// Flags with which curl comes in one way or the other for plain HTTP.
const PLAIN_WAYS: [(&str, &str); 2] = [("", "http-proxy"), ("--noproxy '*'", "transparent")];

/// A host whose runs are written down.
pub(crate) struct Host {
    pub(crate) online: Online,
}

/// A run and what was written down about it.
pub(crate) struct Run {
    pub(crate) outcome: Outcome,
    /// The folder for state, with the log in it.
    pub(crate) state: Folder,
    events: Vec<Event>,
}

/// A client and what is to be written down about it.
#[derive(Clone, Copy)]
pub(crate) struct Client<'a> {
    /// How it comes in.
    pub(crate) via: &'a str,
    /// The program that connects.
    pub(crate) program: &'a str,
    /// `host:port`, which is also the entry that allows it.
    pub(crate) to: &'a str,
    /// Succeeds when the client does.
    pub(crate) script: &'a str,
}

impl Host {
    pub(crate) fn new() -> Self {
        let online = Online::new();
        Self { online }
    }

    pub(crate) fn net(&self) -> &Internet {
        &self.online.net
    }

    /// Writes a file in the working folder.
    pub(crate) fn write(&self, name: &str, text: &str) {
        self.online.arena.folder.write(name, text);
    }

    /// `ringfence run FLAGS -- sh -c SCRIPT`; what the internet saw is only of
    /// that.
    pub(crate) fn run(&self, flags: &[&str], script: &str) -> Run {
        self.run_with(&[], flags, script)
    }

    /// The same with variables of ringfence's own.
    pub(crate) fn run_with(&self, variables: &[(&str, &str)], flags: &[&str], script: &str) -> Run {
        self.net().forget();
        let state = Folder::new();
        let program = self.online.ringfence().env("XDG_STATE_HOME", state.path());
        let set = |program: Program, (name, value): &(&str, &str)| program.env(name, value);
        let program = variables.iter().fold(program, set);
        let words = ["run"].into_iter().chain(flags.iter().copied());
        let command = ["--", "sh", "-c", script];
        let outcome = program.args(words.chain(command)).run();
        let events = parse(&read_log(&state));
        Run {
            outcome,
            state,
            events,
        }
    }

    /// A policy file that says this about the network; the flags that name it.
    pub(crate) fn policy(&self, network: &str) -> [&'static str; 2] {
        self.write("policy.yaml", &format!("version: 1\nnetwork: {network}\n"));
        ["--policy", "policy.yaml"]
    }

    /// Runs a client under a policy that allows it, then under one that does
    /// not.
    #[track_caller]
    pub(crate) fn check(&self, client: &Client<'_>) {
        let Client {
            via,
            program,
            to,
            script,
        } = client;
        let run = self.run(&["--allow", to], script).expect_code(0);
        let told = format!("allowed {to} {via} {program} {to}");
        assert_eq!(run.told(), [told], "{script}");
        assert!(!self.net().connections().is_empty(), "{script}");
        self.asked_only_for(to);

        let run = self.run(&["--allow", "elsewhere.example.org"], script);
        assert!((1..125).contains(&run.outcome.code()), "{:?}", run.outcome);
        let told = format!("refused {to} {via} {program} not-in-allowlist");
        assert_eq!(run.told(), [told], "{script}");
        self.sent_nothing();
    }

    /// Fails the test if the resolver was asked for another name than this.
    #[track_caller]
    pub(crate) fn asked_only_for(&self, to: &str) {
        let name = to.rsplit_once(':').map_or(to, |(name, _)| name);
        let queries = self.net().dns_queries();
        assert!(queries.iter().all(|asked| asked == name), "{queries:?}");
    }

    /// Fails the test if anything left the host since the last run began.
    #[track_caller]
    pub(crate) fn sent_nothing(&self) {
        let packets = self.net().packets();
        assert!(packets.is_empty(), "{packets:?}");
        assert!(self.net().connections().is_empty() && self.net().dns_queries().is_empty());
    }
}

impl Run {
    #[track_caller]
    pub(crate) fn expect_code(self, code: i32) -> Self {
        let outcome = self.outcome.expect_code(code);
        Self { outcome, ..self }
    }

    pub(crate) fn stdout(&self) -> &str {
        &self.outcome.stdout
    }

    /// Each decision but those about lookups: verdict, destination, how it
    /// came in, the program, and the rule or else the reason.
    pub(crate) fn told(&self) -> Vec<String> {
        self.decisions().map(tell).collect()
    }

    /// The services whose credentials were added, in order, as written down.
    pub(crate) fn credentials(&self) -> Vec<&str> {
        let is_added = |made: &&Decided| made.reason.to_string() != "secret-returned";
        let added = self.decisions().filter(is_added);
        let added = added.filter_map(|made| made.credential.as_ref());
        added.map(ringfence_audit::Text::as_str).collect()
    }

    /// The decisions but those about lookups.
    pub(crate) fn decisions(&self) -> impl Iterator<Item = &Decided> {
        self.all_decisions().filter(|made| made.via != Via::Dns)
    }

    /// How often something was refused for this reason, with what was only
    /// counted: many that are alike are not written one by one.
    pub(crate) fn refusals(&self, reason: &str) -> u64 {
        let is_it = |group: &Group| {
            let code = group.reason.as_ref().map(ToString::to_string);
            group.verdict == Verdict::Refused && code.as_deref() == Some(reason)
        };
        self.count(is_it)
    }

    /// How many requests and connections were admitted, with those that were
    /// only counted.
    pub(crate) fn admissions(&self) -> u64 {
        self.count(|group| {
            let is_lookup = group.via == Some(Via::Dns);
            group.of == Subject::Decision && group.verdict == Verdict::Allowed && !is_lookup
        })
    }

    fn count(&self, is_it: impl Fn(&Group) -> bool) -> u64 {
        let counts = self.events.iter().map(|event| match &event.kind {
            EventKind::Decision(made) if is_it(&Group::of_decision(made)) => 1,
            EventKind::Summary(summary) if is_it(&summary.group) => summary.count,
            _ => 0,
        });
        counts.sum()
    }

    /// The names that someone asked for and whose lookup had this verdict.
    pub(crate) fn lookups(&self, verdict: Verdict) -> Vec<String> {
        let lookups = self.all_decisions().filter(|made| made.via == Via::Dns);
        let lookups = lookups.filter(|made| made.verdict == verdict);
        let hosts = lookups.filter_map(|made| made.host.as_ref());
        hosts.map(ToString::to_string).collect()
    }

    /// The ends of connections.
    pub(crate) fn closed(&self) -> impl Iterator<Item = &Closed> {
        self.events.iter().filter_map(|event| match &event.kind {
            EventKind::Closed(closed) => Some(closed),
            _ => None,
        })
    }

    fn all_decisions(&self) -> impl Iterator<Item = &Decided> {
        self.events.iter().filter_map(|event| match &event.kind {
            EventKind::Decision(made) => Some(made),
            _ => None,
        })
    }
}

/// The log below `state`, as far as there is one.
pub(crate) fn read_log(state: &Folder) -> String {
    std::fs::read_to_string(state.join(LOG)).unwrap_or_default()
}

fn parse(log: &str) -> Vec<Event> {
    let parse = |line: &str| serde_json::from_str(line).expect("an event");
    log.lines().map(parse).collect()
}

fn tell(made: &Decided) -> String {
    let host = match (&made.host, made.address) {
        (Some(host), _) => host.to_string(),
        (None, Some(std::net::IpAddr::V6(address))) => format!("[{address}]"),
        (None, address) => address.map_or("-".to_owned(), |address| address.to_string()),
    };
    let executable = made
        .process
        .as_ref()
        .and_then(|one| one.executable.as_ref());
    let path = executable.map_or("-", |path| path.as_str());
    // Of `python3.11`, `python`.
    let program = path.rsplit('/').next().unwrap_or_default();
    let program = program.trim_end_matches(|end: char| end.is_ascii_digit() || end == '.');
    let rule = made
        .rule
        .as_ref()
        .filter(|_| made.verdict == Verdict::Allowed);
    let why = rule.map_or_else(|| made.reason.to_string(), ToString::to_string);
    let (verdict, via) = (made.verdict.as_str(), made.via.as_str());
    format!("{verdict} {host}:{} {via} {program} {why}", made.port)
}
