//! [`Supervisor`]: the process that records a run, told apart from every other
//! one of this machine's present and past.

use std::fs::File;
use std::io::{self, Read};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text::Text;

/// The place of the start time in `/proc/PID/stat`, counted after the name.
const START_TIME: usize = 19;

/// The process that records a run. Its id alone may belong to another one by
/// now, so there is its start as well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Supervisor {
    /// Its id.
    pub pid: u32,
    /// When it started, in ticks since the machine did.
    pub started: u64,
    /// Which start of the machine.
    pub boot: Text<64>,
    /// The namespace that its id is of.
    pub namespace: Text<64>,
}

/// Whether the process that records a run is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Life {
    /// It is.
    Running,
    /// It has ended.
    Ended,
    /// It has ended, and there was no room for its last records.
    NoRoom,
    /// It cannot be seen from here.
    Unknown,
}

impl Supervisor {
    /// The calling process, if the machine tells about it.
    pub(crate) fn own() -> Option<Self> {
        let pid = std::process::id();
        Some(Self {
            pid,
            started: start_time(pid)?,
            boot: boot()?,
            namespace: namespace()?,
        })
    }

    /// Whether it is still there.
    pub fn life(&self) -> Life {
        match (boot(), namespace()) {
            (Some(boot), _) if boot != self.boot => Life::Ended,
            (Some(_), Some(namespace)) if namespace == self.namespace => {
                match start_time(self.pid) {
                    Some(started) if started == self.started => Life::Running,
                    _ => Life::Ended,
                }
            }
            _ => Life::Unknown,
        }
    }
}

fn boot() -> Option<Text<64>> {
    let id = read("/proc/sys/kernel/random/boot_id").ok()?;
    Some(Text::new(id.trim()))
}

fn namespace() -> Option<Text<64>> {
    let link = std::fs::read_link("/proc/self/ns/pid").ok()?;
    link.to_str().map(Text::new)
}

/// A file of the kernel's. It tells no length before it is read, so that it is
/// read in small pieces unless there is room already.
fn read(path: &str) -> io::Result<String> {
    const USUAL: usize = 1024;
    const LONGEST: u64 = 64 * 1024;
    let mut text = String::with_capacity(USUAL);
    File::open(path)?.take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}

/// When a process started, if it has not ended: a zombie has.
fn start_time(pid: u32) -> Option<u64> {
    let stat = read(&format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may hold anything, those included.
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let is_over = matches!(fields.first(), Some(&("Z" | "X")));
    fields.get(START_TIME).filter(|_| !is_over)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut Supervisor);

    #[test]
    fn a_process_is_known_by_more_than_its_id() {
        let own = Supervisor::own().unwrap();
        assert_eq!(own.life(), Life::Running);
        let changes: [(Change, Life); 4] = [
            (|other| other.started += 1, Life::Ended),
            (|other| other.boot = Text::new("another"), Life::Ended),
            (|other| other.pid = u32::MAX, Life::Ended),
            (
                |other| other.namespace = Text::new("another"),
                Life::Unknown,
            ),
        ];
        for (change, want) in changes {
            let mut other = own.clone();
            change(&mut other);
            assert_eq!(other.life(), want, "{other:?}");
        }
    }
}
