//! Making, moving and removing names.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use ringfence_sys::{self as sys, Errno};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags};

use super::caller::{Caller, Lead, Spot, as_descriptor};
use super::{Broker, Outcome, value};
use crate::guard::On;
use crate::view::FileId;
use crate::wire::Operation;

/// A folder's descriptor and a path's address, as a call gives them.
type At = (u64, u64);

impl Broker<'_> {
    pub(super) fn make_folder(
        &mut self,
        caller: &Caller<'_>,
        base: u64,
        path: u64,
        mode: u64,
    ) -> Outcome {
        let spot = match caller.spot(base, &caller.path(path)?) {
            Err(Errno::BUSY) => return Err(Errno::EXIST),
            other => other?,
        };
        if spot.status()?.is_some() {
            return Err(Errno::EXIST);
        }
        self.judge(Operation::MakeFolder, &spot)?;
        self.disk.admit_name()?;
        sys::set_umask(caller.umask()?);
        rustix::fs::mkdirat(&spot.folder, &spot.name, permissions(mode))?;
        self.settle(Operation::MakeFolder, &spot, || {
            let _ = rustix::fs::unlinkat(&spot.folder, &spot.name, AtFlags::REMOVEDIR);
        })?;
        self.disk.made_folder(&spot.folder);
        self.quick.forget_directories();
        if let Some(status) = spot.status()? {
            self.made.remember(FileId::of_stat(&status));
        }
        value(0)
    }

    pub(super) fn make_node(
        &mut self,
        caller: &Caller<'_>,
        base: u64,
        path: u64,
        mode: u64,
        device: u64,
    ) -> Outcome {
        let spot = caller.spot(base, &caller.path(path)?)?;
        self.judge(Operation::Create, &spot)?;
        self.disk.admit_name()?;
        self.before_making(Operation::Create, &spot)?;
        let raw = as_descriptor(mode).cast_unsigned();
        let kind = if raw & libc::S_IFMT == 0 {
            FileType::RegularFile
        } else {
            FileType::from_raw_mode(raw)
        };
        sys::set_umask(caller.umask()?);
        rustix::fs::mknodat(&spot.folder, &spot.name, kind, permissions(mode), device)?;
        self.disk.made_name(&spot.folder);
        value(0)
    }

    pub(super) fn make_link(
        &mut self,
        caller: &Caller<'_>,
        target: u64,
        base: u64,
        path: u64,
    ) -> Outcome {
        let target = caller.path(target)?;
        self.subject.names(Path::new(&target));
        let spot = caller.spot(base, &caller.path(path)?)?;
        self.judge(Operation::Create, &spot)?;
        // A link in place of a folder that protected names are in would let
        // them be made behind it, under another name.
        if self.completes(&spot)? || self.was_directory(&spot)? {
            self.refuse(
                Operation::Create,
                spot.path(),
                "link in place of a protected folder",
            );
            return Err(super::GUARDED);
        }
        self.disk.admit_name()?;
        self.before_making(Operation::Create, &spot)?;
        rustix::fs::symlinkat(target, &spot.folder, &spot.name)?;
        self.settle(Operation::Create, &spot, || {
            let _ = rustix::fs::unlinkat(&spot.folder, &spot.name, AtFlags::empty());
        })?;
        if self.disk.is_kept() {
            self.disk.replaced(None, spot.status()?.as_ref());
        }
        value(0)
    }

    pub(super) fn link(&mut self, caller: &Caller<'_>, old: At, new: At, flags: u64) -> Outcome {
        let source = link_source(caller, old, flags)?;
        let status = rustix::fs::fstat(&source)?;
        // A second name for a link could stand in for a protected folder.
        if FileType::from_raw_mode(status.st_mode) == FileType::Symlink {
            return Err(Errno::PERM);
        }
        self.judge_place(Operation::Link, &source)?;
        let spot = caller.spot(new.0, &caller.path(new.1)?)?;
        if self.brings_configuration(&spot)? {
            self.judge(Operation::Create, &spot)?;
            self.link_configuration(&source, &spot)?;
            return value(0);
        }
        self.judge(Operation::Link, &spot)?;
        self.disk.admit_name()?;
        self.before_making(Operation::Link, &spot)?;
        let link = format!("/proc/self/fd/{}", source.as_raw_fd());
        rustix::fs::linkat(CWD, link, &spot.folder, &spot.name, AtFlags::SYMLINK_FOLLOW)?;
        self.settle(Operation::Create, &spot, || {
            let _ = rustix::fs::unlinkat(&spot.folder, &spot.name, AtFlags::empty());
        })?;
        self.disk.made_name(&spot.folder);
        value(0)
    }

    pub(super) fn rename(&mut self, caller: &Caller<'_>, old: At, new: At, flags: u64) -> Outcome {
        let from = caller.spot(old.0, &caller.path(old.1)?)?;
        let to = caller.spot(new.0, &caller.path(new.1)?)?;
        let flags = RenameFlags::from_bits_retain(as_descriptor(flags).cast_unsigned());
        if flags.is_empty() && self.update_configuration(&from, &to)? {
            return value(0);
        }
        self.judge_move(&from, &to)?;
        if flags.contains(RenameFlags::EXCHANGE) {
            self.judge_move(&to, &from)?;
        }
        if self.brings_configuration(&to)? {
            if !flags.is_empty() {
                return Err(Errno::INVAL);
            }
            self.install_configuration(&from, &to)?;
            return value(0);
        }
        let vacated = self.vacated_by(&from)?;
        match self.move_name(&from, &to, flags) {
            Err(Errno::BUSY) => {
                self.replace_content(&from, &to, flags)?;
                return value(0);
            }
            other => other?,
        }
        self.quick.forget_directories();
        self.settle_move(&from, &to, flags)?;
        self.vacated.extend(vacated);
        value(0)
    }

    /// The path of a directory that was there before, and is about to go.
    fn vacated_by(&self, from: &Spot) -> Result<Option<PathBuf>, Errno> {
        let is_old = from.status()?.is_some_and(|status| {
            FileType::from_raw_mode(status.st_mode) == FileType::Directory
                && !self.made.has(FileId::of_stat(&status))
        });
        Ok(self.known_as(from)?.filter(|_| is_old))
    }

    fn move_name(&mut self, from: &Spot, to: &Spot, flags: RenameFlags) -> Result<(), Errno> {
        let leaves_one = flags.contains(RenameFlags::WHITEOUT);
        if leaves_one {
            self.disk.admit_name()?;
        }
        // Two names of one file both stay.
        let replaces = !flags.intersects(RenameFlags::EXCHANGE | RenameFlags::NOREPLACE)
            && self.disk.is_kept()
            && !from.is_same(to)?;
        let doomed = replaces.then(|| self.disk.before_removing(&to.folder, &to.name));
        rustix::fs::renameat_with(&from.folder, &from.name, &to.folder, &to.name, flags)?;
        if let Some(doomed) = doomed {
            self.disk.removed(doomed);
        }
        if leaves_one {
            self.disk.made_name(&from.folder);
        }
        Ok(())
    }

    /// After a rename: what another sandbox put into the folder meanwhile may
    /// complete a guarded name now. Then it is moved back.
    fn settle_move(&mut self, from: &Spot, to: &Spot, flags: RenameFlags) -> Result<(), Errno> {
        let now = to.again()?;
        let is_guarded = self.completions(&now)?.iter().any(|below| now.holds(below));
        let moved = now.path() != to.path() && self.judge(Operation::Rename, &now).is_err();
        if !is_guarded && !moved {
            return Ok(());
        }
        let back = flags & RenameFlags::EXCHANGE;
        let _ = rustix::fs::renameat_with(&to.folder, &to.name, &from.folder, &from.name, back);
        self.refuse(
            Operation::Rename,
            now.path(),
            "rename that completes a guarded name",
        );
        Err(super::GUARDED)
    }

    /// Neither end is guarded, and what moves brings no guarded name along.
    fn judge_move(&mut self, from: &Spot, to: &Spot) -> Result<(), Errno> {
        self.judge(Operation::Rename, from)?;
        self.judge(Operation::Rename, to)?;
        let Some(status) = from.status()? else {
            return Ok(());
        };
        let kind = FileType::from_raw_mode(status.st_mode);
        let is_link = kind == FileType::Symlink;
        let completions = self.completions(to)?;
        if (kind != FileType::Directory && self.is_on_the_way(to)?)
            || completions.iter().any(|below| is_link || from.holds(below))
            || (is_link && self.was_directory(to)?)
            || self
                .completions(from)?
                .iter()
                .any(|below| from.holds(below))
            || (kind == FileType::Directory && self.brings_a_name(from, to)?)
        {
            self.refuse(
                Operation::Rename,
                to.path(),
                "rename that completes a guarded name",
            );
            return Err(super::GUARDED);
        }
        self.judge_part_of_repository(Operation::Rename, from, &status)?;
        self.before_making(Operation::Rename, to)
    }

    /// What would complete guarded names if it were below `spot`.
    fn completions(&self, spot: &Spot) -> Result<Vec<PathBuf>, Errno> {
        let known = self.known_as(spot)?;
        let is_free = |on: On<'_>| self.is_free(spot, on);
        Ok(known
            .map(|known| self.guard.completions(&known, &is_free))
            .unwrap_or_default())
    }

    /// Whether a file there could say where a protected name is.
    fn is_on_the_way(&self, spot: &Spot) -> Result<bool, Errno> {
        let known = self.known_as(spot)?;
        let is_free = |on: On<'_>| self.is_free(spot, on);
        Ok(known.is_some_and(|known| self.guard.is_on_the_way(&known, &is_free)))
    }

    /// Whether a directory was there before the start.
    fn was_directory(&self, spot: &Spot) -> Result<bool, Errno> {
        let known = self.known_as(spot)?;
        Ok(known.is_some_and(|known| self.was_there(&known)))
    }

    fn completes(&self, spot: &Spot) -> Result<bool, Errno> {
        Ok(!self.completions(spot)?.is_empty())
    }

    /// Whether something below the moved folder matches a guarded pattern where
    /// it is, would match one in its new place, or have a protected name where a
    /// directory was before. A folder too large to look through counts as one.
    fn brings_a_name(&self, from: &Spot, to: &Spot) -> Result<bool, Errno> {
        const MOST_ENTRIES: usize = 10_000;
        let Some(target) = self.known_as(to)? else {
            return Ok(false);
        };
        let source = self
            .known_as(from)?
            .unwrap_or_else(|| from.path().to_path_buf());
        if !self.guard.has_patterns() && !self.was_there(&target) {
            return Ok(false);
        }
        let is_free = |on: On<'_>| !self.was_there(on.directory);
        let root = format!("/proc/self/fd/{}", from.folder.as_raw_fd());
        let mut folders = vec![PathBuf::from(&from.name)];
        let mut seen = 0;
        while let Some(folder) = folders.pop() {
            let Ok(entries) = std::fs::read_dir(Path::new(&root).join(&folder)) else {
                return Ok(true);
            };
            for entry in entries {
                let Ok(entry) = entry else { return Ok(true) };
                let below = folder.join(entry.file_name());
                let moved = below.strip_prefix(&from.name).unwrap_or(&below);
                seen += 1;
                if seen > MOST_ENTRIES
                    || self.guard.is_denied_by_pattern(&source.join(moved))
                    || self.guard.rule_for(&target.join(moved), &is_free).is_some()
                {
                    return Ok(true);
                }
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(below);
                }
            }
        }
        Ok(false)
    }

    pub(super) fn remove(
        &mut self,
        caller: &Caller<'_>,
        base: u64,
        path: u64,
        flags: u64,
    ) -> Outcome {
        let folder = as_descriptor(flags) & libc::AT_REMOVEDIR != 0;
        let spot = match caller.spot(base, &caller.path(path)?) {
            Err(Errno::BUSY) => return Err(if folder { Errno::INVAL } else { Errno::ISDIR }),
            other => other?,
        };
        let status = spot.status()?.ok_or(Errno::NOENT)?;
        self.judge(Operation::Remove, &spot)?;
        self.judge_part_of_repository(Operation::Remove, &spot, &status)?;
        let flags = if folder {
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        };
        let doomed = self.disk.before_removing(&spot.folder, &spot.name);
        let vacated = self.vacated_by(&spot)?;
        rustix::fs::unlinkat(&spot.folder, &spot.name, flags)?;
        self.disk.removed(doomed);
        if folder {
            self.vacated.extend(vacated);
            self.made.forget(FileId::of_stat(&status));
        }
        value(0)
    }
}

/// What a hard link is asked to be made of, by descriptor.
fn link_source(caller: &Caller<'_>, old: At, flags: u64) -> Result<OwnedFd, Errno> {
    let flags = as_descriptor(flags);
    let path = caller.path(old.1)?;
    if path.is_empty() && flags & libc::AT_EMPTY_PATH != 0 {
        return caller.open_place(as_descriptor(old.0));
    }
    let follow = flags & libc::AT_SYMLINK_FOLLOW != 0;
    let lead = match caller.lead(old.0, &path)? {
        Lead::Spot(spot) if follow => caller.follow(spot)?,
        Lead::Descriptor(_) if !follow => return Err(Errno::XDEV),
        other => other,
    };
    match lead {
        Lead::Spot(spot) => rustix::fs::openat(
            &spot.folder,
            &spot.name,
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        ),
        Lead::Descriptor(number) => caller.open_place(number),
        Lead::Terminal => Err(Errno::XDEV),
    }
}

fn permissions(mode: u64) -> Mode {
    Mode::from_raw_mode(u32::try_from(mode & 0o1777).unwrap_or(0))
}
