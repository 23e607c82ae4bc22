//! The service of one sandbox: a thread that accepts, answers and relays.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use ringfence_audit::{ConnectionId, Process, Protocol, Recorder, Via};
use ringfence_policy::{Policy, Resolved, Target};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{
    UnboundedReceiver, UnboundedSender, WeakUnboundedSender, unbounded_channel,
};
use tokio::task::LocalSet;

use crate::attempt::Attempt;
use crate::callers::{Callers, Register};
use crate::dns::{Datagrams, Lookup, Lookups, NameServer, serve_datagrams};
use crate::exit::{Exit, Settings};
use crate::memory::Use;
use crate::proxy;
use crate::resolve::Resolver;
use crate::transparent;

/// Between looks at what was only counted.
const TICK: Duration = Duration::from_secs(1);
/// Before accepting again after the machine ran out of something.
const RESPITE: Duration = Duration::from_millis(50);

/// Sockets of the sandbox's network.
pub struct Inlets {
    /// TCP listeners; the local address of what they accept is where the
    /// client wanted to go.
    pub transparent: Vec<OwnedFd>,
    /// TCP listeners for clients that know of a proxy.
    pub proxies: Vec<OwnedFd>,
    /// UDP sockets for questions to a name server at any address.
    pub names: Vec<Box<dyn Datagrams + Send>>,
    /// Who connected.
    pub callers: Option<Box<dyn Callers + Send>>,
}

/// What the connections of one sandbox share.
pub(crate) struct World {
    pub(crate) exit: Rc<Exit>,
    pub(crate) name_server: NameServer,
    callers: Register,
    room: Arc<Semaphore>,
    last: Cell<u64>,
    used: Arc<AtomicBool>,
}

/// A thread that waits for something to serve.
pub struct Idle(mpsc::SyncSender<Work>);

type Work = Box<dyn FnOnce() + Send>;

impl Idle {
    /// Starts it, for which there may be too many already.
    pub fn new() -> io::Result<Self> {
        let (sender, work) = mpsc::sync_channel::<Work>(1);
        std::thread::Builder::new()
            .name("egress".to_owned())
            .spawn(move || {
                if let Ok(work) = work.recv() {
                    work();
                }
            })?;
        Ok(Self(sender))
    }

    /// Starts to serve. From here on the policy is in force.
    pub fn serve(
        self,
        inlets: Inlets,
        policy: Arc<Resolved<Policy>>,
        recorder: Arc<Recorder>,
        settings: Settings,
    ) -> Service {
        let (orders, coming) = unbounded_channel();
        let (all_written, written) = mpsc::channel();
        let used = Arc::new(AtomicBool::new(false));
        let noted = Arc::clone(&used);
        let work = move || {
            // Without it nothing is accepted, and so nothing leaves.
            let exit = || Exit::new(policy, recorder, Resolver::system(), settings);
            let _ = serve(inlets, coming, (all_written, noted), exit);
        };
        // It waits for this, and has room for it.
        let _ = self.0.send(Box::new(work));
        Service {
            orders: Some(orders),
            written,
            used,
        }
    }
}

/// A service at work. Letting go of it ends it, and with it every connection.
pub struct Service {
    orders: Option<UnboundedSender<Order>>,
    /// Closed once everything is written down.
    written: mpsc::Receiver<()>,
    /// Something came in, so that there may be something to write down.
    used: Arc<AtomicBool>,
}

/// Rounds in which connections come to their ends by themselves.
const LAST_ROUNDS: usize = 16;

enum Order {
    Replace(Arc<Resolved<Policy>>, mpsc::Sender<()>),
}

impl Service {
    /// A way to change its policy from elsewhere.
    pub fn handle(&self) -> Handle {
        Handle(self.orders.as_ref().map(UnboundedSender::downgrade))
    }
}

/// Changes the policy of a service for as long as it is at work.
#[derive(Clone)]
pub struct Handle(Option<WeakUnboundedSender<Order>>);

impl Handle {
    /// Puts another policy in force. When this returns every later connection
    /// is judged by it, and what it does not allow is cut.
    pub fn replace_policy(&self, policy: Arc<Resolved<Policy>>) {
        let orders = self.0.as_ref().and_then(WeakUnboundedSender::upgrade);
        let (done, when_done) = mpsc::channel();
        let sent = orders.is_some_and(|orders| orders.send(Order::Replace(policy, done)).is_ok());
        if sent {
            // A service that ended lets nothing out.
            let _ = when_done.recv();
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.orders.take();
        // Its connections close while we go on; nothing comes of them any more.
        if self.used.load(Ordering::Acquire) {
            let _ = self.written.recv();
        }
    }
}

fn serve(
    inlets: Inlets,
    orders: UnboundedReceiver<Order>,
    (all_written, used): (mpsc::Sender<()>, Arc<AtomicBool>),
    exit: impl FnOnce() -> Exit,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    let local = LocalSet::new();
    local.block_on(&runtime, async {
        let world = World::new(exit(), inlets.callers, used)?;
        for listener in inlets.transparent {
            accept_from(listener, &world, Kind::Transparent)?;
        }
        for listener in inlets.proxies {
            accept_from(listener, &world, Kind::Proxy)?;
        }
        for socket in inlets.names {
            let server = world.name_server.clone();
            tokio::task::spawn_local(serve_datagrams(socket, server));
        }
        obey(orders, &world.exit).await;
        // What clients said last is still heard, so that it is written down:
        // between two rounds the runtime looks at every socket.
        for _ in 0..LAST_ROUNDS {
            tokio::task::yield_now().await;
        }
        world.exit.finish();
        drop(all_written);
        Ok(())
    })
}

async fn obey(mut orders: UnboundedReceiver<Order>, exit: &Exit) {
    let mut tick = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            order = orders.recv() => match order {
                Some(Order::Replace(policy, done)) => {
                    exit.replace_policy(policy);
                    let _ = done.send(());
                }
                None => return,
            },
            _ = tick.tick() => exit.tick(),
        }
    }
}

impl World {
    fn new(
        exit: Exit,
        callers: Option<Box<dyn Callers + Send>>,
        used: Arc<AtomicBool>,
    ) -> io::Result<Rc<Self>> {
        let exit = Rc::new(exit);
        let lookups = Rc::new(Noted {
            exit: Rc::clone(&exit),
            last: RefCell::default(),
        });
        Ok(Rc::new(Self {
            name_server: NameServer::new(Rc::clone(exit.names()), lookups),
            room: Arc::new(Semaphore::new(exit.limits().connections)),
            callers: Register::new(callers.map(|callers| callers as Box<dyn Callers>))?,
            last: Cell::new(0),
            used,
            exit,
        }))
    }

    fn next_connection(&self) -> ConnectionId {
        self.last.set(self.last.get() + 1);
        ConnectionId(self.last.get())
    }
}

/// Writes down lookups of names that are not allowed.
struct Noted {
    exit: Rc<Exit>,
    last: RefCell<Option<Attempt>>,
}

impl Lookups for Noted {
    fn looked_up(&self, lookup: &Lookup<'_>) -> io::Result<()> {
        let attempt = Attempt {
            connection: ConnectionId(0),
            via: Via::Dns,
            process: None,
            target: Target::Name(lookup.name.clone()),
            port: 443,
            spoken: Protocol::Dns,
            http: None,
        };
        let noted = self.exit.note_lookup(&attempt);
        *self.last.borrow_mut() = Some(attempt);
        noted.map_err(io::Error::other)
    }

    fn too_many_names(&self, most: usize) {
        if let Some(attempt) = &*self.last.borrow() {
            let phrase = format!("more than {most} names were looked up");
            self.exit.refuse(attempt, "name-table-full", &phrase);
        }
    }
}

/// What kind of clients a listener has.
#[derive(Clone, Copy)]
enum Kind {
    Transparent,
    Proxy,
}

fn accept_from(listener: OwnedFd, world: &Rc<World>, kind: Kind) -> io::Result<()> {
    let listener = std::net::TcpListener::from(listener);
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let world = Rc::clone(world);
    tokio::task::spawn_local(async move {
        loop {
            match listener.accept().await {
                Ok((client, peer)) => {
                    world.used.store(true, Ordering::Release);
                    // More than there is room for wait, but for this one, in
                    // the kernel's queue.
                    let Ok(place) = Arc::clone(&world.room).acquire_owned().await else {
                        return;
                    };
                    let room = world.exit.memory().take(Use::Connection).await;
                    let world = Rc::clone(&world);
                    tokio::task::spawn_local(async move {
                        let process = world.callers.process_at(peer).await;
                        attend(client, process, world, kind).await;
                        drop((place, room));
                    });
                }
                Err(_) => tokio::time::sleep(RESPITE).await,
            }
        }
    });
    Ok(())
}

async fn attend(client: TcpStream, process: Option<Process>, world: Rc<World>, kind: Kind) {
    // Small answers must not wait for more to come.
    let _ = client.set_nodelay(true);
    let connection = world.next_connection();
    match kind {
        Kind::Transparent => transparent::serve(client, connection, process, world).await,
        Kind::Proxy => {
            proxy::serve(client, connection, process, Rc::clone(&world.exit)).await;
        }
    }
}
