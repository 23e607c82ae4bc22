//! [`WritablePlaces`]: what code inside can change on the host, and whether a
//! path leads through it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;

/// The folders and files that code inside may write to.
#[derive(Debug, Clone, Default)]
pub(crate) struct WritablePlaces(Vec<Root>);

/// One of them, with its links resolved.
#[derive(Debug, Clone)]
struct Root {
    path: PathBuf,
    /// Known again where it is mounted a second time, or spelled otherwise.
    id: Option<FileId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

/// Where a path leads, and through what.
#[derive(Debug)]
pub(super) struct Way {
    /// Its end, without links, as far as that is there.
    pub(super) end: PathBuf,
    /// The first place on it that code inside can change.
    pub(super) changeable: Option<PathBuf>,
    /// The first such place that is a link.
    pub(super) changeable_link: Option<PathBuf>,
}

impl WritablePlaces {
    /// These places; what is not there cannot be written to.
    pub(crate) fn new(places: impl IntoIterator<Item = PathBuf>) -> Self {
        let roots = places.into_iter().map(|place| {
            let path = std::fs::canonicalize(&place).unwrap_or(place);
            let id = FileId::of(&path);
            Root { path, id }
        });
        Self(roots.collect())
    }

    /// Whether a path leads through one of the places.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        self.way(path).changeable.is_some()
    }

    fn has_above(&self, path: &Path) -> bool {
        self.0.iter().any(|root| path.starts_with(&root.path))
    }

    /// The place of which a text speaks, wherever in it.
    pub(super) fn named_in(&self, text: &str) -> Option<&Path> {
        let roots = self.0.iter().map(|root| root.path.as_path());
        let mut named = roots.filter(|root| root.to_str().is_some_and(|root| names(text, root)));
        named.next()
    }

    /// Follows a path as the kernel would, from the root folder if it is
    /// relative.
    pub(super) fn way(&self, path: &Path) -> Way {
        let mut walk = Walk {
            places: self,
            left: VecDeque::new(),
            has_passed_root: false,
            way: Way {
                end: PathBuf::from("/"),
                changeable: None,
                changeable_link: None,
            },
        };
        walk.turn(path);
        walk.follow()
    }

    fn has_id(&self, path: &Path) -> bool {
        let id = FileId::of(path);
        id.is_some() && self.0.iter().any(|root| root.id == id)
    }
}

impl FileId {
    fn of(path: &Path) -> Option<Self> {
        let about = std::fs::symlink_metadata(path).ok()?;
        Some(Self {
            device: about.dev(),
            inode: about.ino(),
        })
    }
}

/// A way while it is followed.
struct Walk<'a> {
    places: &'a WritablePlaces,
    left: VecDeque<Part>,
    has_passed_root: bool,
    way: Way,
}

enum Part {
    Up,
    Name(OsString),
}

impl Walk<'_> {
    fn follow(mut self) -> Way {
        let mut links = 0;
        while let Some(part) = self.left.pop_front() {
            let Part::Name(name) = part else {
                self.way.end.pop();
                continue;
            };
            let place = self.way.end.join(name);
            let target = std::fs::read_link(&place).ok();
            self.pass(&place, target.is_some());
            match target {
                Some(target) if links < MOST_LINKS => {
                    links += 1;
                    self.turn(&target);
                }
                _ => self.way.end = place,
            }
        }
        self.way
    }

    /// Goes on to where a link leads, before all that is left.
    fn turn(&mut self, target: &Path) {
        if target.is_absolute() {
            self.way.end = PathBuf::from("/");
        }
        for component in target.components().rev() {
            match component {
                Component::Normal(name) => self.left.push_front(Part::Name(name.to_owned())),
                Component::ParentDir => self.left.push_front(Part::Up),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
    }

    fn pass(&mut self, place: &Path, is_link: bool) {
        self.has_passed_root |= self.places.has_id(place);
        if !self.has_passed_root && !self.places.has_above(place) {
            return;
        }
        let place = || place.to_path_buf();
        self.way.changeable.get_or_insert_with(place);
        if is_link {
            self.way.changeable_link.get_or_insert_with(place);
        }
    }
}

/// Whether `path` is in a text, not as a part of another name.
fn names(text: &str, path: &str) -> bool {
    let is_of_name = |c: char| c.is_alphanumeric() || "._-".contains(c);
    text.match_indices(path).any(|(start, _)| {
        let goes_on = text[start + path.len()..].starts_with(is_of_name);
        let has_begun = text[..start].ends_with(is_of_name);
        !goes_on && !has_begun
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            std::fs::create_dir_all(place.path("project/sub")).unwrap();
            std::fs::create_dir(place.path("safe")).unwrap();
            place
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(name)
        }

        fn way(&self, path: impl AsRef<Path>) -> Way {
            WritablePlaces::new([self.path("project")]).way(path.as_ref())
        }
    }

    #[test]
    fn g4_a_way_through_a_writable_place_is_known() {
        let place = Place::new();
        symlink(place.path("project/sub"), place.path("safe/in")).unwrap();
        symlink(place.path("safe"), place.path("project/out")).unwrap();
        symlink("../project/out", place.path("safe/round")).unwrap();
        let relative = place.path("project/x");
        for path in [
            place.path("project"),
            place.path("project/sub/none/such"),
            place.path("project/../safe"),
            place.path("safe/in/x"),
            place.path("safe/round/x"),
            relative.strip_prefix("/").unwrap().to_owned(),
        ] {
            assert!(place.way(&path).changeable.is_some(), "{path:?}");
        }
        for path in ["safe", "safe/none/such", "safe/../safe/x", "projecting"] {
            assert_eq!(place.way(place.path(path)).changeable, None, "{path}");
        }
    }

    #[test]
    fn a_way_ends_where_the_kernel_would() {
        let place = Place::new();
        symlink("../safe", place.path("project/out")).unwrap();
        symlink(place.path("safe/loop"), place.path("safe/loop")).unwrap();
        let way = place.way(place.path("project/out/../safe/x"));
        assert_eq!(way.end, place.path("safe/x"));
        assert_eq!(way.changeable_link, Some(place.path("project/out")));
        assert_eq!(
            place.way(place.path("safe/loop")).end,
            place.path("safe/loop")
        );
        assert_eq!(
            place.way(place.path("project/sub/file")).changeable_link,
            None
        );
    }

    #[test]
    fn g4_a_place_is_known_again_by_another_name() {
        let place = Place::new();
        let mut places = WritablePlaces::new([place.path("project")]);
        places.0[0].path = "/spelled/otherwise".into();
        assert!(
            places
                .way(&place.path("project/sub/x"))
                .changeable
                .is_some()
        );
        assert_eq!(places.way(&place.path("safe/x")).changeable, None);
    }

    #[test]
    fn a_place_is_found_in_a_text() {
        let places = WritablePlaces::new(["/w/my folder".into(), "/srv".into()]);
        for text in ["'/w/my folder/x'", "a=/srv", "cat /srv/y", "/srv"] {
            assert!(places.named_in(text).is_some(), "{text}");
        }
        for text in ["", "https://h/srv", "/srv2", "/srv-2/x", "x/srv"] {
            assert_eq!(places.named_in(text), None, "{text}");
        }
    }
}
