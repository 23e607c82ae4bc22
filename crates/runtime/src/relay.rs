//! Between the user's terminal and the command's streams.
//!
//! A terminal outside is never handed in. The command gets a terminal of its
//! own, or pipes, and what goes through is copied here, as long as this
//! process has the terminal. Output that is limited goes through pipes as well,
//! to be counted.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use ringfence_sandbox::Stream;
use ringfence_sys::{Errno, RawMode};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::net::SendFlags;
use rustix::pipe::PipeFlags;
use rustix::termios::Winsize;

/// Bytes moved at a time; small enough that a write to a terminal that was
/// found ready does not stand still for long, and that one to a pipe does not
/// at all (`PIPE_BUF`).
const CHUNK: usize = 4096;

/// What the command gets, and what stays with us.
pub(crate) struct Arranged {
    pub(crate) inside: [Stream; 3],
    pub(crate) outside: Outside,
    /// The size of the user's terminal.
    pub(crate) size: Option<Winsize>,
}

/// Our ends.
pub(crate) struct Outside {
    /// Streams that become the command's own terminal.
    terminal: [bool; 3],
    /// Pipes in place of streams.
    pipes: [Option<OwnedFd>; 3],
    /// The most bytes of output.
    most_output: Option<u64>,
}

impl Arranged {
    /// The command's own terminal in place of these streams.
    pub(crate) fn with_terminal(streams: [bool; 3]) -> Self {
        let inside = streams.map(|is_terminal| {
            if is_terminal {
                Stream::Terminal
            } else {
                Stream::Keep
            }
        });
        Self {
            inside,
            outside: Outside {
                terminal: streams,
                pipes: [None, None, None],
                most_output: None,
            },
            size: users_size(),
        }
    }

    /// Pipes in place of these streams.
    pub(crate) fn with_pipes(streams: [bool; 3]) -> Result<Self, Errno> {
        let mut arranged = Self::with_terminal([false; 3]);
        arranged.size = None;
        for at in (0..3).filter(|at| streams[*at]) {
            arranged.put_pipe(at)?;
        }
        Ok(arranged)
    }

    /// The same with output counted, and cut at `most` bytes.
    pub(crate) fn limited(mut self, most: Option<u64>) -> Result<Self, Errno> {
        self.outside.most_output = most;
        for at in [1, 2] {
            if most.is_some() && matches!(self.inside[at], Stream::Keep) {
                self.put_pipe(at)?;
            }
        }
        Ok(self)
    }

    fn put_pipe(&mut self, at: usize) -> Result<(), Errno> {
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let (theirs, ours) = if at == 0 {
            (reader, writer)
        } else {
            (writer, reader)
        };
        self.inside[at] = Stream::Given(theirs);
        self.outside.pipes[at] = Some(ours);
        Ok(())
    }
}

/// Copies from the command's streams to the user's terminal and back.
pub(crate) struct Relay<'a> {
    /// Where the user types, and where that goes.
    keyboard: Option<(BorrowedFd<'a>, Sink<'a>)>,
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
            Self::Master(fd) => *fd,
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
        let mut relay = Self::of_pipes(user, ours.pipes);
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

    fn of_pipes(user: [BorrowedFd<'a>; 3], pipes: [Option<OwnedFd>; 3]) -> Self {
        let [input, output, error] = pipes;
        let keyboard = input
            .filter(|_| in_foreground(user[0]))
            .map(|pipe| (user[0], Sink::Pipe(pipe)));
        let screens = [(output, user[1]), (error, user[2])]
            .into_iter()
            .filter_map(|(pipe, to)| Some(Screen::new(Source::Pipe(pipe?), to)))
            .collect();
        Self {
            keyboard,
            screens,
            raw: None,
            terminal: None,
            output: Output::default(),
        }
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

    /// What to wait for: open screens in order, then the keyboard.
    pub(crate) fn poll_fds(&self) -> Vec<PollFd<'_>> {
        let mut fds: Vec<_> = self.screens.iter().filter_map(Screen::poll_fd).collect();
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
                if matches!(self.from, Some(Source::Pipe(_))) {
                    self.from = None;
                }
                true
            }
        }
    }
}

fn users_size() -> Option<Winsize> {
    let (input, output, error) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    [output.as_fd(), error.as_fd(), input.as_fd()]
        .into_iter()
        .find_map(|stream| rustix::termios::tcgetwinsize(stream).ok())
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
