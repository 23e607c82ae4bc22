//! [`Approvals`]: what the operator has let files and kits have, by content.
//!
//! An approval holds for one content: whatever changes it needs another. That
//! of a file holds where it lies, too: what it says depends on its folder, and
//! a copy in another one is somebody else's.

use std::path::{Path, PathBuf};

use ringfence_audit::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::digest::ContentDigest;
use super::folder::{FolderError, PrivateFolder};

const FILE: &str = "approvals.json";
const VERSION: u32 = 1;
/// The most bytes of all approvals together.
const LARGEST: usize = 16 * 1024 * 1024;
/// The fewest digits of a sum that name an approval.
const SHORTEST_PREFIX: usize = 8;

/// What is approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// The file's path, or the kit as it was named.
    pub name: String,
    /// Its content.
    pub digest: ContentDigest,
}

/// One approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// What was approved.
    pub subject: Subject,
    /// The services whose secrets it may use.
    pub services: Vec<String>,
    /// What it could do, to tell whether another content of it can do more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<Value>,
    /// When.
    pub at: Timestamp,
}

impl Subject {
    /// A file, by its path without links.
    pub fn file(path: &Path, digest: ContentDigest) -> Self {
        let name = match path.to_str() {
            Some(text) => text.to_owned(),
            // No two paths have the same name, and none of these is a path.
            None => format!(
                "bytes {}",
                path.as_os_str().as_encoded_bytes().escape_ascii()
            ),
        };
        Self { name, digest }
    }
}

impl Approval {
    /// Whether `service` is among the approved.
    pub fn names(&self, service: &str) -> bool {
        self.services.iter().any(|known| known == service)
    }
}

/// Why approvals cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalsError {
    /// The folder or its file.
    #[error("approvals: {0}")]
    Folder(#[from] FolderError),
    /// Not what we wrote.
    #[error("{}: not a list of approvals of this version: {error}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Why.
        error: serde_json::Error,
    },
    /// Another version wrote it.
    #[error("{}: of version {version}, which this ringfence does not know", .path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// As written there.
        version: u32,
    },
    /// There are too many.
    #[error("there are too many approvals")]
    TooMany,
}

impl ApprovalsError {
    /// A stable name for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Folder(_) => "approvals-unavailable",
            Self::Damaged { .. } | Self::Version { .. } => "approvals-damaged",
            Self::TooMany => "approvals-full",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Folder(error) => error.hint(),
            Self::Damaged { .. } | Self::Version { .. } => {
                "move the file away and approve anew what is needed: ringfence trust FILE"
            }
            Self::TooMany => "see which are not needed any more: ringfence trust --list",
        }
    }
}

/// The approvals of one user.
#[derive(Debug)]
pub struct Approvals {
    folder: PrivateFolder,
    list: Vec<Approval>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    approvals: Vec<Approval>,
}

impl Approvals {
    /// Reads the approvals of a folder, which is made where it is missing: what
    /// is there can be kept from a sandbox.
    pub fn open(folder: &Path) -> Result<Self, ApprovalsError> {
        let folder = PrivateFolder::make(folder)?;
        let list = read(&folder)?;
        Ok(Self { folder, list })
    }

    /// Every approval, the oldest first.
    pub fn list(&self) -> &[Approval] {
        &self.list
    }

    /// Whether this was approved, by this name and with this content.
    pub fn is_trusted(&self, subject: &Subject) -> bool {
        let mut list = self.list.iter();
        list.any(|approval| approval.subject == *subject)
    }

    /// Whether this may use the secret of `service`.
    pub fn is_approved(&self, subject: &Subject, service: &str) -> bool {
        let mut list = self.list.iter();
        list.any(|approval| approval.subject == *subject && approval.names(service))
    }

    /// What was approved of this content by whatever name: for kits, which are
    /// their content and nothing else.
    pub fn of_content(&self, digest: &ContentDigest) -> impl Iterator<Item = &Approval> {
        let digest = *digest;
        let list = self.list.iter();
        list.filter(move |approval| approval.subject.digest == digest)
    }

    /// The latest approval of whatever has this name.
    pub fn of_subject(&self, name: &str) -> Option<&Approval> {
        let mut named = self.list.iter().rev();
        named.find(|approval| approval.subject.name == name)
    }

    /// Adds an approval; one of the same content by the same name makes way.
    pub fn approve(
        &mut self,
        subject: Subject,
        services: Vec<String>,
        surface: Option<Value>,
    ) -> Result<(), ApprovalsError> {
        let approval = Approval {
            subject,
            services,
            surface,
            at: Timestamp::now(),
        };
        self.change(|list| {
            list.retain(|known| known.subject != approval.subject);
            list.push(approval);
        })
    }

    /// Takes back every approval by this name, or whose sum begins so, and
    /// says how many there were.
    pub fn remove(&mut self, wanted: &str) -> Result<usize, ApprovalsError> {
        let is_sum = wanted.len() >= SHORTEST_PREFIX;
        let is_meant = |known: &Approval| {
            known.subject.name == wanted
                || is_sum && known.subject.digest.to_string().starts_with(wanted)
        };
        let mut removed = 0;
        self.change(|list| {
            let before = list.len();
            list.retain(|known| !is_meant(known));
            removed = before - list.len();
        })?;
        Ok(removed)
    }

    /// Changes what is on the disk by now, not what was there when it was
    /// opened.
    fn change(&mut self, edit: impl FnOnce(&mut Vec<Approval>)) -> Result<(), ApprovalsError> {
        let locked = self.folder.lock()?;
        let mut approvals = read(&self.folder)?;
        edit(&mut approvals);
        let document = Document {
            version: VERSION,
            approvals,
        };
        let text = serde_json::to_vec_pretty(&document).map_err(|error| self.damaged(error))?;
        if text.len() > LARGEST {
            return Err(ApprovalsError::TooMany);
        }
        locked.replace(FILE, &text)?;
        drop(locked);
        self.list = document.approvals;
        Ok(())
    }

    fn damaged(&self, error: serde_json::Error) -> ApprovalsError {
        let path = self.folder.path_of(FILE);
        ApprovalsError::Damaged { path, error }
    }
}

fn read(folder: &PrivateFolder) -> Result<Vec<Approval>, ApprovalsError> {
    let Some(text) = folder.read(FILE, LARGEST)? else {
        return Ok(Vec::new());
    };
    let path = || folder.path_of(FILE);
    let document: Document = serde_json::from_slice(&text).map_err(|error| {
        let path = path();
        ApprovalsError::Damaged { path, error }
    })?;
    match document.version {
        VERSION => Ok(document.approvals),
        version => Err(ApprovalsError::Version {
            path: path(),
            version,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(name: &str, content: &str) -> Subject {
        Subject {
            name: name.to_owned(),
            digest: ContentDigest::of(content.as_bytes()),
        }
    }

    fn approved(folder: &Path, name: &str, content: &str, services: &[&str]) -> Approvals {
        let mut approvals = Approvals::open(folder).unwrap();
        let services = services.iter().map(ToString::to_string).collect();
        let surface = Some(Value::from(content));
        let subject = subject(name, content);
        approvals.approve(subject, services, surface).unwrap();
        approvals
    }

    #[test]
    fn g5_an_approval_holds_for_one_content_and_its_services() {
        let place = tempfile::tempdir().unwrap();
        approved(place.path(), "/w/a.toml", "one", &["forge"]);
        let approvals = Approvals::open(place.path()).unwrap();
        let own = subject("/w/a.toml", "one");
        assert!(approvals.is_trusted(&own) && approvals.is_approved(&own, "forge"));
        assert!(!approvals.is_approved(&own, "mail"));
        for other in [subject("/w/a.toml", "one "), subject("/v/a.toml", "one")] {
            assert!(!approvals.is_trusted(&other) && !approvals.is_approved(&other, "forge"));
        }
        assert_eq!(approvals.of_content(&own.digest).count(), 1);
    }

    #[test]
    fn g5_no_two_paths_have_the_same_name() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        let digest = ContentDigest::of(b"one");
        let file = |path: &[u8]| Subject::file(Path::new(OsStr::from_bytes(path)), digest);
        let names = [
            &b"/w/a"[..],
            b"/w/\xff",
            b"/w/\xfe",
            "/w/\u{fffd}".as_bytes(),
        ]
        .map(file);
        for (number, name) in names.iter().enumerate() {
            assert!(!names[number + 1..].contains(name), "{name:?}");
        }
        assert_eq!(names[0].name, "/w/a");
    }

    #[test]
    fn the_latest_approval_of_a_name_is_found() {
        let place = tempfile::tempdir().unwrap();
        approved(place.path(), "kit", "one", &[]);
        approved(place.path(), "other", "three", &[]);
        approved(place.path(), "kit", "two", &[]);
        let approvals = approved(place.path(), "kit", "two", &["forge"]);
        assert_eq!(approvals.list().len(), 3);
        let latest = approvals.of_subject("kit").unwrap();
        assert_eq!(latest.surface, Some(Value::from("two")));
        assert_eq!(latest.services, ["forge"]);
        assert!(approvals.of_subject("none").is_none());
    }

    #[test]
    fn approvals_are_taken_back_by_name_or_sum() {
        let place = tempfile::tempdir().unwrap();
        let mut stale = approved(place.path(), "/w/a", "one", &[]);
        approved(place.path(), "/w/b", "two", &[]);
        assert_eq!(stale.remove("/w").unwrap(), 0);
        assert_eq!(stale.list().len(), 2, "what others added is kept");
        assert_eq!(stale.remove("/w/a").unwrap(), 1);
        let sum = ContentDigest::of(b"two").to_string();
        assert_eq!(stale.remove(&sum[..7]).unwrap(), 0);
        assert_eq!(stale.remove(&sum[..8]).unwrap(), 1);
        assert!(Approvals::open(place.path()).unwrap().list().is_empty());
    }

    #[test]
    fn g5_a_list_that_is_none_of_ours_is_an_error() {
        let place = tempfile::tempdir().unwrap();
        approved(place.path(), "/w/a", "one", &[]);
        let file = place.path().join(FILE);
        let text = std::fs::read_to_string(&file).unwrap();
        for (damage, code) in [
            (String::new(), "approvals-damaged"),
            (text.replace('{', "["), "approvals-damaged"),
            (
                text.replace("\"services\"", "\"services2\""),
                "approvals-damaged",
            ),
            (
                text.replace("\"version\": 1", "\"version\": 2"),
                "approvals-damaged",
            ),
        ] {
            std::fs::write(&file, damage).unwrap();
            assert_eq!(Approvals::open(place.path()).unwrap_err().code(), code);
        }
    }
}
