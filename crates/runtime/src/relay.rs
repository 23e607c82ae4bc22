//! Between the user's terminal and the command's own.

use std::os::fd::{AsFd, BorrowedFd};

use ringfence_sys::{Errno, RawMode};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::OFlags;

/// Bytes moved at a time; small enough that a write to a terminal that was
/// found ready does not stand still for long.
const CHUNK: usize = 4096;

/// The user's terminal on one side, the master of the command's on the other.
pub(crate) struct Relay<'a> {
    master: BorrowedFd<'a>,
    /// Where the user types, if that is a terminal.
    keyboard: Option<BorrowedFd<'a>>,
    screen: BorrowedFd<'a>,
    raw: Option<RawMode<'a>>,
    master_open: bool,
}

impl<'a> Relay<'a> {
    /// Starts relaying; the keyboard goes to raw mode.
    pub(crate) fn start(
        master: BorrowedFd<'a>,
        keyboard: Option<BorrowedFd<'a>>,
        screen: BorrowedFd<'a>,
    ) -> Result<Self, Errno> {
        let flags = rustix::fs::fcntl_getfl(master)?;
        rustix::fs::fcntl_setfl(master, flags | OFlags::NONBLOCK)?;
        let mut relay = Self {
            master,
            keyboard,
            screen,
            raw: None,
            master_open: true,
        };
        relay.resize();
        relay.resume()?;
        Ok(relay)
    }

    /// Whether there is somebody to type.
    pub(crate) fn has_keyboard(&self) -> bool {
        self.keyboard.is_some()
    }

    /// Gives the command's terminal the size of the user's.
    pub(crate) fn resize(&self) {
        if let Ok(size) = rustix::termios::tcgetwinsize(self.screen) {
            let _ = rustix::termios::tcsetwinsize(self.master, size);
        }
    }

    /// Puts the user's terminal back as it was, before stopping.
    pub(crate) fn suspend(&mut self) {
        self.raw = None;
    }

    /// Takes the user's terminal again.
    pub(crate) fn resume(&mut self) -> Result<(), Errno> {
        if let (Some(keyboard), None) = (self.keyboard, &self.raw) {
            self.raw = Some(RawMode::enter(keyboard)?);
        }
        Ok(())
    }

    /// What to wait for.
    pub(crate) fn poll_fds(&self) -> Vec<PollFd<'a>> {
        let mut fds = Vec::with_capacity(2);
        if self.master_open {
            fds.push(PollFd::from_borrowed_fd(self.master, PollFlags::IN));
        }
        if let Some(keyboard) = self.keyboard {
            fds.push(PollFd::from_borrowed_fd(keyboard, PollFlags::IN));
        }
        fds
    }

    /// Moves what is ready, after a wait on [`Self::poll_fds`].
    pub(crate) fn pump(&mut self, ready: &[PollFd<'_>]) {
        let mut ready = ready.iter().map(PollFd::revents);
        if self.master_open && ready.next().is_some_and(|events| !events.is_empty()) {
            self.show();
        }
        if self.keyboard.is_some() && ready.next().is_some_and(|events| !events.is_empty()) {
            self.type_in();
        }
    }

    /// Shows everything the command wrote before it ended.
    pub(crate) fn drain(&mut self) {
        while self.master_open && self.show() {}
    }

    /// Moves one chunk to the screen. False when there was none.
    fn show(&mut self) -> bool {
        let mut buffer = [0; CHUNK];
        match rustix::io::read(self.master, &mut buffer) {
            Ok(0) | Err(Errno::IO) => {
                self.master_open = false;
                false
            }
            Ok(length) => write_all(self.screen, &buffer[..length]),
            Err(_) => false,
        }
    }

    fn type_in(&mut self) {
        let Some(keyboard) = self.keyboard else {
            return;
        };
        let mut buffer = [0; CHUNK];
        match rustix::io::read(keyboard, &mut buffer) {
            // The user's terminal is gone; the command sees that its own is.
            Ok(0) | Err(Errno::IO) => self.keyboard = None,
            Ok(length) => {
                write_all(self.master, &buffer[..length]);
            }
            Err(_) => {}
        }
    }
}

fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match rustix::io::write(to.as_fd(), bytes) {
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
