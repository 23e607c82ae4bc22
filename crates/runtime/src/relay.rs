//! Between the user's terminal and the command's streams.
//!
//! A terminal outside is never handed in. The command gets a terminal of its
//! own, or pipes, and what goes through is copied here, as long as this
//! process has the terminal. Output that is limited goes through pipes as well,
//! to be counted, and so do files and sockets of the host where nobody judges
//! what the command does with them.

mod arranged;

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use ringfence_sys::{Errno, RawMode};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::net::SendFlags;

pub(crate) use self::arranged::{Arranged, Outside};

/// Bytes moved at a time; small enough that a write to a terminal that was
/// found ready does not stand still for long, and that one to a pipe does not
/// at all (`PIPE_BUF`).
const CHUNK: usize = 4096;

/// Copies from the command's streams to the user's terminal and back.
pub(crate) struct Relay<'a> {
    /// Where the user types, and where that goes.
    keyboard: Option<(BorrowedFd<'a>, Sink<'a>)>,
    /// A file or a socket that the command reads from by a pipe.
    feed: Option<Screen<'a>>,
    /// Where the command's words come from and go to.
    screens: Vec<Screen<'a>>,
    raw: Option<RawMode<'a>>,
    /// The master of the command's terminal and the terminal whose size it has.
    terminal: Option<(BorrowedFd<'a>, BorrowedFd<'a>)>,
    output: Output,
}

/// What the command wrote, as far as it is limited.
#[derive(Debug, Clone, Copy, Default)]
struct Output {
    most: Option<u64>,
    seen: u64,
}

impl Output {
    /// Counts a chunk; how much of it may still be shown.
    fn count(&mut self, length: usize) -> usize {
        let left = self.most.map(|most| most.saturating_sub(self.seen));
        self.seen = self
            .seen
            .saturating_add(u64::try_from(length).unwrap_or(u64::MAX));
        left.map_or(length, |left| {
            usize::try_from(left).unwrap_or(length).min(length)
        })
    }
}

enum Sink<'a> {
    Master(BorrowedFd<'a>),
    Pipe(OwnedFd),
}

enum Source<'a> {
    Master(BorrowedFd<'a>),
    Pipe(OwnedFd),
    Given(BorrowedFd<'a>),
}

struct Screen<'a> {
    /// `None` once there is nothing more to come, or nobody to show it to.
    from: Option<Source<'a>>,
    to: Reader<'a>,
    /// What was read and not written yet.
    chunk: Vec<u8>,
}

/// Where the command's words go. Whoever reads there may stop reading; writing
/// never waits for that, so that limits and signals are attended to.
enum Reader<'a> {
    /// A terminal or a pipe, opened anew: that it does not wait is not to
    /// change what others have open.
    Own(OwnedFd),
    Socket(BorrowedFd<'a>),
    /// A file, which does not wait.
    Given(BorrowedFd<'a>),
}

impl<'a> Reader<'a> {
    fn of(stream: BorrowedFd<'a>) -> Self {
        let kind = rustix::fs::fstat(stream).map(|found| FileType::from_raw_mode(found.st_mode));
        match kind {
            Ok(FileType::Socket) => Self::Socket(stream),
            Ok(FileType::Fifo | FileType::CharacterDevice) => {
                let name = format!("/proc/self/fd/{}", stream.as_raw_fd());
                let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
                let opened = rustix::fs::open(name, flags, Mode::empty());
                opened.map_or(Self::Given(stream), Self::Own)
            }
            _ => Self::Given(stream),
        }
    }

    fn write(&self, bytes: &[u8]) -> Result<usize, Errno> {
        match self {
            Self::Own(fd) => rustix::io::write(fd, bytes),
            Self::Given(fd) => rustix::io::write(fd, bytes),
            Self::Socket(fd) => {
                rustix::net::send(fd, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
            }
        }
    }
}

impl AsFd for Reader<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Own(fd) => fd.as_fd(),
            Self::Socket(fd) | Self::Given(fd) => *fd,
        }
    }
}

impl AsFd for Sink<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Master(fd) => *fd,
            Self::Pipe(fd) => fd.as_fd(),
        }
    }
}

impl AsFd for Source<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Master(fd) | Self::Given(fd) => *fd,
            Self::Pipe(fd) => fd.as_fd(),
        }
    }
}

impl<'a> Relay<'a> {
    /// Starts relaying between `user`, the standard streams outside, and the
    /// command's terminal or pipes. `None` when there is nothing to relay.
    pub(crate) fn start(
        user: [BorrowedFd<'a>; 3],
        ours: Outside,
        master: Option<BorrowedFd<'a>>,
    ) -> Result<Option<Self>, Errno> {
        let has_pipes = ours.pipes.iter().any(Option::is_some);
        if master.is_none() && !has_pipes {
            return Ok(None);
        }
        let mut relay = Self::of_pipes(user, ours.pipes)?;
        if let Some(master) = master {
            relay.add_terminal(user, ours.terminal, master);
        }
        relay.output.most = ours.most_output;
        for source in relay
            .screens
            .iter()
            .filter_map(|screen| screen.from.as_ref())
        {
            let flags = rustix::fs::fcntl_getfl(source.as_fd())?;
            rustix::fs::fcntl_setfl(source.as_fd(), flags | OFlags::NONBLOCK)?;
        }
        relay.resize();
        relay.resume()?;
        Ok(Some(relay))
    }

    /// The screen is the first stream that is a terminal. The keyboard is
    /// standard input, unless we run in the background.
    fn add_terminal(
        &mut self,
        user: [BorrowedFd<'a>; 3],
        streams: [bool; 3],
        master: BorrowedFd<'a>,
    ) {
        let is_terminal = |at: usize| streams[at] && rustix::termios::isatty(user[at]);
        let screen = [1, 2, 0]
            .into_iter()
            .find(|at| is_terminal(*at))
            .unwrap_or(1);
        if is_terminal(0) && in_foreground(user[0]) {
            self.keyboard = Some((user[0], Sink::Master(master)));
        }
        self.screens
            .push(Screen::new(Source::Master(master), user[screen]));
        self.terminal = Some((master, user[screen]));
    }

    fn of_pipes(user: [BorrowedFd<'a>; 3], pipes: [Option<OwnedFd>; 3]) -> Result<Self, Errno> {
        let [input, output, error] = pipes;
        let (typed, copied) = match input {
            Some(pipe) if rustix::termios::isatty(user[0]) => (Some(pipe), None),
            input => (None, input),
        };
        let keyboard = typed
            .filter(|_| in_foreground(user[0]))
            .map(|pipe| (user[0], Sink::Pipe(pipe)));
        let feed = copied
            .map(|pipe| Screen::feeding(user[0], pipe))
            .transpose()?;
        let screens = [(output, user[1]), (error, user[2])]
            .into_iter()
            .filter_map(|(pipe, to)| Some(Screen::new(Source::Pipe(pipe?), to)))
            .collect();
        Ok(Self {
            keyboard,
            feed,
            screens,
            raw: None,
            terminal: None,
            output: Output::default(),
        })
    }

    /// How much the command wrote, where that is limited.
    pub(crate) fn output(&self) -> Option<u64> {
        self.output.most.map(|_| self.output.seen)
    }

    /// Whether the command wrote more than it may.
    pub(crate) fn is_over_limit(&self) -> bool {
        self.output.most.is_some_and(|most| self.output.seen > most)
    }

    /// Whether there is somebody to type.
    pub(crate) fn has_keyboard(&self) -> bool {
        self.keyboard.is_some()
    }

    /// Gives the command's terminal the size of the user's.
    pub(crate) fn resize(&self) {
        if let Some((master, screen)) = self.terminal
            && let Ok(size) = rustix::termios::tcgetwinsize(screen)
        {
            let _ = rustix::termios::tcsetwinsize(master, size);
        }
    }

    /// Puts the user's terminal back as it was, before stopping.
    pub(crate) fn suspend(&mut self) {
        self.raw = None;
    }

    /// Takes the user's terminal again.
    pub(crate) fn resume(&mut self) -> Result<(), Errno> {
        if let (Some((keyboard, Sink::Master(_))), None) = (&self.keyboard, &self.raw) {
            self.raw = Some(RawMode::enter(*keyboard)?);
        }
        Ok(())
    }

    /// What to wait for: open screens in order, then what feeds the command,
    /// then the keyboard.
    pub(crate) fn poll_fds(&self) -> Vec<PollFd<'_>> {
        let streams = self.screens.iter().chain(&self.feed);
        let mut fds: Vec<_> = streams.filter_map(Screen::poll_fd).collect();
        fds.extend(
            self.keyboard
                .iter()
                .map(|(fd, _)| PollFd::from_borrowed_fd(*fd, PollFlags::IN)),
        );
        fds
    }

    /// Moves what is ready; `ready` tells for each of [`Self::poll_fds`].
    pub(crate) fn pump(&mut self, ready: &[bool]) {
        let mut ready = ready.iter().copied();
        for screen in self.screens.iter_mut().filter(|screen| screen.is_open()) {
            if ready.next().unwrap_or(false) {
                screen.show(&mut self.output);
            }
        }
        if let Some(feed) = &mut self.feed
            && ready.next().unwrap_or(false)
        {
            feed.show(&mut Output::default());
        }
        // With its pipe closed, the command knows that there is no more.
        self.feed.take_if(|feed| !feed.is_open());
        if self.keyboard.is_some() && ready.next().unwrap_or(false) {
            self.type_in();
        }
    }

    /// Whether everything was shown that there was.
    pub(crate) fn is_drained(&self) -> bool {
        !self.screens.iter().any(Screen::is_open)
    }

    /// Shows more of what the command wrote before it ended, as far as there is
    /// room for it.
    pub(crate) fn drain(&mut self) {
        self.keyboard = None;
        self.feed = None;
        for screen in &mut self.screens {
            while screen.show(&mut self.output) {}
            if screen.chunk.is_empty() {
                screen.from = None;
            }
        }
    }

    fn type_in(&mut self) {
        let Some((keyboard, sink)) = &self.keyboard else {
            return;
        };
        let mut buffer = [0; CHUNK];
        match rustix::io::read(keyboard, &mut buffer) {
            // The end of input: a pipe is closed with it.
            Ok(0) | Err(Errno::IO) => self.keyboard = None,
            Ok(length) => {
                write_all(sink.as_fd(), &buffer[..length]);
            }
            Err(_) => {}
        }
    }
}

impl<'a> Screen<'a> {
    fn new(from: Source<'a>, to: BorrowedFd<'a>) -> Self {
        Self {
            from: Some(from),
            to: Reader::of(to),
            chunk: Vec::new(),
        }
    }

    /// From a stream outside to a pipe of the command.
    fn feeding(from: BorrowedFd<'a>, to: OwnedFd) -> Result<Self, Errno> {
        let flags = rustix::fs::fcntl_getfl(&to)?;
        rustix::fs::fcntl_setfl(&to, flags | OFlags::NONBLOCK)?;
        Ok(Self {
            from: Some(Source::Given(from)),
            to: Reader::Own(to),
            chunk: Vec::new(),
        })
    }

    fn is_open(&self) -> bool {
        self.from.is_some()
    }

    /// Nothing more is read before there is room for it, so that a slow reader
    /// outside slows the command down and not us.
    fn poll_fd(&self) -> Option<PollFd<'_>> {
        let from = self.from.as_ref()?;
        Some(if self.chunk.is_empty() {
            PollFd::from_borrowed_fd(from.as_fd(), PollFlags::IN)
        } else {
            PollFd::from_borrowed_fd(self.to.as_fd(), PollFlags::OUT)
        })
    }

    /// Moves one chunk a step on. False when there was nothing to move.
    fn show(&mut self, output: &mut Output) -> bool {
        match &self.from {
            None => false,
            Some(_) if !self.chunk.is_empty() => self.write(),
            Some(_) => self.read(output) && (self.chunk.is_empty() || self.write()),
        }
    }

    fn read(&mut self, output: &mut Output) -> bool {
        let Some(from) = &self.from else { return false };
        let mut buffer = [0; CHUNK];
        match rustix::io::read(from.as_fd(), &mut buffer) {
            Ok(0) | Err(Errno::IO) => {
                self.from = None;
                false
            }
            Ok(length) => {
                let shown = output.count(length);
                self.chunk.extend_from_slice(&buffer[..shown]);
                true
            }
            Err(_) => false,
        }
    }

    fn write(&mut self) -> bool {
        match self.to.write(&self.chunk) {
            Ok(written) => {
                self.chunk.drain(..written);
                written > 0
            }
            Err(Errno::AGAIN) => false,
            Err(Errno::INTR) => true,
            // Nobody reads any more. With its pipe closed, the command knows;
            // a terminal goes on being emptied.
            Err(_) => {
                self.chunk.clear();
                if !matches!(self.from, Some(Source::Master(_))) {
                    self.from = None;
                }
                true
            }
        }
    }
}

/// A process in the background must leave its terminal's keyboard alone.
fn in_foreground(terminal: BorrowedFd<'_>) -> bool {
    let group = ringfence_sys::own_process_group();
    rustix::termios::tcgetpgrp(terminal).is_ok_and(|foreground| Some(foreground) == group)
}

fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let mut fds = [PollFd::from_borrowed_fd(to, PollFlags::OUT)];
                let second = rustix::time::Timespec {
                    tv_sec: 1,
                    tv_nsec: 0,
                };
                if !matches!(rustix::event::poll(&mut fds, Some(&second)), Ok(1)) {
                    // The other side does not read: better to lose typing
                    // than to stop attending to signals and limits.
                    return false;
                }
            }
            Err(_) => return false,
        }
    }
    true
}
