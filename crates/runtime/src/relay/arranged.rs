//! What becomes of the standard streams: which are handed in, and which the
//! command gets a terminal or a pipe for.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use ringfence_sandbox::{Judge, Stream};
use ringfence_sys::Errno;
use rustix::fs::FileType;
use rustix::pipe::PipeFlags;
use rustix::termios::Winsize;

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
    pub(super) terminal: [bool; 3],
    /// Pipes in place of streams.
    pub(super) pipes: [Option<OwnedFd>; 3],
    /// The most bytes of output.
    pub(super) most_output: Option<u64>,
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

    /// The same with pipes in place of whatever the command could change about
    /// the host by holding it open (`fchmod` of a file, `bind` of a socket),
    /// unless that is judged.
    pub(crate) fn judged_by(mut self, judge: Judge) -> Result<Self, Errno> {
        let (input, output, error) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
        for (at, stream) in [input.as_fd(), output.as_fd(), error.as_fd()]
            .into_iter()
            .enumerate()
        {
            let is_kept = matches!(self.inside[at], Stream::Keep);
            if judge == Judge::Nobody && is_kept && is_of_host(stream)? {
                self.put_pipe(at)?;
            }
        }
        Ok(self)
    }

    fn put_pipe(&mut self, at: usize) -> Result<(), Errno> {
        self.inside[at] = Stream::Given(self.outside.put_pipe(at)?);
        Ok(())
    }
}

impl Outside {
    /// A pipe in place of a stream: the command's end.
    pub(crate) fn put_pipe(&mut self, at: usize) -> Result<OwnedFd, Errno> {
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let (theirs, ours) = if at == 0 {
            (reader, writer)
        } else {
            (writer, reader)
        };
        self.pipes[at] = Some(ours);
        Ok(theirs)
    }
}

/// Whether a stream is something of the host, and not a pipe without a name or
/// a device.
fn is_of_host(stream: BorrowedFd<'_>) -> Result<bool, Errno> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(stream)?.st_mode);
    let name = format!("/proc/self/fd/{}", stream.as_raw_fd());
    let is_nameless = || {
        rustix::fs::readlink(name, Vec::new())
            .is_ok_and(|target| target.as_bytes().starts_with(b"pipe:"))
    };
    Ok(match kind {
        FileType::CharacterDevice => false,
        FileType::Fifo => !is_nameless(),
        _ => true,
    })
}

fn users_size() -> Option<Winsize> {
    let (input, output, error) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    [output.as_fd(), error.as_fd(), input.as_fd()]
        .into_iter()
        .find_map(|stream| rustix::termios::tcgetwinsize(stream).ok())
}
