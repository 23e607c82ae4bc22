//! Sandboxes do not nest: telling that this process is in one of ours, and which programs inside
//! one tried to make their own.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use ringfence_sandbox::{OWN_FOLDER, Observation};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::host_env::HostEnv;

/// The variable that a sandbox sets.
const MARK: &str = "RINGFENCE";
/// What the first process inside is called.
const INIT: &str = "ringfence";
/// The most processes whose programs are remembered.
const MOST_PROCESSES: usize = 4096;
/// The most programs that are told.
const MOST_TOLD: usize = 8;

/// Programs that make a sandbox of their own, and what to do instead.
struct Nester {
    programs: &'static [&'static str],
    advice: &'static str,
}

const NESTERS: &[Nester] = &[
    Nester {
        programs: &["ringfence"],
        advice: "ringfence: leave it out, this sandbox holds the command already",
    },
    Nester {
        programs: &["srt", "sandbox-runtime"],
        advice: "srt: leave it out; outside, `ringfence srt` reads the same settings",
    },
    Nester {
        programs: &["bwrap", "flatpak-spawn"],
        advice: "bwrap: run what it would have run without it",
    },
    Nester {
        programs: &["unshare", "nsenter", "firejail", "nsjail", "minijail0"],
        advice: "unshare and the like: run what they would have run without them",
    },
    Nester {
        programs: &[
            "chrome",
            "chromium",
            "chromium-browser",
            "google-chrome",
            "google-chrome-stable",
            "headless_shell",
            "chrome-headless-shell",
            "msedge",
            "electron",
        ],
        advice: "Chromium: --no-sandbox (Playwright: chromiumSandbox: false; Puppeteer: args: ['--no-sandbox'])",
    },
    Nester {
        programs: &["codex", "codex-linux-sandbox"],
        advice: "codex: codex --sandbox danger-full-access, which leaves the sandbox to this one",
    },
    Nester {
        programs: &["claude"],
        advice: "claude: {\"sandbox\": {\"enabled\": false}} in its settings",
    },
    Nester {
        programs: &["gemini"],
        advice: "gemini: GEMINI_SANDBOX=false",
    },
    Nester {
        programs: &["docker", "podman", "buildah", "runc", "crun", "rootlesskit"],
        advice: "containers: start them outside, and let the command reach them by --allow or --host-port",
    },
    Nester {
        programs: &["nix", "nix-build", "nix-daemon"],
        advice: "nix: --option sandbox false",
    },
];

/// What to do about any other program.
const OTHERS: &str = "programs that make their own sandbox cannot do so inside this one, which holds them already: \
     switch theirs off";

/// What to do about these programs, which tried to make a sandbox of their own; once for each kind.
pub fn nesting_advice(programs: &[String]) -> Vec<&'static str> {
    let is_named = |nester: &&Nester| programs.iter().any(|name| is_of(nester, name));
    let known = NESTERS.iter().filter(is_named).map(|nester| nester.advice);
    std::iter::once(OTHERS).chain(known).collect()
}

fn is_of(nester: &Nester, name: &str) -> bool {
    nester.programs.contains(&name)
}

/// Whether this process is inside one of our sandboxes. Both must hold: what a sandbox shows, and
/// that it withholds calls which ringfence needs. So whoever sets a variable outside changes
/// nothing; and whoever is told so wrongly could not have been held here anyway.
pub fn is_inside_sandbox(env: &HostEnv) -> bool {
    lacks_calls() && (is_marked(env) || has_own_init() || Path::new(OWN_FOLDER).is_dir())
}

/// The same where the variable is set, for which nothing has to be looked at otherwise.
pub fn is_marked_inside(env: &HostEnv) -> bool {
    is_marked(env) && is_inside_sandbox(env)
}

fn is_marked(env: &HostEnv) -> bool {
    env.variable(MARK).is_some()
}

fn has_own_init() -> bool {
    let name = std::fs::read_to_string("/proc/1/comm");
    name.is_ok_and(|name| name.trim_end() == INIT)
}

/// Every kernel that ringfence runs on has this call; no sandbox of ours does.
fn lacks_calls() -> bool {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let opened = rustix::fs::openat2(CWD, "/", flags, Mode::empty(), ResolveFlags::empty());
    matches!(opened, Err(Errno::NOSYS))
}

/// Who inside tried to make a sandbox, as far as it was seen.
#[derive(Debug, Default)]
pub(crate) struct Nesting {
    /// By process: the names that its program goes by.
    programs: HashMap<i32, Vec<String>>,
    /// Those of them that are known to make sandboxes.
    known: BTreeSet<String>,
    refused: BTreeSet<String>,
    was_refused: bool,
}

impl Nesting {
    /// A program was started.
    pub(crate) fn started(&mut self, seen: &Observation) {
        let names = names_of(seen);
        let is_known = |name: &&String| NESTERS.iter().any(|nester| is_of(nester, name));
        self.known.extend(names.iter().filter(is_known).cloned());
        if self.programs.len() < MOST_PROCESSES || self.programs.contains_key(&seen.pid) {
            self.programs.insert(seen.pid, names);
        }
    }

    /// A sandbox was refused to it.
    pub(crate) fn refused(&mut self, seen: &Observation) {
        self.was_refused = true;
        let name = self
            .programs
            .get(&seen.pid)
            .and_then(|names| names.first().cloned());
        if self.refused.len() < MOST_TOLD {
            self.refused.extend(name);
        }
    }

    /// The programs, where any was refused: by itself, or because it is known to start one that
    /// was, which may have no program of its own.
    pub(crate) fn programs(&self) -> Vec<String> {
        if !self.was_refused {
            return Vec::new();
        }
        let told: BTreeSet<&String> = self.known.iter().chain(&self.refused).collect();
        told.into_iter().take(MOST_TOLD).cloned().collect()
    }
}

/// The file, what it was called by, and the script that it runs.
fn names_of(seen: &Observation) -> Vec<String> {
    // The kernel hands an interpreter the script's path.
    let script = seen.argv.get(1);
    let script = script.filter(|word| word.contains('/') && !word.starts_with('-'));
    let words = seen.paths.first().into_iter().chain(seen.argv.first());
    let names = words.chain(script).filter_map(|word| {
        let name = Path::new(word).file_name()?.to_str()?;
        Some(name.to_owned())
    });
    let mut names: Vec<String> = names.collect();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use ringfence_sandbox::{Action, Outcome};

    use super::*;

    fn seen(pid: i32, action: Action, paths: &[&str], argv: &[&str]) -> Observation {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Observation {
            time: 0,
            pid,
            call: "execve".to_owned(),
            action,
            paths: texts(paths),
            argv: texts(argv),
            outcome: Outcome::Done,
            rule: None,
        }
    }

    fn start(pid: i32, paths: &[&str], argv: &[&str]) -> Observation {
        seen(pid, Action::Exec, paths, argv)
    }

    fn refusal(pid: i32) -> Observation {
        seen(pid, Action::Namespace, &["namespaces user"], &[])
    }

    #[test]
    fn who_was_refused_is_named_with_whoever_is_known_to_try() {
        let mut nesting = Nesting::default();
        nesting.started(&start(
            2,
            &["/usr/bin/node"],
            &["node", "/usr/bin/srt", "x"],
        ));
        nesting.started(&start(3, &["/opt/mine/jailer"], &["jailer"]));
        assert!(nesting.programs().is_empty());
        nesting.refused(&refusal(3));
        assert_eq!(nesting.programs(), ["jailer", "srt"]);
    }

    #[test]
    fn a_child_without_a_program_of_its_own_stands_for_what_was_started() {
        let mut nesting = Nesting::default();
        nesting.started(&start(2, &["/opt/chrome/chrome"], &["chrome"]));
        nesting.started(&start(4, &["/bin/sh"], &["sh", "-c", "bwrap"]));
        nesting.started(&start(5, &["/bin/grep"], &["grep", "bwrap"]));
        nesting.refused(&refusal(9));
        assert_eq!(nesting.programs(), ["chrome"]);
    }

    #[test]
    fn what_is_remembered_has_an_end() {
        let mut nesting = Nesting::default();
        for pid in 0..10_000 {
            nesting.started(&start(pid, &[&format!("/p{pid}")], &[]));
            nesting.refused(&refusal(pid));
        }
        assert!(nesting.programs.len() <= MOST_PROCESSES);
        assert_eq!(nesting.programs().len(), MOST_TOLD);
    }

    #[test]
    fn each_kind_is_told_once_and_nobody_is_in_two() {
        let programs = ["chrome", "chromium", "jailer"].map(str::to_owned);
        assert_eq!(nesting_advice(&programs).len(), 2);
        assert_eq!(nesting_advice(&[]), [OTHERS]);
        let all: Vec<_> = NESTERS.iter().flat_map(|nester| nester.programs).collect();
        let distinct: BTreeSet<_> = all.iter().collect();
        assert_eq!(all.len(), distinct.len());
    }
}
