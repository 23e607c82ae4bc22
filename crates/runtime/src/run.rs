//! One run, from a policy to a report.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Instant;

use ringfence_egress::Ask;
use ringfence_policy::{AuditLevel, HomeName, HomeRule, LayerKind, Policy, Resolved};
use ringfence_sandbox::{
    Alias, Attendant, Command, Cradle, GivenFile, Host, Inlets, Intercept, Judge, Plan, PlanError,
    PlanRequest, PrivateLayer, Running, ServedFrom, SpawnError, Swept, Trust, TrustPlan, Weaker,
    spawn,
};
use ringfence_sys::{Errno, WipeOnFree};
use rustix::fs::FileType;
use rustix::net::{AddressFamily, SocketType, sockopt};

use crate::asking::Desk;
use crate::covers::Covers;
use crate::egress::{EgressError, EgressRequest, Opening, Outlet, Wanted};
use crate::end::End;
use crate::evidence::{AuditRequest, Evidence, EvidenceError};
use crate::homes::{self, HeldHome, Homes, HomesError};
use crate::host_env::HostEnv;
use crate::kits::KitSetup;
use crate::masked::Masks;
use crate::nesting::is_inside_sandbox;
use crate::relay::{Arranged, Outside};
use crate::report::{AuditReport, DroppedReport, HomeReport, Report};
use crate::secrets::{Surroundings, WritablePlaces};
use crate::stand_in::{StandInError, StandIns};
use crate::supervise::{Served, Supervisor};
use crate::sweeping::{Due, SweepError, sweep_after_others};
use crate::trust::HostCertificates;

/// Whether the command gets a terminal of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Terminal {
    /// For those standard streams that are one outside.
    #[default]
    Auto,
    /// For all standard streams.
    Always,
    /// Never.
    Never,
}

/// What to run and how.
pub struct RunRequest<'a> {
    /// The policy that holds.
    pub policy: &'a Resolved<Policy>,
    /// The machine.
    pub host: &'a Host,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Where.
    pub working_folder: PathBuf,
    /// The environment outside.
    pub env: HostEnv,
    /// The terminal.
    pub terminal: Terminal,
    /// Files in a writable folder that the command must not touch.
    pub untouchable: Vec<PathBuf>,
    /// Accepted weaker forms.
    pub weaker: Weaker,
    /// Where the sandbox is to be born.
    pub cradle: Cradle,
    /// What kits do before the command, inside.
    pub setup: Option<KitSetup>,
    /// The way out, where the policy opens one.
    pub egress: EgressRequest,
    /// Where homes are kept.
    pub homes: PathBuf,
    /// Where it is recorded.
    pub audit: AuditRequest,
    /// Where it is written down what is to be swept.
    pub guard_folder: PathBuf,
}

/// Why nothing was run, or why a run has no known end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The plan cannot be made.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The sandbox did not start, or broke.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The network cannot be served.
    #[error(transparent)]
    Egress(#[from] EgressError),
    /// The run cannot be recorded.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// It could not be swept.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// A secret cannot be kept out.
    #[error(transparent)]
    StandIn(#[from] StandInError),
    /// The home cannot be kept.
    #[error(transparent)]
    Home(#[from] HomesError),
    /// A standard stream would be a way out.
    #[error("{stream} is a folder, through which code inside could reach the rest of the host")]
    StreamIsFolder {
        /// Which.
        stream: &'static str,
    },
    /// A standard stream is a socket of the host's own network.
    #[error("{stream} is a network socket, with which code inside could reach anything")]
    StreamIsSocket {
        /// Which.
        stream: &'static str,
    },
    /// A standard stream is closed.
    #[error("{stream} is closed")]
    StreamClosed {
        /// Which.
        stream: &'static str,
    },
    /// `--tty` without a terminal.
    #[error("there is no terminal to show the command's own on")]
    NoTerminal,
    /// This is one of our sandboxes.
    #[error("already inside a ringfence sandbox: sandboxes do not nest")]
    AlreadyInside,
    /// Nobody can be asked about hosts where there is no network.
    #[error("there is nothing to ask about: the policy leaves nothing but loopback")]
    NothingToAsk,
    /// The supervisor cannot work.
    #[error("cannot supervise the sandbox: {0}")]
    Supervise(Errno),
}

impl RunError {
    /// A stable name for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Plan(error) => error.code(),
            Self::Spawn(error) => error.code(),
            Self::Egress(error) => error.code(),
            Self::Evidence(error) => error.code(),
            Self::Sweep(error) => error.code(),
            Self::StandIn(error) => error.code(),
            Self::Home(error) => error.code(),
            Self::StreamIsFolder { .. } => "stream-is-folder",
            Self::StreamIsSocket { .. } => "stream-is-socket",
            Self::StreamClosed { .. } => "stream-closed",
            Self::NoTerminal => "no-terminal",
            Self::AlreadyInside => "already-inside",
            Self::NothingToAsk => "nothing-to-ask",
            Self::Supervise(_) => "supervisor-failed",
        }
    }

    /// Whether it is for want of something that may be there in a moment, such
    /// as one more process.
    pub(crate) fn may_pass(&self) -> bool {
        let errno = match self {
            Self::Spawn(SpawnError::EnterNetwork(errno))
            | Self::Egress(EgressError::HostAddresses(errno)) => errno.raw_os_error(),
            Self::Egress(EgressError::Serve(error)) => error.raw_os_error().unwrap_or_default(),
            _ => return false,
        };
        [Errno::AGAIN, Errno::NOMEM, Errno::NOBUFS, Errno::NFILE]
            .map(Errno::raw_os_error)
            .contains(&errno)
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Plan(error) => error.hint(),
            Self::Spawn(error) => error.hint(),
            Self::Egress(error) => error.hint(),
            Self::Evidence(error) => error.hint(),
            Self::Sweep(error) => error.hint(),
            Self::StandIn(error) => error.hint(),
            Self::Home(error) => error.hint(),
            Self::StreamIsFolder { .. } => "redirect it from a file, or from /dev/null",
            Self::StreamIsSocket { .. } => "put a pipe in between: cat | ringfence run … | cat",
            Self::StreamClosed { .. } => "redirect it to or from /dev/null",
            Self::NoTerminal => "run it from a terminal, or without --tty",
            Self::AlreadyInside => {
                "run the command as it is, without ringfence: this sandbox holds it already; what it may reach and \
                 write is said where the sandbox is started"
            }
            Self::NothingToAsk => "leave --ask out, or `mode: deny` out of the policy",
            Self::Supervise(_) => "see what this machine can enforce: ringfence doctor",
        }
    }
}

/// Why a run that is on record has no end.
const NOT_STARTED: &str = "not-started";

/// Runs the command to its end.
pub fn run(request: RunRequest<'_>) -> Result<Report, RunError> {
    let env = request.env.clone();
    run_outside(request).map_err(|error| {
        // Whatever it was that could not be done: it cannot be mended from here.
        if is_inside_sandbox(&env) {
            RunError::AlreadyInside
        } else {
            error
        }
    })
}

fn run_outside(mut request: RunRequest<'_>) -> Result<Report, RunError> {
    let started = Instant::now();
    let (mut desk, ask) = desk(&mut request)?.unzip();
    let judge = Judge::choose(request.weaker);
    let mut arranged = arranged(&request, judge)?;
    // Until the run is over: no other may change it meanwhile.
    let (kept_home, mut home) = kept_home(&request, judge)?;
    let words = texts(&request.command);
    let stand_ins = StandIns::of(request.policy, &|name| request.env.variable(name))?;
    // Before the plan, which hides what is there.
    let evidence = Evidence::open(request.policy.audit().value, request.audit)?;
    let command = wrapped(request.setup.as_ref(), request.command);
    let swept_before = sweep_after_others(
        request.policy,
        &request.working_folder,
        &request.guard_folder,
    );
    let brought = Brought::along(request.policy, request.setup, &request.env);
    let mut plan = Plan::build(PlanRequest {
        policy: request.policy,
        host: request.host,
        command: Command::new(command)?,
        working_folder: &request.working_folder,
        environment: request.env.passing(request.policy.environment()),
        outside: &|name| request.env.variable(name),
        streams: arranged.inside,
        terminal_size: arranged.size,
        untouchable: request.untouchable,
        weaker: request.weaker,
        judge,
        intercept: request.egress.intercept,
        served_from: served_from(&request.egress),
        proxy_user: request.egress.proxy_user.clone(),
        trust: trust_plan(request.policy),
        given: brought.files,
        alias: brought.alias,
        certificates: brought.certificates,
        cradle: &request.cradle,
        kept_home: kept_home.as_ref().map(HeldHome::path),
        stand_ins: stand_ins.variables,
    })?;
    replace_protected_streams(&mut plan, &mut arranged.outside)?;
    let mut due = Due::begin(&plan, &request.guard_folder, &evidence.run().to_string())?;
    // Before the command starts, so that no signal can come in between.
    let supervisor = Supervisor::prepare(deadline(request.policy, started))?;
    let placeholders = stand_ins.placeholders.clone();
    let masks = Masks {
        credentials: request.policy.credentials(),
        placeholders: &placeholders,
    };
    let mut covers = Covers::of(plan.covers(), masks);
    let mut start = Start {
        policy: request.policy,
        masks,
        command: &words,
        working_folder: &request.working_folder,
        opening: Opening::of(Wanted {
            policy: request.policy,
            request: request.egress,
            placeholders: stand_ins.placeholders,
            surroundings: surroundings(
                request.policy,
                request.host,
                &plan,
                &request.working_folder,
                &request.env,
            ),
            authority: None,
            ask,
            env: request.env,
        }),
        evidence: &evidence,
        due: due.as_mut(),
        begun: None,
    };
    let private_layers = plan.private_layers();
    let running = spawn(&plan, &request.cradle, &mut start);
    // No other copy of this process is made.
    WipeOnFree::stop();
    let (running, mut outlet) = start.finish(running)?;
    let served = Served {
        outlet: outlet.as_deref_mut(),
        desk: desk.as_mut(),
        covers: &mut covers,
    };
    let end = supervisor.attend(&running, arranged.outside, &evidence, served);
    home.dropped = dropped(&running, &private_layers);
    if let Some(outlet) = outlet {
        outlet.close();
    }
    let mut end = end.inspect_err(|error| evidence.abandon(unfinished(error, &running)))?;
    let is_told = sweep(&mut end, &evidence, (swept_before, due), request.policy);
    if let Some(desk) = desk {
        desk.close();
    }
    ringfence_sys::give_way();
    let report = end.report(
        words,
        &request.working_folder,
        started.elapsed(),
        &running,
        &evidence,
        AuditReport::of(request.policy.audit().value, judge),
    );
    Ok(sealed(report, home, is_told, &evidence))
}

/// The report, once it is written down as well.
fn sealed(mut report: Report, home: HomeReport, is_told: bool, evidence: &Evidence) -> Report {
    report.home = Some(home);
    ringfence_sys::give_way();
    if evidence.is_full() {
        report.blame_full_disk();
    }
    let is_sealed = evidence.seal(&report).is_ok();
    if !(is_told && is_sealed) {
        report.lose_evidence();
    }
    if evidence.is_full() {
        report.blame_full_disk();
    }
    report
}

/// Sweeps, and counts and writes down what was found, before and now; false
/// where it could not be written. At `network` refused files are in the report
/// alone.
fn sweep(
    end: &mut End,
    evidence: &Evidence,
    (before, due): (Vec<Swept>, Option<Due>),
    policy: &Resolved<Policy>,
) -> bool {
    let swept = [before, due.map(Due::finish).unwrap_or_default()].concat();
    end.note_swept(&swept);
    policy.audit().value < AuditLevel::Standard || evidence.swept(&swept).is_ok()
}

/// The command, after what kits do before it.
fn wrapped(setup: Option<&KitSetup>, command: Vec<OsString>) -> Vec<OsString> {
    match setup {
        Some(setup) => setup.wrap(command),
        None => command,
    }
}

/// What was written to layers that are gone with the run. They are let go of.
fn dropped(running: &Running, layers: &[(usize, PrivateLayer)]) -> Option<DroppedReport> {
    let dropped = running.take_dropped();
    let told = dropped.iter().filter_map(|(number, upper)| {
        let (_, layer) = layers.iter().find(|(own, _)| own == number)?;
        homes::dropped::look(upper, layer)
    });
    told.reduce(DroppedReport::and)
}

/// What kits and the host bring along into a sandbox.
pub(crate) struct Brought {
    /// Files for the sandbox's own directory.
    pub(crate) files: Vec<GivenFile>,
    /// The variables that name some of them.
    pub(crate) certificates: Vec<(&'static str, String)>,
    /// A name that the host does not have.
    pub(crate) alias: Option<Alias>,
}

impl Brought {
    pub(crate) fn along(policy: &Resolved<Policy>, setup: Option<KitSetup>, env: &HostEnv) -> Self {
        let alias = setup.as_ref().and_then(|setup| setup.alias(policy));
        let mut files = setup.map(KitSetup::given).unwrap_or_default();
        let rules = policy.environment();
        let certificates = HostCertificates::of(rules, &|name| env.variable(name));
        files.extend(certificates.given);
        Self {
            files,
            certificates: certificates.variables,
            alias,
        }
    }
}

/// An authority of its own, where TLS is intercepted.
pub(crate) fn trust_plan(policy: &Resolved<Policy>) -> Option<TrustPlan> {
    policy.intercepts().then_some(TrustPlan)
}

fn texts(words: &[OsString]) -> Vec<String> {
    let texts = words.iter().map(|word| word.to_string_lossy());
    texts.map(Cow::into_owned).collect()
}

/// Why a run that is on record has no known end.
fn unfinished(error: &RunError, running: &Running) -> &'static str {
    match error {
        _ if !running.has_begun() => NOT_STARTED,
        RunError::Egress(_)
        | RunError::Spawn(SpawnError::EnterNetwork(_) | SpawnError::Setup { .. }) => {
            "network-failed"
        }
        _ => "init-died",
    }
}

/// The home that the policy keeps, if it does, for this run alone.
/// What only a preset asks for is left out where it cannot be had: private is what holds otherwise.
fn kept_home(
    request: &RunRequest<'_>,
    judge: Judge,
) -> Result<(Option<HeldHome>, HomeReport), RunError> {
    let rule = &request.policy.filesystem().home;
    let mut report = HomeReport::of(rule);
    let HomeRule::Keep(name) = &rule.value else {
        return Ok((None, report));
    };
    let project = &request.working_folder;
    let is_of_preset = rule.origin.layer == LayerKind::Preset;
    let name = match name {
        Some(name) => name.clone(),
        None if is_of_preset => HomeName::of_preset(&rule.origin.name, project),
        None => HomeName::of_project(project),
    };
    let taken = match judge {
        Judge::Init => Homes::new(request.homes.clone()).take(&name, project),
        Judge::Nobody => Err(HomesError::Unjudged),
    };
    match taken {
        Ok(held) => {
            report.kept = Some(name.to_string());
            Ok((Some(held), report))
        }
        Err(error @ (HomesError::InUse { .. } | HomesError::Unjudged)) if is_of_preset => {
            report.not_kept = Some(error.to_string());
            Ok((None, report))
        }
        Err(error) => Err(error.into()),
    }
}

/// Where questions about hosts are put, if anybody is to be asked.
fn desk(request: &mut RunRequest<'_>) -> Result<Option<(Desk, Ask)>, RunError> {
    let Some(asking) = request.egress.asking.take() else {
        return Ok(None);
    };
    if request.policy.network_is_absent() {
        return Err(RunError::NothingToAsk);
    }
    // What is refused now may be allowed later.
    request.egress.intercept = Intercept::Always;
    let opened = Desk::open(asking);
    let errno = |error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    opened.map(Some).map_err(errno).map_err(RunError::Supervise)
}

/// The standard streams, as the policy and the judge of calls have them.
fn arranged(request: &RunRequest<'_>, judge: Judge) -> Result<Arranged, RunError> {
    let most_output = request.policy.limits().output.as_ref();
    let most_output = most_output.map(|size| size.value.bytes());
    arrange_streams(request.terminal)?
        .limited(most_output)
        .and_then(|arranged| arranged.judged_by(judge))
        .map_err(RunError::Supervise)
}

/// Copies through pipes what the command could open anew to change a file that
/// the view protects.
fn replace_protected_streams(plan: &mut Plan, outside: &mut Outside) -> Result<(), RunError> {
    let protected = plan.protected_streams();
    for at in (0..3).filter(|at| protected[*at]) {
        let theirs = outside.put_pipe(at).map_err(RunError::Supervise)?;
        plan.replace_stream(at, theirs);
    }
    Ok(())
}

/// When the policy ends a run that started then.
fn deadline(policy: &Resolved<Policy>, started: Instant) -> Option<Instant> {
    let limit = policy.limits().time.as_ref()?;
    started.checked_add(limit.value.as_duration())
}

/// A command that uses no network needs none, unless somebody changes the
/// policy meanwhile, and wants to know what became of that.
fn served_from(request: &EgressRequest) -> ServedFrom {
    if request.changes.is_some() {
        ServedFrom::Start
    } else {
        ServedFrom::FirstUse
    }
}

/// What the sources of secrets have to know, where there are any.
fn surroundings(
    policy: &Resolved<Policy>,
    host: &Host,
    plan: &Plan,
    working_folder: &Path,
    env: &HostEnv,
) -> Option<Surroundings> {
    if policy.credentials().is_empty() {
        return None;
    }
    // The working folder in any case: another run may have written there.
    let writable = plan.writable().chain([working_folder]);
    let masked = policy.filesystem().masked.iter();
    Some(Surroundings {
        home: host.home.clone(),
        path: env.variable("PATH"),
        writable: WritablePlaces::new(writable.map(Path::to_path_buf)),
        masked: masked.map(|file| file.path.clone()).collect(),
    })
}

/// A run while its sandbox is made.
struct Start<'a> {
    policy: &'a Resolved<Policy>,
    masks: Masks<'a>,
    command: &'a [String],
    working_folder: &'a Path,
    opening: Opening<'a>,
    evidence: &'a Evidence,
    due: Option<&'a mut Due>,
    /// Whether the start is on record, once that was tried.
    begun: Option<Result<(), EvidenceError>>,
}

impl Attendant for Start<'_> {
    /// Writes it down while the init is at work, which must not have a copy of
    /// the log's key.
    fn begin(&mut self, running: &Running) -> bool {
        if let Some(due) = &mut self.due {
            due.begin_now();
        }
        let begun = self.begun.get_or_insert_with(|| {
            self.evidence
                .begin(self.policy, self.command, self.working_folder, running)
        });
        begun.is_ok()
    }

    fn trust(&mut self) -> Option<Trust> {
        self.opening.trust()
    }

    fn masked(&mut self, path: &Path, services: &[String]) -> Option<Vec<u8>> {
        self.masks.shown(path, services)
    }

    fn prepare_to_serve(&mut self) -> bool {
        self.opening.prepare(self.evidence.recorder())
    }

    fn serve(&mut self, inlets: Inlets) -> bool {
        self.opening.serve(inlets)
    }
}

impl<'a> Start<'a> {
    /// What a sandbox that started goes with, or why it did not.
    fn finish(
        self,
        running: Result<Running, SpawnError>,
    ) -> Result<(Running, Option<Box<Outlet<'a>>>), RunError> {
        let is_begun = self.begun.transpose()?.is_some();
        let started = self.opening.finish(running);
        if started.is_err() && is_begun {
            self.evidence.abandon(NOT_STARTED);
        }
        started
    }
}

/// Looks at the standard streams and decides what becomes of each. A terminal
/// outside is never handed in: code inside could read what is typed into it
/// later, by others.
fn arrange_streams(wanted: Terminal) -> Result<Arranged, RunError> {
    let (input, output, error) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let streams = [
        ("standard input", input.as_fd()),
        ("standard output", output.as_fd()),
        ("standard error", error.as_fd()),
    ];
    for (stream, fd) in streams {
        refuse_way_out(stream, fd)?;
    }
    let are_terminals = streams.map(|(_, fd)| rustix::termios::isatty(fd));
    match wanted {
        Terminal::Never => Arranged::with_pipes(are_terminals).map_err(RunError::Supervise),
        Terminal::Always if !are_terminals.contains(&true) => Err(RunError::NoTerminal),
        Terminal::Always => Ok(Arranged::with_terminal([true; 3])),
        Terminal::Auto => Ok(Arranged::with_terminal(are_terminals)),
    }
}

/// A folder is a way round every mount: `openat` from it sees the host's own
/// tree (as in CVE-2024-21626). A socket belongs to the network that it was
/// made in: disconnected and connected anew, it leads anywhere from there.
fn refuse_way_out(stream: &'static str, fd: BorrowedFd<'_>) -> Result<(), RunError> {
    let status = rustix::fs::fstat(fd).map_err(|_| RunError::StreamClosed { stream })?;
    match FileType::from_raw_mode(status.st_mode) {
        FileType::Directory => Err(RunError::StreamIsFolder { stream }),
        FileType::Socket if !is_local_stream(fd) => Err(RunError::StreamIsSocket { stream }),
        _ => Ok(()),
    }
}

/// A connected pair on this machine, as many programs give their children.
fn is_local_stream(socket: BorrowedFd<'_>) -> bool {
    let is_unix = sockopt::socket_domain(socket).is_ok_and(|domain| domain == AddressFamily::UNIX);
    let kind = sockopt::socket_type(socket);
    let keeps_its_peer = kind.is_ok_and(|kind| kind != SocketType::DGRAM);
    is_unix && keeps_its_peer && rustix::net::getpeername(socket).is_ok()
}
