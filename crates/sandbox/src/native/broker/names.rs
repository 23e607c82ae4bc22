//! Making, moving and removing names.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use ringfence_sys::{self as sys, Errno};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags};

use super::caller::{Caller, Lead, Spot, as_descriptor};
use super::{Broker, Outcome, is_head, value};
use crate::wire::Operation;

/// A folder's descriptor and a path's address, as a call gives them.
type At = (u64, u64);

impl Broker {
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
        self.judge(Operation::Create, &spot)?;
        sys::set_umask(caller.umask()?);
        rustix::fs::mkdirat(&spot.folder, &spot.name, permissions(mode))?;
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
        let raw = as_descriptor(mode).cast_unsigned();
        let kind = if raw & libc::S_IFMT == 0 {
            FileType::RegularFile
        } else {
            FileType::from_raw_mode(raw)
        };
        sys::set_umask(caller.umask()?);
        rustix::fs::mknodat(&spot.folder, &spot.name, kind, permissions(mode), device)?;
        self.made(&spot)?;
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
        let spot = caller.spot(base, &caller.path(path)?)?;
        self.judge(Operation::Create, &spot)?;
        // A link in place of a folder that protected names are in would let
        // them be made behind it, under another name.
        if !self.guard.completions(spot.path()).is_empty() {
            self.refuse(
                Operation::Create,
                spot.path(),
                "link in place of a protected folder",
            );
            return Err(super::GUARDED);
        }
        rustix::fs::symlinkat(target, &spot.folder, &spot.name)?;
        self.made(&spot)?;
        value(0)
    }

    pub(super) fn link(&mut self, caller: &Caller<'_>, old: At, new: At, flags: u64) -> Outcome {
        let source = self.link_source(caller, old, flags)?;
        let spot = caller.spot(new.0, &caller.path(new.1)?)?;
        self.judge(Operation::Link, &spot)?;
        let link = format!("/proc/self/fd/{}", source.as_raw_fd());
        rustix::fs::linkat(CWD, link, &spot.folder, &spot.name, AtFlags::SYMLINK_FOLLOW)?;
        self.made(&spot)?;
        value(0)
    }

    fn link_source(&mut self, caller: &Caller<'_>, old: At, flags: u64) -> Result<OwnedFd, Errno> {
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
            Lead::Spot(spot) => {
                self.judge(Operation::Link, &spot)?;
                rustix::fs::openat(
                    &spot.folder,
                    &spot.name,
                    OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                    Mode::empty(),
                )
            }
            Lead::Descriptor(number) => caller.open_place(number),
            Lead::Terminal => Err(Errno::XDEV),
        }
    }

    pub(super) fn rename(&mut self, caller: &Caller<'_>, old: At, new: At, flags: u64) -> Outcome {
        let from = caller.spot(old.0, &caller.path(old.1)?)?;
        let to = caller.spot(new.0, &caller.path(new.1)?)?;
        let flags = RenameFlags::from_bits_retain(as_descriptor(flags).cast_unsigned());
        self.judge_move(&from, &to)?;
        if flags.contains(RenameFlags::EXCHANGE) {
            self.judge_move(&to, &from)?;
        }
        rustix::fs::renameat_with(&from.folder, &from.name, &to.folder, &to.name, flags)?;
        self.moved(&from, &to)?;
        if flags.contains(RenameFlags::EXCHANGE) {
            self.moved(&to, &from)?;
        }
        value(0)
    }

    /// Neither end is guarded, and what moves brings no guarded name along.
    fn judge_move(&mut self, from: &Spot, to: &Spot) -> Result<(), Errno> {
        self.judge(Operation::Rename, from)?;
        self.judge(Operation::Rename, to)?;
        let Some(status) = from.status()? else {
            return Ok(());
        };
        let is_link = FileType::from_raw_mode(status.st_mode) == FileType::Symlink;
        let completions = self.guard.completions(to.path());
        if completions.iter().any(|below| is_link || from.holds(below)) {
            self.refuse(
                Operation::Rename,
                to.path(),
                "rename that completes a protected name",
            );
            return Err(super::GUARDED);
        }
        self.judge_old_repository(Operation::Rename, from)
    }

    /// The Git folder of a repository that was there before stays in place:
    /// another in its stead would decide what Git runs.
    fn judge_old_repository(&mut self, operation: Operation, spot: &Spot) -> Result<(), Errno> {
        let path = spot.path();
        if self.guard.covers(path)
            && !self.repositories.contains(path)
            && is_git_name(path)
            && spot.is_repository(path)
        {
            self.refuse(operation, path, "Git folder of a repository");
            return Err(super::GUARDED);
        }
        Ok(())
    }

    fn moved(&mut self, from: &Spot, to: &Spot) -> Result<(), Errno> {
        self.repositories.renamed(from.path(), to.path());
        if is_head(to.path()) {
            self.made(to)
        } else {
            Ok(())
        }
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
        if spot.status()?.is_none() {
            return Err(Errno::NOENT);
        }
        self.judge(Operation::Remove, &spot)?;
        let flags = if folder {
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        };
        rustix::fs::unlinkat(&spot.folder, &spot.name, flags)?;
        value(0)
    }
}

/// Any folder may be a bare repository; moving those is left free, moving
/// what Git finds by name is not.
fn is_git_name(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.eq_ignore_ascii_case(".git"))
}

fn permissions(mode: u64) -> Mode {
    Mode::from_raw_mode(u32::try_from(mode & 0o1777).unwrap_or(0))
}
