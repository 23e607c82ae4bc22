//! What the init inside tells the supervisor, and what it is told.
//!
//! Messages are small JSON texts, one per packet. The init is our own code,
//! but it lives inside: everything it says is read with limits.

use serde::{Deserialize, Serialize};

use crate::limits::{LimitHit, Usage};

/// The longest path or text of a refusal that is passed on, in characters.
const LONGEST_SUBJECT: usize = 1024;

/// From the init to the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    /// A step of building the sandbox failed; nothing was run.
    SetupFailed {
        /// The step.
        step: Step,
        /// The path it was about.
        path: Option<String>,
        /// The kernel's error number.
        errno: i32,
    },
    /// What covers are laid anew with comes along: the mount namespace, the root
    /// of what was made for the run, and the files of these numbers and names.
    Covers(Vec<(usize, String)>),
    /// Every layer is in place and the command is about to be executed. The
    /// master side of its terminal comes along if it has one.
    Started,
    /// The command's process is made next, and until it is the command nothing
    /// else is done.
    Starting,
    /// The command's process is about to execute it; its listener comes along
    /// if it has one.
    Restricted,
    /// The command could not be executed.
    ExecFailed {
        /// The kernel's error number.
        errno: i32,
    },
    /// The command wants to use its network, and waits until that is served.
    NetworkWanted,
    /// The command was stopped by a signal.
    Stopped,
    /// Something was refused for the first time.
    Refused(Refusal),
    /// How often a thing was refused in all.
    RefusedInAll(Refusal, u64),
    /// A limit was reached.
    LimitHit(LimitHit),
    /// What was written to the private layer of this number comes along, as a directory. Nothing
    /// else is alive inside.
    Layer(usize),
    /// The command and everything it started is gone.
    Ended(Ended),
}

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ended {
    /// Its exit status, if it ended by itself.
    pub status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The largest resident size of any process inside, in bytes.
    pub peak_rss: u64,
    /// Refusals that were not told one by one because there were too many.
    pub more_refusals: u64,
    /// The init ended it because its time was up.
    pub timed_out: bool,
    /// What was used.
    #[serde(default)]
    pub usage: Usage,
}

/// From the supervisor to the init.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Order {
    /// The ids of the sandbox are mapped.
    IdsMapped,
    /// Mounts made outside come along, for the overlays of these numbers.
    Mounts(Vec<usize>),
    /// The next of the late files come along.
    Files,
    /// All that the sandbox was to be given was given; go on.
    Proceed,
    /// A list of Landlock's rules that are left to make comes along, and those
    /// that are made.
    Ruleset,
    /// The start is on record, and the network is served, or will be once it is
    /// wanted.
    Recorded,
    /// The network that was wanted is served.
    NetworkServed,
    /// There is nothing to serve it with at the moment.
    NetworkLacking,
    /// Send this signal to the command and its process group.
    Signal(i32),
    /// Kill everything inside.
    KillAll,
    /// Stop everything inside.
    StopAll,
    /// Let everything inside go on.
    ContinueAll,
}

/// A thing that code inside tried and was refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// Files or network.
    pub kind: RefusalKind,
    /// What was tried.
    pub operation: Operation,
    /// The path or the address.
    pub subject: String,
    /// The rule that refused it.
    pub rule: String,
}

impl Refusal {
    /// A refusal with its subject cut to a length that fits a message.
    pub fn new(kind: RefusalKind, operation: Operation, subject: &str, rule: &str) -> Self {
        let subject = subject.chars().take(LONGEST_SUBJECT).collect();
        Self {
            kind,
            operation,
            subject,
            rule: rule.to_owned(),
        }
    }
}

/// The kind of thing refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalKind {
    /// Making or changing a file.
    File,
    /// Reaching an address.
    Network,
    /// Reaching a socket of the host.
    Socket,
}

/// What was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Operation {
    Write,
    Create,
    MakeFolder,
    Remove,
    Rename,
    Link,
    ChangeMode,
    Connect,
    Bind,
}

impl Operation {
    /// The word used in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Create | Self::MakeFolder => "create",
            Self::Remove => "remove",
            Self::Rename => "rename",
            Self::Link => "link",
            Self::ChangeMode => "change-mode",
            Self::Connect => "connect",
            Self::Bind => "bind",
        }
    }
}

/// A step of building the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Step {
    #[error("entering the control group that holds the limits")]
    Group,
    #[error("setting the limits of the command's process")]
    ProcessLimits,
    #[error("mapping user and group ids")]
    MapIds,
    #[error("taking on the mapped ids")]
    SetIds,
    #[error("tying the sandbox's life to its supervisor")]
    ParentDeath,
    #[error("making the view of the file system read-only")]
    ReadOnlyView,
    #[error("opening a folder of the view")]
    OpenPlace,
    #[error("checking that a folder is still the one that was looked at")]
    SamePlace,
    #[error("copying a mount")]
    CloneMount,
    #[error("attaching a mount")]
    AttachMount,
    #[error("making a mount read-only")]
    RestrictMount,
    #[error("laying a layer over the home directory")]
    HomeLayer,
    #[error("making a scratch file system")]
    Scratch,
    #[error("taking the files that are given after the start")]
    LateFiles,
    #[error("making the device folder")]
    Devices,
    #[error("mounting /proc")]
    Proc,
    #[error("changing the root folder")]
    PivotRoot,
    #[error("setting up the loopback interface")]
    Loopback,
    #[error("setting up the sockets that connections end at")]
    Inlets,
    #[error("opening the socket diagnostics")]
    SocketDiagnostics,
    #[error("making a fresh session keyring")]
    Keyring,
    #[error("setting no_new_privs")]
    NoNewPrivileges,
    #[error("opening a place for Landlock")]
    LandlockPlace,
    #[error("restricting files with Landlock")]
    Landlock,
    #[error("dropping capabilities")]
    Capabilities,
    #[error("opening a terminal")]
    Terminal,
    #[error("starting the command's process")]
    Fork,
    #[error("installing the system-call filter")]
    Filter,
    #[error("installing the system-call listener")]
    Listener,
    #[error("entering the working folder")]
    WorkingFolder,
    #[error("starting a session")]
    Session,
    #[error("closing inherited descriptors")]
    CloseDescriptors,
    #[error("talking to the supervisor")]
    Channel,
}
