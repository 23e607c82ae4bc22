//! The plan of one sandbox: everything decided, nothing done yet but for the
//! control group that holds its limits, which is gone with the plan, and the
//! mapping of the ids in its cradle.
//!
//! Building a plan fails on whatever this machine or this version cannot
//! enforce, unless the operator named the weaker form.

mod alias;
mod aside;
mod copy_on_write;
mod covers;
mod drawing;
mod entries;
mod error;
mod explain;
mod files;
mod ids;
mod late;
mod layout;
mod listing;
mod missing;
mod network;
mod own;
mod streams;

use std::ffi::{CString, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ringfence_policy::{AuditLevel, GuardMode, Policy, Resolved};
use rustix::termios::Winsize;
use serde::{Deserialize, Serialize};

pub use self::alias::Alias;
use self::aside::Aside;
pub(crate) use self::copy_on_write::LayerGrants;
use self::drawing::{Drawing, DrawingRequest};
pub use self::error::PlanError;
pub use self::explain::{
    GuardAnswer, PathAccess, PathAnswer, PathExplainer, PathQuestion, PathReason,
};
use self::files::Missing;
pub use self::files::PRIVATE_FOLDERS;
pub(crate) use self::ids::Ids;
pub(crate) use self::late::{LateFile, LateFiles};
pub(crate) use self::layout::Grant;
use self::layout::Grants;
pub(crate) use self::network::NetworkPlan;
pub use self::network::{Intercept, ServedFrom};
pub use self::own::GivenFile;
use self::streams::Protected;
use crate::cradle::Cradle;
use crate::environment::{self, Identity};
use crate::guard::Guard;
use crate::guarding::Guarding;
use crate::host::Host;
use crate::judge::Judge;
use crate::limits::LimitPlan;
use crate::mount_table::MountTable;
use crate::native::{Prepared, Watch, can_be_mapped};
use crate::proxy::{self, ProxyUser};
use crate::sensitive::SensitivePlaces;
use crate::survey::UserGit;
use crate::sweep::Sweeper;
use crate::trust::{self, TrustPlan};
use crate::view::{Cover, PrivateLayer, View};

/// An argument vector, never a shell's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command(Vec<CString>);

impl Command {
    /// The program and its arguments. Fails without a program or with a NUL.
    pub fn new(words: impl IntoIterator<Item = OsString>) -> Result<Self, PlanError> {
        let words: Result<Vec<_>, _> = words
            .into_iter()
            .map(|word| CString::new(word.into_vec()))
            .collect();
        match words {
            Ok(words) if words.first().is_some_and(|program| !program.is_empty()) => {
                Ok(Self(words))
            }
            Ok(_) => Err(PlanError::NoCommand),
            Err(_) => Err(PlanError::NulInCommand),
        }
    }
}

/// Weaker forms that the operator accepts by name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weaker {
    /// Root's own id may be behind the sandbox where id-mapped mounts are missing.
    pub host_root: bool,
    /// Run without Landlock where the kernel has none.
    pub no_landlock: bool,
    /// Run with nothing of the host writable, and with calls unjudged and
    /// unseen, where somebody else has the listener.
    pub no_listener: bool,
    /// Run although limits of the policy are not enforced.
    pub no_limits: bool,
}

/// What becomes of a standard stream.
#[derive(Debug)]
pub enum Stream {
    /// It is handed in as it is. Never a terminal.
    Keep,
    /// It becomes the sandbox's own terminal.
    Terminal,
    /// It is replaced by this.
    Given(OwnedFd),
}

/// What a plan is made from.
pub struct PlanRequest<'a> {
    /// The policy that holds.
    pub policy: &'a Resolved<Policy>,
    /// The machine.
    pub host: &'a Host,
    /// What to run.
    pub command: Command,
    /// Where to run it.
    pub working_folder: &'a Path,
    /// What the environment inside is made from.
    pub environment: Vec<(OsString, OsString)>,
    /// Looks up a variable outside, none of which goes in by this: where the
    /// user's own programs find their configuration.
    pub outside: &'a dyn Fn(&str) -> Option<OsString>,
    /// What becomes of the standard streams.
    pub streams: [Stream; 3],
    /// The size of the sandbox's own terminal.
    pub terminal_size: Option<Winsize>,
    /// Files in a writable folder that are ours, such as the report.
    pub untouchable: Vec<PathBuf>,
    /// Accepted weaker forms.
    pub weaker: Weaker,
    /// Who judges the command's calls.
    pub judge: Judge,
    /// When connections are intercepted.
    pub intercept: Intercept,
    /// From when on they are, at the latest.
    pub served_from: ServedFrom,
    /// What clients of the loopback proxies show, in the variables that tell
    /// of them.
    pub proxy_user: ProxyUser,
    /// Asks for an authority of its own that programs inside trust. Without
    /// connections that are intercepted there is nothing to trust it for.
    pub trust: Option<TrustPlan>,
    /// Files for the sandbox's own folder, `/run/ringfence`.
    pub given: Vec<GivenFile>,
    /// A name that the host does not have.
    pub alias: Option<Alias>,
    /// Variables that name files of certificates among them, unless an
    /// authority of its own is trusted.
    pub certificates: Vec<(&'static str, String)>,
    /// Where the sandbox is to be born.
    pub cradle: &'a Cradle,
    /// Where the layer over the home directory is kept, if it is.
    pub kept_home: Option<&'a Path>,
    /// What the policy's managed variables hold inside.
    pub stand_ins: Vec<(String, String)>,
}

/// One layer of enforcement and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerState {
    /// Which.
    pub layer: Layer,
    /// Whether it holds.
    pub applied: bool,
    /// How, in a few words.
    pub detail: String,
}

/// The layers of the native backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Layer {
    Namespaces,
    HostId,
    View,
    ProtectedNames,
    Landlock,
    Seccomp,
    Capabilities,
    Network,
    Limits,
}

impl Layer {
    /// The word used in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::HostId => "host-id",
            Self::View => "view",
            Self::ProtectedNames => "protected-names",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::Capabilities => "capabilities",
            Self::Network => "network",
            Self::Limits => "limits",
        }
    }
}

/// Everything a backend needs, decided.
#[derive(Debug)]
pub struct Plan {
    ids: Ids,
    view: View,
    guard: Arc<Guard>,
    guarding: Guarding,
    watch: Watch,
    network: NetworkPlan,
    late: LateFiles,
    covers: Vec<Cover>,
    landlock: Option<Grants>,
    environment: Vec<CString>,
    command: Command,
    working_folder: PathBuf,
    streams: [Stream; 3],
    terminal_size: Option<Winsize>,
    umask: u32,
    time_limit: Option<Duration>,
    judge: Judge,
    landlock_abi: u32,
    limits: Arc<LimitPlan>,
    audit: AuditLevel,
    sensitive: SensitivePlaces,
    prepared: Prepared,
}

impl Plan {
    /// Makes the plan, or says what cannot be enforced here.
    pub fn build(request: PlanRequest<'_>) -> Result<Self, PlanError> {
        let policy = request.policy;
        check_landlock(&request)?;
        let level = match request.judge {
            Judge::Init => policy.audit().value,
            Judge::Nobody => AuditLevel::Off,
        };
        let network = planned_network(&request);
        // Before the next, beside which it must not be changed.
        let umask = current_umask();
        let mut ids = Ids::choose(request.host);
        let mounts = MountTable::read();
        // Waited for at the end. When something else fails, what was made there
        // is gone again.
        let aside = Aside::start(&request, &mounts);
        let trust = request.trust.filter(|_| network.is_intercepted());
        let draw = |ids: &Ids| {
            Drawing::make(DrawingRequest {
                policy,
                host: request.host,
                working_folder: request.working_folder,
                untouchable: request.untouchable.clone(),
                judge: request.judge,
                missing: Missing::Make,
                kept_home: request.kept_home,
                given: request.given.clone(),
                alias: request.alias.clone(),
                trust,
                network: &network,
                ids,
                mounts: &mounts,
                user_git: UserGit::of(&request.host.home, request.outside),
            })
        };
        let mut drawing = draw(&ids)?;
        // What has to be hidden, and what is whose, depends on the id.
        if request.weaker.host_root && !can_be_mapped(&drawing.view, &ids) {
            ids.use_own_id();
            drawing = draw(&ids)?;
        }
        let Drawing {
            files,
            guard,
            view,
            late,
            covers,
            made,
            layers,
        } = drawing;
        let guarding = choose_guarding(policy, level, &guard);
        let watch = Watch::new(guarding, has_file_stream(&request.streams));
        let has_terminal = wants_terminal(&request.streams);
        let prepared =
            Prepared::new(level, request.judge, watch, has_terminal).map_err(PlanError::Filters)?;
        let sensitive = files.sensitive(policy.filesystem());
        let identity = Identity {
            home: &request.host.home,
            working_folder: &files.working_folder,
            user: ids.mapped_by_supervisor.then_some(ids::USER_NAME),
        };
        let is_hopeless =
            policy.network_is_closed() && request.intercept == Intercept::UnlessAbsent;
        let mut variables = proxy_variables(&network, request.proxy_user, is_hopeless);
        variables.extend(request.certificates);
        if trust.is_some() {
            trust::tell(&mut variables);
        }
        let environment = environment::build(
            policy.environment(),
            request.environment,
            &identity,
            variables,
            request.stand_ins,
        );
        let limits = aside.finish()?.judged_by(request.judge);
        // The plan is made.
        request.cradle.wake();
        Ok(Self {
            environment,
            late,
            covers,
            view,
            network,
            landlock_abi: request.host.landlock_abi,
            working_folder: files.working_folder.clone(),
            landlock: (request.host.landlock_abi > 0).then(|| Grants::new(files, made, layers)),
            ids,
            guard: Arc::new(guard),
            guarding,
            watch,
            command: request.command,
            streams: request.streams,
            terminal_size: request.terminal_size,
            umask,
            time_limit: policy
                .limits()
                .time
                .as_ref()
                .map(|time| time.value.as_duration()),
            judge: request.judge,
            audit: level,
            sensitive,
            limits: Arc::new(limits),
            prepared,
        })
    }

    /// The layers as planned.
    pub(crate) fn layers(&self) -> Vec<LayerState> {
        let state = |layer, applied, detail: String| LayerState {
            layer,
            applied,
            detail,
        };
        let landlock = match &self.landlock {
            Some(grants) => {
                let count = grants.rules().len();
                format!("ABI {}, {count} rules", self.landlock_abi)
            }
            None => "not in this kernel; accepted by --weaker landlock".to_owned(),
        };
        vec![
            state(
                Layer::Namespaces,
                true,
                "user, mount, pid, network, ipc, uts, cgroup".into(),
            ),
            state(Layer::HostId, !self.ids.is_host_root(), self.ids.describe()),
            state(
                Layer::View,
                true,
                format!("{} mounts on a read-only root", self.view.overlays.len()),
            ),
            state(Layer::ProtectedNames, true, self.protection().into()),
            state(Layer::Landlock, self.landlock.is_some(), landlock),
            state(Layer::Seccomp, true, self.filtering().into()),
            state(
                Layer::Capabilities,
                true,
                "none, empty bounding set, no_new_privs".into(),
            ),
            state(Layer::Network, true, self.network.describe().into()),
            state(
                Layer::Limits,
                self.limits.all_hold(),
                self.limits.describe(),
            ),
        ]
    }

    fn protection(&self) -> &'static str {
        match (self.judge, self.guarding) {
            (Judge::Init, Guarding::Full) => {
                "read-only mounts, every call that changes names carried out by the init, and a sweep"
            }
            (Judge::Init, Guarding::Live) => {
                "read-only mounts, calls that make names carried out by the init, and a sweep"
            }
            (Judge::Init, Guarding::Sweep) => "read-only mounts, and a sweep",
            (Judge::Nobody, _) => "nothing of the host is writable",
        }
    }

    fn filtering(&self) -> &'static str {
        match self.judge {
            Judge::Init => "hardening filter, and a listener for name-changing calls",
            Judge::Nobody => {
                "hardening filter, no Unix sockets; the listener is another sandbox's, accepted by --weaker listener"
            }
        }
    }

    pub(crate) fn ids(&self) -> &Ids {
        &self.ids
    }

    /// The layers whose changes are gone with the run, by their numbers.
    pub fn private_layers(&self) -> Vec<(usize, PrivateLayer)> {
        self.view.private_layers()
    }

    /// What has to be laid anew when the host replaces what it lies on, see
    /// [`Running::cover`](crate::Running::cover).
    pub fn covers(&self) -> &[Cover] {
        &self.covers
    }

    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    pub(crate) fn guard(&self) -> &Guard {
        &self.guard
    }

    /// What looks at the writable directories when the run is over.
    pub fn sweeper(&self) -> Option<Sweeper> {
        let is_needed = self.judge == Judge::Init && !self.guard.roots().is_empty();
        is_needed.then(|| Sweeper::new(Arc::clone(&self.guard)))
    }

    /// How closely names are watched.
    pub(crate) fn guarding(&self) -> Guarding {
        self.guarding
    }

    /// Which calls reach the init.
    pub(crate) fn watch(&self) -> Watch {
        self.watch
    }

    /// The places of the host that the policy makes writable, without links,
    /// also where nobody judges and nothing is.
    pub fn writable(&self) -> impl Iterator<Item = &Path> {
        self.guard.roots().iter().map(PathBuf::as_path)
    }

    /// Whether the sandbox has sockets that somebody has to serve.
    pub fn is_intercepted(&self) -> bool {
        self.network.is_intercepted()
    }

    pub(crate) fn late(&self) -> &LateFiles {
        &self.late
    }

    pub(crate) fn limits(&self) -> &Arc<LimitPlan> {
        &self.limits
    }

    pub(crate) fn judge(&self) -> Judge {
        self.judge
    }

    /// How much is seen of the command's calls.
    pub(crate) fn audit_level(&self) -> AuditLevel {
        self.audit
    }

    pub(crate) fn sensitive(&self) -> &SensitivePlaces {
        &self.sensitive
    }

    pub(crate) fn network(&self) -> &NetworkPlan {
        &self.network
    }

    pub(crate) fn landlock(&self) -> Option<&Grants> {
        self.landlock.as_ref()
    }

    pub(crate) fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    pub(crate) fn environment(&self) -> &[CString] {
        &self.environment
    }

    pub(crate) fn program(&self) -> &CString {
        &self.command.0[0]
    }

    pub(crate) fn arguments(&self) -> &[CString] {
        &self.command.0
    }

    pub(crate) fn working_folder(&self) -> &Path {
        &self.working_folder
    }

    pub(crate) fn umask(&self) -> u32 {
        self.umask
    }

    pub(crate) fn time_limit(&self) -> Option<Duration> {
        self.time_limit
    }

    pub(crate) fn streams(&self) -> &[Stream; 3] {
        &self.streams
    }

    /// Which streams are files that the view protects. They must be replaced.
    pub fn protected_streams(&self) -> [bool; 3] {
        let mut protected = Protected::new(&self.view, self.landlock.is_some());
        let own = [
            rustix::stdio::stdin(),
            rustix::stdio::stdout(),
            rustix::stdio::stderr(),
        ];
        let is_kept = self
            .streams
            .each_ref()
            .map(|stream| matches!(stream, Stream::Keep));
        [0, 1, 2].map(|at| is_kept[at] && protected.has(own[at]))
    }

    /// Hands in another stream.
    pub fn replace_stream(&mut self, at: usize, stream: OwnedFd) {
        if let Some(place) = self.streams.get_mut(at) {
            *place = Stream::Given(stream);
        }
    }

    pub(crate) fn given_streams(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.streams.iter().filter_map(|stream| match stream {
            Stream::Given(fd) => Some(fd.as_fd()),
            _ => None,
        })
    }

    /// What the command's standard streams are where they are handed in, be it
    /// our own.
    pub(crate) fn kept_streams(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        kept_streams(&self.streams)
    }

    pub(crate) fn terminal_size(&self) -> Option<Winsize> {
        self.terminal_size
    }

    pub(crate) fn wants_terminal(&self) -> bool {
        wants_terminal(&self.streams)
    }
}

fn current_umask() -> u32 {
    let mask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    rustix::process::umask(mask);
    mask.as_raw_mode()
}

fn wants_terminal(streams: &[Stream; 3]) -> bool {
    let is_terminal = |stream: &Stream| matches!(stream, Stream::Terminal);
    streams.iter().any(is_terminal)
}

/// As closely as is needed: storage that is counted and calls that are recorded
/// have to be seen, and what was not surveyed has to be guarded call by call.
fn choose_guarding(policy: &Resolved<Policy>, level: AuditLevel, guard: &Guard) -> Guarding {
    let is_counted = policy.limits().disk.is_some();
    if is_counted
        || level >= AuditLevel::Security
        || guard.has_patterns()
        || !guard.survey().is_complete
    {
        return Guarding::Full;
    }
    match policy.filesystem().guard.value {
        GuardMode::Live => Guarding::Live,
        GuardMode::Sweep => Guarding::Sweep,
    }
}

/// Whether a file of the host is handed in, whose mode is not the sandbox's to
/// change.
fn has_file_stream(streams: &[Stream; 3]) -> bool {
    kept_streams(streams).any(|stream| {
        rustix::fs::fstat(stream).is_ok_and(|status| {
            rustix::fs::FileType::from_raw_mode(status.st_mode) == rustix::fs::FileType::RegularFile
        })
    })
}

fn kept_streams(streams: &[Stream; 3]) -> impl Iterator<Item = BorrowedFd<'_>> {
    let own = [
        rustix::stdio::stdin(),
        rustix::stdio::stdout(),
        rustix::stdio::stderr(),
    ];
    let kept = streams.iter().zip(own).map(|(stream, own)| match stream {
        Stream::Keep => Some(own),
        Stream::Terminal => None,
        Stream::Given(fd) => Some(fd.as_fd()),
    });
    kept.flatten()
}

/// What tells of the proxies, where there are any; `is_hopeless` where nothing
/// can ever be allowed.
fn proxy_variables(
    network: &NetworkPlan,
    user: ProxyUser,
    is_hopeless: bool,
) -> Vec<(&'static str, String)> {
    if !network.is_intercepted() {
        return Vec::new();
    }
    let mut variables = proxy::variables(user);
    if is_hopeless {
        proxy::tell_hopeless(&mut variables);
    }
    variables
}

fn planned_network(request: &PlanRequest<'_>) -> NetworkPlan {
    let served_from = match request.judge {
        Judge::Init => request.served_from,
        // There is nobody who could let a connection wait.
        Judge::Nobody => ServedFrom::Start,
    };
    NetworkPlan::choose(request.policy, request.intercept, served_from)
}

fn check_landlock(request: &PlanRequest<'_>) -> Result<(), PlanError> {
    if request.host.landlock_abi > 0 {
        return Ok(());
    }
    match request.judge {
        _ if !request.weaker.no_landlock => Err(PlanError::NoLandlock),
        Judge::Nobody => Err(PlanError::NoLandlockNorListener),
        Judge::Init => Ok(()),
    }
}
