//! [`Program`]: what is run for a secret, found once, before the sandbox's own
//! command starts.
//!
//! It runs on the host: nothing that code inside can change may be a part of
//! it, as far as its words tell.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use crate::secrets::sources::Surroundings;
use crate::secrets::writable::WritablePlaces;

/// Where programs are looked for when there is no `PATH`.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// As much as the kernel reads to find a script's interpreter.
const FIRST_LINE: u64 = 256;
/// As many interpreters of interpreters as the kernel goes through.
const MOST_INTERPRETERS: usize = 5;

/// A program that is there and that code inside cannot change.
#[derive(Debug)]
pub(super) struct Program {
    /// Its file, without links.
    pub(super) file: PathBuf,
    /// Where it finds others: `PATH`.
    pub(super) path: OsString,
}

/// Why a program is not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::secrets) enum ProgramError {
    /// It is nowhere.
    #[error("is not there")]
    Missing,
    /// No folder has it.
    #[error("is in no folder of PATH, but for those that code inside can write to")]
    NotFound,
    /// It could be another one tomorrow.
    #[error("leads through {}, which code inside can write to", .0.display())]
    Program(PathBuf),
    /// What interprets it could.
    #[error("is a script whose first line leads through {}, which code inside can write to", .0.display())]
    Interpreter(PathBuf),
    /// An argument may be a script or a configuration.
    #[error("has an argument that leads through {}, which code inside can write to", .0.display())]
    Argument(PathBuf),
    /// Its configuration is there.
    #[error("would find its configuration in {}, which code inside can write to", .0.display())]
    Home(PathBuf),
}

impl ProgramError {
    /// Whether it is not merely missing: code inside could have a say in it.
    pub(in crate::secrets) fn is_unsafe(&self) -> bool {
        !matches!(self, Self::Missing | Self::NotFound)
    }
}

impl Program {
    /// Finds the program of `argv`.
    pub(super) fn find(argv: &[String], around: &Surroundings) -> Result<Self, ProgramError> {
        let (name, arguments) = argv.split_first().ok_or(ProgramError::Missing)?;
        let search = Search { around };
        let path = search.path();
        let found = if name.contains('/') {
            PathBuf::from(name)
        } else {
            look_up(name, &path).ok_or(ProgramError::NotFound)?
        };
        let file = search.settled(&found).map_err(ProgramError::Program)?;
        search.check_interpreter(&file)?;
        for word in arguments {
            let place = search.place_named_in(word);
            place.map_or(Ok(()), |place| Err(ProgramError::Argument(place)))?;
        }
        search.settled(&around.home).map_err(ProgramError::Home)?;
        if !is_program(&file) {
            return Err(ProgramError::Missing);
        }
        Ok(Self { file, path })
    }
}

struct Search<'a> {
    around: &'a Surroundings,
}

impl Search<'_> {
    fn writable(&self) -> &WritablePlaces {
        &self.around.writable
    }

    /// The file that a path leads to, or what code inside can change about
    /// that.
    fn settled(&self, path: &Path) -> Result<PathBuf, PathBuf> {
        let way = self.writable().way(path);
        way.changeable.map_or(Ok(way.end), Err)
    }

    /// The folders in which neither we nor the program may find what code
    /// inside left there are dropped.
    fn path(&self) -> OsString {
        let usual = || OsString::from(USUAL_PATH);
        let given = self.around.path.clone().unwrap_or_else(usual);
        let kept = std::env::split_paths(&given)
            .filter(|folder| folder.is_absolute() && self.settled(folder).is_ok());
        std::env::join_paths(kept).unwrap_or_default()
    }

    fn check_interpreter(&self, file: &Path) -> Result<(), ProgramError> {
        let mut file = file.to_path_buf();
        for _ in 0..MOST_INTERPRETERS {
            let Some(line) = interpreter(&file) else {
                return Ok(());
            };
            if let Some(place) = self.place_named_in(&line) {
                return Err(ProgramError::Interpreter(place));
            }
            let first = line.split_whitespace().next().unwrap_or_default();
            file = self
                .settled(Path::new(first))
                .map_err(ProgramError::Interpreter)?;
        }
        Ok(())
    }

    /// The first place that a word speaks of, as a whole or in a part, and that
    /// code inside can change.
    fn place_named_in(&self, word: &str) -> Option<PathBuf> {
        let home = self.around.home.to_string_lossy();
        let word = word.replace("${HOME}", &home).replace("$HOME", &home);
        let is_between = |c: char| c.is_whitespace() || "\"'`=:,;|&<>()[]{}$@".contains(c);
        let parts = word.split(is_between).chain([word.as_str()]);
        let parts = parts.filter(|part| !part.is_empty());
        let mut places = parts.flat_map(|part| self.readings(part));
        let named = places.find_map(|place| self.settled(&place).err());
        named.or_else(|| self.writable().named_in(&word).map(Path::to_path_buf))
    }

    /// What a part of a word may mean as a path: as it is, from the home
    /// folder, or after an option's letter.
    fn readings(&self, part: &str) -> Vec<PathBuf> {
        let below_home = part.strip_prefix("~/");
        let after_letter = part.find('/').map(|start| PathBuf::from(&part[start..]));
        let below_home = below_home.map(|below| self.around.home.join(below));
        [Some(PathBuf::from(part)), below_home, after_letter]
            .into_iter()
            .flatten()
            .collect()
    }
}

fn look_up(name: &str, path: &OsStr) -> Option<PathBuf> {
    let mut places = std::env::split_paths(path).map(|folder| folder.join(name));
    places.find(|place| is_program(place))
}

fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok()
}

/// The rest of a script's first line, after `#!`.
fn interpreter(file: &Path) -> Option<String> {
    // Not of a pipe, which could keep us waiting.
    if !file.is_file() {
        return None;
    }
    let mut start = Vec::new();
    let file = File::open(file).ok()?;
    file.take(FIRST_LINE).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Some(String::from_utf8_lossy(line).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            for folder in ["home/bin", "project/bin", "project/my lib"] {
                std::fs::create_dir_all(place.path(folder)).unwrap();
            }
            place
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(name)
        }

        fn text(&self, name: &str) -> String {
            self.path(name).to_str().unwrap().to_owned()
        }

        fn program(&self, name: &str, text: &str) {
            std::fs::write(self.path(name), text).unwrap();
            let mode = PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(self.path(name), mode).unwrap();
        }

        fn around(&self, path: &str) -> Surroundings {
            Surroundings {
                home: self.path("home"),
                path: Some(path.into()),
                writable: WritablePlaces::new([self.path("project")]),
                masked: Vec::new(),
            }
        }

        fn find(&self, argv: &[&str]) -> Result<Program, ProgramError> {
            let path = format!(
                "{}:bin:.::{}:/usr/bin:/bin",
                self.text("project/bin"),
                self.text("home/bin")
            );
            let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
            Program::find(&argv, &self.around(&path))
        }
    }

    #[test]
    fn g4_folders_that_code_inside_writes_to_are_not_searched() {
        let place = Place::new();
        place.program("project/bin/get-token", "#!/bin/sh\n");
        assert_eq!(
            place.find(&["get-token"]).unwrap_err(),
            ProgramError::NotFound
        );
        place.program("home/bin/get-token", "#!/bin/sh\n");
        let found = place.find(&["get-token"]).unwrap();
        assert_eq!(found.file, place.path("home/bin/get-token"));
        let kept = format!("{}:/usr/bin:/bin", place.text("home/bin"));
        assert_eq!(found.path, OsString::from(kept));
        symlink(place.path("project/bin"), place.path("home/alias")).unwrap();
        let alias = place.text("home/alias");
        let found = Program::find(&["get-token".into()], &place.around(&alias));
        assert_eq!(found.unwrap_err(), ProgramError::NotFound);
    }

    #[test]
    fn g4_a_program_that_code_inside_can_change_is_refused() {
        let place = Place::new();
        place.program("project/tool", "#!/bin/sh\n");
        symlink(place.path("project/tool"), place.path("home/bin/tool")).unwrap();
        symlink("/bin/sh", place.path("project/sh")).unwrap();
        for program in [
            "project/tool",
            "project/not/there/yet",
            "home/bin/tool",
            "project/sh",
        ] {
            let error = place.find(&[&place.text(program)]).unwrap_err();
            assert!(matches!(error, ProgramError::Program(_)), "{program}");
        }
        let error = place.find(&["tool"]).unwrap_err();
        assert_eq!(error, ProgramError::Program(place.path("project")));
    }

    #[test]
    fn g4_so_is_one_with_an_interpreter_that_it_can_change() {
        let place = Place::new();
        let (python, script) = (place.text("project/bin/python"), place.text("home/bin/one"));
        place.program("home/bin/one", &format!("#! {python} -I\nprint()\n"));
        place.program("home/bin/two", &format!("#!{script}\n"));
        place.program("home/bin/three", &format!("#!/usr/bin/env {python}\n"));
        for name in ["one", "two", "three"] {
            let error = place.find(&[name]).unwrap_err();
            assert!(matches!(error, ProgramError::Interpreter(_)), "{name}");
        }
    }

    #[test]
    fn g4_so_is_one_with_an_argument_that_it_can_change() {
        let place = Place::new();
        symlink(place.path("project/token"), place.path("home/link")).unwrap();
        let work = place.text("project");
        for word in [
            place.text("project/token.py"),
            place.text("home/link"),
            work.clone(),
            work.trim_start_matches('/').to_owned(),
            format!("--config={work}/x"),
            format!("-I{work}/lib"),
            format!("cat /etc/x; . \"{work}/x\""),
            format!("'{work}/my lib/x'"),
            "~/../project/x".to_owned(),
            "$HOME/../project/x".to_owned(),
            "cat ${HOME}/link".to_owned(),
        ] {
            let error = place.find(&["sh", "-c", &word]).unwrap_err();
            assert!(matches!(error, ProgramError::Argument(_)), "{word}");
        }
        let harmless = ["-c", "cat $HOME/x ~/x", "https://h.test/project", "project"];
        for word in harmless {
            place.find(&["sh", word]).unwrap();
        }
    }

    #[test]
    fn g4_so_is_one_whose_home_folder_it_can_change() {
        let place = Place::new();
        let mut around = place.around("/usr/bin:/bin");
        for home in [place.path("project"), place.path("project/bin")] {
            around.home = home;
            let error = Program::find(&["sh".into()], &around).unwrap_err();
            assert!(matches!(error, ProgramError::Home(_)) && error.is_unsafe());
        }
    }

    #[test]
    fn what_is_no_program_is_not_there() {
        let place = Place::new();
        std::fs::write(place.path("home/bin/plain"), "").unwrap();
        for name in ["home/bin/plain", "home/bin/none", "home/bin"] {
            let error = place.find(&[&place.text(name)]).unwrap_err();
            assert_eq!(error, ProgramError::Missing);
        }
        assert_eq!(place.find(&["plain"]).unwrap_err(), ProgramError::NotFound);
        let usual = Surroundings {
            path: None,
            ..place.around("")
        };
        Program::find(&["sh".into()], &usual).unwrap();
    }
}
