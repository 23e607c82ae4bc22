//! G5: the secret is nowhere inside, while it is in use.

use std::collections::BTreeMap;
use std::path::Path;

use ringfence_testkit::{Folder, Started, is_root, wait_until};

use super::{BEARER, Bound, HOST, SECRET, VARIABLE, leak, placeholder};

/// Everything that a process inside can read about itself and others.
const LOOK: &str = "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/[0-9]*/task/*/environ \
    /proc/[0-9]*/mem /proc/[0-9]*/auxv /proc/keys /proc/key-users 2>/dev/null | tr '\\0' '\\n'; :";

#[test]
fn g5_the_secret_is_not_in_proc_nor_in_variables() {
    let bound = Bound::new();
    let outside = bound.outside(LOOK).expect_code(0);
    assert!(
        leak(&outside.stdout).is_some(),
        "outside there is nothing to see"
    );
    let ask = format!("curl -sSf https://{HOST}/ > answer");
    let script = format!("{ask}; {LOOK}\necho; echo token=$API_TOKEN");
    let run = bound.run(&bound.policy(BEARER), &script).expect_code(0);
    assert!(super::clients::arrived(&bound));
    let placeholder = placeholder(&run);
    assert!(
        placeholder.starts_with("rf-") && placeholder.len() >= 32,
        "{placeholder}"
    );
    // What the page told is what stands for it.
    let answer = bound.host.online.arena.folder.read("answer");
    assert!(answer.contains(placeholder), "{answer}");
}

/// The files that a sandbox can read, apart from the system's programs.
#[test]
fn g5_the_secret_is_in_no_file() {
    let bound = Bound::new();
    let turned: String = SECRET.bytes().rev().map(char::from).collect();
    // Turned around, or the search would find itself.
    let script = format!(
        "curl -sSf https://{HOST}/ > /tmp/answer
         echo '{turned}' | rev > /dev/shm/pattern || exit 9
         grep -rlFf /dev/shm/pattern --exclude=pattern \
           /run /tmp /etc /dev/shm /var/tmp . 2>/dev/null
         ls /run/ringfence; cat /run/ringfence/*.pem | head -c 100000"
    );
    let run = bound.run(&bound.policy(BEARER), &script).expect_code(0);
    // Lines of a certificate may begin like a path.
    let first = run.stdout().lines().next();
    assert_eq!(first, Some("authority.pem"), "{}", run.stdout());
    // The certificate is there, its key is not.
    assert!(
        run.stdout().contains("BEGIN CERTIFICATE"),
        "{}",
        run.stdout()
    );
    assert!(!run.stdout().contains("PRIVATE KEY"));
}

/// A run that waits after it has used the credential.
struct Waiting {
    run: Started,
    supervisor: u32,
}

impl Waiting {
    fn start(bound: &Bound) -> Self {
        let ask = format!("curl -sSf https://{HOST}/ > answer && mv answer asked");
        let flags = bound.policy(BEARER);
        Self::under(bound, &flags, &ask, (VARIABLE, SECRET))
    }

    /// Does something that leaves a file `asked`, and waits.
    fn under(bound: &Bound, flags: &[String], ask: &str, variable: (&str, &str)) -> Self {
        let script = format!("{ask}; until [ -e changed ]; do sleep 0.02; done");
        let words = [
            &["run", &flags[0], &flags[1], "--", "sh", "-c"],
            &[&*script][..],
        ]
        .concat();
        let program = bound.host.online.ringfence().args(words);
        let run = program.env(variable.0, variable.1).start();
        let folder = &bound.host.online.arena.folder;
        assert!(wait_until(|| folder.has("asked")), "nothing was asked");
        // The program is started by others, which it replaces.
        let supervisor = run.id();
        Self { run, supervisor }
    }

    fn finish(self, bound: &Bound) {
        bound.host.write("changed", "");
        self.run.finish().expect_code(0);
    }
}

/// The processes below one, with their parents.
fn below(ancestor: u32) -> Vec<u32> {
    let status = |pid: u32| {
        ringfence_testkit::status_of(pid, "PPid:")
            .parse()
            .unwrap_or(0)
    };
    let entries = std::fs::read_dir("/proc").expect("a listing of /proc");
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let parents: BTreeMap<u32, u32> = pids.map(|pid| (pid, status(pid))).collect();
    let is_below = |pid: &u32| {
        let mut at = *pid;
        while let Some(parent) = parents.get(&at).copied().filter(|parent| *parent != 0) {
            if parent == ancestor {
                return true;
            }
            at = parent;
        }
        false
    };
    parents.keys().copied().filter(is_below).collect()
}

/// Whether any readable memory of a process has this text in it.
fn memory_has(pid: u32, text: &[u8]) -> std::io::Result<bool> {
    use std::os::unix::fs::FileExt;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let memory = std::fs::File::open(format!("/proc/{pid}/mem"))?;
    let finder = |bytes: &[u8]| bytes.windows(text.len()).any(|part| part == text);
    for line in maps.lines() {
        let (range, rest) = line.split_once(' ').unwrap_or_default();
        let (start, end) = range.split_once('-').unwrap_or_default();
        let number = |text| u64::from_str_radix(text, 16).unwrap_or(0);
        let (start, end) = (number(start), number(end));
        if !rest.starts_with('r') || end - start > 256 << 20 {
            continue;
        }
        let mut bytes = vec![0; usize::try_from(end - start).unwrap_or(0)];
        // Some, such as those of the kernel, cannot be read.
        if memory.read_exact_at(&mut bytes, start).is_ok() && finder(&bytes) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Seen from outside by root, who may read any memory.
#[test]
fn g5_the_secret_is_in_no_memory_inside() {
    if !is_root() {
        return;
    }
    let bound = Bound::new();
    let waiting = Waiting::start(&bound);
    assert!(super::clients::arrived(&bound));
    let inside = below(waiting.supervisor);
    assert!(inside.len() >= 2, "the init and the shell: {inside:?}");
    // The search finds what is there: the secret where it is held, and inside
    // what stands for it.
    let held = memory_has(waiting.supervisor, SECRET.as_bytes());
    assert!(held.expect("the supervisor's memory"), "it is not found");
    let (shell, placeholder) = inside
        .iter()
        .find_map(|pid| Some((*pid, variable_of(*pid)?)))
        .expect("a process inside that has the variable");
    assert!(placeholder.starts_with("rf-"), "{placeholder}");
    let known = memory_has(shell, placeholder.as_bytes());
    assert!(known.expect("the shell's memory"), "it is not found");
    let mut looked = Vec::new();
    for pid in inside {
        let has = memory_has(pid, SECRET.as_bytes());
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        // It may have ended by now.
        assert!(matches!(has, Ok(false) | Err(_)), "{pid} {name:?}");
        looked.extend(has.is_ok().then_some(pid));
    }
    assert!(looked.contains(&shell) && looked.len() >= 2, "{looked:?}");
    waiting.finish(&bound);
}

/// A sandbox's first process begins as a copy of what has read variables and
/// settings: of neither is any part left in it.
#[test]
fn g5_what_the_starter_has_read_is_in_no_memory_inside() {
    if !is_root() {
        return;
    }
    let folder = Folder::durable();
    let settings = serde_json::json!({
        "network": {
            "allowedDomains": [HOST],
            "deniedDomains": [],
            "parentProxy": {"http": "http://joe:first-half-of-it-second-half-of-it@127.0.0.1:3128"},
        },
        "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []},
    });
    let settings = folder.write("settings.json", &settings.to_string());
    let policy = folder.write("policy.yaml", "version: 1\n");
    // Settings of srt pass every variable.
    for (flag, file, variable, known) in [
        ("--settings", settings, "of no interest", "half-of-it"),
        (
            "--policy",
            policy,
            "first-half-of-another-second-half-of-another",
            "half-of-another",
        ),
    ] {
        let bound = Bound::new();
        let flags = [flag.to_owned(), file.display().to_string()];
        let variable = ("ANY_TOKEN", variable);
        let waiting = Waiting::under(&bound, &flags, "touch asked", variable);
        let held = memory_has(waiting.supervisor, known.as_bytes());
        assert!(
            held.expect("the supervisor's memory"),
            "{known} is not found"
        );
        let inside = below(waiting.supervisor);
        assert!(inside.len() >= 2, "the init and the shell: {inside:?}");
        for pid in inside {
            let has = memory_has(pid, known.as_bytes());
            assert!(matches!(has, Ok(false) | Err(_)), "{known} in {pid}");
        }
        waiting.finish(&bound);
    }
}

/// The variable that a process began with.
fn variable_of(pid: u32) -> Option<String> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let environment = String::from_utf8_lossy(&environment).into_owned();
    let mut all = environment.split('\0');
    let own = all.find_map(|one| one.strip_prefix(VARIABLE)?.strip_prefix('='));
    own.map(str::to_owned)
}

/// Nobody but root looks into the process that holds the secret, and it
/// leaves no image of itself when it dies.
#[test]
fn g5_the_holder_of_the_secret_cannot_be_looked_into() {
    let bound = Bound::new();
    let waiting = Waiting::start(&bound);
    let holder = waiting.supervisor;
    let limits = std::fs::read_to_string(format!("/proc/{holder}/limits")).unwrap_or_default();
    if is_root() {
        let core = limits
            .lines()
            .find(|line| line.starts_with("Max core file size"));
        let words: Vec<&str> = core.unwrap_or_default().split_whitespace().collect();
        assert_eq!(words.get(4), Some(&"0"), "{limits}");
    } else {
        let memory = std::fs::File::open(format!("/proc/{holder}/mem"));
        assert!(memory.is_err(), "its memory can be read");
        assert!(std::fs::read(format!("/proc/{holder}/environ")).is_err());
    }
    waiting.finish(&bound);
}

#[test]
fn g5_the_secret_is_not_in_reports_and_error_pages() {
    let bound = Bound::new();
    bound.net().web(OTHER_HOST, ringfence_testkit::Web::new());
    let flags = bound.policy(BEARER);
    // Refused in every way that has a page or a line of its own.
    let script = format!(
        "curl -sS https://{HOST}/ > /dev/null
         curl -sS -i -X TRACE https://{HOST}/
         curl -sS -i -H 'Host: {OTHER_HOST}' https://{HOST}/
         curl -sS -i https://{OTHER_HOST}/$API_TOKEN
         curl -sS -i http://{HOST}/$API_TOKEN
         curl -sS -i https://{HOST}:8443/; :"
    );
    // Looks at both streams and at the record.
    let run = bound.run(&flags, &script).expect_code(0);
    let state = run.state.path().display().to_string();
    for words in [
        ["policy", "log", "--json"],
        ["audit", "list", "--json"],
        ["policy", "log", "--all"],
    ] {
        let program = bound.host.online.ringfence().args(words);
        let shown = program.env("XDG_STATE_HOME", Path::new(&state)).run();
        assert_eq!(leak(&shown.stdout), None, "{words:?}");
    }
}

const OTHER_HOST: &str = "denied.my-service.test";
