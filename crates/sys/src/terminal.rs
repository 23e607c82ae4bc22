//! Pseudo-terminals and the user's own terminal.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;
use rustix::pty::OpenptFlags;
use rustix::termios::{OptionalActions, Termios};

use crate::{Errno, Result};

/// A pseudo-terminal.
#[derive(Debug)]
pub struct Pty {
    /// The side of the program that shows the terminal.
    pub master: OwnedFd,
    /// The side of the program that uses the terminal.
    pub slave: OwnedFd,
}

impl Pty {
    /// Opens a new one from the `devpts` instance seen at `/dev/ptmx`.
    pub fn open() -> Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = rustix::pty::openpt(flags)?;
        rustix::pty::grantpt(&master)?;
        rustix::pty::unlockpt(&master)?;
        let slave = rustix::pty::ioctl_tiocgptpeer(&master, flags)?;
        Ok(Self { master, slave })
    }
}

/// Makes `terminal` the controlling one of the caller, a new session leader.
pub fn make_controlling(terminal: BorrowedFd<'_>) -> Result<()> {
    rustix::process::ioctl_tiocsctty(terminal)
}

/// The path of the controlling terminal of `thread` in this `/dev/pts`.
pub fn controlling_terminal_of(thread: Pid) -> Result<String> {
    let path = format!("/proc/{}/stat", thread.as_raw_pid());
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut buffer = [0u8; 512];
    let length = rustix::io::read(file, &mut buffer)?;
    terminal_number(&buffer[..length])
        .map(|number| format!("/dev/pts/{number}"))
        .ok_or(Errno::NXIO)
}

/// The minor number of a `pts` device in the text of `/proc/PID/stat`.
fn terminal_number(stat: &[u8]) -> Option<u32> {
    // The program's name may hold anything, so start behind its last bracket.
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(stat.get(name_end + 2..)?).ok()?;
    let device: u32 = fields.split(' ').nth(4)?.parse().ok()?;
    let major = (device >> 8) & 0xfff;
    let minor = (device & 0xff) | ((device >> 12) & 0xfff00);
    (136..=143)
        .contains(&major)
        .then(|| minor + (major - 136) * 256)
}

/// The user's terminal in raw mode; put back when dropped.
#[derive(Debug)]
pub struct RawMode<'fd> {
    terminal: BorrowedFd<'fd>,
    before: Termios,
}

impl<'fd> RawMode<'fd> {
    /// Switches `terminal` to raw mode.
    pub fn enter(terminal: BorrowedFd<'fd>) -> Result<Self> {
        let before = rustix::termios::tcgetattr(terminal)?;
        let mut raw = before.clone();
        raw.make_raw();
        rustix::termios::tcsetattr(terminal.as_fd(), OptionalActions::Drain, &raw)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for RawMode<'_> {
    fn drop(&mut self) {
        // Nothing can be done about a terminal that is gone.
        let _ = rustix::termios::tcsetattr(self.terminal, OptionalActions::Drain, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_terminal_behind_a_hostile_name() {
        let stat = b"12 (a) R 1 1) S 1 12 12 34819 12 4194304";
        assert_eq!(terminal_number(stat), Some(3));
        assert_eq!(terminal_number(b"12 (x) S 1 12 12 0 -1"), None);
        assert_eq!(terminal_number(b""), None);
    }
}
