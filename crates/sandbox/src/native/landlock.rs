//! Landlock, as a second layer under the mounts. Most of its rules are about
//! files that are the same outside and inside, and for those the supervisor
//! makes them, while the init builds the view.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use ringfence_sys::{Channel, Errno, FsAccess, Received, Ruleset};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

use super::failure::{During, Failure};
use crate::plan::Plan;
use crate::view::{Base, View};
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
    let is_done = |path: &Path, access| same.contains(path) && grant(&ruleset, path, access);
    let left: Vec<usize> = rules
        .iter()
        .enumerate()
        .filter(|(_, (path, access))| !is_done(path, *access))
        .map(|(number, _)| number)
        .collect();
    (left.len() <= MOST_LEFT).then_some((ruleset, left))
}

/// False if this has to be done by the init: there is a link on the way, which
/// may lead elsewhere inside.
fn grant(ruleset: &Ruleset, path: &Path, access: FsAccess) -> bool {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
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
    covered: HashSet<&'a OsStr>,
}

impl<'a> SameOutside<'a> {
    fn of(view: &'a View) -> Self {
        let overlays = view.overlays.iter();
        let covered = overlays.map(|overlay| overlay.path.as_os_str());
        Self {
            is_host: view.base == Base::Host,
            covered: covered.chain(["/dev", "/proc"].map(OsStr::new)).collect(),
        }
    }

    fn contains(&self, path: &Path) -> bool {
        let is_covered = |path: &Path| self.covered.contains(path.as_os_str());
        self.is_host && !path.ancestors().any(is_covered)
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
    use crate::view::{Content, Overlay};

    #[test]
    fn g4_what_the_view_covers_is_not_granted_outside() {
        let overlays = ["/tmp", "/root/.ssh", "/etc/group"].map(|path| Overlay {
            path: path.into(),
            content: Content::Scratch,
        });
        let view = View::new(Base::Host, overlays.to_vec());
        let same = SameOutside::of(&view);
        for path in ["/", "/etc", "/etc/passwd", "/root", "/usr/lib", "/tmpfiles"] {
            assert!(same.contains(Path::new(path)), "{path}");
        }
        for path in [
            "/tmp",
            "/tmp/a/b",
            "/root/.ssh/id",
            "/etc/group",
            "/dev/shm",
            "/proc",
        ] {
            assert!(!same.contains(Path::new(path)), "{path}");
        }
        let only = View::new(Base::Only(vec!["/usr".into()]), Vec::new());
        assert!(!SameOutside::of(&only).contains(Path::new("/usr")));
    }
}
