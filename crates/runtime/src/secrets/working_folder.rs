//! `ringfence.toml` of the working folder: used only after `ringfence trust`,
//! and only as it was then.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use ringfence_policy::{
    Layer, LayerKind, Origin, PathContext, PolicyError, Profile, Row, SourceError, SrtError,
    builtin_layers, read_srt, read_toml, read_yaml, resolve, rows,
};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::approvals::{Approvals, Subject};
use super::digest::ContentDigest;
use crate::place::place_where_it_is;

/// What the file is called.
pub const WORKING_FOLDER_FILE: &str = "ringfence.toml";
/// The largest one, in bytes.
const LARGEST: u64 = 1024 * 1024;

/// How often a file may be replaced while it is opened.
const MOST_TRIES: usize = 16;

/// A file whose content somebody may approve.
#[derive(Debug)]
pub struct Candidate {
    /// Where it is, without links.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
    /// What it is known again by.
    pub digest: ContentDigest,
}

/// What the working folder has to say.
#[derive(Debug, Default)]
pub struct FolderPolicy {
    /// Its layer, if it is trusted.
    pub layer: Option<Layer>,
    /// Why it is not used, for people.
    pub note: Option<String>,
    /// The file, used or not, which code under its policy must not change.
    pub file: Option<PathBuf>,
}

/// Why the file of a working folder cannot be used. Nothing was run.
#[derive(Debug, thiserror::Error)]
pub enum WorkingFolderError {
    /// It cannot be read.
    #[error("{}: {error}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Something else has its name.
    #[error("{}: not a regular file", .path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
    },
    /// It is absurdly large.
    #[error("{}: larger than {LARGEST} bytes", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is trusted, and wrong.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// As settings of `srt` it is wrong.
    #[error(transparent)]
    Srt(#[from] SrtError),
    /// It makes no policy.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

/// What a file asks for.
#[derive(Debug)]
pub struct Asked {
    /// The services whose secrets it wants to use.
    pub services: Vec<String>,
    /// Everything, line by line.
    pub rows: Vec<Row>,
}

impl WorkingFolderError {
    /// A stable name for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } | Self::NotAFile { .. } => "file-unreadable",
            Self::TooLarge { .. } => "file-too-large",
            Self::Source(error) => error.code(),
            Self::Srt(error) => error.code(),
            Self::Policy(error) => error.code(),
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "check the path and that you may read it",
            Self::NotAFile { .. } => "name a regular file; links are not followed",
            Self::TooLarge { .. } => "a policy is a small text file",
            Self::Source(error) => error.hint(),
            Self::Srt(error) => error.hint(),
            Self::Policy(error) => error.hint(),
        }
    }
}

impl Candidate {
    /// Reads a file, whose last part is no link; `None` if there is none.
    pub fn read(path: &Path) -> Result<Option<Self>, WorkingFolderError> {
        for _ in 0..MOST_TRIES {
            let Some(file) = open_plain(path)? else {
                return Ok(None);
            };
            // A folder on the way may have become a link to another by now. One
            // that was replaced meanwhile has no place.
            let Some(place) = place_where_it_is(&file) else {
                continue;
            };
            let mut text = String::new();
            let read = file.take(LARGEST + 1).read_to_string(&mut text);
            if read.map_err(|error| unreadable(path, error))? as u64 > LARGEST {
                let path = path.to_path_buf();
                return Err(WorkingFolderError::TooLarge { path });
            }
            return Ok(Some(Self::of_text(place, text)));
        }
        Err(unreadable(path, Errno::BUSY.into()))
    }

    /// What a file of that text would be.
    pub(crate) fn of_text(path: PathBuf, text: String) -> Self {
        Self {
            digest: ContentDigest::of(text.as_bytes()),
            path,
            text,
        }
    }

    /// What is approved: this content in this place.
    pub fn subject(&self) -> Subject {
        Subject::file(&self.path, self.digest)
    }

    /// What it says, with the operator's authority: `.json` is settings of
    /// `srt`, `.toml` is TOML, anything else YAML.
    fn layer(&self, paths: &PathContext) -> Result<Layer, WorkingFolderError> {
        let (text, origin) = (&self.text, &self.origin());
        Ok(match self.kind() {
            LayerKind::SrtSettings => read_srt(text, origin, paths)?.layer,
            _ if self.ends_with("toml") => read_toml(text, origin, paths)?,
            _ => read_yaml(text, origin, paths)?,
        })
    }

    fn origin(&self) -> Origin {
        Origin::new(self.kind(), self.path.display().to_string())
    }

    fn kind(&self) -> LayerKind {
        if self.path.ends_with(WORKING_FOLDER_FILE) {
            LayerKind::Config
        } else if self.ends_with("json") {
            LayerKind::SrtSettings
        } else {
            LayerKind::Policy
        }
    }

    fn ends_with(&self, extension: &str) -> bool {
        let own = self.path.extension();
        own.is_some_and(|own| own.eq_ignore_ascii_case(extension))
    }

    /// What it would add to the built-in policy.
    pub fn asked(&self, paths: &PathContext) -> Result<Asked, WorkingFolderError> {
        let layer = self.layer(paths)?;
        let credentials = layer.credentials.iter().flatten();
        let services = credentials.map(|credential| credential.service.clone());
        let services = services.collect();
        let requests = layer.requests.as_ref().map(|rule| Row {
            section: "requests",
            entry: format!("{:?}", rule.value).to_lowercase(),
            origin: rule.origin.clone(),
        });
        let mut layers = builtin_layers(Profile::Default, paths);
        layers.push(layer);
        let mut rows = rows(&resolve(layers, None)?);
        let own = self.origin();
        // No other layer here names a preset.
        rows.retain(|row| {
            let is_own = row.origin.layer == own.layer && row.origin.name == own.name;
            is_own || row.origin.layer == LayerKind::Preset
        });
        rows.extend(requests);
        Ok(Asked { services, rows })
    }
}

/// What `folder` says about runs in it: a layer with the operator's authority
/// where its file is trusted, else a note. A file that is not is not looked
/// into.
pub fn working_folder_layer(
    folder: &Path,
    approvals: &Approvals,
    paths: &PathContext,
) -> Result<FolderPolicy, WorkingFolderError> {
    let Some(found) = Candidate::read(&folder.join(WORKING_FOLDER_FILE))? else {
        return Ok(FolderPolicy::default());
    };
    if !approvals.is_trusted(&found.subject()) {
        return Ok(FolderPolicy {
            layer: None,
            note: Some(not_used(&found, approvals)),
            file: Some(found.path),
        });
    }
    Ok(FolderPolicy {
        layer: Some(found.layer(paths)?),
        note: None,
        file: Some(found.path),
    })
}

fn not_used(found: &Candidate, approvals: &Approvals) -> String {
    let path = &found.path;
    let was_trusted = approvals.of_subject(&found.subject().name).is_some();
    let why = if was_trusted {
        "has changed since it was trusted"
    } else {
        "is not trusted"
    };
    format!(
        "{} {why} and is not used; to look at it and use it: ringfence trust {}",
        path.display(),
        path.display()
    )
}

fn unreadable(path: &Path, error: std::io::Error) -> WorkingFolderError {
    WorkingFolderError::Unreadable {
        path: path.to_path_buf(),
        error,
    }
}

/// A regular file; `None` if there is none.
fn open_plain(path: &Path) -> Result<Option<File>, WorkingFolderError> {
    let not_a_file = || WorkingFolderError::NotAFile {
        path: path.to_path_buf(),
    };
    // Without waiting: a pipe of that name would have no end.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(not_a_file()),
        opened => opened.map_err(|errno| unreadable(path, errno.into()))?,
    };
    let stat = rustix::fs::fstat(&file).map_err(|errno| unreadable(path, errno.into()))?;
    if FileType::from_raw_mode(stat.st_mode).is_file() {
        Ok(Some(File::from(file)))
    } else {
        Err(not_a_file())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Place {
        working: tempfile::TempDir,
        state: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Self {
            Self {
                working: tempfile::tempdir().unwrap(),
                state: tempfile::tempdir().unwrap(),
            }
        }

        fn file(&self) -> PathBuf {
            self.working.path().join(WORKING_FOLDER_FILE)
        }

        fn trust(&self) {
            let candidate = Candidate::read(&self.file()).unwrap().unwrap();
            let mut approvals = Approvals::open(self.state.path()).unwrap();
            let approved = approvals.approve(candidate.subject(), Vec::new(), None);
            approved.unwrap();
        }

        fn look(&self) -> Result<FolderPolicy, WorkingFolderError> {
            let approvals = Approvals::open(self.state.path()).unwrap();
            let paths = PathContext {
                home: "/home/u".into(),
                base: self.working.path().into(),
            };
            working_folder_layer(self.working.path(), &approvals, &paths)
        }
    }

    const TEXT: &str =
        "version = 1\n[network]\nmode = \"allowlist\"\nallow = [\"api.example.org\"]\n";

    #[test]
    fn g1_the_file_of_a_folder_counts_only_as_it_was_trusted() {
        let place = Place::new();
        let nothing = place.look().unwrap();
        assert!(nothing.layer.is_none() && nothing.note.is_none() && nothing.file.is_none());
        std::fs::write(place.file(), TEXT).unwrap();
        let untrusted = place.look().unwrap();
        assert!(untrusted.layer.is_none() && untrusted.note.unwrap().contains("is not trusted"));
        place.trust();
        let trusted = place.look().unwrap();
        assert!(trusted.note.is_none() && trusted.file == Some(place.file()));
        assert_eq!(trusted.layer.unwrap().network.allow.unwrap().len(), 1);
        std::fs::write(place.file(), TEXT.replace("api", "evil")).unwrap();
        let changed = place.look().unwrap();
        assert!(changed.layer.is_none() && changed.note.unwrap().contains("has changed"));
    }

    #[test]
    fn g5_a_copy_in_another_folder_is_not_trusted() {
        let place = Place::new();
        std::fs::write(place.file(), TEXT).unwrap();
        place.trust();
        let copy = Place {
            working: tempfile::tempdir().unwrap(),
            state: place.state,
        };
        std::fs::write(copy.file(), TEXT).unwrap();
        let found = copy.look().unwrap();
        assert!(found.layer.is_none() && found.note.unwrap().contains("is not trusted"));
    }

    #[test]
    fn g5_a_file_is_known_by_where_it_lies_and_not_by_what_leads_there() {
        let place = Place::new();
        std::fs::write(place.file(), TEXT).unwrap();
        let link = place.state.path().join("link");
        symlink(place.working.path(), &link).unwrap();
        let found = Candidate::read(&link.join(WORKING_FOLDER_FILE)).unwrap();
        assert_eq!(found.unwrap().path, place.file().canonicalize().unwrap());
    }

    #[test]
    fn what_is_no_small_regular_file_is_an_error() {
        let place = Place::new();
        let elsewhere = place.state.path().join("elsewhere");
        std::fs::write(&elsewhere, TEXT).unwrap();
        symlink(&elsewhere, place.file()).unwrap();
        let is_refused = || matches!(place.look(), Err(WorkingFolderError::NotAFile { .. }));
        assert!(is_refused());
        std::fs::remove_file(place.file()).unwrap();
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, place.file(), fifo, Mode::RWXU, 0).unwrap();
        assert!(is_refused());
        std::fs::remove_file(place.file()).unwrap();
        let large = "#".repeat(usize::try_from(LARGEST).unwrap() + 1);
        std::fs::write(place.file(), large).unwrap();
        let refused = place.look().unwrap_err();
        assert!(matches!(refused, WorkingFolderError::TooLarge { .. }));
    }

    #[test]
    fn a_trusted_file_that_is_wrong_is_an_error() {
        let place = Place::new();
        std::fs::write(place.file(), "version = 1\nnetwrok = 2\n").unwrap();
        place.look().unwrap();
        place.trust();
        assert!(matches!(place.look(), Err(WorkingFolderError::Source(_))));
    }
}
