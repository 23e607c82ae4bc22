//! Where the audit log is kept.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ringfence_sandbox::Host;

/// Names the folder for what programs keep between runs (XDG Base Directory
/// Specification).
const STATE_HOME: &str = "XDG_STATE_HOME";

/// The folder of the audit log: `ringfence/audit` below `XDG_STATE_HOME`, or
/// below `.local/state` in the home folder. As the specification wants it, a
/// relative value counts as none.
pub fn audit_folder(variable: &dyn Fn(&str) -> Option<OsString>, host: &Host) -> PathBuf {
    state_folder(variable, host).join("ringfence/audit")
}

/// Where programs keep their state.
pub(crate) fn state_folder(variable: &dyn Fn(&str) -> Option<OsString>, host: &Host) -> PathBuf {
    user_folder(STATE_HOME, ".local/state", variable, host)
}

/// The folder that the variable `name` names, or `usual` in the home folder.
pub(crate) fn user_folder(
    name: &str,
    usual: &str,
    variable: &dyn Fn(&str) -> Option<OsString>,
    host: &Host,
) -> PathBuf {
    let named = variable(name).map(PathBuf::from);
    named
        .filter(|path| path.is_absolute())
        .unwrap_or_else(|| own_home(host, owner(&host.home)).join(usual))
}

/// The home folder; the listed one where that is missing, as programs that the
/// system starts often have it. For root, one of its own: `sudo` may leave
/// `HOME` as the caller's, who could not use a log of root's there.
fn own_home(host: &Host, owner: Option<u32>) -> &Path {
    let listed = host.other_home.as_deref();
    let is_unfit = owner.is_none_or(|owner| host.uid == 0 && owner != 0);
    listed.filter(|_| is_unfit).unwrap_or(&host.home)
}

fn owner(path: &Path) -> Option<u32> {
    Some(std::fs::metadata(path).ok()?.uid())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(uid: u32, home: &str) -> Host {
        Host {
            uid,
            gid: uid,
            home: home.into(),
            other_home: Some("/srv/listed".into()),
            landlock_abi: 0,
            spare_id: None,
        }
    }

    fn folder(state_home: Option<&str>, host: &Host) -> PathBuf {
        let variable = |name: &str| {
            assert_eq!(name, STATE_HOME);
            state_home.map(OsString::from)
        };
        audit_folder(&variable, host)
    }

    #[test]
    fn the_log_is_where_state_is_kept() {
        let mut host = host(1000, "/home/u");
        host.other_home = None;
        let default = Path::new("/home/u/.local/state/ringfence/audit");
        assert_eq!(folder(None, &host), default);
        for relative in ["", "state", "./state"] {
            assert_eq!(folder(Some(relative), &host), default, "{relative:?}");
        }
        assert_eq!(
            folder(Some("/state"), &host),
            Path::new("/state/ringfence/audit")
        );
    }

    #[test]
    fn the_log_is_in_a_home_that_is_there_and_ones_own() {
        let cases = [
            (0, Some(1000), "/srv/listed"),
            (0, Some(0), "/home/u"),
            (0, None, "/srv/listed"),
            (1000, None, "/srv/listed"),
            (1000, Some(1001), "/home/u"),
        ];
        for (uid, owner, home) in cases {
            let host = host(uid, "/home/u");
            assert_eq!(own_home(&host, owner), Path::new(home), "{uid} {owner:?}");
        }
    }
}
