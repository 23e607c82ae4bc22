//! `--control-fd`: settings that take the place of the first ones while the
//! command runs, one JSON object a line.
//!
//! Only their network part has an effect, on the next connection and on those
//! that it no longer allows. A line that cannot be used changes nothing.

use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::OwnedFd;

use ringfence_policy::{Policy, Resolved};
use ringfence_runtime::{Changes, SrtRest};
use ringfence_sys::Errno;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FileType, OFlags};

use super::debug::Debug;
use crate::descriptor::duplicate;
use crate::error::Failure;
use crate::output;

/// The longest line, in bytes.
const LONGEST_LINE: u64 = 1024 * 1024;

/// A descriptor that settings come from.
#[derive(Debug)]
pub(super) struct Control {
    number: i32,
    descriptor: OwnedFd,
}

impl Control {
    /// Takes over a descriptor that we were started with. Fails if nothing can
    /// be read from it: who asked for this channel must not be left without.
    pub(super) fn open(number: i32) -> Result<Self, Failure> {
        let unusable = |why: &str| {
            let message = format!("--control-fd {number} is not usable: {why}");
            let hint = format!("hand over the reading end of a pipe: {number}< FILE");
            Failure::new("control-fd-unusable", message, hint)
        };
        let failed = |errno: Errno| unusable(&io::Error::from(errno).to_string());
        let descriptor = duplicate(number).map_err(failed)?;
        let mode = rustix::fs::fcntl_getfl(&descriptor).map_err(failed)?;
        let status = rustix::fs::fstat(&descriptor).map_err(failed)?;
        if mode.contains(OFlags::PATH) || mode & OFlags::RWMODE == OFlags::WRONLY {
            return Err(unusable("it is not open for reading"));
        }
        if FileType::from_raw_mode(status.st_mode) == FileType::Directory {
            return Err(unusable("it is a folder"));
        }
        Ok(Self { number, descriptor })
    }

    /// What reads it while the command runs.
    pub(super) fn into_changes(self, rest: SrtRest, debug: Debug) -> Changes {
        Box::new(move |put_in_force| self.follow(&rest, debug, put_in_force))
    }

    fn follow(self, rest: &SrtRest, debug: Debug, put_in_force: &dyn Fn(Resolved<Policy>)) {
        let name = format!("control fd {}", self.number);
        let mut lines = Lines(BufReader::new(Patient(self.descriptor)));
        loop {
            let line = match lines.next() {
                Ok(None) => return debug.say(|| format!("{name} ended")),
                Ok(Some(Line::Blank)) => continue,
                Ok(Some(Line::Text(text))) => rest
                    .resolve(&text, &name)
                    .map_err(|error| error.to_string()),
                Ok(Some(Line::Unusable(why))) => Err(why.to_owned()),
                Err(error) => {
                    output::tell!("Error reading {name}: {error}. No further updates are applied.");
                    return;
                }
            };
            match line {
                Ok(policy) => {
                    put_in_force(policy);
                    debug.say(|| {
                        format!("Settings from {name} are in force; files stay as they were")
                    });
                }
                Err(why) => output::tell!(
                    "Invalid config on {name}: ignored, previous config still in force ({})",
                    output::printable(&why)
                ),
            }
        }
    }
}

/// Reads that wait, also where the other end made the descriptor one that does
/// not.
#[derive(Debug)]
struct Patient(OwnedFd);

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match rustix::io::read(&self.0, &mut *buffer) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let mut wanted = [PollFd::new(&self.0, PollFlags::IN)];
                    match rustix::event::poll(&mut wanted, None) {
                        Ok(_) | Err(Errno::INTR) => {}
                        Err(errno) => return Err(errno.into()),
                    }
                }
                read => return Ok(read?),
            }
        }
    }
}

/// Lines of bounded length.
struct Lines<R>(BufReader<R>);

/// One line.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Blank,
    Text(String),
    Unusable(&'static str),
}

impl<R: Read> Lines<R> {
    fn next(&mut self) -> io::Result<Option<Line>> {
        let mut bytes = Vec::new();
        let mut bounded = (&mut self.0).take(LONGEST_LINE + 1);
        if bounded.read_until(b'\n', &mut bytes)? == 0 {
            return Ok(None);
        }
        let is_whole = bytes.ends_with(b"\n");
        if !is_whole && bytes.len() as u64 > LONGEST_LINE {
            self.0.skip_until(b'\n')?;
            return Ok(Some(Line::Unusable("the line is too long")));
        }
        Ok(Some(match String::from_utf8(bytes) {
            Ok(text) if text.trim().is_empty() => Line::Blank,
            Ok(text) => Line::Text(text),
            Err(_) => Line::Unusable("the line is not UTF-8"),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    fn lines(bytes: &[u8]) -> Vec<Line> {
        let mut lines = Lines(BufReader::new(bytes));
        std::iter::from_fn(|| lines.next().unwrap()).collect()
    }

    #[test]
    fn lines_are_bounded_and_the_next_one_is_read() {
        let longest = usize::try_from(LONGEST_LINE).unwrap();
        let mut bytes = vec![b'a'; longest * 3];
        bytes.extend_from_slice(b"\n{}\r\n\n  \n\xff\nlast");
        let read = lines(&bytes);
        let want = [
            Line::Unusable("the line is too long"),
            Line::Text("{}\r\n".to_owned()),
            Line::Blank,
            Line::Blank,
            Line::Unusable("the line is not UTF-8"),
            Line::Text("last".to_owned()),
        ];
        assert_eq!(read, want);
    }

    #[test]
    fn a_line_of_exactly_the_longest_length_is_read() {
        let longest = usize::try_from(LONGEST_LINE).unwrap();
        for (length, is_text) in [(longest, true), (longest + 1, false)] {
            let read = lines(&vec![b'a'; length]);
            assert_eq!(matches!(read[..], [Line::Text(_)]), is_text, "{length}");
        }
    }

    #[test]
    fn g10_a_descriptor_that_cannot_be_read_is_refused() {
        let (reader, writer) = io::pipe().unwrap();
        assert!(Control::open(reader.as_raw_fd()).is_ok());
        assert!(Control::open(writer.as_raw_fd()).is_err());
        assert!(Control::open(999_999).is_err());
        let folder = std::fs::File::open("/").unwrap();
        assert!(Control::open(folder.as_raw_fd()).is_err());
        let path = rustix::fs::open("/etc/passwd", OFlags::PATH, rustix::fs::Mode::empty());
        assert!(Control::open(path.unwrap().as_raw_fd()).is_err());
    }

    #[test]
    fn a_reader_that_would_not_wait_is_waited_for() {
        let (reader, mut writer) = io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&reader, true).unwrap();
        let mut lines = Lines(BufReader::new(Patient(reader.into())));
        let writing = std::thread::spawn(move || {
            io::Write::write_all(&mut writer, b"{}\n").unwrap();
        });
        assert_eq!(lines.next().unwrap(), Some(Line::Text("{}\n".to_owned())));
        writing.join().unwrap();
        assert_eq!(lines.next().unwrap(), None);
    }
}
