//! The host's git, with everything off that a repository could make it do.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::MemfdFlags;

use super::error::GitError;
use super::path;
use crate::host_env::HostEnv;
use crate::host_program::{HostProgram, HostProgramError};
use crate::kits::reference::Transport;

/// The longest time that one command may take.
const PATIENCE: Duration = Duration::from_mins(2);
/// The largest file that it may write, in bytes.
const LARGEST_FILE: u64 = 256 * 1024 * 1024;
/// What `ulimit -f` counts in, in bytes.
const BLOCK: u64 = 512;
/// The most that is shown of what git said.
const MOST_TOLD: usize = 400;

/// Limits what it writes, then becomes git.
const LIMITED: &str = "ulimit -f \"$0\" && exec git \"$@\"";

/// Settings that hold whatever a repository or a user's own configuration say.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.symlinks=false",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "core.sshCommand=ssh -oBatchMode=yes -oPermitLocalCommand=no -oClearAllForwardings=yes",
    "credential.helper=",
    "credential.interactive=false",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
    "transfer.fsckObjects=true",
    "fetch.fsckObjects=true",
    "transfer.bundleURI=false",
    "http.followRedirects=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
];

/// Variables of ours that git or ssh need.
const PASSED: &[&str] = &[
    "HOME",
    "USER",
    "LOGNAME",
    "SSH_AUTH_SOCK",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "GIT_SSL_CAINFO",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "no_proxy",
    "NO_PROXY",
    "ALL_PROXY",
    "all_proxy",
];

/// The host's git.
pub(super) struct Git {
    path: OsString,
    passed: Vec<(&'static str, OsString)>,
}

impl Git {
    /// As this user would find it, but for what may have been put there by code
    /// that ran in the current directory.
    pub(super) fn of(env: &HostEnv) -> Self {
        let value = |name: &'static str| Some((name, env.variable(name)?));
        // Without a current directory there is none that anything ran in.
        let here = env.directory().unwrap_or(Path::new("/nowhere"));
        Self {
            path: path::outside_of(here, env.variable("PATH").as_deref()),
            passed: PASSED.iter().copied().filter_map(value).collect(),
        }
    }

    /// Runs it in `repository` and returns what it printed.
    pub(super) fn run(
        &self,
        repository: &Path,
        transport: Option<Transport>,
        task: &'static str,
        words: &[&str],
        input: &[u8],
    ) -> Result<Vec<u8>, GitError> {
        let mut streams = Streams::new(input)?;
        let mut command = command(repository, transport);
        command.env("PATH", &self.path);
        command.envs(self.passed.iter().map(|(name, value)| (name, value)));
        command.args(words);
        streams.give(&mut command)?;
        let running = HostProgram::start(&mut command)?;
        let status = running.end(Instant::now() + PATIENCE)?;
        let output = streams.output()?;
        if status.success() {
            return Ok(output);
        }
        let told = streams.told()?;
        Err(GitError::Failed { task, told })
    }
}

/// All but where it is found and what passes.
fn command(repository: &Path, transport: Option<Transport>) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", LIMITED, &(LARGEST_FILE / BLOCK).to_string()]);
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    let allowed = transport.map(Transport::as_str);
    if let Some(name) = allowed {
        command
            .arg("-c")
            .arg(format!("protocol.{name}.allow=always"));
    }
    command
        .env_clear()
        .env("GIT_DIR", repository)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_ATTR_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_ASKPASS", "/bin/false")
        .env("SSH_ASKPASS", "/bin/false")
        .env("GIT_ALLOW_PROTOCOL", allowed.unwrap_or("none"))
        .env("GIT_PROTOCOL_FROM_USER", "0")
        .env("GIT_LFS_SKIP_SMUDGE", "1")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("LC_ALL", "C");
    command
}

impl From<HostProgramError> for GitError {
    fn from(error: HostProgramError) -> Self {
        match error {
            HostProgramError::Start(error) => Self::Start(error),
            HostProgramError::Watch(errno) => Self::Watch(errno.into()),
            HostProgramError::Slow => Self::Slow(PATIENCE),
        }
    }
}

/// What goes in and out, in memory: no pipe can fill up and none can be held
/// open by what git left behind. The limit on files holds for these too.
struct Streams {
    input: File,
    output: File,
    errors: File,
}

impl Streams {
    fn new(input: &[u8]) -> Result<Self, GitError> {
        let made = || {
            let file = rustix::fs::memfd_create("ringfence-git", MemfdFlags::CLOEXEC);
            file.map(File::from)
                .map_err(|errno| GitError::Watch(errno.into()))
        };
        let mut streams = Self {
            input: made()?,
            output: made()?,
            errors: made()?,
        };
        let written = streams.input.write_all(input);
        written
            .and_then(|()| streams.input.rewind())
            .map_err(GitError::Watch)?;
        Ok(streams)
    }

    fn give(&self, command: &mut Command) -> Result<(), GitError> {
        let shared = |file: &File| file.try_clone().map(Stdio::from).map_err(GitError::Watch);
        command
            .stdin(shared(&self.input)?)
            .stdout(shared(&self.output)?)
            .stderr(shared(&self.errors)?);
        Ok(())
    }

    fn output(&mut self) -> Result<Vec<u8>, GitError> {
        read(&mut self.output)
    }

    /// The end of what it said, in one line.
    fn told(&mut self) -> Result<String, GitError> {
        let bytes = read(&mut self.errors)?;
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.split('\n').map(str::trim).collect();
        let line = lines.join("; ");
        let line = line.trim_end_matches("; ");
        let skipped = line.chars().count().saturating_sub(MOST_TOLD);
        Ok(line.chars().skip(skipped).collect())
    }
}

fn read(file: &mut File) -> Result<Vec<u8>, GitError> {
    let mut bytes = Vec::new();
    file.rewind()
        .and_then(|()| file.read_to_end(&mut bytes))
        .map_err(GitError::Watch)?;
    Ok(bytes)
}
