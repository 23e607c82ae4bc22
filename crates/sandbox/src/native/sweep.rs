//! When the command is over: repositories made inside must not be left with
//! anything that would make Git run a program for their next user.
//!
//! Everything else inside is dead by then, so nothing moves underneath.

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use super::broker::Broker;
use crate::git::{HEAD, dangerous_setting};
use crate::wire::{Operation, Refusal, RefusalKind};

/// What a thing is renamed to.
const QUARANTINE: &str = "ringfence-quarantine";
/// A configuration file larger than this is taken as dangerous.
const LARGEST_CONFIG: u64 = 256 * 1024;

/// Puts dangerous leftovers out of effect by renaming them, and reports each.
pub(super) fn sweep(broker: &mut Broker) {
    let mut refusals = Vec::new();
    for folder in broker.made().repositories() {
        // By descriptor: whatever the folder is called now, it is this one.
        let by_descriptor = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
        for (name, reason) in findings(&by_descriptor) {
            let aside = format!("{name}.{QUARANTINE}");
            let outcome = match rustix::fs::renameat(folder, name, folder, &aside) {
                Ok(()) => format!("{reason}; renamed to {aside}"),
                Err(errno) => format!("{reason}; could not be renamed: {errno}"),
            };
            let real = std::fs::read_link(&by_descriptor).unwrap_or_default();
            let subject = real.join(name).display().to_string();
            refusals.push(Refusal::new(
                RefusalKind::File,
                Operation::LeftBehind,
                &subject,
                &outcome,
            ));
        }
    }
    refusals
        .into_iter()
        .for_each(|refusal| broker.note(refusal));
}

/// What is wrong with the repository whose Git folder is `folder`.
fn findings(folder: &Path) -> Vec<(&'static str, String)> {
    let mut findings = Vec::new();
    for name in ["config", "config.worktree"] {
        if let Some(setting) = dangerous_config(&folder.join(name)) {
            findings.push((
                name,
                format!("configuration that can run programs: {setting}"),
            ));
        }
    }
    if let Some(hook) = live_hook(&folder.join("hooks")) {
        findings.push(("hooks", format!("live hook {hook}")));
    }
    if !is_plain_common_folder(&folder.join("commondir")) {
        findings.push(("commondir", "configuration from another folder".to_owned()));
    }
    findings
}

fn dangerous_config(path: &Path) -> Option<String> {
    let Ok(metadata) = std::fs::symlink_metadata(path) else {
        return None;
    };
    if !metadata.is_file() || metadata.len() > LARGEST_CONFIG {
        return Some("not a plain file of ordinary size".to_owned());
    }
    match std::fs::read(path).map(String::from_utf8) {
        Ok(Ok(text)) => dangerous_setting(&text),
        _ => Some("not readable as text".to_owned()),
    }
}

/// Git runs what is in `hooks` unless its name ends with `.sample`.
fn live_hook(folder: &Path) -> Option<String> {
    let Ok(metadata) = std::fs::symlink_metadata(folder) else {
        return None;
    };
    if !metadata.is_dir() {
        return Some("folder is a link".to_owned());
    }
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Some("folder is unreadable".to_owned());
    };
    entries
        .filter_map(Result::ok)
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .find(|name| {
            Path::new(name)
                .extension()
                .is_none_or(|extension| extension != "sample")
        })
}

/// A work tree added by Git takes its configuration from two folders up, which
/// must be a repository: then it was guarded, or is looked at itself.
fn is_plain_common_folder(path: &Path) -> bool {
    match std::fs::symlink_metadata(path) {
        Err(_) => true,
        Ok(metadata) if !metadata.is_file() || metadata.len() > 64 => false,
        Ok(_) => {
            let is_two_up = std::fs::read_to_string(path).is_ok_and(|text| text.trim() == "../..");
            let common = path.with_file_name("..").join("..");
            is_two_up && std::fs::symlink_metadata(common.join(HEAD)).is_ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<&'static str> {
        findings(folder).into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn g4_live_hooks_and_dangerous_configuration_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let git = &folder.path().join("worktrees/w");
        std::fs::create_dir_all(git).unwrap();
        std::fs::write(folder.path().join("HEAD"), "").unwrap();
        std::fs::write(git.join("config"), "[core]\n\tbare = false\n").unwrap();
        std::fs::create_dir(git.join("hooks")).unwrap();
        std::fs::write(git.join("hooks/pre-commit.sample"), "").unwrap();
        std::fs::write(git.join("commondir"), "../..\n").unwrap();
        assert!(names(git).is_empty());
        std::fs::write(git.join("config"), "[core]\n\tfsmonitor = x\n").unwrap();
        std::fs::write(git.join("hooks/pre-commit"), "").unwrap();
        std::fs::write(git.join("commondir"), "/elsewhere\n").unwrap();
        assert_eq!(names(git), ["config", "hooks", "commondir"]);
    }

    #[test]
    fn links_in_place_of_files_are_found() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["config", "hooks", "commondir"] {
            std::os::unix::fs::symlink("/nowhere", folder.path().join(name)).unwrap();
        }
        assert_eq!(names(folder.path()), ["config", "hooks", "commondir"]);
    }
}
