//! Where ringfence keeps what is its own, as the XDG Base Directory
//! Specification has it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ringfence_sandbox::Host;

use crate::host_env::HostEnv;

/// Each below the directory that the variable names, or else below the usual
/// one in the home. As the specification wants it, a relative value counts as
/// none.
const STATE: (&str, &str) = ("XDG_STATE_HOME", ".local/state");
const DATA: (&str, &str) = ("XDG_DATA_HOME", ".local/share");
const CACHE: (&str, &str) = ("XDG_CACHE_HOME", ".cache");

/// The directories of a user.
#[derive(Debug, Clone)]
pub struct Directories {
    /// The audit log.
    pub audit: PathBuf,
    /// The secret store.
    pub secrets: PathBuf,
    /// What was approved.
    pub approvals: PathBuf,
    /// What is to be swept, and what was moved to quarantine.
    pub guard: PathBuf,
    /// Homes that are kept.
    pub homes: PathBuf,
    /// Kits that were fetched.
    pub kits: PathBuf,
}

impl Directories {
    /// Those of the user whose variables these are.
    pub fn of(env: &HostEnv, host: &Host) -> Self {
        let own = |usual, name: &str| {
            user_directory(usual, env, host)
                .join("ringfence")
                .join(name)
        };
        Self {
            audit: own(STATE, "audit"),
            secrets: own(DATA, "secrets"),
            approvals: own(STATE, "approvals"),
            guard: own(STATE, "guard"),
            homes: own(STATE, "homes"),
            kits: own(CACHE, "kits"),
        }
    }

    /// Those that no command may read or write, there or not.
    pub fn closed(&self) -> [&Path; 5] {
        [
            &self.audit,
            &self.secrets,
            &self.approvals,
            &self.guard,
            &self.homes,
        ]
    }
}

fn user_directory((name, usual): (&str, &str), env: &HostEnv, host: &Host) -> PathBuf {
    let named = env.variable(name).map(PathBuf::from);
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
    use std::ffi::OsString;

    use ringfence_sandbox::BusVariables;

    use super::*;

    fn host(uid: u32, home: &str) -> Host {
        Host {
            uid,
            gid: uid,
            home: home.into(),
            other_home: Some("/srv/listed".into()),
            landlock_abi: 0,
            spare_id: None,
            bus: BusVariables::default(),
        }
    }

    fn folder(state_home: Option<&str>, host: &Host) -> PathBuf {
        let named = state_home.map(|value| (STATE.0.into(), value.into()));
        let variables: Vec<(OsString, OsString)> = named.into_iter().collect();
        Directories::of(&HostEnv::new(variables, None), host).audit
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
