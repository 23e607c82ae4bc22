//! The emulated machine: started once, its console read to the end or for as
//! long as it may take.

use std::io::{BufRead as _, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::process;

/// What a machine is started with.
pub(super) struct Parts {
    pub(super) kernel: PathBuf,
    pub(super) first_files: PathBuf,
    pub(super) disk: PathBuf,
}

/// Emulated in software, which works everywhere and is the same everywhere.
const HARDWARE: &[&str] = &[
    "-accel",
    "tcg,thread=multi",
    "-cpu",
    "max",
    "-smp",
    "2",
    "-m",
    "768",
    "-nodefaults",
    "-no-user-config",
    "-no-reboot",
    "-display",
    "none",
    "-serial",
    "stdio",
];
/// Nobody logs in at the console, and systemd does not write to it.
const KERNEL_LINE: &str = "console=ttyS0 quiet loglevel=1 panic=-1 \
    systemd.show_status=0 systemd.mask=serial-getty@ttyS0.service";

/// A running machine; ended when dropped.
pub(super) struct Machine {
    process: Child,
    lines: Receiver<String>,
    deadline: Instant,
}

impl Machine {
    /// Starts `qemu`, which may run for `limit`.
    pub(super) fn start(qemu: Command, parts: &Parts, limit: Duration) -> Result<Self> {
        let mut command = with_parts(qemu, parts);
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start `{}`", process::describe(&command)))?;
        let console = process
            .stdout
            .take()
            .context("the machine has no console")?;
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || follow(console, |line| sender.send(line).is_ok()));
        Ok(Self {
            process,
            lines,
            deadline: Instant::now() + limit,
        })
    }

    /// The next line of the console; `None` when the machine is off.
    pub(super) fn next_line(&self) -> Result<Option<String>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => anyhow::bail!("the machine took too long"),
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // It may be off already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn with_parts(mut qemu: Command, parts: &Parts) -> Command {
    let drive = format!(
        "file={},format=raw,if=virtio,cache=unsafe",
        parts.disk.display()
    );
    qemu.args(HARDWARE)
        .args(["-append", KERNEL_LINE, "-drive", &drive])
        .arg("-kernel")
        .arg(&parts.kernel)
        .arg("-initrd")
        .arg(&parts.first_files);
    qemu
}

/// Hands on each line, without what a terminal would not show.
fn follow(console: impl Read, mut take: impl FnMut(String) -> bool) {
    let mut reader = BufReader::new(console);
    let mut bytes = Vec::new();
    while reader
        .read_until(b'\n', &mut bytes)
        .is_ok_and(|length| length > 0)
    {
        let line = String::from_utf8_lossy(&bytes);
        let shown = line.chars().filter(|character| !character.is_control());
        if !take(shown.collect()) {
            return;
        }
        bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_without_carriage_returns_and_the_last_needs_no_end() {
        let mut lines = Vec::new();
        follow(&b"one\r\ntwo\r\n\x1bcthree"[..], |line| {
            lines.push(line);
            true
        });
        assert_eq!(lines, ["one", "two", "cthree"]);
    }
}
