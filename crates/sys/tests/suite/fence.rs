//! A process in namespaces of its own, and the test outside that holds the
//! descriptors it hands out.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use ringfence_sys::{self as sys, Channel, Errno, Families, Namespaces, Received};
use rustix::event::{PollFd, PollFlags};
use rustix::net::{AddressFamily, SocketType, sockopt};
use rustix::process::{Pid, Signal, WaitStatus};

/// After which nothing inside is alive, whatever went wrong.
const LIFE_SECONDS: u32 = 60;
/// What a test inside sends when it ended well.
const FINE: &[u8] = b"fine";

/// The process inside, seen from outside.
pub(crate) struct Fence {
    channel: Channel,
    pid: Pid,
}

/// The way out, seen from inside.
pub(crate) struct Inside<'a>(&'a Channel);

impl Fence {
    /// Runs `body`, with all capabilities, in new namespaces.
    pub(crate) fn start(body: impl FnOnce(&Inside<'_>)) -> Self {
        let (ours, theirs) = Channel::pair().unwrap();
        // SAFETY: this is `fork` of the C library, after which its allocator
        // works also in a child of many threads; the child uses no other lock.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            sys::exit_now(live(&theirs, body));
        }
        let pid = Pid::from_raw(pid).expect("fork");
        Self { channel: ours, pid }
    }

    /// Takes the descriptors that are handed out and calls `ready` with each
    /// that can be read from, until the process inside has ended, well.
    pub(crate) fn attend(self, mut ready: impl FnMut(BorrowedFd<'_>)) -> Vec<OwnedFd> {
        let handed = match self.channel.receive().unwrap() {
            Received::Message(bytes, handed) if bytes == b"handed out" => handed,
            other => panic!("inside: {}", words_of(other)),
        };
        while self.is_alive_after_waiting(&handed, &mut ready) {}
        assert_eq!(words_of(self.channel.receive().unwrap()), "fine");
        sys::reap(self.pid).unwrap();
        handed
    }

    fn is_alive_after_waiting(
        &self,
        handed: &[OwnedFd],
        ready: &mut impl FnMut(BorrowedFd<'_>),
    ) -> bool {
        let mut polled: Vec<_> = handed
            .iter()
            .map(OwnedFd::as_fd)
            .chain([self.channel.as_fd()])
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        rustix::event::poll(&mut polled, None).unwrap();
        let is_ready: Vec<_> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
        for (fd, _) in handed.iter().zip(&is_ready).filter(|(_, ready)| **ready) {
            ready(fd.as_fd());
        }
        // The last words are read when nothing else is left to attend to.
        is_ready.iter().filter(|ready| **ready).count() > 1 || !is_ready[handed.len()]
    }
}

fn words_of(received: Received) -> String {
    match received {
        Received::Message(bytes, _) => String::from_utf8(bytes).unwrap(),
        Received::Nothing | Received::Closed => "died".into(),
    }
}

impl Inside<'_> {
    /// Hands descriptors to the test outside and keeps none.
    pub(crate) fn hand_out(&self, handed: Vec<OwnedFd>) {
        let borrowed: Vec<_> = handed.iter().map(OwnedFd::as_fd).collect();
        self.0.send(b"handed out", &borrowed).unwrap();
        drop(handed);
    }
}

/// The life of the process between the test and the one in namespaces, which
/// has to have one thread to make them.
fn live(channel: &Channel, body: impl FnOnce(&Inside<'_>)) -> i32 {
    bound_life();
    // Descriptors of other tests, which run at the same time.
    sys::close_all_but(&[channel.as_fd()]).unwrap();
    let made = sys::spawn_in(Namespaces::ALL, || {
        bound_life();
        let outcome = catch_unwind(AssertUnwindSafe(|| body(&Inside(channel))));
        let words = match &outcome {
            Ok(()) => FINE,
            Err(panic) => message_of(panic.as_ref()).as_bytes(),
        };
        i32::from(channel.send(words, &[]).is_err())
    });
    let ended = made.and_then(|child| sys::reap(child.pid));
    match ended.map(WaitStatus::exit_status) {
        Ok(Some(0)) => 0,
        other => {
            let _ = channel.send(format!("{other:?}").as_bytes(), &[]);
            1
        }
    }
}

fn bound_life() {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).unwrap();
    // SAFETY: an integer only.
    unsafe { libc::alarm(LIFE_SECONDS) };
}

fn message_of(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("panicked")
}

/// Routes everything to `lo` and intercepts TCP; the listeners.
pub(crate) fn intercept() -> Vec<OwnedFd> {
    let families = sys::bring_anyip_up().unwrap();
    let listeners: Vec<_> = families
        .each()
        .iter()
        .map(|family| sys::transparent_listener(*family).unwrap())
        .collect();
    let port = |fd: &OwnedFd| sys::local_port(fd.as_fd()).unwrap();
    sys::intercept_tcp(port(&listeners[0]), listeners.get(1).map(port)).unwrap();
    listeners
}

/// Those of `addresses` that the namespace has the family of.
pub(crate) fn reachable(addresses: &[&str]) -> Vec<SocketAddr> {
    let addresses = addresses.iter().map(|address| address.parse().unwrap());
    let has_v6 = speaks_v6();
    addresses
        .filter(|address: &SocketAddr| has_v6 || address.is_ipv4())
        .collect()
}

/// Whether this machine has IPv6 and leaves it on for new namespaces.
pub(crate) fn speaks_v6() -> bool {
    let is_off = std::fs::read("/sys/module/ipv6/parameters/disable_ipv6");
    let socket = rustix::net::socket(AddressFamily::INET6, SocketType::STREAM, None);
    socket.is_ok() && is_off.is_ok_and(|text| text == b"0\n")
}

/// The families that [`sys::bring_anyip_up`] should find here.
pub(crate) fn expected_families() -> Families {
    if speaks_v6() {
        Families::Both
    } else {
        Families::V4Only
    }
}

/// Switches IPv6 off for `lo` when 1 is written to it.
pub(crate) const V6_SWITCH: &str = "/proc/sys/net/ipv6/conf/lo/disable_ipv6";

/// Has the kernel drop packets whose source it would not route back the way
/// they came, as distributions do; a new namespace takes it over.
pub(crate) fn check_sources_strictly() {
    std::fs::write("/proc/sys/net/ipv4/conf/all/rp_filter", "1").unwrap();
}

/// Accepts one connection, writes its destination as a line, gives back what
/// it reads, and says goodbye when the other side has finished.
pub(crate) fn echo(listener: BorrowedFd<'_>) {
    let listener = TcpListener::from(listener.try_clone_to_owned().unwrap());
    let (mut stream, _) = listener.accept().unwrap();
    let destination = stream.local_addr().unwrap();
    writeln!(stream, "{destination}").unwrap();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match stream.read(&mut buffer).unwrap() {
            0 => break,
            length => stream.write_all(&buffer[..length]).unwrap(),
        }
    }
    stream.write_all(b"goodbye").unwrap();
}

/// Connects, sends `hello`, finishes, and reads all there is.
pub(crate) fn converse(destination: SocketAddr) -> String {
    talk(connect(destination))
}

/// Connects with a bound on every later wait.
pub(crate) fn connect(destination: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(destination).expect("connect");
    stream
        .set_read_timeout(Some(Duration::from_secs(u64::from(LIFE_SECONDS) / 2)))
        .unwrap();
    stream
}

/// Sends `hello`, finishes, and reads all there is.
pub(crate) fn talk(mut stream: TcpStream) -> String {
    stream.write_all(b"hello ").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// What [`converse`] returns when `destination` was reached through [`echo`].
pub(crate) fn answer_of(destination: &SocketAddr) -> String {
    format!("{destination}\nhello goodbye")
}

/// Tries to bind a socket of this kind as someone would who wants to share or
/// steal a port.
pub(crate) fn steal(kind: SocketType, address: SocketAddr) -> Result<OwnedFd, Errno> {
    let socket = rustix::net::socket(address_family_of(&address), kind, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    rustix::net::bind(&socket, &address)?;
    Ok(socket)
}

/// What `connect` says without a listener to speak to.
pub(crate) fn failure_to_reach(destination: SocketAddr) -> Option<Errno> {
    let family = address_family_of(&destination);
    let socket = rustix::net::socket(family, SocketType::STREAM, None).unwrap();
    rustix::net::connect(&socket, &destination).err()
}

/// The unspecified address of the same family as `address`, with `port`.
pub(crate) fn any_address_beside(address: &SocketAddr, port: u16) -> SocketAddr {
    match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, port).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, port).into(),
    }
}

fn address_family_of(address: &SocketAddr) -> AddressFamily {
    match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    }
}
