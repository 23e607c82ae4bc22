//! The supervisor's side of a start: makes the mounts that need its rights,
//! clones the init, maps its ids, and waits for the word that all is in place.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use ringfence_sys::{
    self as sys, Channel, Child, Errno, IdMap, IdMapping, MountFlags, Namespaces, Received,
};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Gid, Signal, Uid};

use super::init;
use super::mounts::GivenTrees;
use crate::plan::{LayerState, Plan};
use crate::view::{Content, Place};
use crate::wire::{Event, Order, Step};

/// Why a sandbox did not start. Nothing was run.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The process could not be made.
    #[error("cannot make a process in new namespaces: {0}")]
    Clone(Errno),
    /// A step inside failed.
    #[error("{step} failed{}: {errno}", .path.as_deref().map(|path| format!(" at {path}")).unwrap_or_default())]
    Setup {
        /// The step.
        step: Step,
        /// What it was about.
        path: Option<String>,
        /// The kernel's answer.
        errno: Errno,
    },
    /// A folder's file system cannot show files under another owner.
    #[error("{} is on a file system without id-mapped mounts", .path.display())]
    NoIdMappedMounts {
        /// The folder.
        path: PathBuf,
    },
    /// A folder could not be prepared.
    #[error("cannot prepare {}: {errno}", .path.display())]
    Prepare {
        /// The folder.
        path: PathBuf,
        /// The kernel's answer.
        errno: Errno,
    },
    /// The ids of the new user namespace could not be mapped.
    #[error("cannot map user and group ids: {0}")]
    MapIds(Errno),
    /// The channel to the init broke.
    #[error("the sandbox's first process ended before it was ready")]
    InitDied,
    /// The init died while the command ran, and everything with it.
    #[error("the sandbox's first process died while the command ran, and the command with it")]
    InitLost,
    /// It said something that makes no sense.
    #[error("the sandbox's first process sent an unreadable message")]
    Protocol,
}

impl SpawnError {
    /// A stable name for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Clone(_) => "namespaces-unavailable",
            Self::Setup {
                step: Step::Proc, ..
            } => "proc-unavailable",
            Self::Setup { .. } => "setup-failed",
            Self::NoIdMappedMounts { .. } => "no-id-mapped-mounts",
            Self::Prepare { .. } => "folder-unusable",
            Self::MapIds(_) => "ids-unavailable",
            Self::InitDied | Self::InitLost | Self::Protocol => "init-died",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoIdMappedMounts { .. } => {
                "run as an ordinary user, or accept that root's own id is behind the sandbox: --weaker host-root"
            }
            Self::InitLost => "look for an out-of-memory kill in the kernel's log: dmesg",
            Self::Prepare { .. } => "check that the folder exists and that you may read it",
            _ => "see what this machine can enforce, and the fix: ringfence doctor",
        }
    }
}

/// A sandbox whose command has started.
#[derive(Debug)]
pub struct Running {
    init: Child,
    channel: Channel,
    terminal: Option<OwnedFd>,
    layers: Vec<LayerState>,
}

/// Starts the plan's command in a new sandbox.
pub fn spawn(mut plan: Plan) -> Result<Running, SpawnError> {
    // Lives until the sandbox has started, so that the processes behind the
    // mappings end meanwhile.
    let mut mappings = Mappings::new(plan.ids().map);
    let given = prepare(&mut plan, &mut mappings)?;
    let (ours, theirs) = Channel::pair().map_err(SpawnError::Clone)?;
    let mut supervisor_end = Some(ours);
    let init = sys::spawn_in(Namespaces::ALL, || {
        // This end must be the supervisor's alone, or its death would not show.
        supervisor_end.take();
        init::run(&plan, given, &theirs)
    })
    .map_err(SpawnError::Clone)?;
    drop(theirs);
    let channel = supervisor_end.ok_or(SpawnError::InitDied)?;
    let mut running = Running {
        init,
        channel,
        terminal: None,
        layers: plan.layers(),
    };
    if plan.ids().mapped_by_supervisor {
        sys::write_maps_of(running.init.pid, &plan.ids().map).map_err(SpawnError::MapIds)?;
        running
            .order(Order::Proceed)
            .map_err(|_| SpawnError::InitDied)?;
    }
    running.await_start()?;
    Ok(running)
}

/// Makes the mounts of places that must appear under another owner.
fn prepare(plan: &mut Plan, mappings: &mut Mappings) -> Result<GivenTrees, SpawnError> {
    if !plan.ids().mapped_by_supervisor {
        return Ok(GivenTrees::new());
    }
    hand_over_pipes(plan)?;
    match mapped_trees(plan, mappings) {
        Err(SpawnError::NoIdMappedMounts { .. }) if plan.may_run_with_own_id() => {
            plan.use_own_id();
            Ok(GivenTrees::new())
        }
        other => other,
    }
}

/// The sandbox's host id must be able to open its own pipes by name, as
/// `/dev/stdin`. A pipe without a name belongs to nobody else.
fn hand_over_pipes(plan: &Plan) -> Result<(), SpawnError> {
    let map = plan.ids().map;
    let (uid, gid) = (
        Uid::from_raw(map.outside_uid),
        Gid::from_raw(map.outside_gid),
    );
    let (input, output, error) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let streams = [input.as_fd(), output.as_fd(), error.as_fd()];
    for fd in streams.into_iter().chain(plan.given_streams()) {
        let name = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
        let is_pipe =
            name.is_ok_and(|name| name.as_os_str().as_encoded_bytes().starts_with(b"pipe:"));
        if is_pipe {
            rustix::fs::fchown(fd, Some(uid), Some(gid)).map_err(SpawnError::MapIds)?;
        }
    }
    Ok(())
}

fn mapped_trees(plan: &Plan, mappings: &mut Mappings) -> Result<GivenTrees, SpawnError> {
    let mut trees = GivenTrees::new();
    for (index, overlay) in plan.view().overlays.iter().enumerate() {
        let (place, flags) = match &overlay.content {
            Content::Writable(place) => (place, MountFlags::PLAIN),
            Content::Shown(place) => (place, MountFlags::READ_ONLY),
            _ => continue,
        };
        let mapping = mappings
            .for_owner(place.owner)
            .map_err(SpawnError::MapIds)?;
        trees.insert(index, mapped_tree(place, flags, mapping)?);
    }
    Ok(trees)
}

/// User namespaces that give one owner's files to the sandbox.
struct Mappings {
    sandbox: IdMap,
    made: Vec<((u32, u32), IdMapping)>,
}

impl Mappings {
    fn new(sandbox: IdMap) -> Self {
        Self {
            sandbox,
            made: Vec::new(),
        }
    }

    fn for_owner(&mut self, owner: (u32, u32)) -> Result<BorrowedFd<'_>, Errno> {
        let known = self.made.iter().position(|(known, _)| *known == owner);
        let at = if let Some(at) = known {
            at
        } else {
            let map = IdMap {
                inside_uid: owner.0,
                inside_gid: owner.1,
                ..self.sandbox
            };
            self.made.push((owner, IdMapping::new(&map)?));
            self.made.len() - 1
        };
        Ok(self.made[at].1.as_fd())
    }
}

fn mapped_tree(
    place: &Place,
    flags: MountFlags,
    mapping: BorrowedFd<'_>,
) -> Result<OwnedFd, SpawnError> {
    let unusable = |errno| SpawnError::Prepare {
        path: place.path.clone(),
        errno,
    };
    let opened = open_same(place).map_err(unusable)?;
    // Everything below if it can all be mapped, else the place alone: what
    // is mounted below it then does not show.
    for recursive in [true, false] {
        let tree = sys::clone_tree(opened.as_fd(), recursive).map_err(unusable)?;
        sys::set_mount_attributes(tree.as_fd(), flags).map_err(unusable)?;
        match sys::set_id_mapping(tree.as_fd(), mapping, recursive) {
            Ok(()) => return Ok(tree),
            Err(Errno::INVAL | Errno::PERM) => {}
            Err(errno) => return Err(unusable(errno)),
        }
    }
    Err(SpawnError::NoIdMappedMounts {
        path: place.path.clone(),
    })
}

fn open_same(place: &Place) -> Result<OwnedFd, Errno> {
    let opened = rustix::fs::openat2(
        rustix::fs::CWD,
        &place.path,
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
        rustix::fs::ResolveFlags::NO_SYMLINKS | rustix::fs::ResolveFlags::NO_MAGICLINKS,
    )?;
    let status = rustix::fs::fstat(&opened)?;
    if crate::view::FileId::of_stat(&status) == place.id {
        Ok(opened)
    } else {
        Err(Errno::STALE)
    }
}

impl Running {
    fn await_start(&mut self) -> Result<(), SpawnError> {
        match self.channel.receive() {
            Ok(Received::Message(bytes, mut descriptors)) => match serde_json::from_slice(&bytes) {
                Ok(Event::Started) => {
                    self.terminal = descriptors.pop();
                    Ok(())
                }
                Ok(Event::SetupFailed { step, path, errno }) => Err(SpawnError::Setup {
                    step,
                    path,
                    errno: Errno::from_raw_os_error(errno),
                }),
                _ => Err(SpawnError::Protocol),
            },
            _ => Err(SpawnError::InitDied),
        }
    }

    /// The next event, if there is one. `Err` when the init is gone.
    pub fn next_event(&self) -> Result<Option<Event>, SpawnError> {
        match self.channel.try_receive() {
            Ok(Received::Message(bytes, _)) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|_| SpawnError::Protocol),
            Ok(Received::Nothing) => Ok(None),
            Ok(Received::Closed) | Err(_) => Err(SpawnError::InitLost),
        }
    }

    /// Sends a signal to the command and its process group.
    pub fn signal(&self, number: i32) {
        // An init that is gone shows in the next event.
        let _ = self.order(Order::Signal(number));
    }

    /// Kills everything inside; the end still comes as an event.
    pub fn kill_all(&self) {
        let _ = self.order(Order::KillAll);
    }

    /// Kills the init, and with it, by the kernel, everything inside.
    pub fn kill_init(&self) {
        let _ = self.init.signal(Signal::KILL);
    }

    /// The master side of the command's terminal, if it has one.
    pub fn terminal(&self) -> Option<BorrowedFd<'_>> {
        self.terminal.as_ref().map(AsFd::as_fd)
    }

    /// Readable when [`Self::next_event`] has something.
    pub fn events(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }

    /// The layers that hold, in order.
    pub fn layers(&self) -> &[LayerState] {
        &self.layers
    }

    fn order(&self, order: Order) -> Result<(), Errno> {
        let bytes = serde_json::to_vec(&order).map_err(|_| Errno::INVAL)?;
        self.channel.send(&bytes, &[])
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.init.signal(Signal::KILL);
        let _ = sys::reap(self.init.pid);
    }
}
