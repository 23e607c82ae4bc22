//! The names of control groups, from which a later start sees whose supervisor
//! is dead.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ringfence_sys::Errno;

use super::files::{self, errno_of};

const PREFIX: &str = "ringfence";

/// A process by its id, when it started, and the pid namespace of both: an id
/// alone comes back, and means another process elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holder {
    pid: u32,
    started: u64,
    namespace: u64,
}

impl Holder {
    /// This process.
    pub(crate) fn this() -> Result<Self, Errno> {
        let namespace = std::fs::metadata("/proc/self/ns/pid").map_err(|error| errno_of(&error))?;
        Ok(Self {
            pid: std::process::id(),
            started: start_of("self").ok_or(Errno::SRCH)?,
            namespace: namespace.ino(),
        })
    }

    /// Whether this process sees that one, and sees that it is gone.
    fn is_gone_for(&self, other: &Self) -> bool {
        let is_there = || start_of(&self.pid.to_string()) == Some(self.started);
        self.namespace == other.namespace && self.pid != other.pid && !is_there()
    }
}

fn start_of(process: &str) -> Option<u64> {
    start_in(&files::read(
        Path::new(&format!("/proc/{process}/stat")),
        1024,
    )?)
}

/// The 22nd field of `/proc/PID/stat`, unless the process has ended; the second
/// is a name with anything in it.
fn start_in(stat: &str) -> Option<u64> {
    let (_, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_whitespace();
    let is_over = matches!(fields.next(), Some("Z" | "X"));
    fields.nth(18).filter(|_| !is_over)?.parse().ok()
}

/// The name of one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupName {
    holder: Holder,
    tag: u32,
}

impl GroupName {
    /// A new one for a group that this process makes.
    pub(crate) fn new() -> Result<Self, Errno> {
        let mut tag = [0; 4];
        rustix::rand::getrandom(&mut tag, rustix::rand::GetRandomFlags::empty())?;
        Ok(Self {
            holder: Holder::this()?,
            tag: u32::from_ne_bytes(tag),
        })
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        if parts.next() != Some(PREFIX) {
            return None;
        }
        let name = Self {
            holder: Holder {
                pid: parts.next()?.parse().ok()?,
                started: parts.next()?.parse().ok()?,
                namespace: parts.next()?.parse().ok()?,
            },
            tag: u32::from_str_radix(parts.next()?, 16).ok()?,
        };
        // One spelling only.
        (name.to_string() == text).then_some(name)
    }

    /// Whether the process that made it is gone, as far as the maker of `own`
    /// can see.
    pub(crate) fn is_left_over_for(&self, own: &Self) -> bool {
        self.holder.is_gone_for(&own.holder)
    }
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Holder {
            pid,
            started,
            namespace,
        } = self.holder;
        write!(f, "{PREFIX}-{pid}-{started}-{namespace}-{:08x}", self.tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_reads_back() {
        let name = GroupName::new().unwrap();
        assert_eq!(GroupName::parse(&name.to_string()), Some(name));
        for text in [
            "",
            "ringfence",
            "ringfence-1-2-3",
            "ringfence-1-2-3-xyz",
            "ringfence-1-2-3-0000000a-5",
            "ringfence-01-2-3-0000000a",
            "ringfence--1-2-3-0000000a",
            "other-1-2-3-0000000a",
        ] {
            assert_eq!(GroupName::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_start_is_found_behind_any_name() {
        let fields = (3..=52).map(|n| n.to_string()).collect::<Vec<_>>();
        let stat = format!("7 (a) b (c)) {}", fields.join(" "));
        assert_eq!(start_in(&stat), Some(22));
        assert_eq!(start_in("7 (a) S 1"), None);
        assert_eq!(start_in(&stat.replacen(") 3 ", ") S ", 1)), Some(22));
        assert_eq!(start_in(&stat.replacen(") 3 ", ") Z ", 1)), None);
    }

    #[test]
    fn only_a_dead_process_of_our_own_namespace_leaves_something_over() {
        let own = GroupName::new().unwrap();
        let with = |change: fn(&mut Holder)| {
            let mut other = own;
            change(&mut other.holder);
            other.is_left_over_for(&own)
        };
        assert!(!with(|_| {}));
        // Of this very process under another id: alive, but not seen there.
        assert!(with(|holder| holder.pid = u32::MAX));
        assert!(!with(|holder| {
            holder.pid = u32::MAX;
            holder.namespace += 1;
        }));
        // The id came back with another start.
        assert!(with(|holder| {
            holder.pid = 1;
            holder.started = u64::MAX;
        }));
    }
}
