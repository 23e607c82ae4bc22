//! The supervisor's side of a start: has the init born, maps its ids, makes
//! the mounts that need its rights, sets the network up, be it then or when it
//! is wanted, and waits for the word that all is in place.

mod error;

use std::cell::{Cell, OnceCell, RefCell};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ringfence_policy::AuditLevel;
use ringfence_sys::{self as sys, Channel, Child, Errno, NetworkNamespace, Received, Ring};
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;

pub use self::error::SpawnError;
use super::covers::Covers;
use super::given::{hand_over_pipes, mapped_trees};
use super::init::{self, Handed};
use super::landlock;
use super::late;
use super::network::{self, Ground, Interception};
use super::observations::{ObservationError, Observations};
use crate::cradle::Cradle;
use crate::judge::Judge;
use crate::limits::{HeldLimit, LimitHit, LimitPlan, Moment, Usage};
use crate::mappings::Mappings;
use crate::network::{Callers, Inlets};
use crate::observation::Observed;
use crate::plan::{Layer, LayerState, NetworkPlan, Plan};
use crate::trust::Trust;
use crate::view::Cover;
use crate::wire::{Event, Order};

/// Mounts that are handed in with one message.
const MOST_AT_ONCE: usize = 100;

/// A sandbox whose command has started.
#[derive(Debug)]
pub struct Running {
    init: Child,
    channel: Channel,
    terminal: Option<OwnedFd>,
    layers: Vec<LayerState>,
    /// The network, until somebody listens there.
    network: RefCell<Option<Offline>>,
    ground: Option<Arc<Ground>>,
    /// How that intercepts, from then on.
    interception: OnceCell<Interception>,
    judge: Judge,
    observations: Option<Observations>,
    /// Whether the command's process is the command, as far as we were told.
    has_begun: Cell<bool>,
    is_over: Cell<bool>,
    /// What was written to private copy-on-write layers, once all is over.
    dropped: RefCell<Vec<(usize, OwnedFd)>>,
    /// What covers are laid anew with, where the plan has any.
    covers: Option<Covers>,
    /// Goes last, with the group that holds the limits.
    limits: Arc<LimitPlan>,
}

/// The most private layers that the init may hand over.
const MOST_LAYERS: usize = 64;

/// A network in which nobody listens yet.
#[derive(Debug)]
struct Offline {
    namespace: NetworkNamespace,
    ground: Arc<Ground>,
    callers: Callers,
    /// What is listened on where the kernel cannot intercept every port.
    ports: Vec<u16>,
}

/// Who a sandbox is made for. Its command starts once everything here that is
/// called has returned true.
pub trait Attendant {
    /// The sandbox is being made, and nothing in it was run yet. No other is
    /// made after this was called, so that no init, which begins as a copy of
    /// this process, has a key or secret in its memory that is read here or
    /// later.
    fn begin(&mut self, running: &Running) -> bool;

    /// What programs inside trust, if the plan has it. No sandbox is made
    /// after this was called, so that no init, which begins as a copy of this
    /// process, has a key or secret in its memory that is made here or later.
    fn trust(&mut self) -> Option<Trust> {
        None
    }

    /// What the file at `path`, which has no links in it, shows inside, where
    /// the secrets of `services` in it must not be seen, or without services
    /// whatever may be a secret in a settings file. `None` when that
    /// cannot be told; then nothing is run. Called when [`Self::trust`] is.
    fn masked(&mut self, _path: &Path, _services: &[String]) -> Option<Vec<u8>> {
        None
    }

    /// Makes sure that the sandbox's network can be served. False when it
    /// cannot; then nothing is run.
    fn prepare_to_serve(&mut self) -> bool;

    /// Serves the sockets of the sandbox's network from now on. Not called where
    /// the plan has it served later: then it is asked for by
    /// [`Event::NetworkWanted`].
    fn serve(&mut self, inlets: Inlets) -> bool;
}

/// Starts the plan's command in a new sandbox, born in this cradle.
pub fn spawn(
    plan: &Plan,
    cradle: &Cradle,
    attendant: &mut dyn Attendant,
) -> Result<Running, SpawnError> {
    match start(plan, cradle, attendant) {
        Err(_) if plan.limits().lacked_memory() => Err(SpawnError::TooLittleMemory),
        other => other,
    }
}

fn start(
    plan: &Plan,
    cradle: &Cradle,
    attendant: &mut dyn Attendant,
) -> Result<Running, SpawnError> {
    let mut cradle = cradle.take().map_err(SpawnError::Clone)?;
    let (ours, theirs) = Channel::pair().map_err(SpawnError::Clone)?;
    let (callers, told) = plan
        .is_intercepted()
        .then(Channel::pair)
        .transpose()
        .map_err(SpawnError::Clone)?
        .unzip();
    let mut ring = (plan.audit_level() > AuditLevel::Off)
        .then(Ring::new)
        .transpose()
        .map_err(SpawnError::Clone)?;
    let mut our_ends = Some((ours, callers));
    let group = plan.limits().birthplace();
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let processes = rustix::fs::open("/proc", flags, Mode::empty()).ok();
    let born = cradle.bear(group, || {
        // These must be the supervisor's alone, or its death would not show.
        our_ends.take();
        let handed = Handed {
            supervisor: &theirs,
            callers: told,
            ring: ring.take(),
            processes,
        };
        init::run(plan, handed)
    });
    let init = born.map_err(SpawnError::Clone)?;
    drop(theirs);
    let (channel, callers) = our_ends.ok_or(SpawnError::InitDied)?;
    let mut running = Running {
        init,
        channel,
        terminal: None,
        layers: Vec::new(),
        network: RefCell::default(),
        ground: None,
        interception: OnceCell::new(),
        judge: plan.judge(),
        observations: ring
            .map(Ring::into_reader)
            .transpose()
            .map_err(SpawnError::Clone)?
            .map(Observations::new),
        has_begun: Cell::new(false),
        is_over: Cell::new(false),
        dropped: RefCell::default(),
        covers: None,
        limits: Arc::clone(plan.limits()),
    };
    // Lives until the sandbox has started, so that the processes behind the
    // mappings end meanwhile.
    let mut mappings = Mappings::new(plan.ids().map);
    if plan.ids().mapped_by_supervisor {
        running.map_ids(plan)?;
        running.give_places(plan, &mut mappings)?;
    }
    // Late files come first, and those are made after the next steps.
    if plan.late().is_empty() {
        running.give_ruleset(plan)?;
    }
    // Its holder has ended meanwhile, and is one more process of the sandbox's
    // user until it was waited for.
    cradle.end();
    running.layers = plan.layers();
    running.prepare_network(plan, &mut cradle, callers)?;
    if !attendant.begin(&running) {
        return Err(SpawnError::NotServed);
    }
    if !plan.late().is_empty() {
        running.give_files(&late::fill(plan.late(), attendant)?);
        running.give_ruleset(plan)?;
    }
    if plan.is_intercepted() && !running.is_served(plan, attendant)? {
        return Err(SpawnError::NotServed);
    }
    // An init that failed has said why, which is read next.
    let _ = running.order(&Order::Recorded, &[]);
    // While the command is loaded: time for what nobody waits for.
    running.limits.tidy();
    running.await_start()?;
    Ok(running)
}

/// What the init says, unless it is that it failed.
fn event_in(message: &[u8]) -> Result<Event, SpawnError> {
    match serde_json::from_slice(message) {
        Ok(Event::SetupFailed { step, path, errno }) => {
            let errno = Errno::from_raw_os_error(errno);
            Err(SpawnError::of_step(step, path, errno))
        }
        Ok(event) => Ok(event),
        Err(_) => Err(SpawnError::Protocol),
    }
}

impl Running {
    /// Maps the ids of the init, which has other work until then.
    fn map_ids(&self, plan: &Plan) -> Result<(), SpawnError> {
        sys::write_maps_of(self.init.pid, &plan.ids().map).map_err(SpawnError::MapIds)?;
        // An init that failed has said why, which is read next.
        let _ = self.order(&Order::IdsMapped, &[]);
        Ok(())
    }

    /// Hands in the mounts of places that must appear under another owner,
    /// while the init is at work already.
    fn give_places(&self, plan: &Plan, mappings: &mut Mappings) -> Result<(), SpawnError> {
        hand_over_pipes(plan)?;
        let trees: Vec<(usize, OwnedFd)> = mapped_trees(plan, mappings)?.into_iter().collect();
        // An init that failed has said why, which is read next.
        for some in trees.chunks(MOST_AT_ONCE) {
            let numbers = some.iter().map(|(number, _)| *number).collect();
            let descriptors: Vec<_> = some.iter().map(|(_, tree)| tree.as_fd()).collect();
            let _ = self.order(&Order::Mounts(numbers), &descriptors);
        }
        if plan.late().is_empty() {
            let _ = self.order(&Order::Proceed, &[]);
        }
        Ok(())
    }

    /// Begins with Landlock's rules, while the init builds the view that others
    /// of them are about.
    fn give_ruleset(&self, plan: &Plan) -> Result<(), SpawnError> {
        if let Some((left, ruleset)) = landlock::begin(plan).map_err(SpawnError::HandIn)? {
            let made = ruleset.as_ref().map(AsFd::as_fd);
            let descriptors: Vec<_> = [left.as_fd()].into_iter().chain(made).collect();
            // An init that failed has said why, which is read next.
            let _ = self.order(&Order::Ruleset, &descriptors);
        }
        Ok(())
    }

    /// Hands in the late files, which are the last that is given.
    fn give_files(&self, files: &[OwnedFd]) {
        // An init that failed has said why, which is read next.
        for some in files.chunks(MOST_AT_ONCE) {
            let descriptors: Vec<_> = some.iter().map(AsFd::as_fd).collect();
            let _ = self.order(&Order::Files, &descriptors);
        }
        let _ = self.order(&Order::Proceed, &[]);
    }

    /// Sets up of the network, where the plan has one, what has to be there before
    /// the command is.
    fn prepare_network(
        &mut self,
        plan: &Plan,
        cradle: &mut sys::Cradle,
        callers: Option<Channel>,
    ) -> Result<(), SpawnError> {
        let (NetworkPlan::Intercepted { ports, .. }, Some(callers)) = (plan.network(), callers)
        else {
            return Ok(());
        };
        let namespace = cradle.take_network().map_err(SpawnError::EnterNetwork)?;
        let ground = namespace.visit(network::prepare);
        let ground = Arc::new(ground.map_err(SpawnError::EnterNetwork)??);
        self.ground = Some(Arc::clone(&ground));
        self.network = RefCell::new(Some(Offline {
            namespace,
            ground,
            callers: Callers(callers),
            ports: ports.clone(),
        }));
        Ok(())
    }

    /// Sockets of the network that are readable when a name is asked for.
    pub fn questions(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let names = self.ground.iter().flat_map(|ground| &ground.names);
        names.map(AsFd::as_fd)
    }

    /// Has the network served, or made ready for when it is wanted.
    fn is_served(&self, plan: &Plan, attendant: &mut dyn Attendant) -> Result<bool, SpawnError> {
        Ok(attendant.prepare_to_serve()
            && (plan.network().is_awaited() || attendant.serve(self.open_network()?)))
    }

    /// Listens in the network, which can be done once; but after
    /// [`SpawnError::EnterNetwork`] it may be tried again. Nothing in it is served
    /// before somebody serves the sockets that come of it.
    pub fn open_network(&self) -> Result<Inlets, SpawnError> {
        let offline = self.network.take().ok_or(SpawnError::Protocol)?;
        let listen = || network::listen(&offline.ground, &offline.ports);
        let network = match offline.namespace.visit(listen) {
            Ok(network) => network?,
            Err(errno) => {
                self.network.replace(Some(offline));
                return Err(SpawnError::EnterNetwork(errno));
            }
        };
        let names = offline.ground.names.iter();
        let names = names.map(|socket| rustix::io::fcntl_dupfd_cloexec(socket, 0));
        // It is set once, as the network is.
        let _ = self.interception.set(network.interception);
        Ok(Inlets {
            transparent: network.transparent,
            proxies: network.proxies,
            names: names
                .collect::<Result<_, _>>()
                .map_err(SpawnError::EnterNetwork)?,
            callers: offline.callers,
        })
    }

    /// Says that the network cannot be served at the moment. Who waits for it has
    /// to try again.
    pub fn tell_network_is_lacking(&self) {
        // An init that is gone shows in the next event.
        let _ = self.order(&Order::NetworkLacking, &[]);
    }

    /// Says that the network is served, for which the command waits.
    pub fn tell_network_is_served(&self) {
        // An init that is gone shows in the next event.
        let _ = self.order(&Order::NetworkServed, &[]);
    }

    fn await_start(&mut self) -> Result<(), SpawnError> {
        let (event, mut descriptors) = loop {
            match self.next_of_start()? {
                (Event::Covers(named), descriptors) => {
                    let covers = Covers::take(self.covers.take(), named, descriptors);
                    self.covers = Some(covers.map_err(SpawnError::HandIn)?);
                }
                other => break other,
            }
        };
        match event {
            Event::Starting => {}
            Event::Started => self.has_begun.set(true),
            _ => return Err(SpawnError::Protocol),
        }
        self.terminal = descriptors.pop();
        Ok(())
    }

    /// What the init says while it starts.
    fn next_of_start(&self) -> Result<(Event, Vec<OwnedFd>), SpawnError> {
        let Ok(Received::Message(bytes, descriptors)) = self.channel.receive() else {
            return Err(SpawnError::InitDied);
        };
        Ok((event_in(&bytes)?, descriptors))
    }

    /// What of the limits was hit and not told before. Also tells when the init
    /// is gone, for which a lack of memory may be the reason.
    pub fn check_limits(&self) -> Vec<LimitHit> {
        let moment = if self.is_over.get() {
            Moment::AtEnd
        } else {
            Moment::Meanwhile
        };
        self.limits.check(moment)
    }

    /// How soon [`Self::check_limits`] has to be called again, if at all before
    /// the end.
    pub fn next_limit_check(&self) -> Option<Duration> {
        self.limits.next_check()
    }

    /// Every limit with what holds it, for when nothing was used yet.
    pub fn unused_limits(&self) -> Vec<HeldLimit> {
        self.limits.list_unused()
    }

    /// Every limit with what holds it and the most that was used, where a
    /// group or `inside` knows it.
    pub fn limits(&self, inside: &Usage) -> Vec<HeldLimit> {
        self.limits.list(inside)
    }

    /// The next event, if there is one. `Err` when the init is gone.
    pub fn next_event(&self) -> Result<Option<Event>, SpawnError> {
        let event = self.receive_event().map_err(|error| match error {
            error if self.has_begun.get() => error,
            _ if self.limits.lacked_memory() => SpawnError::TooLittleMemory,
            SpawnError::InitLost => SpawnError::InitDied,
            error => error,
        });
        let is_last = matches!(&event, Ok(Some(Event::Ended(_))) | Err(_));
        if is_last {
            // While we write down how it ended.
            sys::let_end_elsewhere(self.init.pid);
        }
        self.is_over.set(self.is_over.get() || is_last);
        event
    }

    fn receive_event(&self) -> Result<Option<Event>, SpawnError> {
        match self.channel.try_receive() {
            Ok(Received::Message(bytes, mut descriptors)) => {
                let event = event_in(&bytes)?;
                if let (Event::Layer(layer), Some(upper)) = (&event, descriptors.pop()) {
                    self.keep_dropped(*layer, upper);
                }
                self.has_begun
                    .set(self.has_begun.get() || event == Event::Started);
                Ok(Some(event))
            }
            Ok(Received::Nothing) => Ok(None),
            Ok(Received::Closed) | Err(_) => Err(SpawnError::InitLost),
        }
    }

    /// Of each layer once.
    fn keep_dropped(&self, layer: usize, upper: OwnedFd) {
        let mut dropped = self.dropped.borrow_mut();
        if dropped.len() < MOST_LAYERS && !dropped.iter().any(|(known, _)| *known == layer) {
            dropped.push((layer, upper));
        }
    }

    /// What was written to private layers, by their numbers, after the last event: directories
    /// that code inside made the content of. They are gone when these are closed.
    pub fn take_dropped(&self) -> Vec<(usize, OwnedFd)> {
        self.dropped.take()
    }

    /// Lays these covers of the plan on what is at their paths now, where they do
    /// not lie there any more.
    pub fn cover(&self, covers: &[&Cover]) -> Result<(), Errno> {
        self.covers.as_ref().ok_or(Errno::BADF)?.lay(covers)
    }

    /// Has the masked file of this number show these bytes. For a moment it may be
    /// seen half written.
    pub fn show(&self, number: usize, bytes: &[u8]) -> Result<(), Errno> {
        self.covers
            .as_ref()
            .ok_or(Errno::BADF)?
            .write(number, bytes)
    }

    /// Whether the init is at hand: until its process is the command, it waits
    /// for that, and does what it was told only then.
    pub fn has_begun(&self) -> bool {
        self.has_begun.get()
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

    /// Stops everything inside.
    pub fn stop_all(&self) {
        let _ = self.order(&Order::StopAll, &[]);
    }

    /// Lets everything inside go on.
    pub fn continue_all(&self) {
        let _ = self.order(&Order::ContinueAll, &[]);
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

    /// What was seen of calls inside since this was last asked, in order. Works
    /// also when the init is gone. Nothing when nothing is recorded.
    pub fn take_observations(&self) -> Result<Vec<Observed>, ObservationError> {
        self.observations
            .as_ref()
            .map_or(Ok(Vec::new()), Observations::take)
    }

    /// Calls that are only counted, since this was last asked.
    pub fn take_counts(&self) -> Vec<Observed> {
        self.observations
            .as_ref()
            .map(Observations::take_counts)
            .unwrap_or_default()
    }

    /// Readable when [`Self::take_observations`] is worth calling. A sandbox
    /// whose observations nobody takes is stopped, and ended after a while.
    pub fn observations_fd(&self) -> Option<BorrowedFd<'_>> {
        self.observations.as_ref().map(AsFd::as_fd)
    }

    /// The layers that hold, in order.
    pub fn layers(&self) -> Vec<LayerState> {
        let mut layers = self.layers.clone();
        let mut each = layers.iter_mut();
        if let Some(Interception::Ports(ports)) = self.interception.get()
            && let Some(network) = each.find(|state| state.layer == Layer::Network)
        {
            let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
            network.detail = format!(
                "without nf_tables: judged outside on ports {}, refused on others",
                ports.join(", ")
            );
        }
        layers
    }

    /// Who judges the command's calls.
    pub fn judge(&self) -> Judge {
        self.judge
    }

    fn order(&self, order: &Order, descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        let bytes = serde_json::to_vec(order).map_err(|_| Errno::INVAL)?;
        self.channel.send(&bytes, descriptors)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.init.signal(Signal::KILL);
        // While it ends.
        drop(self.observations.take());
        let _ = sys::reap_soon(self.init.pid);
    }
}
