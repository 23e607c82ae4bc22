//! Opening a FIFO for a caller that has to wait for the other end.
//!
//! Whoever waits in `open` counts as a reader or writer already, so the init
//! must not: a caller that is killed meanwhile would go on as an end of the pipe.
//! And a caller that waits for the init is woken by no signal but a deadly one.
//! So a worker tries again and again without waiting, and between two tries looks
//! whether the caller is still there and whether a signal came for it.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use ringfence_sys::Errno;
use ringfence_sys::seccomp::{Listener, Notification};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags};
use rustix::pipe::SpliceFlags;
use rustix::process::Pid;

/// What the kernel answers itself with when a signal ends a wait: the call is
/// made again after the handler, or fails with `EINTR`, as the handler was
/// installed. Only a thread that has a signal to take may get it.
pub(super) const RESTART: Errno = Errno::from_raw_os_error(512);

/// Between two tries, at first and at most.
const FIRST_REST: Duration = Duration::from_micros(100);
const LONGEST_REST: Duration = Duration::from_millis(10);

/// A caller that waits for the other end of a pipe.
pub(super) struct Waiting {
    listener: Arc<Listener>,
    call: Notification,
}

impl Waiting {
    pub(super) fn new(listener: &Arc<Listener>, call: &Notification) -> Self {
        Self {
            listener: Arc::clone(listener),
            call: *call,
        }
    }

    /// Opens the FIFO `place` once there is another end to it.
    pub(super) fn open(&self, place: &OwnedFd, flags: OFlags) -> Result<OwnedFd, Errno> {
        let link = format!("/proc/self/fd/{}", place.as_raw_fd());
        let open = || rustix::fs::open(&link, flags | OFlags::NONBLOCK, Mode::empty());
        let end = match flags & OFlags::ACCMODE {
            OFlags::WRONLY => self.until(|| match open() {
                Err(Errno::NXIO) => Ok(None),
                other => other.map(Some),
            })?,
            OFlags::RDWR => open()?,
            _ => {
                let end = open()?;
                self.until(|| has_writer(&end).map(|has| has.then_some(())))?;
                end
            }
        };
        let set = rustix::fs::fcntl_getfl(&end)?;
        rustix::fs::fcntl_setfl(&end, set - OFlags::NONBLOCK)?;
        Ok(end)
    }

    fn until<T>(&self, attempt: impl Fn() -> Result<Option<T>, Errno>) -> Result<T, Errno> {
        let mut rest = FIRST_REST;
        loop {
            if let Some(found) = attempt()? {
                return Ok(found);
            }
            std::thread::sleep(rest);
            rest = (rest * 2).min(LONGEST_REST);
            let is_signalled = has_signal(self.call.thread);
            if !self.listener.still_waits(&self.call) {
                return Err(Errno::SRCH);
            }
            if is_signalled {
                return Err(RESTART);
            }
        }
    }
}

/// Whether the pipe of this reading end has a writer, or has had one since the
/// end was opened. Takes nothing out of it.
fn has_writer(end: &OwnedFd) -> Result<bool, Errno> {
    let mut fds = [PollFd::new(end, PollFlags::IN)];
    let now = rustix::time::Timespec::default();
    if rustix::event::poll(&mut fds, Some(&now))? > 0 {
        return Ok(true);
    }
    // An empty pipe is at its end without a writer, and with one not.
    let (_keep, into) = rustix::pipe::pipe()?;
    match rustix::pipe::tee(end, &into, 1, SpliceFlags::NONBLOCK) {
        Ok(length) => Ok(length > 0),
        Err(Errno::AGAIN) => Ok(true),
        Err(errno) => Err(errno),
    }
}

/// Whether a signal waits for this thread to take it, and for nobody else.
fn has_signal(thread: Pid) -> bool {
    let path = format!("/proc/{}/status", thread.as_raw_pid());
    let status = std::fs::read(path).unwrap_or_default();
    is_signalled(&String::from_utf8_lossy(&status))
}

/// The same by the text of a thread's status. A signal to the whole process is
/// this thread's only where there is no other: the kernel has told one of them,
/// and an answer for another would never be made into `EINTR`.
fn is_signalled(status: &str) -> bool {
    let field = |name: &str| {
        let mut lines = status.lines();
        lines.find_map(|line| Some(line.strip_prefix(name)?.trim()))
    };
    let set = |name: &str| u64::from_str_radix(field(name).unwrap_or("0"), 16).unwrap_or(0);
    let is_alone = field("Threads:") == Some("1");
    let shared = if is_alone { set("ShdPnd:") } else { 0 };
    (set("SigPnd:") | shared) & !set("SigBlk:") != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_is_seen_without_taking_anything() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        let open = |flags| rustix::fs::open(&path, flags | OFlags::NONBLOCK, Mode::empty());
        let reader = open(OFlags::RDONLY).unwrap();
        assert!(!has_writer(&reader).unwrap());
        let writer = open(OFlags::WRONLY).unwrap();
        assert!(has_writer(&reader).unwrap());
        rustix::io::write(&writer, b"x").unwrap();
        assert!(has_writer(&reader).unwrap());
        drop(writer);
        assert!(has_writer(&reader).unwrap(), "there was one");
        let mut bytes = [0; 4];
        assert_eq!(rustix::io::read(&reader, &mut bytes), Ok(1));
    }

    #[test]
    fn only_signals_that_this_thread_must_take_count() {
        let status = |threads: u32, own: &str, shared: &str, blocked: &str| {
            format!("Threads:\t{threads}\nSigPnd:\t{own}\nShdPnd:\t{shared}\nSigBlk:\t{blocked}\n")
        };
        assert!(!is_signalled(""));
        assert!(!is_signalled(&status(1, "0", "0", "0")));
        assert!(is_signalled(&status(2, "2000", "0", "0")));
        assert!(is_signalled(&status(1, "0", "2000", "0")));
        assert!(!is_signalled(&status(2, "0", "2000", "0")));
        assert!(!is_signalled(&status(1, "2000", "2000", "2000")));
    }
}
