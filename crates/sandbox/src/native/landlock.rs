//! Landlock, as a second layer under the mounts. Most of its rules are about
//! files that are the same outside and inside, and for those the supervisor
//! makes them, while the init builds the view.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ringfence_sys::{Channel, Errno, FsAccess, Received, Ruleset};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

use super::copy_on_write::LaidLayers;
use super::failure::{During, Failure};
use super::late;
use crate::plan::{Grant, LayerGrants, Plan};
use crate::view::{Base, Content, Overlay, View};
use crate::wire::{Order, Step};

const TO_GRANT: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// A list of the rules that are left to the init, and the others, made; nothing
/// where there is no Landlock. If none can be made here, all are left.
pub(super) fn begin(plan: &Plan) -> Result<Option<(OwnedFd, Option<Ruleset>)>, Errno> {
    let Some(grants) = plan.landlock() else {
        return Ok(None);
    };
    let ruleset = Ruleset::new().ok();
    let same = SameOutside::of(plan.view());
    let is_done = |path: &Path, access| match (&ruleset, same.reach(path)) {
        (Some(ruleset), Some(resolve)) => grant(ruleset, path, access, resolve),
        _ => false,
    };
    let rules = grants.rules().iter();
    let left = rules.filter(|(path, access)| !is_done(path, *access));
    let left = late::sealed(&list(left))?;
    Ok(Some((left, ruleset)))
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
pub(super) fn restrict(
    plan: &Plan,
    supervisor: &Channel,
    layers: &LaidLayers,
) -> Result<(), Failure> {
    let Some(grants) = plan.landlock() else {
        return Ok(());
    };
    let (left, ruleset) = take(supervisor).during(Step::Landlock)?;
    let ruleset = ruleset.map_or_else(Ruleset::new, Ruleset::given);
    let ruleset = ruleset.during(Step::Landlock)?;
    // Only here it is known which layers there are.
    let of_layers = grants.layers().iter().flat_map(|own| of_layer(own, layers));
    for (path, access) in left.into_iter().chain(of_layers) {
        match rustix::fs::open(&path, TO_GRANT, Mode::empty()) {
            Ok(place) => ruleset
                .grant(place.as_fd(), access)
                .at(Step::LandlockPlace, &path)?,
            Err(Errno::LOOP) => {}
            Err(errno) if is_nothing(errno) => {}
            Err(errno) => return Err(errno).at(Step::LandlockPlace, &path),
        }
    }
    ruleset.restrict_self().during(Step::Landlock)
}

/// What is granted in a directory with a layer: all of it, or without what can be read and the
/// caches.
fn of_layer(grants: &LayerGrants, layers: &LaidLayers) -> Vec<Grant> {
    let all = |paths: &[PathBuf], access| -> Vec<Grant> {
        paths.iter().map(|path| (path.clone(), access)).collect()
    };
    if layers.laid.contains(&grants.layered) {
        return vec![(grants.layered.clone(), FsAccess::Write)];
    }
    let mut rules = all(&grants.readable, FsAccess::Read);
    rules.extend(all(&grants.caches, FsAccess::Write));
    rules
}

/// The rules that are left to make, and those that are made.
fn take(supervisor: &Channel) -> Result<(Vec<Grant>, Option<OwnedFd>), Errno> {
    let Received::Message(bytes, descriptors) = supervisor.receive()? else {
        return Err(Errno::PIPE);
    };
    let mut descriptors = descriptors.into_iter();
    match (serde_json::from_slice(&bytes), descriptors.next()) {
        (Ok(Order::Ruleset), Some(left)) => {
            let left = listed(&late::content(&left)?).ok_or(Errno::PIPE)?;
            Ok((left, descriptors.next()))
        }
        _ => Err(Errno::PIPE),
    }
}

/// Rules as bytes: of each, a letter for what may be done, and the path up to a
/// NUL.
fn list<'a>(rules: impl Iterator<Item = &'a Grant>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (path, access) in rules {
        bytes.push(letter(*access));
        bytes.extend(path.as_os_str().as_bytes());
        bytes.push(0);
    }
    bytes
}

/// What [`list`] wrote; `None` if it is something else.
fn listed(bytes: &[u8]) -> Option<Vec<Grant>> {
    let rule = |rule: &[u8]| {
        let (letter, rest) = rule.split_first()?;
        let path = rest.strip_suffix(&[0])?;
        Some((PathBuf::from(OsStr::from_bytes(path)), access(*letter)?))
    };
    bytes.split_inclusive(|byte| *byte == 0).map(rule).collect()
}

fn letter(access: FsAccess) -> u8 {
    match access {
        FsAccess::List => b'l',
        FsAccess::Read => b'r',
        FsAccess::Write => b'w',
        FsAccess::Device => b'd',
    }
}

fn access(of: u8) -> Option<FsAccess> {
    use FsAccess::{Device, List, Read, Write};
    [List, Read, Write, Device]
        .into_iter()
        .find(|access| letter(*access) == of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{Gathered, Place};

    #[test]
    fn rules_are_read_as_they_were_written() {
        let odd = OsStr::from_bytes(b"/\xff\n\"l");
        let rules = [
            (PathBuf::from("/"), FsAccess::List),
            (PathBuf::from("/usr"), FsAccess::Read),
            (PathBuf::from(odd), FsAccess::Write),
            (PathBuf::from("/dev"), FsAccess::Device),
        ];
        let bytes = list(rules.iter());
        assert_eq!(listed(&bytes).unwrap(), rules);
        assert_eq!(listed(&[]).unwrap(), []);
        for wrong in [&bytes[..bytes.len() - 1], b"x/\0", b"\0"] {
            assert_eq!(listed(wrong), None);
        }
    }

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
        let anew = [Overlay {
            path: "/srv".into(),
            content: Content::Gathered(Gathered::default()),
        }];
        let overlays = scratch.into_iter().chain(shown).chain(anew);
        let view = View::new(Base::Host, overlays.collect());
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
            "/srv",
            "/srv/a",
            "/dev/shm",
            "/proc",
        ] {
            assert_eq!(reach(path), None, "{path}");
        }
        let only = View::new(Base::Only(vec!["/usr".into()]), Vec::new());
        assert_eq!(SameOutside::of(&only).reach(Path::new("/usr")), None);
    }
}
