//! A connection to a bus, every wait of which ends at one moment.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use ringfence_sys::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};

use super::message::{Call, Kind, Message, PREAMBLE};
use super::wire::{Malformed, Writer};

/// More than a line of the handshake needs.
const LONGEST_LINE: usize = 512;
/// The bus itself.
const BUS: Call<'static> = Call {
    destination: "org.freedesktop.DBus",
    path: "/org/freedesktop/DBus",
    interface: "org.freedesktop.DBus",
    member: "",
};

/// Why a bus, or somebody on it, did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BusError {
    #[error("cannot connect to the bus: {0}")]
    Connect(Errno),
    #[error("cannot talk to the bus: {0}")]
    Transfer(io::Error),
    #[error("the bus does not take us for who we are")]
    Unauthenticated,
    #[error("a message of the bus is malformed: {0}")]
    Malformed(#[from] Malformed),
    #[error("refused with {0}")]
    Refused(String),
    #[error("there was no answer in time")]
    Late,
}

/// The moment at which waiting ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    pub(crate) fn after(time: Duration) -> Self {
        Self(Instant::now() + time)
    }

    fn left(self) -> Result<Duration, BusError> {
        let left = self.0.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left).ok_or(BusError::Late)
    }
}

/// A connection that the bus has given a name to.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: UnixStream,
    deadline: Deadline,
    serial: u32,
    name: String,
}

impl Connection {
    /// Connects to the bus at `path` as this process's user.
    pub(crate) fn open(path: &Path, deadline: Deadline) -> Result<Self, BusError> {
        let stream = UnixStream::from(connect(path).map_err(BusError::Connect)?);
        stream.set_nonblocking(false).map_err(BusError::Transfer)?;
        let mut bus = Self {
            stream,
            deadline,
            serial: 0,
            name: String::new(),
        };
        bus.authenticate()?;
        let hello = bus.call_bus("Hello", "", Writer::default())?;
        let answer = bus.reply_to(hello)?;
        answer.read("s")?.text()?.clone_into(&mut bus.name);
        Ok(bus)
    }

    /// The id of this process as the bus sees it: another one if the bus is in
    /// another pid namespace, or if somebody stands between.
    pub(crate) fn own_pid(&mut self) -> Result<u32, BusError> {
        let mut body = Writer::default();
        body.text(&self.name);
        let asked = self.call_bus("GetConnectionUnixProcessID", "s", body)?;
        Ok(self.reply_to(asked)?.read("u")?.number()?)
    }

    /// Calls a method of the bus itself.
    pub(crate) fn call_bus(
        &mut self,
        member: &str,
        signature: &str,
        body: Writer,
    ) -> Result<u32, BusError> {
        self.send(Call { member, ..BUS }.with(signature, body))
    }

    /// Sends a message, and says its number, which the reply to it names.
    pub(crate) fn send(&mut self, mut message: Message) -> Result<u32, BusError> {
        self.serial += 1;
        message.serial = self.serial;
        self.write(&message.encode())?;
        Ok(self.serial)
    }

    /// The reply to the message with this number, if it is not an error. What
    /// comes before it is nobody's.
    pub(crate) fn reply_to(&mut self, serial: u32) -> Result<Message, BusError> {
        loop {
            let message = self.next()?;
            match (message.kind, message.header.reply_to) {
                (Kind::Reply, Some(number)) if number == serial => return Ok(message),
                (Kind::Error, Some(number)) if number == serial => {
                    let name = message.header.error.ok_or(Malformed::Field)?;
                    return Err(BusError::Refused(name));
                }
                _ => {}
            }
        }
    }

    /// The next message of any kind.
    pub(crate) fn next(&mut self) -> Result<Message, BusError> {
        let mut bytes = vec![0; PREAMBLE];
        self.fill(&mut bytes)?;
        bytes.resize(Message::length(&bytes)?, 0);
        self.fill(&mut bytes[PREAMBLE..])?;
        Ok(Message::decode(&bytes)?)
    }

    /// SASL's mechanism EXTERNAL: who we are, the kernel tells the bus.
    fn authenticate(&mut self) -> Result<(), BusError> {
        let id = rustix::process::geteuid().as_raw().to_string();
        // In hexadecimal: the digits of ASCII are 0x30 to 0x39.
        let digits: String = id.chars().flat_map(|digit| ['3', digit]).collect();
        self.write(format!("\0AUTH EXTERNAL {digits}\r\n").as_bytes())?;
        if !self.line()?.starts_with(b"OK ") {
            return Err(BusError::Unauthenticated);
        }
        self.write(b"BEGIN\r\n")
    }

    /// A line of the handshake, after which the bus waits for us.
    fn line(&mut self) -> Result<Vec<u8>, BusError> {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            if line.len() == LONGEST_LINE {
                return Err(Malformed::Size.into());
            }
            let mut byte = [0];
            self.fill(&mut byte)?;
            line.extend(byte);
        }
        Ok(line)
    }

    fn fill(&mut self, mut bytes: &mut [u8]) -> Result<(), BusError> {
        while !bytes.is_empty() {
            let left = Some(self.deadline.left()?);
            self.stream.set_read_timeout(left).map_err(failed)?;
            match self.stream.read(bytes) {
                Ok(0) => return Err(failed(io::ErrorKind::UnexpectedEof.into())),
                Ok(count) => bytes = &mut bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(())
    }

    fn write(&mut self, mut bytes: &[u8]) -> Result<(), BusError> {
        while !bytes.is_empty() {
            let left = Some(self.deadline.left()?);
            self.stream.set_write_timeout(left).map_err(failed)?;
            match rustix::net::send(&self.stream, bytes, SendFlags::NOSIGNAL) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failed(errno.into())),
            }
        }
        Ok(())
    }
}

/// Without waiting where too many others do already.
fn connect(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

fn failed(error: io::Error) -> BusError {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => BusError::Late,
        _ => BusError::Transfer(error),
    }
}
