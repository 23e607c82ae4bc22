//! What is recorded of a call, whether it is refused, carried out or let go on.
//!
//! Everything here is for the record: no answer depends on it. Arguments in
//! memory may be changed by the caller meanwhile; then the record is of what
//! was there when it was read.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ringfence_sys::seccomp::Notification;
use ringfence_sys::{self as sys, Errno};
use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;

use super::caller::{CURRENT_FOLDER, Caller, as_descriptor, path_of};
use super::programs::program;
use crate::native::calls;
use crate::native::filters::NAMESPACE_FLAGS;
use crate::native::observe::{self, Detail, Repeat};
use crate::observation::{Action, Observation, Outcome};
use crate::sensitive::{SensitivePlaces, as_path, without_dots};

pub(super) const LONGEST_PATH: usize = libc::PATH_MAX as usize;
/// Stands for what was cut off.
pub(super) const CUT: &str = "…";
/// The rule that hides a place.
const HIDDEN: &str = "hidden place";

/// The rules that refuse calls whatever they are about.
pub(super) const CALL_RULES: &str = "system-call rules";

/// What the call being served is about, as far as it is known by now.
#[derive(Debug, Default)]
pub(super) struct Subject {
    paths: Vec<String>,
    /// The rule that refused it.
    rule: Option<String>,
}

impl Subject {
    pub(super) fn clear(&mut self) {
        self.paths.clear();
        self.rule = None;
    }

    /// The call names this path. Of many, the first and the last are kept.
    pub(super) fn names(&mut self, path: &Path) {
        self.says(text(path.as_os_str().as_bytes()));
    }

    pub(super) fn says(&mut self, text: String) {
        if self.paths.contains(&text) {
            return;
        }
        self.paths.truncate(1);
        self.paths.push(text);
    }

    /// It is refused by `rule`.
    pub(super) fn is_refused(&mut self, subject: &str, rule: &str) {
        if self.paths.is_empty() {
            self.says(subject.to_owned());
        }
        self.rule = Some(rule.to_owned());
    }

    /// Whether it was refused by a rule.
    pub(super) fn is_about_refusal(&self) -> bool {
        self.rule.is_some()
    }

    /// What is recorded of a call that was carried out or tried, if it is more
    /// than a count.
    pub(super) fn take(&mut self, call: &Notification, ended: Result<(), Errno>) -> Option<Record> {
        let rule = self.rule.take();
        let outcome = match (ended, &rule) {
            (Ok(()), _) => Outcome::Done,
            (Err(errno), Some(_)) => Outcome::Refused(errno.raw_os_error()),
            (Err(Errno::NOENT | Errno::EXIST), None) => return None,
            (Err(errno), None) => Outcome::Failed(errno.raw_os_error()),
        };
        let action = observe::about_files(call.number);
        let is_device = |path: &String| path.starts_with("/dev/");
        let is_nothing = self.paths.is_empty()
            || (action == Action::Write && rule.is_none() && self.paths.iter().all(is_device));
        if is_nothing {
            return None;
        }
        let is_refused = matches!(outcome, Outcome::Refused(_));
        let repeat = if is_refused || action == Action::Write {
            Repeat::Counted
        } else {
            Repeat::Told
        };
        let mut observation = about(call, action, outcome);
        observation.paths = std::mem::take(&mut self.paths);
        observation.rule = rule;
        Some(Record {
            observation,
            repeat,
        })
    }

    /// What is recorded of a call that is not over yet.
    pub(super) fn take_unfinished(&mut self, call: &Notification) -> Observation {
        let action = observe::about_files(call.number);
        let mut observation = about(call, action, Outcome::Continued);
        observation.paths = std::mem::take(&mut self.paths);
        observation
    }
}

/// Something to be recorded by itself.
pub(super) struct Record {
    pub(super) observation: Observation,
    pub(super) repeat: Repeat,
}

impl Record {
    pub(super) fn once(call: &Notification, action: Action, paths: Vec<String>) -> Self {
        Self {
            observation: Observation {
                paths,
                ..about(call, action, Outcome::Continued)
            },
            repeat: Repeat::Counted,
        }
    }
}

/// An observation with nothing but the call.
fn about(call: &Notification, action: Action, outcome: Outcome) -> Observation {
    Observation {
        time: observe::now(),
        pid: process_of(call.thread).as_raw_pid(),
        call: calls::name_of(call.number),
        action,
        paths: Vec::new(),
        argv: Vec::new(),
        outcome,
        rule: None,
    }
}

/// The process of a thread. A thread that is gone is told by its own number.
pub(super) fn process_of(thread: Pid) -> Pid {
    if sys::is_first_thread(thread) {
        return thread;
    }
    let status = std::fs::read(format!("/proc/{}/status", thread.as_raw_pid())).unwrap_or_default();
    String::from_utf8_lossy(&status)
        .lines()
        .find_map(|line| line.strip_prefix("Tgid:"))
        .and_then(|number| Pid::from_raw(number.trim().parse().ok()?))
        .unwrap_or(thread)
}

/// A program that has begun, seen by this call.
pub(super) fn begun(call: &Notification, path: String, words: Vec<String>) -> Record {
    let mut record = Record::once(call, Action::Exec, vec![path]);
    record.observation.call = calls::name_of(libc::SYS_execve);
    record.observation.argv = words;
    record.observation.outcome = Outcome::Done;
    record.repeat = Repeat::Told;
    record
}

/// What is recorded of a call that the rules refuse, if it is more than a
/// count.
pub(super) fn refused(caller: &Caller<'_>, errno: Errno) -> Option<Record> {
    let call = caller.call();
    let (action, detail) = observe::about(call.number);
    let paths = details(caller, detail);
    // A call that is not there is tried by every program that knows a newer
    // kernel.
    if errno == Errno::NOSYS && (action != Action::Namespace || paths.is_empty()) {
        return None;
    }
    let mut record = Record::once(call, action, paths);
    record.observation.outcome = Outcome::Refused(errno.raw_os_error());
    record.observation.rule = Some(CALL_RULES.to_owned());
    caller.confirm().is_ok().then_some(record)
}

/// What is recorded of a call that goes on, if it is more than a count. One that
/// shows nothing of what it is about does not go on.
pub(super) fn going_on(
    caller: &Caller<'_>,
    sensitive: &SensitivePlaces,
) -> Result<Option<Record>, Errno> {
    let call = caller.call();
    let [one, two, three, _, five, _] = call.arguments;
    let record = match call.number {
        libc::SYS_execve => Some(program(caller, (CURRENT_FOLDER, one), two, 0)?),
        libc::SYS_execveat => Some(program(caller, (one, two), three, five)?),
        libc::SYS_openat => look(caller, (one, two), sensitive)?,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => look(caller, (CURRENT_FOLDER, one), sensitive)?,
        libc::SYS_chdir => look(caller, (CURRENT_FOLDER, one), sensitive)?,
        libc::SYS_kill | libc::SYS_tkill | libc::SYS_rt_sigqueueinfo => {
            signal(call, as_descriptor(one), two)
        }
        libc::SYS_tgkill | libc::SYS_rt_tgsigqueueinfo => signal(call, as_descriptor(two), three),
        libc::SYS_pidfd_send_signal => {
            target_of(caller, one).and_then(|target| signal(call, target, two))
        }
        libc::SYS_ptrace => trace(call),
        libc::SYS_process_vm_readv | libc::SYS_process_vm_writev => other_process(caller),
        number => match observe::about(number) {
            (action @ (Action::Identity | Action::Trace), detail) => {
                Some(Record::once(call, action, details(caller, detail)))
            }
            _ => None,
        },
    };
    // What was read was the caller's only if it still waits.
    Ok(record.filter(|_| caller.confirm().is_ok()))
}

/// A look at a hidden place. Most paths cost no more than being read.
fn look(
    caller: &Caller<'_>,
    at: (u64, u64),
    sensitive: &SensitivePlaces,
) -> Result<Option<Record>, Errno> {
    let mut buffer = [0; LONGEST_PATH];
    let path = sys::read_c_string_into(caller.thread(), at.1, &mut buffer)?;
    if !sensitive.may_be_named_by(path) {
        return Ok(None);
    }
    Ok(look_by(caller, at.0, path, sensitive))
}

fn look_by(
    caller: &Caller<'_>,
    base: u64,
    path: &[u8],
    sensitive: &SensitivePlaces,
) -> Option<Record> {
    let whole = whole_path(caller, base, path)?;
    let found = [Some(whole.clone()), real_path(&whole)]
        .into_iter()
        .flatten()
        .find(|path| sensitive.holds(path))?;
    let found = without_dots(&found);
    let paths = vec![text(found.as_os_str().as_bytes())];
    let mut record = Record::once(caller.call(), Action::Read, paths);
    record.observation.rule = Some(HIDDEN.to_owned());
    Some(record)
}

/// The path from the root, by its text.
pub(super) fn whole_path(caller: &Caller<'_>, base: u64, path: &[u8]) -> Option<PathBuf> {
    if path.starts_with(b"/") {
        return Some(as_path(path).to_path_buf());
    }
    let base = caller.base(base).ok()?;
    Some(without_dots(&path_of(&base).ok()?.join(as_path(path))))
}

/// The path with every link on the way to its last part resolved.
fn real_path(path: &Path) -> Option<PathBuf> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(path.parent()?, flags, Mode::empty()).ok()?;
    Some(path_of(&folder).ok()?.join(path.file_name()?))
}

/// A signal to a process that is not there, to the init, or to everybody.
fn signal(call: &Notification, target: i32, number: u64) -> Option<Record> {
    let is_absent = match target {
        0 => false,
        1 | -1 => true,
        group @ ..=-2 => group
            .checked_neg()
            .and_then(Pid::from_raw)
            .is_none_or(|group| {
                rustix::process::test_kill_process_group(group) == Err(Errno::SRCH)
            }),
        pid => Pid::from_raw(pid)
            .is_some_and(|pid| rustix::process::test_kill_process(pid) == Err(Errno::SRCH)),
    };
    let paths = vec![format!("signal {} to {target}", as_descriptor(number))];
    is_absent.then(|| Record::once(call, Action::Signal, paths))
}

/// The process that the caller's descriptor stands for.
fn target_of(caller: &Caller<'_>, descriptor: u64) -> Option<i32> {
    let (thread, number) = (caller.thread().as_raw_pid(), as_descriptor(descriptor));
    let info = std::fs::read_to_string(format!("/proc/{thread}/fdinfo/{number}")).ok()?;
    info.lines()
        .find_map(|line| line.strip_prefix("Pid:"))?
        .trim()
        .parse()
        .ok()
}

fn trace(call: &Notification) -> Option<Record> {
    let target = as_descriptor(call.arguments[1]);
    let what = match as_descriptor(call.arguments[0]).cast_unsigned() {
        observe::TRACE_ME => "traced by its parent".to_owned(),
        observe::ATTACH | observe::SEIZE => format!("process {target}"),
        _ => return None,
    };
    Some(Record::once(call, Action::Trace, vec![what]))
}

/// Reading or writing the memory of another process than the own one.
fn other_process(caller: &Caller<'_>) -> Option<Record> {
    let call = caller.call();
    let target = as_descriptor(call.arguments[0]);
    if target == process_of(call.thread).as_raw_pid() {
        return None;
    }
    let paths = vec![format!("process {target}")];
    Some(Record::once(call, Action::Trace, paths))
}

fn details(caller: &Caller<'_>, detail: Detail) -> Vec<String> {
    let arguments = &caller.call().arguments;
    let number = |at: usize| as_descriptor(arguments[at]);
    match detail {
        Detail::Nothing => Vec::new(),
        Detail::Path(at) => string(caller, arguments[at]).into_iter().collect(),
        Detail::Paths(one, other) => [one, other]
            .into_iter()
            .filter_map(|at| string(caller, arguments[at]))
            .collect(),
        Detail::PathAt(base, at) => path_at(caller, arguments[base], arguments[at])
            .into_iter()
            .collect(),
        Detail::Number(what, at) => vec![format!("{what} {}", number(at))],
        Detail::Request(at) => vec![format!("request {:#x}", number(at))],
        Detail::Ids(count) => {
            let ids: Vec<String> = (0..count).map(|at| number(at).to_string()).collect();
            vec![format!("ids {}", ids.join(", "))]
        }
        Detail::Namespaces(at) => namespaces(arguments[at]).into_iter().collect(),
        Detail::NamespacesInMemory => sys::read_bytes(caller.thread(), arguments[0], 8)
            .ok()
            .and_then(|bytes| namespaces(u64::from_ne_bytes(bytes.try_into().ok()?)))
            .into_iter()
            .collect(),
        Detail::Socket => vec![format!(
            "family {}, type {}, protocol {}",
            number(0),
            number(1),
            number(2)
        )],
    }
}

fn string(caller: &Caller<'_>, address: u64) -> Option<String> {
    let mut buffer = [0; LONGEST_PATH];
    sys::read_c_string_into(caller.thread(), address, &mut buffer)
        .ok()
        .map(text)
}

fn path_at(caller: &Caller<'_>, base: u64, address: u64) -> Option<String> {
    let mut buffer = [0; LONGEST_PATH];
    let path = sys::read_c_string_into(caller.thread(), address, &mut buffer).ok()?;
    let whole = whole_path(caller, base, path);
    Some(whole.map_or_else(|| text(path), |whole| text(whole.as_os_str().as_bytes())))
}

/// The kinds of namespaces that flags ask for.
fn namespaces(flags: u64) -> Option<String> {
    const KINDS: [(i32, &str); 7] = [
        (libc::CLONE_NEWUSER, "user"),
        (libc::CLONE_NEWNS, "mount"),
        (libc::CLONE_NEWPID, "pid"),
        (libc::CLONE_NEWNET, "network"),
        (libc::CLONE_NEWIPC, "ipc"),
        (libc::CLONE_NEWUTS, "uts"),
        (libc::CLONE_NEWCGROUP, "cgroup"),
    ];
    let flags = as_descriptor(flags);
    if flags & NAMESPACE_FLAGS == 0 {
        return None;
    }
    let asked = KINDS.iter().filter(|(flag, _)| flags & flag != 0);
    let names: Vec<&str> = asked.map(|(_, name)| *name).collect();
    Some(format!("namespaces {}", names.join(", ")))
}

/// A string of the caller's as text, of bounded length.
pub(super) fn text(bytes: &[u8]) -> String {
    let kept = &bytes[..bytes.len().min(LONGEST_PATH)];
    let mut text = String::from_utf8_lossy(kept).into_owned();
    if kept.len() < bytes.len() {
        text.push_str(CUT);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_paths_the_first_and_the_last_are_kept() {
        let mut subject = Subject::default();
        for path in ["/a", "/b", "/a", "/c"] {
            subject.names(Path::new(path));
        }
        assert_eq!(subject.paths, ["/a", "/c"]);
    }

    #[test]
    fn hostile_strings_become_bounded_text() {
        assert_eq!(text(b"/a\xff\n"), "/a\u{fffd}\n");
        let long = text(&[b'a'; 2 * LONGEST_PATH]);
        assert_eq!(long.len(), LONGEST_PATH + CUT.len());
        assert!(long.ends_with(CUT));
    }

    #[test]
    fn only_flags_that_make_namespaces_are_told() {
        let flags = |bits: i32| u64::from(bits.cast_unsigned());
        assert_eq!(namespaces(flags(libc::CLONE_VM | libc::SIGCHLD)), None);
        assert_eq!(
            namespaces(flags(libc::CLONE_NEWUSER | libc::CLONE_NEWNET)).as_deref(),
            Some("namespaces user, network")
        );
    }

    #[test]
    fn threads_are_told_by_their_process() {
        let here = rustix::process::getpid();
        let of_thread = std::thread::spawn(|| {
            let thread = rustix::thread::gettid();
            (thread, process_of(thread))
        });
        let (thread, process) = of_thread.join().unwrap();
        assert_ne!(thread, here);
        assert_eq!((process, process_of(here)), (here, here));
    }
}
