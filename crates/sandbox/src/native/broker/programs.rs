//! Programs that are started, as the attempt shows them: which, with which words,
//! and whether they are there at all.

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ringfence_sys::{self as sys, Errno};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};
use rustix::process::Pid;

use super::caller::{CURRENT_FOLDER, Caller, as_descriptor};
use super::seen::{CUT, LONGEST_PATH, Record, text, whole_path};
use crate::native::calls;
use crate::native::observe::{self, Repeat};
use crate::observation::{Action, Observation, Outcome};
use crate::sensitive::{as_path, without_dots};

/// The most words of a program's arguments, and bytes of all together.
const MOST_WORDS: usize = 64;
const MOST_OF_WORDS: usize = 4096;
/// Stands for the path of a program that runs and that nobody may look at.
pub(super) const UNREADABLE: &str = "(unreadable)";

/// Why a program cannot be started that is not there, as a search through
/// `PATH` tries. It is answered with this: were it let go on and not recorded,
/// another path could take its place meanwhile.
pub(super) fn absent_program(caller: &Caller<'_>) -> Option<Errno> {
    let [one, two, ..] = caller.call().arguments;
    let (base, address) = match caller.call().number {
        libc::SYS_execve => (CURRENT_FOLDER, one),
        libc::SYS_execveat => (one, two),
        _ => return None,
    };
    let mut buffer = [0; LONGEST_PATH];
    let path = sys::read_c_string_into(caller.thread(), address, &mut buffer).ok()?;
    let path = as_path(path);
    // There, a path means something else to the caller than to us.
    if path.starts_with("/proc") || path.starts_with("/dev") {
        return None;
    }
    let base = caller.base_for(base, path.as_os_str()).ok()?;
    let errno = look_for(&base, path)
        .err()
        .filter(|errno| is_absent(*errno))?;
    caller.confirm().is_ok().then_some(errno)
}

/// Looks for the last part of a path, and not for where it may lead.
fn look_for(base: &OwnedFd, path: &Path) -> Result<(), Errno> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(());
    };
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::openat2(
        base,
        folder,
        how,
        Mode::empty(),
        ResolveFlags::NO_MAGICLINKS,
    )?;
    if rustix::fs::fstatfs(&folder)?.f_type == rustix::fs::PROC_SUPER_MAGIC {
        return Ok(());
    }
    rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).map(drop)
}

/// Not there for the caller, whose rights to look are not more than ours.
fn is_absent(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::ACCESS)
}

/// A program that is started. One whose path cannot be read is not: the kernel
/// might be able to, a moment later.
pub(super) fn program(
    caller: &Caller<'_>,
    at: (u64, u64),
    argv: u64,
    flags: u64,
) -> Result<Record, Errno> {
    let mut buffer = [0; LONGEST_PATH];
    let path = sys::read_c_string_into(caller.thread(), at.1, &mut buffer)?;
    let paths = program_paths(caller, at.0, path, flags);
    let mut record = Record::once(caller.call(), Action::Exec, paths);
    record.observation.argv = words(caller, argv);
    record.repeat = Repeat::Told;
    Ok(record)
}

/// The calling process, as it is about to become the command: as if its call had
/// come here.
pub(in crate::native) fn started(
    program: &CStr,
    arguments: &[CString],
    folder: &Path,
) -> Observation {
    let path = as_path(program.to_bytes());
    let whole = if path.is_absolute() {
        path.to_path_buf()
    } else {
        without_dots(&folder.join(path))
    };
    let own = own_part(&whole).map(|rest| format!("/proc/self/{rest}"));
    let own = own.and_then(|link| rustix::fs::readlink(link, Vec::new()).ok());
    let own = own.map(|target| text(target.as_bytes()));
    Observation {
        time: observe::now(),
        pid: rustix::process::getpid().as_raw_pid(),
        call: calls::name_of(libc::SYS_execve),
        action: Action::Exec,
        paths: std::iter::once(text(whole.as_os_str().as_bytes()))
            .chain(own)
            .collect(),
        argv: cut(arguments.iter().map(CString::as_bytes)),
        outcome: Outcome::Continued,
        rule: None,
    }
}

/// The words, or as much of them as is kept.
fn cut<'a>(arguments: impl Iterator<Item = &'a [u8]>) -> Vec<String> {
    let mut words = Vec::new();
    let mut left = MOST_OF_WORDS;
    for word in arguments {
        let kept = &word[..word.len().min(left)];
        let is_one_more = words.len() == MOST_WORDS;
        if !is_one_more {
            words.push(String::from_utf8_lossy(kept).into_owned());
        }
        if is_one_more || kept.len() < word.len() {
            words.push(CUT.to_owned());
            break;
        }
        left -= kept.len();
    }
    words
}

/// The words that a program was started with, as they lie in its memory now.
pub(super) fn words_of_process(thread: Pid) -> Vec<String> {
    let path = format!("/proc/{}/cmdline", thread.as_raw_pid());
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    // Room for the end of each word, and for seeing that there are more.
    let mut buffer = [0; MOST_OF_WORDS + MOST_WORDS + 2];
    let length = rustix::fs::open(path, flags, Mode::empty())
        .and_then(|file| rustix::io::read(file, &mut buffer))
        .unwrap_or(0);
    let words = &buffer[..length];
    let words = words.strip_suffix(&[0]).unwrap_or(words);
    if words.is_empty() {
        return Vec::new();
    }
    cut(words.split(|byte| *byte == 0))
}

/// The path of a program, and where it leads if only the caller can tell.
fn program_paths(caller: &Caller<'_>, base: u64, path: &[u8], flags: u64) -> Vec<String> {
    let is_open_file = path.is_empty() && as_descriptor(flags) & libc::AT_EMPTY_PATH != 0;
    if is_open_file {
        let entry = format!("fd/{}", as_descriptor(base));
        let led = own_link(caller, &entry);
        return vec![led.unwrap_or_else(|| format!("/proc/self/{entry}"))];
    }
    let Some(whole) = whole_path(caller, base, path) else {
        return vec![text(path)];
    };
    let own = own_part(&whole).and_then(|rest| own_link(caller, &rest));
    let whole = text(whole.as_os_str().as_bytes());
    std::iter::once(whole).chain(own).collect()
}

/// What follows the name of the caller's own folder in `/proc`.
fn own_part(path: &Path) -> Option<String> {
    let [own, thread, descriptors] = ["/proc/self", "/proc/thread-self", "/dev/fd"];
    if let Ok(number) = path.strip_prefix(descriptors) {
        return Some(format!("fd/{}", number.to_str()?));
    }
    [own, thread]
        .iter()
        .find_map(|folder| path.strip_prefix(folder).ok())
        .and_then(Path::to_str)
        .map(str::to_owned)
}

/// Where a link of the caller's own folder in `/proc` leads.
fn own_link(caller: &Caller<'_>, entry: &str) -> Option<String> {
    let link = format!("/proc/{}/{entry}", caller.thread().as_raw_pid());
    let target = rustix::fs::readlink(link, Vec::new()).ok()?;
    Some(text(target.as_bytes()))
}

fn words(caller: &Caller<'_>, argv: u64) -> Vec<String> {
    const POINTER: usize = 8;
    let mut pointers = [0; (MOST_WORDS + 1) * POINTER];
    let length = sys::read_some(caller.thread(), argv, &mut pointers).unwrap_or(0);
    let mut words = Vec::new();
    let mut left = MOST_OF_WORDS;
    for pointer in pointers[..length].chunks_exact(POINTER) {
        let pointer = u64::from_ne_bytes(pointer.try_into().unwrap_or_default());
        if pointer == 0 {
            return words;
        }
        if words.len() == MOST_WORDS {
            break;
        }
        let mut buffer = [0; MOST_OF_WORDS + 1];
        match sys::read_c_string_into(caller.thread(), pointer, &mut buffer[..=left]) {
            Ok(word) => {
                left -= word.len();
                words.push(String::from_utf8_lossy(word).into_owned());
            }
            Err(Errno::NAMETOOLONG) => {
                words.push(String::from_utf8_lossy(&buffer[..left]).into_owned());
                break;
            }
            Err(_) => break,
        }
    }
    words.push(CUT.to_owned());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(words: &[&str]) -> Vec<CString> {
        let words = words.iter();
        words.map(|word| CString::new(*word).unwrap()).collect()
    }

    #[test]
    fn what_is_kept_of_words_is_bounded_and_the_rest_told() {
        let cut = |words: &[CString]| super::cut(words.iter().map(CString::as_bytes));
        assert_eq!(cut(&arguments(&["sh", "", "-c"])), ["sh", "", "-c"]);
        assert_eq!(cut(&arguments(&["x"; MOST_WORDS])).len(), MOST_WORDS);
        let many = cut(&arguments(&["x"; MOST_WORDS + 5]));
        assert_eq!(
            (many.len(), many[MOST_WORDS].as_str()),
            (MOST_WORDS + 1, CUT)
        );
        let long = "y".repeat(MOST_OF_WORDS);
        assert_eq!(cut(&arguments(&[&long])), [long.as_str()]);
        assert_eq!(cut(&arguments(&["a", &long])), ["a", &long[1..], CUT]);
    }

    #[test]
    fn a_program_is_told_by_its_whole_path() {
        let told = |program: &str| {
            let program = CString::new(program).unwrap();
            started(&program, &[], Path::new("/w/d")).paths
        };
        assert_eq!(told("/bin/sh"), ["/bin/sh"]);
        assert_eq!(told("../x/./y"), ["/w/x/y"]);
        let own = std::env::current_exe().unwrap().display().to_string();
        assert_eq!(told("/proc/self/exe"), ["/proc/self/exe", own.as_str()]);
    }

    #[test]
    fn own_links_are_known_by_their_path() {
        assert_eq!(
            own_part(Path::new("/proc/self/exe")),
            Some("exe".to_owned())
        );
        assert_eq!(
            own_part(Path::new("/proc/thread-self/fd/3")),
            Some("fd/3".to_owned())
        );
        assert_eq!(own_part(Path::new("/dev/fd/7")), Some("fd/7".to_owned()));
        assert_eq!(own_part(Path::new("/proc/1/exe")), None);
    }
}
