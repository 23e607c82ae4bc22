//! Questions on the terminal of the user, for `run --ask`.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use ringfence_runtime::{Asker, Permission};
use rustix::termios::{QueueSelector, tcflush, tcgetpgrp};

use crate::error::Failure;
use crate::output;

/// The terminal that this process was started from, whatever its streams are.
const TERMINAL: &str = "/dev/tty";
/// Puts the terminal in order: the command may have left a sequence unfinished
/// that would swallow what follows (CAN, ST), or letters that are drawn as others
/// (SI, ASCII), are not drawn, or push each other away.
const IN_ORDER: &str = "\x18\x1b\\\x0f\x1b(B\x1b[0m\x1b[4l\x1b[?25h";
/// More than any answer has.
const LONGEST: usize = 256;

/// The user's terminal.
pub(super) struct TerminalAsker(File);

impl TerminalAsker {
    /// Opens the terminal, which must be ours to read from.
    pub(super) fn open() -> Result<Self, Failure> {
        let opened = File::options().read(true).write(true).open(TERMINAL);
        let terminal = opened.map_err(|error| no_terminal(&format!("{TERMINAL}: {error}")))?;
        let own = rustix::process::getpgrp();
        if tcgetpgrp(&terminal).is_ok_and(|foreground| foreground == own) {
            Ok(Self(terminal))
        } else {
            Err(no_terminal("this process is in the background"))
        }
    }

    fn show(&mut self, text: &str) {
        let _ = self.0.write_all(text.as_bytes());
    }
}

fn no_terminal(why: &str) -> Failure {
    let message = format!("there is no terminal to ask on: {why}");
    let hint = "run it from a terminal, or without --ask: ringfence allow --run last";
    Failure::new("no-terminal", message, hint)
}

impl Asker for TerminalAsker {
    fn ask(&mut self, destination: &str) {
        let destination = output::printable(destination);
        self.show(&format!(
            "{IN_ORDER}\r\nringfence: the command wants {destination}, which no rule allows\r\n"
        ));
    }

    fn open(&mut self) {
        // What was typed before was not meant for us.
        let _ = tcflush(&self.0, QueueSelector::IFlush);
        self.show("  allow it [o]nce, for this [r]un, for this [p]roject, or [N]ot? ");
    }

    fn input(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn answer(&mut self) -> Option<Permission> {
        let mut line = [0; LONGEST];
        let length = self.0.read(&mut line).unwrap_or(0);
        let line = String::from_utf8_lossy(&line[..length]);
        Some(match line.trim().to_lowercase().as_str() {
            "o" | "once" => Permission::Once,
            "r" | "run" => Permission::Run,
            "p" | "project" => Permission::Project,
            _ => Permission::No,
        })
    }

    fn withdraw(&mut self) {
        self.show("\r\nringfence: not answered, so it stays refused\r\n");
    }

    fn tell(&mut self, text: &str) {
        output::tell!("ringfence: {}", output::printable(text));
    }
}
