//! Which functions of a program a command executes, seen with breakpoints: one
//! at the first byte of each, placed when the program has just been loaded.
//! Processes that it makes have copies of them, or share them. At the first
//! hit the byte is put back and the process goes on, so each process stops
//! once for each function and everything else runs at full speed. A process
//! that becomes another program is let go. Methods: ptrace(2).

use std::collections::{HashMap, HashSet};
use std::fs;
use std::mem;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use nix::errno::Errno;
use nix::libc::{PTRACE_EVENT_EXEC, c_long};
use nix::sys::ptrace::{self, AddressType, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::process;

/// The instruction `int3`, one byte long.
const BREAKPOINT: u8 = 0xcc;

/// A traced start takes a second or two.
const LONGEST: Duration = Duration::from_mins(1);

/// Between two looks at processes that all run.
const PAUSE: Duration = Duration::from_micros(100);

/// Also for threads and for processes that are not our children, and not for
/// those of other threads of ours: only this one can trace what it seized.
const OURS: WaitPidFlag = WaitPidFlag::__WALL.union(WaitPidFlag::__WNOTHREAD);

/// Runs `command`, which stops itself once and then becomes `program`, and
/// returns which of `functions` were executed, as [`Hits`] orders them. They are
/// addresses as linked. Anything but success is an error.
pub(super) fn first_executions(
    command: &mut Command,
    program: &Path,
    functions: &[u64],
) -> Result<Vec<u64>> {
    let child = command
        .spawn()
        .with_context(|| format!("cannot start `{}`", process::describe(command)))?;
    let leader = Pid::from_raw(i32::try_from(child.id())?);
    let mut tracer = Tracer {
        leader,
        program,
        functions,
        loaded: None,
        alive: HashSet::from([leader]),
        hits: Hits::default(),
        end: None,
    };
    let outcome = tracer.run();
    if outcome.is_err() {
        tracer.kill_all();
    }
    outcome.with_context(|| format!("while tracing `{}`", process::describe(command)))?;
    Ok(tracer.hits.in_order())
}

struct Tracer<'a> {
    leader: Pid,
    program: &'a Path,
    functions: &'a [u64],
    loaded: Option<Loaded>,
    alive: HashSet<Pid>,
    hits: Hits,
    /// How the leader ended.
    end: Option<WaitStatus>,
}

/// The program in memory, with its breakpoints. Addresses are those of the
/// processes, which is the same one in all of them.
struct Loaded {
    /// How far it lies from where it was linked to be.
    base: u64,
    first_bytes: HashMap<u64, u8>,
}

/// The functions that each thread was the first of its memory to reach.
#[derive(Default)]
struct Hits {
    /// Threads in the order in which they were first seen to execute anything.
    threads: Vec<Pid>,
    reached: HashMap<Pid, Vec<u64>>,
}

impl Hits {
    fn add(&mut self, thread: Pid, function: u64) {
        let reached = self.reached.entry(thread).or_insert_with(|| {
            self.threads.push(thread);
            Vec::new()
        });
        reached.push(function);
    }

    /// Each function once, thread by thread, as each went on. What a process
    /// executes alone lies together then, and it does not depend on who was
    /// quicker.
    fn in_order(&self) -> Vec<u64> {
        let mut seen = HashSet::new();
        let reached = self.threads.iter().flat_map(|thread| &self.reached[thread]);
        reached
            .copied()
            .filter(|place| seen.insert(*place))
            .collect()
    }
}

impl Tracer<'_> {
    fn run(&mut self) -> Result<()> {
        self.seize()?;
        let deadline = Instant::now() + LONGEST;
        while let Some(status) = next_status(deadline)? {
            self.handle(status)?;
        }
        match (self.end, &self.loaded) {
            (Some(WaitStatus::Exited(_, 0)), Some(_)) => Ok(()),
            (Some(WaitStatus::Exited(_, 0)), None) => bail!("it never became the program"),
            (Some(WaitStatus::Exited(_, code)), _) => bail!("it failed with exit code {code}"),
            (Some(WaitStatus::Signaled(_, signal, _)), _) => bail!("it was ended by {signal}"),
            (_, _) => bail!("it went away without an end"),
        }
    }

    /// Takes hold of the leader where it waits for that, and of every process
    /// that comes of it.
    fn seize(&mut self) -> Result<()> {
        match waitpid(self.leader, Some(WaitPidFlag::WUNTRACED))? {
            WaitStatus::Stopped(..) => {}
            other => bail!("it did not wait to be traced: {other:?}"),
        }
        let options = Options::PTRACE_O_TRACEFORK
            | Options::PTRACE_O_TRACEVFORK
            | Options::PTRACE_O_TRACECLONE
            | Options::PTRACE_O_TRACEEXEC
            | Options::PTRACE_O_EXITKILL;
        ptrace::seize(self.leader, options).context("cannot trace it")?;
        kill(self.leader, Signal::SIGCONT).context("cannot let it go on")
    }

    fn handle(&mut self, status: WaitStatus) -> Result<()> {
        match status {
            WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..) => {
                self.alive.remove(&pid);
                if pid == self.leader {
                    self.end = Some(status);
                }
                Ok(())
            }
            WaitStatus::PtraceEvent(pid, _, PTRACE_EVENT_EXEC) => self.loaded_anew(pid),
            // A new process may be seen before the event of the one that made it.
            WaitStatus::PtraceEvent(pid, ..) => self.go_on(pid, None),
            WaitStatus::Stopped(pid, Signal::SIGTRAP) => {
                let is_ours = unless_gone(self.hit(pid))?.unwrap_or(true);
                self.go_on(pid, (!is_ours).then_some(Signal::SIGTRAP))
            }
            WaitStatus::Stopped(pid, signal) => self.go_on(pid, Some(signal)),
            other => bail!("it stopped for an unknown reason: {other:?}"),
        }
    }

    fn go_on(&mut self, pid: Pid, signal: Option<Signal>) -> Result<()> {
        self.alive.insert(pid);
        unless_gone(ptrace::cont(pid, signal))?;
        Ok(())
    }

    /// After an `execve`: the program gets its breakpoints, another is let go.
    fn loaded_anew(&mut self, pid: Pid) -> Result<()> {
        let is_program =
            fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|running| running == self.program);
        if is_program && self.loaded.is_none() {
            self.loaded = Some(Loaded::place(pid, self.program, self.functions)?);
            return self.go_on(pid, None);
        }
        self.alive.remove(&pid);
        unless_gone(ptrace::detach(pid, None))?;
        Ok(())
    }

    /// Takes the breakpoint away that `pid` stands behind; whether there is one.
    fn hit(&mut self, pid: Pid) -> nix::Result<bool> {
        let Some(loaded) = &mut self.loaded else {
            return Ok(false);
        };
        let address = instruction_pointer(pid)?.wrapping_sub(1);
        let Some(&first_byte) = loaded.first_bytes.get(&address) else {
            return Ok(false);
        };
        // Another thread may have been here meanwhile, and then all of this
        // was done already but for the step back.
        replace_byte(pid, address, first_byte)?;
        set_instruction_pointer(pid, address)?;
        self.hits.add(pid, address - loaded.base);
        Ok(true)
    }

    /// Ends what is left, so that a next trace does not meet it.
    fn kill_all(&self) {
        for &pid in &self.alive {
            // It may have ended by itself.
            let _ = kill(pid, Signal::SIGKILL);
        }
        while let Ok(status) = waitpid(None, Some(OURS)) {
            // A process that nothing was known of stops before it does anything.
            if let WaitStatus::PtraceEvent(pid, ..) | WaitStatus::Stopped(pid, _) = status {
                let _ = kill(pid, Signal::SIGKILL);
            }
        }
    }
}

impl Loaded {
    fn place(pid: Pid, program: &Path, functions: &[u64]) -> Result<Self> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
        let base = base(&maps, program).context("the program is not in its own memory")?;
        let place = |function: &u64| {
            let address = base + function;
            Ok((address, replace_byte(pid, address, BREAKPOINT)?))
        };
        let first_bytes = functions.iter().map(place).collect::<nix::Result<_>>();
        Ok(Self {
            base,
            first_bytes: first_bytes.context("cannot place breakpoints")?,
        })
    }
}

/// The next thing that happened to a process of ours; nothing when none is left.
fn next_status(deadline: Instant) -> Result<Option<WaitStatus>> {
    loop {
        match waitpid(None, Some(OURS | WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) if Instant::now() > deadline => {
                bail!("it takes longer than {} s", LONGEST.as_secs());
            }
            Ok(WaitStatus::StillAlive) => thread::sleep(PAUSE),
            Ok(status) => return Ok(Some(status)),
            Err(Errno::ECHILD) => return Ok(None),
            Err(error) => return Err(error).context("cannot wait for it"),
        }
    }
}

/// A stopped process can be killed at any time: by its parent, or with the
/// namespace it is in. That is told as the end of the process, later.
fn unless_gone<T>(result: nix::Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Errno::ESRCH) => Ok(None),
        Err(error) => Err(error).context("cannot trace it any more"),
    }
}

/// Where the beginning of `program` lies, from `/proc/PID/maps`. The program is
/// linked to be anywhere, so its own addresses begin with zero.
fn base(maps: &str, program: &Path) -> Option<u64> {
    let beginning = maps.lines().find(|line| {
        let mut fields = line.split_whitespace();
        let is_first = fields.nth(2).is_some_and(|offset| offset == "00000000");
        is_first && fields.nth(2).is_some_and(|path| Path::new(path) == program)
    })?;
    u64::from_str_radix(beginning.split('-').next()?, 16).ok()
}

/// Writes a byte into the memory of a stopped process and returns what was there.
fn replace_byte(pid: Pid, address: u64, byte: u8) -> nix::Result<u8> {
    let place = address as AddressType;
    let mut word = ptrace::read(pid, place)?.to_ne_bytes();
    let old = mem::replace(&mut word[0], byte);
    ptrace::write(pid, place, c_long::from_ne_bytes(word))?;
    Ok(old)
}

#[cfg(target_arch = "x86_64")]
fn instruction_pointer(pid: Pid) -> nix::Result<u64> {
    Ok(ptrace::getregs(pid)?.rip)
}

#[cfg(target_arch = "x86_64")]
fn set_instruction_pointer(pid: Pid, address: u64) -> nix::Result<()> {
    let mut registers = ptrace::getregs(pid)?;
    registers.rip = address;
    ptrace::setregs(pid, registers)
}

// Elsewhere the command is refused before anything is traced.
#[cfg(not(target_arch = "x86_64"))]
fn instruction_pointer(_: Pid) -> nix::Result<u64> {
    Err(Errno::ENOSYS)
}

#[cfg(not(target_arch = "x86_64"))]
fn set_instruction_pointer(_: Pid, _: u64) -> nix::Result<()> {
    Err(Errno::ENOSYS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Traces this very program, and where its first instruction is.
    #[cfg(target_arch = "x86_64")]
    fn own_entry_with(argument: &str) -> Result<(Vec<u64>, u64)> {
        use std::process::Stdio;

        let program = std::env::current_exe()?.canonicalize()?;
        // elf(5): the entry is the fourth field of the header.
        let entry = u64::from_ne_bytes(fs::read(&program)?[24..32].try_into()?);
        let mut command = Command::new("sh");
        command
            .args(["-c", r#"kill -STOP $$ && exec "$@""#, "sh"])
            .arg(&program)
            .arg(argument)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Ok((first_executions(&mut command, &program, &[entry])?, entry))
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_entry_of_a_program_is_seen_to_be_executed() {
        let (executed, entry) = own_entry_with("--list").unwrap();
        assert_eq!(executed, [entry]);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_program_that_fails_is_an_error() {
        let error = own_entry_with("--no-such-option").unwrap_err();
        assert!(format!("{error:#}").contains("exit code"), "{error:#}");
    }

    const MAPS: &str = "\
7f0000000000-7f0000001000 r--p 00000000 00:1f 5 /bin/other
7f1200000000-7f1200200000 r--p 00000000 00:1f 9 /bin/program
7f1200200000-7f1200c00000 r-xp 00200000 00:1f 9 /bin/program
7ffd00000000-7ffd00020000 rw-p 00000000 00:00 0 [stack]
";

    #[test]
    fn functions_are_ordered_by_thread_and_then_by_time() {
        let (first, second) = (Pid::from_raw(9), Pid::from_raw(3));
        let mut hits = Hits::default();
        for (thread, function) in [
            (first, 1),
            (second, 4),
            (second, 2),
            (first, 2),
            (second, 3),
        ] {
            hits.add(thread, function);
        }
        assert_eq!(hits.in_order(), [1, 2, 4, 3]);
    }

    #[test]
    fn the_base_is_where_the_files_beginning_is() {
        let found = |program| base(MAPS, Path::new(program));
        assert_eq!(found("/bin/program"), Some(0x7f12_0000_0000));
        assert_eq!(found("/bin/missing"), None);
    }
}
