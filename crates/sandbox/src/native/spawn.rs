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
use crate::network::{Callers, Inlet, Inlets, Interception};
use crate::plan::{Layer, LayerState, Plan};
use crate::view::{Content, Place};
use crate::wire::{Event, Order, Step};

/// Mounts that are handed in with one message.
const MOST_AT_ONCE: usize = 100;

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
    /// The kernel cannot intercept every port.
    #[error("cannot intercept every port: {0}")]
    NoInterception(Errno),
    /// Nobody serves the sockets of its network.
    #[error("the sandbox's network is not served")]
    NotServed,
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
            Self::NoInterception(_) | Self::NotServed => "egress-unavailable",
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

/// Serves the sockets of a sandbox's network from now on. Its command starts
/// once this has returned true.
pub type Serve<'a> = &'a mut dyn FnMut(Inlets) -> bool;

/// Starts the plan's command in a new sandbox.
pub fn spawn(mut plan: Plan, serve: Serve<'_>) -> Result<Running, SpawnError> {
    loop {
        match start(&plan, serve) {
            Err(SpawnError::NoIdMappedMounts { .. }) if plan.may_run_with_own_id() => {
                plan.use_own_id();
            }
            Err(SpawnError::NoInterception(_)) => plan.listen_singly(),
            other => return other,
        }
    }
}

fn start(plan: &Plan, serve: Serve<'_>) -> Result<Running, SpawnError> {
    let (ours, theirs) = Channel::pair().map_err(SpawnError::Clone)?;
    let (callers, told) = plan
        .is_intercepted()
        .then(Channel::pair)
        .transpose()
        .map_err(SpawnError::Clone)?
        .unzip();
    let mut our_ends = Some((ours, callers));
    let init = sys::spawn_in(Namespaces::ALL_BUT_NETWORK, || {
        // These must be the supervisor's alone, or its death would not show.
        our_ends.take();
        init::run(plan, &theirs, told)
    })
    .map_err(SpawnError::Clone)?;
    drop(theirs);
    let (channel, callers) = our_ends.ok_or(SpawnError::InitDied)?;
    let mut running = Running {
        init,
        channel,
        terminal: None,
        layers: plan.layers(),
    };
    // Lives until the sandbox has started, so that the processes behind the
    // mappings end meanwhile.
    let mut mappings = Mappings::new(plan.ids().map);
    if plan.ids().mapped_by_supervisor {
        running.give_ids(plan, &mut mappings)?;
    }
    if let Some(callers) = callers {
        running.await_network(Callers(callers), serve)?;
    }
    running.await_start()?;
    Ok(running)
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

/// Leads every connection to the sandbox's listeners, one for each family.
fn intercept(inlets: &Inlets, rules: BorrowedFd<'_>) -> Result<(), Errno> {
    let port = |at: usize| {
        let listener = inlets.transparent.get(at);
        listener
            .map(|listener| sys::local_port(listener.as_fd()))
            .transpose()
    };
    let port_v4 = port(0)?.ok_or(Errno::INVAL)?;
    sys::intercept_tcp_over(rules, port_v4, port(1)?)
}

/// What the supervisor serves, and what it sets the rules with.
fn sorted(
    kinds: Vec<Inlet>,
    descriptors: Vec<OwnedFd>,
    callers: Callers,
) -> (Inlets, Option<OwnedFd>) {
    let mut rules = None;
    let mut inlets = Inlets {
        transparent: Vec::new(),
        proxies: Vec::new(),
        names: Vec::new(),
        callers,
    };
    for (kind, descriptor) in kinds.into_iter().zip(descriptors) {
        match kind {
            Inlet::Transparent => inlets.transparent.push(descriptor),
            Inlet::Proxy => inlets.proxies.push(descriptor),
            Inlet::Names => inlets.names.push(descriptor),
            Inlet::Rules => rules = Some(descriptor),
        }
    }
    (inlets, rules)
}

impl Running {
    /// Maps the sandbox's ids and hands in the mounts of places that must
    /// appear under another owner, while the init is at work already.
    fn give_ids(&self, plan: &Plan, mappings: &mut Mappings) -> Result<(), SpawnError> {
        sys::write_maps_of(self.init.pid, &plan.ids().map).map_err(SpawnError::MapIds)?;
        hand_over_pipes(plan)?;
        let trees: Vec<(usize, OwnedFd)> = mapped_trees(plan, mappings)?.into_iter().collect();
        // An init that failed has said why, which is read next.
        for some in trees.chunks(MOST_AT_ONCE) {
            let numbers = some.iter().map(|(number, _)| *number).collect();
            let descriptors: Vec<_> = some.iter().map(|(_, tree)| tree.as_fd()).collect();
            let _ = self.order(&Order::Mounts(numbers), &descriptors);
        }
        let _ = self.order(&Order::Proceed, &[]);
        Ok(())
    }

    /// Takes the sockets of the network and has them served.
    fn await_network(&mut self, callers: Callers, serve: Serve<'_>) -> Result<(), SpawnError> {
        let (event, descriptors) = self.next_of_start()?;
        let Event::Network {
            inlets,
            interception,
        } = event
        else {
            return Err(SpawnError::Protocol);
        };
        self.note_interception(interception);
        let (inlets, rules) = sorted(inlets, descriptors, callers);
        if let Some(rules) = rules {
            intercept(&inlets, rules.as_fd()).map_err(SpawnError::NoInterception)?;
        }
        if !serve(inlets) {
            return Err(SpawnError::NotServed);
        }
        // An init that failed has said why, which is read next.
        let _ = self.order(&Order::Served, &[]);
        Ok(())
    }

    fn await_start(&mut self) -> Result<(), SpawnError> {
        let (Event::Started, mut descriptors) = self.next_of_start()? else {
            return Err(SpawnError::Protocol);
        };
        self.terminal = descriptors.pop();
        Ok(())
    }

    /// What the init says while it starts.
    fn next_of_start(&self) -> Result<(Event, Vec<OwnedFd>), SpawnError> {
        let Ok(Received::Message(bytes, descriptors)) = self.channel.receive() else {
            return Err(SpawnError::InitDied);
        };
        match serde_json::from_slice(&bytes) {
            Ok(Event::SetupFailed { step, path, errno }) => Err(SpawnError::Setup {
                step,
                path,
                errno: Errno::from_raw_os_error(errno),
            }),
            Ok(event) => Ok((event, descriptors)),
            Err(_) => Err(SpawnError::Protocol),
        }
    }

    fn note_interception(&mut self, interception: Interception) {
        let Interception::Ports(ports) = interception else {
            return;
        };
        let network = self
            .layers
            .iter_mut()
            .find(|state| state.layer == Layer::Network);
        if let Some(state) = network {
            let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
            state.detail = format!(
                "without nf_tables: judged outside on ports {}, refused on others",
                ports.join(", ")
            );
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
        let _ = self.order(&Order::Signal(number), &[]);
    }

    /// Kills everything inside; the end still comes as an event.
    pub fn kill_all(&self) {
        let _ = self.order(&Order::KillAll, &[]);
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

    fn order(&self, order: &Order, descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        let bytes = serde_json::to_vec(order).map_err(|_| Errno::INVAL)?;
        self.channel.send(&bytes, descriptors)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.init.signal(Signal::KILL);
        let _ = sys::reap(self.init.pid);
    }
}
