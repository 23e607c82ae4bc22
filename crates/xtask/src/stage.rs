//! A fresh folder with copies of built programs, and commands that run there
//! with a clean environment: as this user, or, started by root, as an ordinary
//! one who could not enter the build folder. Nothing of the invoking user's
//! environment, home or working folder reaches the command.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};

use crate::{process, programs};

/// The ordinary user that root's second run of the tests uses.
pub(crate) const TEST_USER: &str = "ringfence-test";

const PREFIX: &str = "ringfence-stage-";
const LOCK: &str = "lock";
const READABLE: u32 = 0o755;
const YOUNG: Duration = Duration::from_mins(1);

/// Who runs the commands of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
    /// The user who started us.
    Invoker,
    /// Another user; only root can start such commands.
    Other(Account),
}

impl Runner {
    /// The test user, created if missing. Needs root.
    pub(crate) fn test_user() -> Result<Self> {
        Account::ensure(TEST_USER).map(Self::Other)
    }

    /// The name to show.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Invoker => invoker_name(),
            Self::Other(account) => account.name.clone(),
        }
    }
}

/// A user of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    name: String,
    uid: u32,
    gid: u32,
}

impl Account {
    fn ensure(name: &str) -> Result<Self> {
        if let Some(account) = Self::read(name)? {
            return Ok(account);
        }
        println!("creating the system user {name}");
        let mut useradd = Command::new("useradd");
        useradd.args([
            "--system",
            "--create-home",
            "--user-group",
            "--shell",
            "/bin/sh",
            name,
        ]);
        process::run(&mut useradd)?;
        Self::read(name)?.with_context(|| format!("useradd made no user {name}"))
    }

    fn read(name: &str) -> Result<Option<Self>> {
        let users = fs::read_to_string("/etc/passwd").context("cannot read /etc/passwd")?;
        Ok(Self::find(&users, |account| account.name == name))
    }

    fn find(users: &str, wanted: impl Fn(&Self) -> bool) -> Option<Self> {
        users
            .lines()
            .filter_map(Self::parse)
            .find(|account| wanted(account))
    }

    /// Reads a line of passwd(5).
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split(':');
        let name = fields.next()?.to_string();
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        Some(Self { name, uid, gid })
    }
}

/// The folder; removed when dropped.
#[derive(Debug)]
pub(crate) struct Stage {
    root: PathBuf,
    runner: Runner,
    /// Held for the stage's life, so that `sweep` leaves it alone.
    _lock: File,
}

impl Stage {
    /// Makes a stage whose folders belong to `runner`.
    pub(crate) fn new(runner: Runner) -> Result<Self> {
        let parent = parent_folder()?;
        sweep(&parent);
        let root = parent.join(format!("{PREFIX}{}", unique()));
        make_folder(&root)?;
        let lock = File::create(root.join(LOCK)).context("cannot create the stage's lock")?;
        lock.lock().context("cannot lock the stage")?;
        let stage = Self {
            root,
            runner,
            _lock: lock,
        };
        for folder in ["bin", "home", "tmp"] {
            make_folder(&stage.root.join(folder))?;
            stage.give(&stage.root.join(folder))?;
        }
        Ok(stage)
    }

    /// Copies `program` into the stage as `name`.
    pub(crate) fn add(&self, program: &Path, name: &str) -> Result<PathBuf> {
        let copy = self.root.join("bin").join(name);
        fs::copy(program, &copy)
            .with_context(|| format!("cannot copy {} to the stage", program.display()))?;
        fs::set_permissions(&copy, Permissions::from_mode(READABLE))?;
        self.give(&copy)?;
        Ok(copy)
    }

    /// Copies a folder of programs into the stage as `name`.
    pub(crate) fn add_folder(&self, folder: &Path, name: &str) -> Result<PathBuf> {
        let copy = self.root.join(name);
        let mut copying = Command::new("cp");
        copying.args(["-r", "--no-preserve=ownership"]);
        process::run(copying.arg(folder).arg(&copy))?;
        Ok(copy)
    }

    /// Mounts memory as a folder of the stage's home, until the answer is dropped.
    /// Needs root.
    pub(crate) fn add_memory(&self, name: &str) -> Result<Mounted> {
        let folder = self.root.join("home").join(name);
        make_folder(&folder)?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "mode=0755", "ringfence-stage"]);
        process::run(mount.arg(&folder))?;
        let mounted = Mounted(folder);
        self.give(&mounted.0)?;
        Ok(mounted)
    }

    /// `program` as the stage's user, in its home, with a clean environment.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Result<Command> {
        let mut command = match &self.runner {
            Runner::Invoker => Command::new(program),
            Runner::Other(account) => as_account(account, program.as_ref()),
        };
        let home = self.root.join("home");
        command
            .env_clear()
            .env("PATH", env::join_paths(programs::public_path())?)
            .env("HOME", &home)
            .env("TMPDIR", self.root.join("tmp"))
            .env("USER", self.runner.name())
            .env("LOGNAME", self.runner.name())
            .current_dir(&home);
        for kept in ["CI", "RUST_BACKTRACE"] {
            if let Some(value) = env::var_os(kept) {
                command.env(kept, value);
            }
        }
        Ok(command)
    }

    fn give(&self, path: &Path) -> Result<()> {
        if let Runner::Other(account) = &self.runner {
            chown(path, Some(account.uid), Some(account.gid))
                .with_context(|| format!("cannot give {} to {}", path.display(), account.name))?;
        }
        Ok(())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.root) {
            eprintln!("xtask: cannot remove {}: {error}", self.root.display());
        }
    }
}

/// A folder in memory.
#[derive(Debug)]
pub(crate) struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Err(error) = process::run(Command::new("umount").arg(&self.0)) {
            eprintln!("xtask: {error:#}");
        }
    }
}

/// The name of the user who started us.
pub(crate) fn invoker_name() -> String {
    let uid = rustix::process::geteuid().as_raw();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    Account::find(&users, |account| account.uid == uid)
        .map_or_else(|| format!("uid {uid}"), |account| account.name)
}

fn as_account(account: &Account, program: &OsStr) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", &account.uid.to_string()])
        .args(["--regid", &account.gid.to_string()])
        .args(["--init-groups", "--"])
        .arg(program);
    command
}

/// The system's temporary folder, if others can enter it.
fn parent_folder() -> Result<PathBuf> {
    let candidates = [env::temp_dir(), PathBuf::from("/tmp")];
    let Some(folder) = candidates
        .into_iter()
        .find(|path| programs::open_to_others(path))
    else {
        bail!("no temporary folder that every user may enter; set TMPDIR to one");
    };
    Ok(folder)
}

/// Removes stages whose process was killed before it could.
fn sweep(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) && is_abandoned(&entry.path()) {
            // Another run may be removing it too; whoever comes last has nothing to do.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Ours, unlocked, and not so young that its maker may not have locked it yet.
fn is_abandoned(stage: &Path) -> bool {
    let me = rustix::process::geteuid().as_raw();
    let is_old = |about: &fs::Metadata| {
        let age = about.modified().ok().and_then(|time| time.elapsed().ok());
        age.is_some_and(|age| age > YOUNG)
    };
    fs::symlink_metadata(stage)
        .is_ok_and(|about| about.is_dir() && about.uid() == me && is_old(&about))
        && File::open(stage.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok())
}

fn make_folder(path: &Path) -> Result<()> {
    DirBuilder::new()
        .mode(READABLE)
        .create(path)
        .with_context(|| format!("cannot create {}", path.display()))?;
    // The umask may have taken away what other users need.
    fs::set_permissions(path, Permissions::from_mode(READABLE))?;
    Ok(())
}

fn unique() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{count}-{:x}", std::process::id(), now.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_read_from_passwd_lines() {
        let users = "root:x:0:0:root:/root:/bin/sh\nbroken\na:x:7:8::/home/a:/bin/sh\n";
        let found = Account::find(users, |account| account.name == "a");
        assert_eq!(
            found,
            Some(Account {
                name: "a".into(),
                uid: 7,
                gid: 8
            })
        );
        assert_eq!(Account::find(users, |account| account.name == "b"), None);
    }

    #[test]
    fn a_stage_runs_programs_with_a_clean_environment_and_is_removed() {
        let stage = Stage::new(Runner::Invoker).unwrap();
        let root = stage.root.clone();
        let copy = stage.add(Path::new("/usr/bin/env"), "shown").unwrap();
        let output = process::output(&mut stage.command(copy).unwrap()).unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(
            shown.contains(&format!("TMPDIR={}", root.join("tmp").display())),
            "{shown}"
        );
        assert!(!shown.contains("CARGO"), "{shown}");
        drop(stage);
        assert!(!root.exists());
    }

    #[test]
    fn only_an_old_and_unlocked_stage_is_abandoned() {
        let stage = Stage::new(Runner::Invoker).unwrap();
        // Not named like a stage, so that no other test sweeps it away.
        let old = stage.root.join("old");
        make_folder(&old).unwrap();
        let lock = File::create(old.join(LOCK)).unwrap();
        assert!(!is_abandoned(&old));
        let folder = File::open(&old).unwrap();
        folder.set_modified(SystemTime::now() - 2 * YOUNG).unwrap();
        assert!(is_abandoned(&old));
        lock.lock().unwrap();
        assert!(!is_abandoned(&old));
    }
}
