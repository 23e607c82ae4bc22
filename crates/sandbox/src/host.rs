//! Facts about this machine and the user that a plan depends on.

use std::ffi::OsString;
use std::path::PathBuf;

use ringfence_sys as sys;

/// The host id that a sandbox started by root gets when root has no
/// subordinate ids: above every range that distributions and container
/// engines hand out.
const FALLBACK_HOST_ID: u32 = 1_999_999_999;

/// Who starts the sandbox, and where.
#[derive(Debug, Clone)]
pub struct Host {
    /// The user.
    pub uid: u32,
    /// The user's group.
    pub gid: u32,
    /// The user's home folder.
    pub home: PathBuf,
    /// The home folder in the user database, if `HOME` says another.
    pub other_home: Option<PathBuf>,
    /// The version of the kernel's Landlock, 0 if none.
    pub landlock_abi: u32,
    /// The host id for a sandbox started by root; `None` when there is no
    /// other id than our own to be had.
    pub spare_id: Option<u32>,
    /// Where the user's bus may listen.
    pub bus: BusVariables,
}

/// The variables that say where the user's bus listens.
#[derive(Debug, Clone, Default)]
pub struct BusVariables {
    /// `DBUS_SESSION_BUS_ADDRESS`.
    pub address: Option<OsString>,
    /// `XDG_RUNTIME_DIR`.
    pub runtime: Option<OsString>,
}

/// Why the facts could not be had.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Neither `HOME` nor the user database names a home folder.
    #[error("there is no home folder: HOME is not set and uid {uid} is not in /etc/passwd")]
    NoHome {
        /// The user.
        uid: u32,
    },
}

impl HostError {
    /// A stable name for this error.
    pub fn code(&self) -> &'static str {
        "no-home"
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        "set HOME to an existing folder"
    }
}

impl Host {
    /// Looks at this machine, with the user's variables.
    pub fn look(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, HostError> {
        let uid = rustix::process::geteuid().as_raw();
        let gid = rustix::process::getegid().as_raw();
        let listed = home_of(uid);
        let home = variable("HOME")
            .map(PathBuf::from)
            .filter(|home| home.is_absolute())
            .or_else(|| listed.clone())
            .ok_or(HostError::NoHome { uid })?;
        let other_home = listed.filter(|listed| *listed != home && listed.as_os_str() != "/");
        let spare_id = if uid == 0 { find_spare_id() } else { None };
        Ok(Self {
            uid,
            gid,
            home,
            other_home,
            landlock_abi: sys::landlock_abi(),
            spare_id,
            bus: BusVariables {
                address: variable("DBUS_SESSION_BUS_ADDRESS"),
                runtime: variable("XDG_RUNTIME_DIR"),
            },
        })
    }
}

fn home_of(uid: u32) -> Option<PathBuf> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let id = fields.nth(2)?.parse::<u32>().ok()?;
        let home = fields.nth(2)?;
        (id == uid && home.starts_with('/')).then(|| PathBuf::from(home))
    })
}

/// The first subordinate id of root, else one that nobody has.
fn find_spare_id() -> Option<u32> {
    let mapped = std::fs::read_to_string("/proc/self/uid_map").ok()?;
    let subordinate = std::fs::read_to_string("/etc/subuid").ok();
    let wanted = subordinate
        .as_deref()
        .and_then(subordinate_of_root)
        .unwrap_or(FALLBACK_HOST_ID);
    usable_id(&mapped, wanted)
}

fn subordinate_of_root(text: &str) -> Option<u32> {
    text.lines().find_map(|line| {
        let (user, range) = line.trim().split_once(':')?;
        let start = range.split_once(':')?.0.parse().ok()?;
        (matches!(user, "root" | "0") && start != 0).then_some(start)
    })
}

/// `wanted` if our own user namespace has it, else the last id that it has.
fn usable_id(uid_map: &str, wanted: u32) -> Option<u32> {
    let ranges: Vec<(u32, u32)> = uid_map
        .lines()
        .filter_map(|line| {
            let mut numbers = line.split_whitespace().map(str::parse::<u32>);
            let (first, _, count) = (
                numbers.next()?.ok()?,
                numbers.next()?,
                numbers.next()?.ok()?,
            );
            Some((first, count))
        })
        .collect();
    let has = |id: u32| {
        ranges
            .iter()
            .any(|(first, count)| id >= *first && id - first < *count)
    };
    if has(wanted) {
        return Some(wanted);
    }
    ranges
        .iter()
        .map(|(first, count)| first + count.saturating_sub(1))
        .max()
        .filter(|id| *id != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_subordinate_id_of_root_is_used() {
        assert_eq!(
            subordinate_of_root("alice:100000:65536\nroot:200000:65536\n"),
            Some(200_000)
        );
        assert_eq!(subordinate_of_root("alice:100000:65536\n"), None);
        assert_eq!(subordinate_of_root("root:0:1\nnonsense\n"), None);
    }

    #[test]
    fn a_spare_id_is_one_that_our_namespace_has() {
        assert_eq!(usable_id("0 0 4294967295\n", 200_000), Some(200_000));
        assert_eq!(
            usable_id("0 100000 65536\n", FALLBACK_HOST_ID),
            Some(65_535)
        );
        assert_eq!(usable_id("0 1000 1\n", FALLBACK_HOST_ID), None);
        assert_eq!(usable_id("", 1), None);
    }
}
