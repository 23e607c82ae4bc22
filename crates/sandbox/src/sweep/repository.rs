//! Git directories as they are when a run is over: judged by what Git would do
//! with them.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::FileType;

use super::{MOST_ENTRIES, Sweep, TOLD_TO_LOOK, entry_of};
use crate::git::{self, CONTROL_NAMES};
use crate::sensitive::without_dots;
use crate::survey::{Entry, Looked, list, open_directory, real};

impl Sweep<'_> {
    pub(super) fn judge_repository(
        &mut self,
        directory: &mut Looked,
        path: &Path,
        entries: &[Entry],
    ) {
        for entry in entries {
            let name = entry.name.to_string_lossy().to_ascii_lowercase();
            let is_control = CONTROL_NAMES.contains(&name.as_str());
            if !is_control
                || !self.guard.guards_git_entry(&name)
                || self.was_control(directory, path, entry)
            {
                continue;
            }
            match name.as_str() {
                "hooks" => self.judge_hooks(directory, path, entry),
                "commondir" => self.judge_common_directory(directory, path, entry),
                _ => self.judge_configuration(directory, path, entry),
            }
        }
        // A bare repository has its hooks run in itself.
        self.judge_hooks_of_tree(path);
        self.judge_rebase(directory, path);
    }

    /// A rebase that is left, and would run what it did not before when the user
    /// goes on with it.
    fn judge_rebase(&mut self, directory: &Looked, path: &Path) {
        let [folder, name] = git::REBASE.map(OsStr::new);
        let Ok(mut rebase) = open_directory(directory.as_fd(), folder) else {
            return;
        };
        let Some(entry) = entry_of(&rebase, name) else {
            return;
        };
        let list = git::read_plain(&rebase, name).ok().flatten();
        let list = list.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let is_old = self.baseline.is_older(&rebase, name);
        let is_known = |command: &str| self.baseline.had_command(path, command).unwrap_or(is_old);
        let is_kept = match &list {
            Some(list) => git::rebase_commands(list).all(is_known),
            // Too long to be looked at, or no plain file.
            None => is_old,
        };
        if !is_kept {
            let rule = "rebase that runs programs when it goes on";
            self.take_away(&mut rebase, &path.join(folder), &entry, rule);
        }
    }

    /// Hooks where configuration of the user's, or of a repository that was
    /// there, has Git seek them in a work tree. Those of trees that were there
    /// are guarded like any other place that Git is told to look at.
    pub(super) fn judge_hooks_of_tree(&mut self, tree: &Path) {
        if !self.guard.guards_git_entry("hooks") {
            return;
        }
        for hooks in self.baseline.relative_hooks() {
            let place = without_dots(&tree.join(hooks));
            let Some((mut directory, parent, entry)) = self.reach(&place) else {
                continue;
            };
            if entry.kind == FileType::Symlink {
                if !self.baseline.had_entry(&directory, &parent, &entry.name) {
                    self.take_away(&mut directory, &parent, &entry, TOLD_TO_LOOK);
                }
            } else if !self.baseline.is_in_place(&directory, &parent, &entry.name)
                && let Ok(hooks) = open_directory(directory.as_fd(), &entry.name)
            {
                self.judge_named_hooks(hooks, &place);
            }
        }
    }

    /// Takes hooks that the run made away from a directory that has other files
    /// too.
    fn judge_named_hooks(&mut self, mut hooks: Looked, place: &Path) {
        for hook in list(hooks.as_fd(), MOST_ENTRIES).unwrap_or_default() {
            if git::is_hook_name(&hook.name) && !self.baseline.is_older(&hooks, &hook.name) {
                self.take_away(&mut hooks, place, &hook, TOLD_TO_LOOK);
            }
        }
    }

    /// A control file of a repository that was there before was read-only.
    fn was_control(&self, directory: &Looked, path: &Path, entry: &Entry) -> bool {
        self.baseline.had_control(directory, path, &entry.name)
    }

    fn judge_configuration(&mut self, directory: &mut Looked, path: &Path, entry: &Entry) {
        let text = git::read_text(&*directory, &entry.name).ok().flatten();
        let setting = match &text {
            Some(text) => git::dangerous_setting(text, self.depth_of(path))
                .or_else(|| self.strays(path, text).then(|| "core.worktree".to_owned())),
            None => Some("not a plain text of ordinary size".to_owned()),
        };
        if let Some(setting) = setting {
            let rule = format!("setting of Git that may run programs or lead elsewhere: {setting}");
            self.take_away(directory, path, entry, &rule);
        }
    }

    /// Whether the work tree that configuration names is not where its
    /// repository is.
    fn strays(&self, path: &Path, text: &str) -> bool {
        let Some(tree) = git::work_tree(text) else {
            return false;
        };
        !self.is_in_root(&real(&path.join(tree)))
    }

    fn judge_hooks(&mut self, directory: &mut Looked, path: &Path, entry: &Entry) {
        let rule = "live hook of a new repository";
        let hooks = open_directory(directory.as_fd(), &entry.name);
        let listed = hooks.and_then(|hooks| Ok((list(hooks.as_fd(), MOST_ENTRIES)?, hooks)));
        let Ok((entries, mut hooks)) = listed else {
            // A link, or what cannot be looked into; a file has no hooks.
            if entry.kind != FileType::RegularFile {
                self.take_away(directory, path, entry, rule);
            }
            return;
        };
        let place = path.join(&entry.name);
        let was_alike = self.baseline.was_alike(&*directory);
        for hook in entries {
            let is_sample = Path::new(&hook.name)
                .extension()
                .is_some_and(|extension| extension == "sample");
            let is_note = hook.name.to_string_lossy().starts_with("README");
            let is_old = self.baseline.had_control(&hooks, &place, &hook.name)
                || (was_alike && self.baseline.is_older(&hooks, &hook.name));
            if !is_sample && !is_note && !is_old {
                self.take_away(&mut hooks, &place, &hook, rule);
            }
        }
    }

    /// Only a work tree has one, and its own repository is two above it.
    fn judge_common_directory(&mut self, directory: &mut Looked, path: &Path, entry: &Entry) {
        let text = git::read_text(&*directory, &entry.name).ok().flatten();
        let parent = path.parent().and_then(Path::file_name);
        let is_plain = text.is_some_and(|text| git::without_line_end(&text) == "../..")
            && parent.is_some_and(|name| name == "worktrees");
        if !is_plain {
            let rule = "configuration of a new repository from elsewhere";
            self.take_away(directory, path, entry, rule);
        }
    }

    /// A file or link in place of a Git directory: what it leads to must have
    /// been looked at.
    pub(super) fn judge_git_entry(&mut self, directory: &mut Looked, path: &Path, entry: &Entry) {
        if entry.kind == FileType::Directory
            || !self.guard.guards_git()
            || self.baseline.had_control(&*directory, path, &entry.name)
        {
            return;
        }
        let target = match entry.kind {
            FileType::Symlink => Some(entry.name.clone()),
            FileType::RegularFile => match git::read_plain(&*directory, &entry.name) {
                Ok(Some(content)) => match git::gitfile_target(&content) {
                    Some(target) => Some(target.to_owned()),
                    // It means nothing to Git.
                    None => return,
                },
                _ => None,
            },
            _ => return,
        };
        let target = target.and_then(|target| std::fs::canonicalize(path.join(target)).ok());
        if !target.is_some_and(|target| self.is_in_root(&target)) {
            self.take_away(directory, path, entry, "repository from elsewhere");
        }
    }

    fn is_in_root(&self, path: &Path) -> bool {
        self.guard.roots().iter().any(|root| path.starts_with(root))
    }

    fn depth_of(&self, path: &Path) -> usize {
        let roots = self.guard.roots().iter();
        let below = roots.filter_map(|root| path.strip_prefix(root).ok());
        below
            .map(|below| below.components().count())
            .min()
            .unwrap_or(0)
    }
}
