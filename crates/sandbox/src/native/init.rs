//! The first process inside: builds the sandbox, restricts itself, and starts
//! the command. What it does from then on is its life.
//!
//! It runs nothing from the file system, holds no secret, and cannot be
//! traced or signalled from inside.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ringfence_sys::{self as sys, Channel, Errno, Pty, Received, Ring, SignalQueue};
use rustix::fs::{Mode, OFlags, Stat};
use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal};

use super::broker::{Broker, Networked, Roots};
use super::child::tell;
use super::copy_on_write::LaidLayers;
use super::desk::Desk;
use super::disk::Account;
use super::failure::{During, Failure};
use super::handover;
use super::landlock;
use super::life::{Life, Parts};
use super::mounts::{Built, Ground};
use super::observe::Observer;
use super::storage::Storage;
use super::watchdog::Watchdog;
use crate::limits::OomScore;
use crate::plan::Plan;
use crate::wire::{Event, Order, Step};

/// What the supervisor hands to the init.
pub(super) struct Handed<'a> {
    pub(super) supervisor: &'a Channel,
    pub(super) callers: Option<Channel>,
    pub(super) ring: Option<Ring>,
    /// The host's `/proc`, which is let go of at once.
    pub(super) processes: Option<OwnedFd>,
}

/// The whole life of the init; returns its exit status.
pub(super) fn run(plan: &Plan, handed: Handed<'_>) -> i32 {
    let supervisor = handed.supervisor;
    end_at_panics();
    match start(plan, handed) {
        Ok(life) => life.live(),
        Err(failure) => {
            let _ = tell(supervisor, &failure.event(), &[]);
            1
        }
    }
}

/// Ends without a signal to itself: the command's process, as long as it is in
/// our memory, would wait for us with it.
fn end_at_panics() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tell(panic);
        sys::exit_now(1);
    }));
}

fn start<'a>(plan: &'a Plan, handed: Handed<'a>) -> Result<Life<'a>, Failure> {
    let Handed {
        supervisor,
        callers,
        ring,
        processes,
    } = handed;
    // Before anything else: the starter's variables are no business of ours.
    sys::scrub_environment();
    plan.limits().enter_group().during(Step::Group)?;
    // Best effort: an init that is killed first is missed by the supervisor.
    let score = processes.and_then(|processes| OomScore::open(processes.as_fd()).ok());
    let kept = [
        callers.as_ref().map(AsFd::as_fd),
        score.as_ref().map(AsFd::as_fd),
    ];
    close_inherited(plan, supervisor, kept.into_iter().flatten(), ring.as_ref())?;
    let observer = Observer::new(plan, ring).during(Step::Channel)?;
    let sockets = sys::UnixDiag::open().during(Step::SocketDiagnostics)?;
    let ground = take_ids(plan, supervisor)?;
    // After the change of ids, which would clear it. A supervisor that died
    // before this shows as the end of its channel.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .during(Step::ParentDeath)?;
    let Built {
        mut layers,
        configurations,
        sources,
    } = ground.build(plan)?;
    if let Some(sources) = sources {
        sources.hand_over(supervisor).during(Step::Channel)?;
    }
    sys::join_fresh_session_keyring().during(Step::Keyring)?;
    let roots = Roots::open(plan.guard().roots()).during(Step::OpenPlace)?;
    give_up_rights(plan, supervisor, &layers)?;
    let pty = plan
        .wants_terminal()
        .then(Pty::open)
        .transpose()
        .during(Step::Terminal)?;
    let signals = SignalQueue::new(&[Signal::CHILD]).during(Step::Session)?;
    handover::restrict_init_early(plan)?;
    // Nothing inside may ever look into this process; `execve` takes this back
    // for the command.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).during(Step::Session)?;
    if let Some(pty) = &pty {
        lead_session(plan, pty)?;
    }
    let watchdog = Watchdog::new(plan.limits().watch).during(Step::Scratch)?;
    let dropped = std::mem::take(&mut layers.dropped);
    // As it is before anything is written.
    let storage = limited_storage(plan, layers)?;
    let streams = written_streams(plan)?;
    score.as_ref().map(OomScore::raise);
    // From then on it is its alone.
    let restore_score = || {
        score.as_ref().map(OomScore::restore);
    };
    let begun = handover::start_command(plan, supervisor, pty.as_ref(), &observer, restore_score)?;
    let listener = handover::hand_over(plan, &begun, pty.as_ref())?;
    let master = pty.as_ref().map(|pty| pty.master.as_fd());
    tell(supervisor, &Event::Started, master.as_slice()).during(Step::Channel)?;
    drop(pty);
    release_streams()?;
    let account = Account::open(storage).with_streams(streams);
    // While the command is loaded.
    plan.sensitive().sort();
    let seen = (observer, plan.sensitive());
    let network = Networked {
        callers,
        is_awaited: plan.network().is_awaited(),
    };
    let desk = match listener {
        Some(listener) => Desk::Open(Box::new(
            Broker::new(
                listener,
                (plan.guard(), plan.guarding(), plan.watch()),
                (roots, configurations),
                sockets,
                network,
                seen,
            )
            .with_account(account)
            .with_largest_file(plan.limits().process().file_size),
        )),
        None => Desk::Closed(account),
    };
    Ok(Life::new(Parts {
        supervisor,
        command: begun.process,
        from_command: begun.says,
        signals,
        desk,
        watchdog,
        dropped,
        time_limit: plan.time_limit(),
    }))
}

/// The private storage, and how many bytes may be added, where that is limited.
fn limited_storage(plan: &Plan, layers: LaidLayers) -> Result<Option<(u64, Storage)>, Failure> {
    let Some(limit) = plan.limits().watch.disk else {
        return Ok(None);
    };
    let storage = Storage::open().during(Step::Scratch)?;
    Ok(Some((limit, storage.with_layers(layers.private_devices))))
}

/// Standard streams that the command can write to, as they are before that,
/// where storage is limited.
fn written_streams(plan: &Plan) -> Result<Vec<(OwnedFd, Stat)>, Failure> {
    if plan.limits().watch.disk.is_none() {
        return Ok(Vec::new());
    }
    let look = |stream: BorrowedFd<'_>| {
        let is_written = rustix::fs::fcntl_getfl(stream)? & OFlags::ACCMODE != OFlags::RDONLY;
        let status = rustix::fs::fstat(stream)?;
        let copy = rustix::io::fcntl_dupfd_cloexec(stream, 3)?;
        Ok(is_written.then_some((copy, status)))
    };
    let looked: Result<Vec<_>, Errno> = plan.kept_streams().map(look).collect();
    let looked = looked.during(Step::Scratch)?;
    Ok(looked.into_iter().flatten().collect())
}

/// For this process and everything that it starts.
fn give_up_rights(plan: &Plan, supervisor: &Channel, layers: &LaidLayers) -> Result<(), Failure> {
    refuse_core_dumps()?;
    rustix::thread::set_no_new_privs(true).during(Step::NoNewPrivileges)?;
    landlock::restrict(plan, supervisor, layers)?;
    // The bounding set is empty since the namespaces were made.
    sys::keep_only_ptrace().during(Step::Capabilities)
}

/// Makes this process the leader of the terminal's session, so that the
/// command's process group has a parent in its session: only then may a
/// terminal stop it (Ctrl-Z).
fn lead_session(plan: &Plan, pty: &Pty) -> Result<(), Failure> {
    if let Some(size) = plan.terminal_size() {
        rustix::termios::tcsetwinsize(&pty.master, size).during(Step::Terminal)?;
    }
    rustix::process::setsid().during(Step::Session)?;
    sys::make_controlling(pty.slave.as_fd()).during(Step::Terminal)
}

/// Lets go of every descriptor that the caller of ringfence had open: a folder
/// among them would be a way round all mounts (as in CVE-2024-21626).
fn close_inherited<'a>(
    plan: &'a Plan,
    supervisor: &'a Channel,
    others: impl Iterator<Item = BorrowedFd<'a>>,
    ring: Option<&'a Ring>,
) -> Result<(), Failure> {
    let kept: Vec<_> = plan
        .given_streams()
        .chain([supervisor.as_fd()])
        .chain(others)
        .chain(ring.into_iter().flat_map(Ring::descriptors))
        .collect();
    sys::close_all_but(&kept).during(Step::CloseDescriptors)
}

/// Maps the ids, or waits until the supervisor, which has the right to map
/// others than its own, has done so; and prepares the ground of the view.
fn take_ids<'a>(plan: &Plan, supervisor: &'a Channel) -> Result<Ground<'a>, Failure> {
    let ids = plan.ids();
    let mut ground = if ids.mapped_by_supervisor {
        let mut ground = Ground::without_places()?;
        await_order(supervisor, &Order::IdsMapped).during(Step::MapIds)?;
        ground.wait_later(supervisor);
        rustix::thread::set_thread_groups(&[]).during(Step::SetIds)?;
        ground
    } else {
        // Before the files for it become read-only.
        sys::write_own_maps(&ids.map).during(Step::MapIds)?;
        Ground::with_places(plan.view())?
    };
    if !plan.late().is_empty() {
        ground.wait(supervisor).during(Step::LateFiles)?;
    }
    let uid = rustix::process::Uid::from_raw(ids.map.inside_uid);
    let gid = rustix::process::Gid::from_raw(ids.map.inside_gid);
    rustix::thread::set_keep_capabilities(true).during(Step::SetIds)?;
    rustix::thread::set_thread_res_gid(gid, gid, gid).during(Step::SetIds)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid).during(Step::SetIds)?;
    sys::raise_permitted_capabilities().during(Step::SetIds)?;
    Ok(ground)
}

/// Waits for the supervisor to say this.
pub(super) fn await_order(supervisor: &Channel, order: &Order) -> Result<(), Errno> {
    match supervisor.receive_soon()? {
        Received::Message(bytes, _)
            if serde_json::from_slice::<Order>(&bytes).is_ok_and(|said| said == *order) =>
        {
            Ok(())
        }
        _ => Err(Errno::PIPE),
    }
}

/// A core dump is written by the kernel past every rule here, or given to a
/// program of the host. A limit of one byte stops both (core(5)).
fn refuse_core_dumps() -> Result<(), Failure> {
    let most = rustix::process::getrlimit(Resource::Core)
        .maximum
        .unwrap_or(1)
        .min(1);
    let limit = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    rustix::process::setrlimit(Resource::Core, limit).during(Step::Session)
}

/// Lets go of the standard streams, so that only the command holds them.
fn release_streams() -> Result<(), Failure> {
    let null: OwnedFd =
        rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
            .during(Step::CloseDescriptors)?;
    rustix::stdio::dup2_stdin(&null)
        .and_then(|()| rustix::stdio::dup2_stdout(&null))
        .and_then(|()| rustix::stdio::dup2_stderr(&null))
        .during(Step::CloseDescriptors)
}
