//! Which ids the sandbox has, inside and on the host.

use ringfence_sys::IdMap;

use crate::host::Host;

/// The id inside when the one outside is root's, which is never shown.
const INSIDE_ID: u32 = 1000;
/// The name of that user inside.
pub(crate) const USER_NAME: &str = "ringfence";

/// The mapping, and who writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ids {
    pub(crate) map: IdMap,
    /// The ids are not the starter's own, so the starter, root, must map them.
    pub(crate) mapped_by_supervisor: bool,
}

impl Ids {
    /// An ordinary user keeps the own id. Ids beyond it would need a
    /// set-user-id helper and give a command without capabilities nothing.
    /// Root gets a spare id on the host, because even without capabilities
    /// root's own id owns much of the machine.
    pub(crate) fn choose(host: &Host) -> Self {
        match (host.uid, host.spare_id) {
            (0, Some(spare)) => Self {
                map: IdMap {
                    inside_uid: INSIDE_ID,
                    inside_gid: INSIDE_ID,
                    outside_uid: spare,
                    outside_gid: spare,
                },
                mapped_by_supervisor: true,
            },
            (0, None) => Self::own((0, host.gid), (INSIDE_ID, INSIDE_ID)),
            (uid, _) => Self::own((uid, host.gid), (uid, host.gid)),
        }
    }

    fn own(outside: (u32, u32), inside: (u32, u32)) -> Self {
        let map = IdMap {
            inside_uid: inside.0,
            inside_gid: inside.1,
            outside_uid: outside.0,
            outside_gid: outside.1,
        };
        Self {
            map,
            mapped_by_supervisor: false,
        }
    }

    pub(crate) fn use_own_id(&mut self) {
        *self = Self::own((0, 0), (INSIDE_ID, INSIDE_ID));
    }

    pub(crate) fn is_host_root(&self) -> bool {
        self.map.outside_uid == 0
    }

    pub(crate) fn describe(&self) -> String {
        let IdMap {
            inside_uid,
            outside_uid,
            ..
        } = self.map;
        match (self.mapped_by_supervisor, outside_uid) {
            (true, _) => format!("{inside_uid} inside, {outside_uid} outside, files id-mapped"),
            (false, 0) => format!("{inside_uid} inside, root outside"),
            (false, _) => format!("{outside_uid}, the starter's own"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::BusVariables;

    fn host(uid: u32, spare_id: Option<u32>) -> Host {
        Host {
            uid,
            gid: uid,
            home: "/".into(),
            other_home: None,
            landlock_abi: 1,
            spare_id,
            bus: BusVariables::default(),
        }
    }

    #[test]
    fn root_is_never_behind_the_sandbox_where_there_is_another_id() {
        let ids = Ids::choose(&host(0, Some(7)));
        assert!(!ids.is_host_root() && ids.map.inside_uid != 0 && ids.mapped_by_supervisor);
    }

    #[test]
    fn an_ordinary_user_keeps_the_own_id() {
        let ids = Ids::choose(&host(1234, None));
        assert_eq!((ids.map.inside_uid, ids.map.outside_uid), (1234, 1234));
        assert!(!ids.mapped_by_supervisor);
    }
}
