//! Landlock, as a second layer under the mounts. Most of its rules are about
//! files that are the same outside and inside, and for those the supervisor
//! makes them, while the init builds the view.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use ringfence_sys::{Channel, Errno, FsAccess, Received, Ruleset};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

use super::failure::{During, Failure};
use crate::plan::Plan;
use crate::view::{Base, Content, Overlay, View};
use crate::wire::{Order, Step};

const TO_GRANT: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// Whether the supervisor begins with the rules: not where it has more to give
/// to the init, which is waited for in another order.
pub(super) fn is_begun_outside(plan: &Plan) -> bool {
    plan.landlock().is_some() && plan.late().is_empty()
}

/// The rules that can be made outside, and the numbers of those that are left
/// to the init, as far as they fit a message: otherwise it makes all of them.
pub(super) fn begin(plan: &Plan) -> Option<(Ruleset, Vec<usize>)> {
    const MOST_LEFT: usize = 1000;
    let rules = plan.landlock()?;
    let ruleset = Ruleset::new().ok()?;
    let same = SameOutside::of(plan.view());
    let is_done = |path: &Path, access| match same.reach(path) {
        Some(resolve) => grant(&ruleset, path, access, resolve),
        None => false,
    };
    let left: Vec<usize> = rules
        .iter()
        .enumerate()
        .filter(|(_, (path, access))| !is_done(path, *access))
        .map(|(number, _)| number)
        .collect();
    (left.len() <= MOST_LEFT).then_some((ruleset, left))
}

/// False if this has to be done by the init: there is something on the way that
/// may lead elsewhere inside.
fn grant(ruleset: &Ruleset, path: &Path, access: FsAccess, resolve: ResolveFlags) -> bool {
    match rustix::fs::openat2(CWD, path, TO_GRANT, Mode::empty(), resolve) {
        Ok(place) => ruleset.grant(place.as_fd(), access).is_ok(),
        Err(errno) => is_nothing(errno),
    }
}

/// Nothing there, or nothing we may reach: nothing to grant.
fn is_nothing(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::ACCESS | Errno::NOTDIR)
}

/// Paths at which the view shows what the host has there.
struct SameOutside<'a> {
    is_host: bool,
    /// What is laid over the host's tree, and whether it is the very place that
    /// it covers, under another owner or writable.
    covers: BTreeMap<&'a OsStr, bool>,
}

impl<'a> SameOutside<'a> {
    /// A link may lead elsewhere inside.
    const NO_LINKS: ResolveFlags = ResolveFlags::NO_SYMLINKS.union(ResolveFlags::NO_MAGICLINKS);

    fn of(view: &'a View) -> Self {
        let overlays = view.overlays.iter();
        let covers = overlays.map(|overlay| (overlay.path.as_os_str(), is_itself(overlay)));
        let own = ["/dev", "/proc"].map(|path| (OsStr::new(path), false));
        Self {
            is_host: view.base == Base::Host,
            covers: covers.chain(own).collect(),
        }
    }

    /// How to get from the host's root to what the view shows at `path`; `None`
    /// where that is something else.
    fn reach(&self, path: &Path) -> Option<ResolveFlags> {
        let mut above = path.ancestors();
        let nearest = above.find_map(|path| self.covers.get(path.as_os_str()));
        match nearest {
            _ if !self.is_host => None,
            None => Some(Self::NO_LINKS),
            // What is mounted below such a place may not show.
            Some(true) => Some(Self::NO_LINKS | ResolveFlags::NO_XDEV),
            Some(false) => None,
        }
    }
}

/// Whether what is shown there is what it covers. Of its files, Landlock knows
/// neither owner nor mount.
fn is_itself(overlay: &Overlay) -> bool {
    match &overlay.content {
        Content::Writable(place) | Content::Shown(place) => place.path == overlay.path,
        _ => false,
    }
}

/// Restricts the calling process, which is in its view already.
pub(super) fn restrict(plan: &Plan, supervisor: &Channel) -> Result<(), Failure> {
    let Some(rules) = plan.landlock() else {
        return Ok(());
    };
    let given = is_begun_outside(plan).then(|| take(supervisor));
    let given = given.transpose().during(Step::Landlock)?.flatten();
    let (ruleset, left) = match given {
        Some((descriptor, left)) => (Ruleset::given(descriptor), left),
        None => (Ruleset::new(), (0..rules.len()).collect()),
    };
    let ruleset = ruleset.during(Step::Landlock)?;
    for number in left {
        let rule = rules.get(number).ok_or(Errno::INVAL);
        let (path, access) = rule.during(Step::Landlock)?;
        match rustix::fs::open(path, TO_GRANT, Mode::empty()) {
            Ok(place) => ruleset
                .grant(place.as_fd(), *access)
                .at(Step::LandlockPlace, path)?,
            Err(Errno::LOOP) => {}
            Err(errno) if is_nothing(errno) => {}
            Err(errno) => return Err(errno).at(Step::LandlockPlace, path),
        }
    }
    ruleset.restrict_self().during(Step::Landlock)
}

fn take(supervisor: &Channel) -> Result<Option<(OwnedFd, Vec<usize>)>, Errno> {
    let Received::Message(bytes, mut descriptors) = supervisor.receive()? else {
        return Err(Errno::PIPE);
    };
    match serde_json::from_slice(&bytes) {
        Ok(Order::Ruleset(left)) => Ok(descriptors.pop().map(|ruleset| (ruleset, left))),
        _ => Err(Errno::PIPE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Place;

    #[test]
    fn g4_what_the_view_covers_is_not_granted_outside() {
        let scratch = ["/tmp", "/var/lib", "/etc/group"].map(|path| Overlay {
            path: path.into(),
            content: Content::Scratch,
        });
        let lib = Place::find(Path::new("/usr/lib")).unwrap().unwrap();
        let shown = ["/usr/lib", "/var/lib/other"].map(|path| Overlay {
            path: path.into(),
            content: Content::Shown(lib.clone()),
        });
        let view = View::new(Base::Host, scratch.into_iter().chain(shown).collect());
        let same = SameOutside::of(&view);
        let reach = |path: &str| same.reach(Path::new(path));
        for path in ["/", "/etc", "/etc/passwd", "/usr", "/tmpfiles"] {
            assert_eq!(reach(path), Some(SameOutside::NO_LINKS), "{path}");
        }
        for path in ["/usr/lib", "/usr/lib/os-release"] {
            let resolve = reach(path).unwrap();
            assert!(resolve.contains(ResolveFlags::NO_XDEV), "{path}");
        }
        for path in [
            "/tmp",
            "/tmp/a/b",
            "/var/lib/id",
            "/var/lib/other/id",
            "/etc/group",
            "/dev/shm",
            "/proc",
        ] {
            assert_eq!(reach(path), None, "{path}");
        }
        let only = View::new(Base::Only(vec!["/usr".into()]), Vec::new());
        assert_eq!(SameOutside::of(&only).reach(Path::new("/usr")), None);
    }
}
