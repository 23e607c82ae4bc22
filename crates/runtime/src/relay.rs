//! Between the user's terminal and the command's streams.
//!
//! A terminal outside is never handed in. The command gets a terminal of its
//! own, or pipes, and what goes through is copied here, as long as this
//! process has the terminal.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ringfence_sandbox::Stream;
use ringfence_sys::{Errno, RawMode};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::OFlags;
use rustix::pipe::PipeFlags;
use rustix::termios::Winsize;

/// Bytes moved at a time; small enough that a write to a terminal that was
/// found ready does not stand still for long.
const CHUNK: usize = 4096;

/// What the command gets, and what stays with us.
pub(crate) struct Arranged {
    pub(crate) inside: [Stream; 3],
    pub(crate) outside: Outside,
    /// The size of the user's terminal.
    pub(crate) size: Option<Winsize>,
}

/// Our ends.
pub(crate) enum Outside {
    /// These streams become the command's own terminal.
    Terminal([bool; 3]),
    /// Pipes in place of the streams that are terminals.
    Pipes([Option<OwnedFd>; 3]),
}

impl Arranged {
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
            outside: Outside::Terminal(streams),
            size: users_size(),
        }
    }

    pub(crate) fn with_pipes(streams: [bool; 3]) -> Result<Self, Errno> {
        let mut inside = [Stream::Keep, Stream::Keep, Stream::Keep];
        let mut outside = [None, None, None];
        for at in (0..3).filter(|at| streams[*at]) {
            let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
            let (theirs, ours) = if at == 0 {
                (reader, writer)
            } else {
                (writer, reader)
            };
            inside[at] = Stream::Given(theirs);
            outside[at] = Some(ours);
        }
        Ok(Self {
            inside,
            outside: Outside::Pipes(outside),
            size: None,
        })
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
    from: Source<'a>,
    to: BorrowedFd<'a>,
    open: bool,
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
    /// command's terminal or pipes. `None` when no stream is a terminal.
    pub(crate) fn start(
        user: [BorrowedFd<'a>; 3],
        ours: Outside,
        master: Option<BorrowedFd<'a>>,
    ) -> Result<Option<Self>, Errno> {
        let mut relay = match (ours, master) {
            (Outside::Terminal(streams), Some(master)) => Self::of_terminal(user, streams, master),
            (Outside::Pipes(pipes), _) => Self::of_pipes(user, pipes),
            (Outside::Terminal(_), None) => return Ok(None),
        };
        for screen in &relay.screens {
            let flags = rustix::fs::fcntl_getfl(screen.from.as_fd())?;
            rustix::fs::fcntl_setfl(screen.from.as_fd(), flags | OFlags::NONBLOCK)?;
        }
        relay.resize();
        relay.resume()?;
        Ok(Some(relay))
    }

    /// The screen is the first stream that is a terminal. The keyboard is
    /// standard input, unless we run in the background.
    fn of_terminal(user: [BorrowedFd<'a>; 3], streams: [bool; 3], master: BorrowedFd<'a>) -> Self {
        let is_terminal = |at: usize| streams[at] && rustix::termios::isatty(user[at]);
        let screen = [1, 2, 0]
            .into_iter()
            .find(|at| is_terminal(*at))
            .unwrap_or(1);
        let keyboard =
            (is_terminal(0) && in_foreground(user[0])).then_some((user[0], Sink::Master(master)));
        let screens = vec![Screen {
            from: Source::Master(master),
            to: user[screen],
            open: true,
        }];
        Self {
            keyboard,
            screens,
            raw: None,
            terminal: Some((master, user[screen])),
        }
    }

    fn of_pipes(user: [BorrowedFd<'a>; 3], pipes: [Option<OwnedFd>; 3]) -> Self {
        let [input, output, error] = pipes;
        let keyboard = input
            .filter(|_| in_foreground(user[0]))
            .map(|pipe| (user[0], Sink::Pipe(pipe)));
        let screens = [(output, user[1]), (error, user[2])]
            .into_iter()
            .filter_map(|(pipe, to)| {
                Some(Screen {
                    from: Source::Pipe(pipe?),
                    to,
                    open: true,
                })
            })
            .collect();
        Self {
            keyboard,
            screens,
            raw: None,
            terminal: None,
        }
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
        let screens = self.screens.iter().filter(|screen| screen.open);
        let mut fds: Vec<_> = screens
            .map(|screen| PollFd::from_borrowed_fd(screen.from.as_fd(), PollFlags::IN))
            .collect();
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
        for screen in self.screens.iter_mut().filter(|screen| screen.open) {
            if ready.next().unwrap_or(false) {
                screen.show();
            }
        }
        if self.keyboard.is_some() && ready.next().unwrap_or(false) {
            self.type_in();
        }
    }

    /// Shows everything the command wrote before it ended.
    pub(crate) fn drain(&mut self) {
        for screen in &mut self.screens {
            while screen.open && screen.show() {}
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

impl Screen<'_> {
    /// Moves one chunk. False when there was none.
    fn show(&mut self) -> bool {
        let mut buffer = [0; CHUNK];
        match rustix::io::read(self.from.as_fd(), &mut buffer) {
            Ok(0) | Err(Errno::IO) => {
                self.open = false;
                false
            }
            Ok(length) => write_all(self.to, &buffer[..length]),
            Err(_) => false,
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
    let group = rustix::process::getpgrp();
    rustix::termios::tcgetpgrp(terminal).is_ok_and(|foreground| foreground == group)
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
