//! What people are told once a command has ended.

mod dropped;
mod presets;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use ringfence_audit::{Refusal, RefusalKind, amount};
use ringfence_policy::Reason;
use ringfence_runtime::{ExitReason, Report, nesting_advice};
use rustix::fs::Access;
use rustix::io::Errno;

pub(crate) use self::dropped::show_dropped;
use self::presets::Fitting;
use crate::environment;
use crate::output;

/// Reasons that an entry for the very host and port lifts.
const LIFTED_BY_AN_ENTRY: [Reason; 3] = [
    Reason::NetworkClosed,
    Reason::NotInAllowlist,
    Reason::PortNotAllowed,
];

/// Reasons that an entry for the very address and port lifts.
const LIFTED_BY_THE_ADDRESS: [Reason; 4] = [
    Reason::PrivateAddress,
    Reason::LinkLocalAddress,
    Reason::ReservedAddress,
    Reason::HostOwnAddress,
];

/// Reasons that a port of the host's own loopback lifts.
const LIFTED_BY_HOST_PORT: [Reason; 2] = [Reason::HostPortNotAllowed, Reason::LoopbackAddress];

/// The most refusals, and the most additions, that are shown.
const MOST_SHOWN: usize = 10;

/// What the sandbox refuses connections with that has no network at all.
const CLOSED: &str = "network is closed";

/// Reasons that no rule lifts, or not alone, and what to do about them.
const REMEDIES: [(&[&str], &str); 9] = [
    (
        &["shown without its secrets"],
        "a file that is shown without its secrets cannot be written inside: change it outside",
    ),
    (
        &["unresolved"],
        "a host that is allowed has no address: check its spelling, and what this machine's own \
         name server says",
    ),
    (
        &["unreachable"],
        "a host that is allowed does not answer: check its port, and that this machine reaches it",
    ),
    (
        &["loopback-address", "host-port-not-allowed"],
        "the host's own loopback is host.ringfence.internal inside, on the ports of --host-port",
    ),
    (
        &["client-distrusts", "client-hung-up"],
        "the client did not take the sandbox's certificate: have it read the file in $SSL_CERT_FILE, \
         or leave its host without credential and without rules for methods and paths",
    ),
    (
        &["upstream-wants-certificate"],
        "no client certificate is shown where TLS is looked into: leave the host without credential \
         and without rules for methods and paths",
    ),
    (
        &["upstream-certificate"],
        "to trust the authority that signed the server's certificate: --authority FILE",
    ),
    (
        &["placeholder-elsewhere"],
        "a placeholder is of use only in requests to the hosts of its credential",
    ),
    (
        &["memory-budget"],
        "the connections of the sandbox held all the memory that there is for them: have fewer open \
         at once, or leave hosts of large transfers without credential and without rules for methods \
         and paths",
    ),
];

/// Something to add, and where: nowhere else than behind the command's own words for a flag.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Addition {
    pub(crate) place: &'static str,
    pub(crate) text: String,
}

impl Addition {
    /// A flag.
    pub(crate) fn flag(text: String) -> Self {
        Self { place: "", text }
    }
}

/// What to do about refusals, in the words of a command line.
pub(crate) struct Advice {
    /// Where all of them are told.
    pub(crate) everything: &'static str,
    /// What stands between additions at the same place, so that they can be pasted together.
    pub(crate) between: &'static str,
    /// How to let a protected name be written.
    pub(crate) unprotect: fn(&str) -> Addition,
    /// How to make a directory writable.
    pub(crate) write: fn(&str) -> Addition,
    /// How to allow `host:port`.
    pub(crate) host: fn(&str) -> Addition,
    /// How to name a preset, where one can be.
    pub(crate) preset: Option<fn(&str) -> Addition>,
    /// How to allow a port of the host's own loopback.
    pub(crate) host_port: fn(&str) -> Addition,
}

impl Advice {
    /// What would lift a refusal, where something can.
    fn against(&self, refusal: &Refusal) -> Option<Addition> {
        let unprotect = |name: &str| (self.unprotect)(&output::printable(name));
        let write = |path: &str| (self.write)(&output::printable(path));
        unprotected(refusal)
            .map(unprotect)
            .or_else(|| wanted_directory(refusal).map(write))
            .or_else(|| self.opening(refusal))
    }

    /// What would let a connection out, where an entry does.
    fn opening(&self, refusal: &Refusal) -> Option<Addition> {
        if refusal.kind != RefusalKind::Network || refusal.operation != "connect" {
            return None;
        }
        let (code, detail) = match refusal.rule.split_once(": ") {
            Some((code, detail)) => (code, Some(detail)),
            None => (refusal.rule.as_str(), None),
        };
        let is_among = |reasons: &[Reason]| reasons.iter().any(|reason| reason.code() == code);
        let port = refusal.subject.rsplit_once(':').map(|(_, port)| port);
        if is_among(&LIFTED_BY_AN_ENTRY) {
            Some((self.host)(&output::printable(&refusal.subject)))
        } else if is_among(&LIFTED_BY_THE_ADDRESS) {
            let named = detail.and_then(|address| endpoint(address, port?));
            let entry = named.unwrap_or_else(|| refusal.subject.clone());
            Some((self.host)(&output::printable(&entry)))
        } else if is_among(&LIFTED_BY_HOST_PORT) {
            port.map(self.host_port)
        } else {
            None
        }
    }

    /// The lines that would lift what `report` tells, all that goes to one place in one piece.
    fn lines(&self, report: &Report) -> Vec<String> {
        let preset = self
            .preset
            .map(|name| (name, Fitting::of(report, is_lifted_by_an_entry)));
        let fitting = preset.as_ref().map(|(_, fitting)| fitting);
        let is_told =
            |refusal: &&Refusal| !fitting.is_some_and(|fitting| fitting.replaces(refusal));
        let wide = TooWide::of(report);
        let refusals = report.refusals.iter().filter(is_told);
        let refusals = refusals.filter(|own| !wide.is_wanted_by(own));
        let mut additions: Vec<Addition> = refusals.filter_map(|own| self.against(own)).collect();
        additions.sort();
        additions.dedup();
        let presets = |needed: bool| {
            let presets = preset.iter();
            presets.flat_map(move |(name, fitting)| fitting.names(needed).map(name))
        };
        let all: Vec<Addition> = presets(true).chain(additions).take(MOST_SHOWN).collect();
        let mut lines: Vec<String> = together(&all, self.between)
            .map(|line| format!("to allow: {line}"))
            .collect();
        let instead = presets(false).map(|own| format!("or instead: {}", own.text));
        lines.extend(instead);
        // No name is known where names cannot be looked up.
        if report.refusals.iter().any(|refusal| refusal.rule == CLOSED) {
            let host = (self.host)("HOST");
            lines.extend(together(&[host], "").map(|line| format!("for each host: {line}")));
        }
        lines
    }
}

/// What goes to the same place in one line, in the order of the places.
fn together<'a>(all: &'a [Addition], between: &'a str) -> impl Iterator<Item = String> + 'a {
    let mut places: Vec<&str> = all.iter().map(|own| own.place).collect();
    places.sort_unstable();
    places.dedup();
    places.into_iter().map(move |place| {
        let there = all.iter().filter(|own| own.place == place);
        let texts: Vec<&str> = there.map(|own| own.text.as_str()).collect();
        let texts = texts.join(between);
        if place.is_empty() {
            texts
        } else {
            format!("{texts} in {place}")
        }
    })
}

/// Whether an entry for the very host and port would have allowed it.
fn is_lifted_by_an_entry(refusal: &Refusal) -> bool {
    let code = refusal.rule.split(':').next().unwrap_or_default();
    let mut reasons = LIFTED_BY_AN_ENTRY.iter();
    refusal.kind == RefusalKind::Network
        && refusal.operation == "connect"
        && reasons.any(|reason| code == reason.code())
}

/// The name without whose protection a file could have been written.
fn unprotected(refusal: &Refusal) -> Option<&str> {
    if refusal.kind != RefusalKind::File || refusal.operation == "quarantine" {
        return None;
    }
    let is_config = || refusal.subject.ends_with("/config");
    match refusal.rule.as_str() {
        rule if rule.starts_with("protected name ") => rule.strip_prefix("protected name "),
        rule if rule.starts_with("setting of Git that may run programs") => Some(GIT_CONFIG),
        "hooks and configuration of a repository" if is_config() => Some(GIT_CONFIG),
        "hooks and configuration of a repository"
        | "hooks of a new repository"
        | "live hook of a new repository" => Some(GIT_HOOKS),
        _ => None,
    }
}

/// The parts of a repository that can be let go of by name.
const GIT_CONFIG: &str = ".git/config";
const GIT_HOOKS: &str = ".git/hooks";

/// The rule against what lies in no writable place.
const OUTSIDE: &str = "outside the writable places";

/// Rules against writing what is read-only: the place is in no writable one, or
/// is covered because of what the host has there, which no flag for writing
/// lifts.
const READ_ONLY: [&str; 3] = [OUTSIDE, "shown without its secrets", "hidden place"];

/// Directories that no command should be given to write.
const SYSTEM: [&str; 11] = [
    "/usr", "/etc", "/bin", "/sbin", "/lib", "/lib64", "/proc", "/sys", "/dev", "/boot", "/run",
];

/// The directory in which a file could have been written.
fn wanted_directory(refusal: &Refusal) -> Option<&str> {
    let (directory, _) = refusal.subject.rsplit_once('/')?;
    let is_system = |path: &str| {
        let path = Path::new(path);
        path.parent().is_none() || SYSTEM.iter().any(|known| path.starts_with(known))
    };
    let is_wanted = refusal.kind == RefusalKind::File
        && refusal.rule == OUTSIDE
        && !directory.is_empty()
        && !is_system(directory)
        && is_users_to_write(&refusal.subject);
    is_wanted.then_some(directory)
}

/// Whether the user could write there without a sandbox: the file, or the first directory on the
/// way to it that there is. Nothing changes for who could not, as with what programs merely probe.
fn is_users_to_write(path: &str) -> bool {
    let is_writable = |path: &Path| rustix::fs::access(path, Access::WRITE_OK);
    let mut above = Path::new(path).ancestors();
    let first = above.find_map(|path| match is_writable(path) {
        Err(Errno::NOENT | Errno::NOTDIR) => None,
        answer => Some((path, answer)),
    });
    match first {
        Some((found, Err(Errno::ACCESS | Errno::PERM | Errno::ROFS))) => {
            // One that cannot be written may be replaced where names can be made.
            found == Path::new(path) && found.parent().is_some_and(|own| is_writable(own).is_ok())
        }
        _ => true,
    }
}

fn is_read_only(refusal: &Refusal) -> bool {
    refusal.kind == RefusalKind::File && READ_ONLY.contains(&refusal.rule.as_str())
}

/// Directories that are too much to give away for one file in them.
struct TooWide {
    home: Option<PathBuf>,
    working: PathBuf,
}

impl TooWide {
    fn of(report: &Report) -> Self {
        let host = environment::own().look_at_host().ok();
        Self {
            home: host.map(|host| host.home),
            working: PathBuf::from(&report.working_folder),
        }
    }

    /// The home, and whatever the home or the working folder lies in.
    fn holds(&self, directory: &Path) -> bool {
        let is_above = |path: &PathBuf| path != directory && path.starts_with(directory);
        self.home.as_deref() == Some(directory)
            || self.home.as_ref().is_some_and(is_above)
            || is_above(&self.working)
    }

    fn is_wanted_by(&self, refusal: &Refusal) -> bool {
        wanted_directory(refusal).is_some_and(|wanted| self.holds(Path::new(wanted)))
    }
}

/// What many programs try beside their work, and do without.
fn is_idle(refusal: &Refusal) -> bool {
    const IDLE: [&str; 5] = [
        "__pycache__",
        "dconf",
        "fontconfig",
        ".lesshst",
        ".python_history",
    ];
    let mut parts = Path::new(&refusal.subject).components();
    is_read_only(refusal) && parts.any(|part| IDLE.iter().any(|idle| part.as_os_str() == *idle))
}

/// An address with a port; `None` for what is no address.
fn endpoint(address: &str, port: &str) -> Option<String> {
    let socket = SocketAddr::new(address.parse().ok()?, port.parse().ok()?);
    Some(socket.to_string())
}

/// Says why a command did not start, or was ended.
pub(crate) fn explain_start_failure(report: &Report) {
    let program = report
        .command
        .first()
        .map(|program| output::printable(program))
        .unwrap_or_default();
    match report.exit.reason {
        ExitReason::NotFound => output::tell!("ringfence: {program}: command not found"),
        ExitReason::NotExecutable => output::tell!("ringfence: {program}: cannot be executed"),
        ExitReason::TimeLimit => output::tell!("ringfence: {program}: ended by the time limit"),
        ExitReason::Limit => output::tell!("ringfence: {program}: ended by a limit"),
        ExitReason::AuditFailed => output::tell!(
            "ringfence: {program}: the audit log cannot be written any more, so this run cannot be trusted"
        ),
        ExitReason::AuditFull => output::tell!(
            "ringfence: error[audit-full]: {program}: the audit log cannot be written any more, \
             because its disk is full, so this run cannot be trusted\n  hint: make room there, or \
             keep the log elsewhere: XDG_STATE_HOME=DIR ringfence run …"
        ),
        ExitReason::Exited | ExitReason::Signalled => {}
    }
}

/// That the sandbox had no listener of its own, or no kept home.
pub(crate) fn show_reduced(report: &Report) {
    let home = report.home.as_ref();
    if let Some(reason) = home.and_then(|home| home.not_kept.as_ref()) {
        let reason = output::printable(reason);
        output::tell!("ringfence: the home was private this time: {reason}");
    }
    if let Some(reason) = &report.audit.reason {
        output::tell!("ringfence: nothing of the host was writable: {reason}");
    }
}

/// One line for each limit that was reached; with `quiet`, only for those that
/// ended the command.
pub(crate) fn show_limits(report: &Report, quiet: bool) {
    let hits = report.limits_hit.iter().filter(|hit| hit.ended || !quiet);
    for hit in hits {
        let limit = report.limits.iter().find(|limit| limit.limit == hit.limit);
        let amounts = limit.map(|limit| {
            let amount = |number| amount(number, &limit.unit);
            let peak = limit
                .peak
                .map_or(String::new(), |peak| format!(", peak {}", amount(peak)));
            format!(" {}{peak}, {}", amount(limit.configured), limit.mechanism)
        });
        output::tell!(
            "ringfence: limits_hit: {}{} ({})",
            hit.limit,
            amounts.unwrap_or_default(),
            output::printable(&hit.evidence)
        );
    }
}

/// Without lookups of names that were then connected to, which says it all, and
/// without calls.
fn telling(refusals: &[Refusal]) -> Vec<&Refusal> {
    let is_connected = |name: &str| {
        refusals.iter().any(|other| {
            let host = other.subject.rsplit_once(':').map(|(host, _)| host);
            other.operation == "connect" && host == Some(name)
        })
    };
    // Many programs try calls that they can do without.
    let is_noise = |refusal: &&Refusal| {
        refusal.kind == RefusalKind::Call
            || is_idle(refusal)
            || (is_read_only(refusal) && !is_users_to_write(&refusal.subject))
            || (refusal.operation == "look-up" && is_connected(&refusal.subject))
    };
    refusals
        .iter()
        .filter(|refusal| !is_noise(refusal))
        .collect()
}

/// Whether it was allowed, and nobody was there.
fn leads_nowhere(refusal: &Refusal) -> bool {
    let code = refusal.rule.split(':').next().unwrap_or_default();
    ["unresolved", "unreachable"].contains(&code)
}

/// The short block at the end: what, how often, by which rule, what to add.
pub(crate) fn show_refusals(report: &Report, advice: &Advice) {
    let telling = telling(&report.refusals);
    if telling.is_empty() && report.more_refusals == 0 {
        return;
    }
    let rows: Vec<Vec<String>> = telling
        .iter()
        .take(MOST_SHOWN)
        .map(|refusal| {
            let times = format!("×{}", refusal.count);
            vec![
                format!("  {}", refusal.operation),
                refusal.subject.clone(),
                times,
                refusal.rule.clone(),
            ]
        })
        .collect();
    let is_nothing_refused = telling.iter().all(|refusal| leads_nowhere(refusal));
    let word = if is_nothing_refused && report.more_refusals == 0 {
        "not reached"
    } else {
        "refused"
    };
    output::tell!("ringfence: {word}:\n{}", output::columns(&rows));
    let unshown =
        u64::try_from(telling.len().saturating_sub(MOST_SHOWN)).unwrap_or(0) + report.more_refusals;
    if unshown > 0 {
        output::tell!(
            "  … and {unshown} more (all of them: {})",
            advice.everything
        );
    }
    for line in advice.lines(report) {
        output::tell!("  {line}");
    }
    for remedy in remedies(&report.refusals) {
        output::tell!("  {remedy}");
    }
    let is_nested = |refusal: &Refusal| refusal.kind == RefusalKind::Namespace;
    if report.refusals.iter().any(is_nested) {
        for advice in nesting_advice(&report.nested) {
            output::tell!("  {advice}");
        }
    }
}

/// What to do about refusals that no rule lifts, once for each.
fn remedies(refusals: &[Refusal]) -> impl Iterator<Item = &'static str> {
    let is_met = |code: &str| {
        let mut rules = refusals.iter().map(|refusal| refusal.rule.as_str());
        rules.any(|rule| rule.split(':').next() == Some(code))
    };
    let met = REMEDIES
        .iter()
        .filter(move |(codes, _)| codes.iter().any(|code| is_met(code)));
    met.map(|(_, remedy)| *remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADVICE: Advice = Advice {
        preset: None,
        everything: "",
        between: " ",
        unprotect: |name| Addition::flag(name.to_owned()),
        write: |path| Addition::flag(path.to_owned()),
        host: |host| Addition::flag(format!("--allow {host}")),
        host_port: |port| Addition::flag(format!("--host-port {port}")),
    };

    #[test]
    fn what_would_let_a_connection_out_is_told() {
        let told = |subject: &str, rule: &str| {
            ADVICE.against(&Refusal {
                kind: RefusalKind::Network,
                operation: "connect".to_owned(),
                subject: subject.to_owned(),
                rule: rule.to_owned(),
                count: 1,
            })
        };
        for (subject, rule, expected) in [
            ("a.test:443", "not-in-allowlist", Some("--allow a.test:443")),
            (
                "db.test:5432",
                "private-address: 10.1.2.3",
                Some("--allow 10.1.2.3:5432"),
            ),
            (
                "db.test:5432",
                "private-address: fd00::7",
                Some("--allow [fd00::7]:5432"),
            ),
            (
                "240.0.0.1:80",
                "reserved-address",
                Some("--allow 240.0.0.1:80"),
            ),
            (
                "host.ringfence.internal:5432",
                "host-port-not-allowed",
                Some("--host-port 5432"),
            ),
            (
                "me.test:80",
                "loopback-address: 127.0.0.1",
                Some("--host-port 80"),
            ),
            ("m.test:80", "metadata-address: 169.254.169.254", None),
            ("a.test:443", "ceiling", None),
            ("a.test:443", "unresolved", None),
        ] {
            let told = told(subject, rule).map(|own| own.text);
            assert_eq!(told.as_deref(), expected, "{subject} {rule}");
        }
    }

    #[test]
    fn nothing_around_the_home_or_the_working_folder_is_proposed() {
        let wide = TooWide {
            home: Some("/home/u".into()),
            working: "/srv/w/project".into(),
        };
        for directory in ["/", "/home", "/home/u", "/srv", "/srv/w"] {
            assert!(wide.holds(Path::new(directory)), "{directory}");
        }
        for directory in ["/home/u/x", "/home/user", "/srv/w/project", "/srv/other"] {
            assert!(!wide.holds(Path::new(directory)), "{directory}");
        }
    }

    #[test]
    fn what_goes_to_one_place_is_one_piece() {
        let at = |place, text: &str| Addition {
            place,
            text: text.to_owned(),
        };
        let flags = [at("", "--allow a:1"), at("", "--unprotect 'x y'")];
        let told: Vec<String> = together(&flags, " ").collect();
        assert_eq!(told, ["--allow a:1 --unprotect 'x y'"]);
        let settings = [at("q", "\"c\""), at("p", "\"a\""), at("p", "\"b\"")];
        let told: Vec<String> = together(&settings, ", ").collect();
        assert_eq!(told, ["\"a\", \"b\" in p", "\"c\" in q"]);
    }

    #[test]
    fn a_remedy_is_told_once() {
        let refused = |rule: &str, subject: &str| Refusal {
            kind: RefusalKind::Network,
            operation: "connect".to_owned(),
            subject: subject.to_owned(),
            rule: rule.to_owned(),
            count: 1,
        };
        let refusals = [
            refused("client-distrusts", "a.test:443"),
            refused("client-hung-up", "b.test:443"),
            refused("not-in-allowlist", "c.test:443"),
        ];
        let told: Vec<_> = remedies(&refusals).collect();
        assert_eq!(told.len(), 1);
        assert!(told[0].contains("$SSL_CERT_FILE"));
        assert_eq!(remedies(&refusals[2..]).count(), 0);
    }
}
