//! Carrying out the watched calls of the command.
//!
//! A call that makes, changes or removes a name, or connects a socket, stops
//! in the kernel until the init answers. The init never lets such a call go on
//! by itself, because its arguments are in memory that another thread may change
//! after they were judged: it copies them once, judges the copy, and performs
//! the operation itself by descriptor, with the rights of the sandbox. It is
//! the only one inside that renames or makes names, and it does so one at a
//! time, so what it judged cannot be moved before it acts.
//!
//! Other calls come here to be recorded: those that the rules refuse, which
//! are refused first thing, and those that are only seen, which go on.

mod attributes;
mod bound;
mod caller;
mod configuration;
mod dialled;
mod images;
mod limits;
mod links;
mod names;
mod networked;
mod open;
mod peers;
mod pipes;
mod programs;
mod quick;
mod replace;
mod repository;
mod rights;
mod roots;
mod seen;
mod socket;
mod turn;
mod worker;

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use ringfence_policy::AuditLevel;
use ringfence_sys::seccomp::{Answer, Listener, Notification};
use ringfence_sys::{self as sys, Channel, Errno, UnixDiag};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags};

use self::bound::BoundHere;
use self::caller::{Caller, Spot, path_of};
pub(super) use self::configuration::Configurations;
use self::images::Images;
use self::networked::Connections;
use self::peers::Peers;
pub(super) use self::programs::started;
use self::quick::Quick;
pub(super) use self::roots::Roots;
use self::seen::{Record, Subject};
use self::turn::Turn;
use self::worker::Workers;
use super::disk::Account;
use super::filters::{Rules, Verdict, Watch};
use super::observe::{self, Observer};
use super::refusals::Refusals;
use crate::git::Made;
use crate::guard::{Guard, GuardRule, On};
use crate::guarding::Guarding;
use crate::sensitive::{MASKED, SensitivePlaces};
use crate::view::FileId;
use crate::wire::{Operation, Refusal, RefusalKind};

/// What a guarded name answers: as if it were on a read-only file system,
/// which those that existed before are.
const GUARDED: Errno = Errno::ROFS;
/// The rule against what the mounts refuse.
const OUTSIDE: &str = "outside the writable places";

/// The judge and doer of watched calls.
pub(super) struct Broker<'a> {
    listener: Arc<Listener>,
    guard: &'a Guard,
    roots: Roots,
    guarding: Guarding,
    /// Directories that were made inside.
    made: Made,
    /// Those that became a Git directory inside.
    new_repositories: Made,
    /// Paths from which directories were taken away that were there before.
    vacated: HashSet<PathBuf>,
    quick: Quick,
    configurations: Configurations,
    sockets: Arc<UnixDiag>,
    bound: BoundHere,
    peers: Peers,
    callers: Option<Arc<Channel>>,
    /// The sandbox's own network namespace, where the kernel can tell.
    network: Option<u64>,
    /// Those that the command wants to make.
    wanted: Connections,
    workers: Workers,
    refusals: Refusals,
    new_refusals: Vec<Refusal>,
    /// What is added to storage.
    disk: Account,
    /// The most bytes that one file may have.
    largest_file: Option<u64>,
    /// What the call being served is about to change, once it was judged.
    judged: Option<(Operation, PathBuf)>,
    rules: Rules,
    observer: Observer,
    /// The programs on record.
    images: Images,
    sensitive: &'a SensitivePlaces,
    /// What the call being served is about, for the record.
    subject: Subject,
    /// Whether several callers were waiting lately, and when to look again.
    is_crowded: bool,
    unlooked: u8,
}

/// What there is of a network.
pub(super) struct Networked {
    /// Where it is told who connects.
    pub(super) callers: Option<Channel>,
    /// Whether it is not served before it is wanted.
    pub(super) is_awaited: bool,
}

/// How a call was dealt with.
pub(super) enum Done {
    /// With this answer.
    Now(Answer),
    /// A worker will answer.
    Later,
    /// It has to wait for the network, and is done again then.
    Offline,
}

type Outcome = Result<Done, Errno>;

impl<'a> Broker<'a> {
    pub(super) fn new(
        listener: Listener,
        (guard, guarding, watch): (&'a Guard, Guarding, Watch),
        (roots, configurations): (Roots, Configurations),
        sockets: UnixDiag,
        network: Networked,
        (observer, sensitive): (Observer, &'a SensitivePlaces),
    ) -> Self {
        // Older kernels do without.
        let _ = listener.take_turns();
        Self {
            workers: Workers::new(observer.clone()),
            listener: Arc::new(listener),
            guard,
            roots,
            guarding,
            made: Made::default(),
            new_repositories: Made::default(),
            vacated: HashSet::new(),
            quick: Quick::default(),
            configurations,
            network: sys::namespace_of(sockets.as_fd()).ok(),
            sockets: Arc::new(sockets),
            bound: BoundHere::default(),
            peers: Peers::default(),
            callers: network.callers.map(Arc::new),
            wanted: Connections::new(network.is_awaited),
            refusals: Refusals::default(),
            new_refusals: Vec::new(),
            disk: Account::default(),
            largest_file: None,
            judged: None,
            rules: Rules::new(watch),
            observer,
            images: Images::default(),
            sensitive,
            subject: Subject::default(),
            is_crowded: false,
            unlooked: 0,
        }
    }
}

impl Broker<'_> {
    /// Keeps an account of what is added to storage.
    pub(super) fn with_account(mut self, account: Account) -> Self {
        self.disk = account;
        self
    }

    /// Lets no file grow beyond this, as the kernel does for the command's own
    /// processes.
    pub(super) fn with_largest_file(mut self, bytes: Option<u64>) -> Self {
        self.largest_file = bytes;
        self
    }

    pub(super) fn disk(&self) -> &Account {
        &self.disk
    }

    pub(super) fn disk_mut(&mut self) -> &mut Account {
        &mut self.disk
    }

    pub(super) fn observer(&self) -> &Observer {
        &self.observer
    }

    pub(super) fn listener(&self) -> &Listener {
        &self.listener
    }

    pub(super) fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    pub(super) fn take_new_refusals(&mut self) -> Vec<Refusal> {
        self.new_refusals.extend(
            self.workers
                .take_refusals()
                .into_iter()
                .filter(|refusal| self.refusals.add(refusal)),
        );
        std::mem::take(&mut self.new_refusals)
    }

    /// Serves a waiting call, and more of them if several callers are at it,
    /// but only for a turn: limits, orders and children are looked at in between,
    /// whatever waits. A single caller makes its next call only after this
    /// answer, so looking for that at once would be in vain.
    pub(super) fn serve_waiting(&mut self) {
        const LOOK_EVERY: u8 = 16;
        let mut turn = Turn::begin(Instant::now());
        self.serve();
        self.unlooked = self.unlooked.wrapping_add(1) % LOOK_EVERY;
        if !self.is_crowded && self.unlooked != 0 {
            return;
        }
        self.is_crowded = false;
        while self.has_waiting() {
            self.is_crowded = true;
            if !turn.goes_on(Instant::now()) {
                break;
            }
            self.serve();
        }
    }

    fn has_waiting(&self) -> bool {
        let mut fds = [PollFd::new(&*self.listener, PollFlags::IN)];
        let now = rustix::time::Timespec::default();
        rustix::event::poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
            && fds[0].revents() == PollFlags::IN
    }

    /// Serves the next waiting call.
    fn serve(&mut self) {
        let Ok(call) = self.listener.receive() else {
            return;
        };
        match self.rules.verdict(call.number, &call.arguments) {
            Verdict::Refuse(errno) => self.refuse_call(&call, errno),
            Verdict::CarryOut => self.carry_out(&call),
            Verdict::GoOn => self.let_go_on(&call),
        }
    }

    /// Refuses what the rules refuse. There is no other answer from here.
    fn refuse_call(&mut self, call: &Notification, errno: Errno) {
        if !self.has_program_recorded(call) {
            return;
        }
        if observe::is_of_interest(self.observer.level(), call.number) {
            let caller = Caller::new(&self.listener, call);
            self.record(call, seen::refused(&caller, errno));
        }
        let _ = self.listener.answer(call, Answer::Fail(errno));
    }

    /// Lets a call go on that came to be seen.
    fn let_go_on(&mut self, call: &Notification) {
        if !observe::is_of_interest(self.observer.level(), call.number) {
            // Nothing sends it here.
            let _ = self.listener.answer(call, Answer::Fail(Errno::NOSYS));
            return;
        }
        if call.number == observe::FIRST_CALL && observe::sees_programs_begin(self.observer.level())
        {
            return self.see_program_begin(call);
        }
        let caller = Caller::new(&self.listener, call);
        if let Some(errno) = programs::absent_program(&caller) {
            self.observer.count(call.number);
            let _ = self.listener.answer(call, Answer::Fail(errno));
            return;
        }
        let answer = match seen::going_on(&caller, self.sensitive) {
            Ok(record) => {
                if !self.record(call, record) {
                    return;
                }
                Answer::Continue
            }
            Err(errno) => {
                self.observer.count(call.number);
                Answer::Fail(errno)
            }
        };
        let _ = self.listener.answer(call, answer);
    }

    /// False when it could not be recorded; then everything ends.
    fn record(&self, call: &Notification, record: Option<Record>) -> bool {
        if let Some(record) = record {
            return self
                .observer
                .tell(call.number, record.observation, record.repeat);
        }
        self.observer.count(call.number);
        true
    }

    fn carry_out(&mut self, call: &Notification) {
        self.judged = None;
        self.subject.clear();
        if !self.has_program_recorded(call) {
            return;
        }
        let is_quick = self.guarding == Guarding::Live;
        let quickly = is_quick.then(|| self.quickly(call)).flatten();
        let done = quickly.unwrap_or_else(|| self.dispatch(call));
        if matches!(done, Ok(Done::Offline)) {
            return self.let_wait_for_network(*call);
        }
        if let Err(errno) = done {
            self.note_kernels_refusal(errno);
        }
        self.record_done(call, &done);
        let answer = match done {
            Ok(Done::Now(answer)) => answer,
            Ok(Done::Later | Done::Offline) => return,
            Err(errno) => Answer::Fail(errno),
        };
        // The only failures left are of a caller that is gone.
        let _ = self.listener.answer(call, answer);
    }

    fn record_done(&mut self, call: &Notification, done: &Outcome) {
        let level = self.observer.level();
        if !observe::is_of_interest(level, call.number) || self.is_ordinary_file_call(call) {
            return;
        }
        if matches!(done, Ok(Done::Later)) {
            let observation = self.subject.take_unfinished(call);
            self.observer
                .tell_later(call.id(), call.number, observation);
            return;
        }
        let ended = done.as_ref().map(drop).map_err(|errno| *errno);
        let record = self.subject.take(call, ended);
        self.record(call, record);
    }

    /// Below `security` files that are made are many, and what is refused of them
    /// is what matters.
    fn is_ordinary_file_call(&self, call: &Notification) -> bool {
        let is_about_files = !observe::is_of_interest(AuditLevel::Network, call.number);
        self.observer.level() == AuditLevel::Standard
            && is_about_files
            && !self.subject.is_about_refusal()
    }

    /// What the mounts refused belongs in the record as well.
    fn note_kernels_refusal(&mut self, errno: Errno) {
        if matches!(errno, Errno::ROFS | Errno::ACCESS)
            && let Some((operation, path)) = self.judged.take()
        {
            self.note_covered(operation, &path, errno);
        }
    }

    /// Records what a mount refused, by the rule that put it there. What is
    /// masked has no mode for writing either; what else has none is the host's
    /// own doing.
    fn note_covered(&mut self, operation: Operation, path: &Path, errno: Errno) {
        let rule = match self.sensitive.rule_for(path) {
            Some(rule) if errno == Errno::ROFS || rule == MASKED => rule,
            _ if errno == Errno::ROFS => OUTSIDE,
            _ => return,
        };
        self.refuse(operation, path, rule);
    }

    fn dispatch(&mut self, call: &Notification) -> Outcome {
        let listener = Arc::clone(&self.listener);
        let caller = Caller::new(&listener, call);
        let [one, two, three, four, five, _] = call.arguments;
        let here = caller::CURRENT_FOLDER;
        match call.number {
            libc::SYS_openat => self.open(&caller, one, two, three, four),
            libc::SYS_mkdirat => self.make_folder(&caller, one, two, three),
            libc::SYS_mknodat => self.make_node(&caller, one, two, three, four),
            libc::SYS_symlinkat => self.make_link(&caller, one, two, three),
            libc::SYS_linkat => self.link(&caller, (one, two), (three, four), five),
            libc::SYS_renameat => self.rename(&caller, (one, two), (three, four), 0),
            libc::SYS_renameat2 => self.rename(&caller, (one, two), (three, four), five),
            libc::SYS_unlinkat => self.remove(&caller, one, two, three),
            libc::SYS_truncate => self.truncate(&caller, one, two),
            libc::SYS_landlock_add_rule => {
                // A rule keeps the file that it is about, also a removed one.
                self.disk.gave_out_place();
                Ok(Done::Now(Answer::Continue))
            }
            libc::SYS_fallocate => self.allocate(&caller, one, two, (three, four)),
            libc::SYS_fchmodat => self.change_mode(&caller, one, two, three, 0),
            libc::SYS_fchmodat2 => self.change_mode(&caller, one, two, three, four),
            libc::SYS_fchmod => self.change_mode_of_open(&caller, one, two),
            libc::SYS_prlimit64 => self.limit(&caller, one),
            libc::SYS_connect => self.connect(&caller, one, two, three),
            libc::SYS_bind => self.bind(&caller, one, two, three),
            libc::SYS_getsockopt => self.tell_peer(&caller, one, (four, five)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open => self.open(&caller, here, one, two, three),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_creat => {
                let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
                self.open(&caller, here, one, u64::from(flags.cast_unsigned()), two)
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mkdir => self.make_folder(&caller, here, one, two),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mknod => self.make_node(&caller, here, one, two, three),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_symlink => self.make_link(&caller, one, here, two),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_link => self.link(&caller, (here, one), (here, two), 0),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename => self.rename(&caller, (here, one), (here, two), 0),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_unlink => self.remove(&caller, here, one, 0),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rmdir => self.remove(
                &caller,
                here,
                one,
                u64::from(libc::AT_REMOVEDIR.cast_unsigned()),
            ),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_chmod => self.change_mode(&caller, here, one, two, 0),
            _ => Err(Errno::NOSYS),
        }
    }

    /// Refuses the operation if a guarded name is in the way.
    fn judge(&mut self, operation: Operation, spot: &Spot) -> Result<(), Errno> {
        let path = spot.path();
        if self.observer.level() > AuditLevel::Off {
            self.subject.names(path);
        }
        self.judged = Some((operation, path.to_path_buf()));
        let rule = match self.roots.known_as(&spot.folder, path) {
            Ok(known) => self.rule_for(operation, spot, known.as_deref())?,
            Err(_) => Some("place that cannot be told".to_owned()),
        };
        let Some(rule) = rule else { return Ok(()) };
        self.judged = None;
        self.refuse(operation, path, &rule);
        Err(GUARDED)
    }

    /// The rule against touching a spot that the guard calls `known`.
    fn rule_for(
        &self,
        operation: Operation,
        spot: &Spot,
        known: Option<&Path>,
    ) -> Result<Option<String>, Errno> {
        let written = self.roots.by_path(spot.written());
        let written = written.as_deref().filter(|path| Some(*path) != known);
        let guarded = known
            .and_then(|path| self.guard.rule_for(path, &|on| self.is_free(spot, on)))
            .or_else(|| {
                let is_free = |on: On<'_>| self.is_free_by_path(on);
                written.and_then(|path| self.guard.rule_for(path, &is_free))
            });
        Ok(match guarded {
            Some(GuardRule::Name(name)) => Some(format!("protected name {name}")),
            Some(GuardRule::Denied) => Some("write denied by the policy".to_owned()),
            None if self.is_file_on_the_way(operation, spot, known) => {
                Some("file on the way to a protected name".to_owned())
            }
            None if known.is_some() => self.git_rule(operation, spot)?.map(str::to_owned),
            None => None,
        })
    }

    fn is_file_on_the_way(&self, operation: Operation, spot: &Spot, known: Option<&Path>) -> bool {
        let is_file = matches!(operation, Operation::Create | Operation::Link);
        let is_free = |on: On<'_>| self.is_free(spot, on);
        is_file && known.is_some_and(|path| self.guard.is_on_the_way(path, &is_free))
    }

    /// Whether names are free in a directory above a spot: the run made it, and
    /// there was none of this path before.
    fn is_free(&self, spot: &Spot, on: On<'_>) -> bool {
        if self.was_there(on.directory) {
            return false;
        }
        let directory = spot.ancestor(on.above);
        directory.is_ok_and(|directory| self.is_made(&directory))
    }

    /// The same for a path as the caller wrote it, links and all.
    fn is_free_by_path(&self, on: On<'_>) -> bool {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(on.directory, flags, Mode::empty());
        !self.was_there(on.directory) && directory.is_ok_and(|directory| self.is_made(&directory))
    }

    fn was_there(&self, directory: &Path) -> bool {
        let survey = self.guard.survey();
        survey.directories.contains_key(directory)
            || self.vacated.contains(directory)
            // Where not all are known, one that is gone may have had this in it.
            || (!survey.is_complete && directory.ancestors().any(|one| self.vacated.contains(one)))
    }

    fn is_made(&self, directory: &OwnedFd) -> bool {
        let status = rustix::fs::fstat(directory);
        status.is_ok_and(|status| self.made.has(FileId::of_stat(&status)))
    }

    /// The same for a place that the caller holds open or that was reached by
    /// a descriptor. A place that has no name any more is nobody's.
    fn judge_place(&mut self, operation: Operation, place: &OwnedFd) -> Result<(), Errno> {
        let path = path_of(place)?;
        if path.starts_with("/proc") {
            return Err(Errno::ACCESS);
        }
        let is_nobodys = matches!(self.roots.known_as(place, &path), Ok(None));
        match Spot::of_place(place) {
            Ok(spot) => self.judge(operation, &spot),
            Err(_) if is_nobodys => Ok(()),
            Err(Errno::NOENT) if rustix::fs::fstat(place)?.st_nlink == 0 => Ok(()),
            Err(_) => {
                self.refuse(operation, &path, "place whose name cannot be checked");
                Err(GUARDED)
            }
        }
    }

    /// What the guard calls a spot, if it lies in a writable folder of the host.
    fn known_as(&self, spot: &Spot) -> Result<Option<PathBuf>, Errno> {
        self.roots
            .known_as(&spot.folder, spot.path())
            .map_err(|_| GUARDED)
    }

    /// After a name was made: another sandbox in the same folder may have moved
    /// the folder it was made in. Then what was made is taken back.
    fn settle(
        &mut self,
        operation: Operation,
        spot: &Spot,
        undo: impl FnOnce(),
    ) -> Result<(), Errno> {
        let now = spot.again()?;
        if now.path() == spot.path() {
            return Ok(());
        }
        self.judge(operation, &now).inspect_err(|_| undo())
    }

    fn refuse(&mut self, operation: Operation, path: &Path, rule: &str) {
        let subject = path.display().to_string();
        self.note(Refusal::new(RefusalKind::File, operation, &subject, rule));
    }

    pub(super) fn note(&mut self, refusal: Refusal) {
        self.subject.is_refused(&refusal.subject, &refusal.rule);
        if self.refusals.add(&refusal) {
            self.new_refusals.push(refusal);
        }
    }
}

#[allow(clippy::unnecessary_wraps, reason = "the end of every handler")]
fn value(value: i64) -> Outcome {
    Ok(Done::Now(Answer::Value(value)))
}
