//! What was typed after `srt`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, Command, FromArgMatches};

use super::shell::quote;
use super::words::apart;
use crate::commands::usage;
use crate::error::Failure;
use crate::exit::ExitCode;
use crate::output;

/// The version of srt whose command line and settings these are, then our own.
const VERSION: &str = concat!("0.0.83 (ringfence ", env!("CARGO_PKG_VERSION"), ")");
/// What srt itself does instead of running a command of that name.
const SUBCOMMANDS: [&str; 3] = ["proxy", "windows-install", "windows-uninstall"];
/// Shells that need not be started by a shell.
const SHELLS: [&str; 2] = ["sh", "bash"];

const EXAMPLES: &str = "Examples:
  srt npm test
  srt --settings settings.json -- python3 tool.py
  srt -c 'curl https://api.example.org | jq .name'

Settings are ~/.srt-settings.json unless named; without any, the command has no network and writes nothing.
Exit codes: the command's own; 127 not found; 128 and a signal's number; 1 when nothing was run.";

/// Run a command by the settings of srt
///
/// The command reads the host but for hidden places (keys, tokens, histories),
/// writes only where the settings let it, and reaches only the hosts that they
/// name.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SrtArgs {
    /// Tell what was resolved, and every decision
    #[arg(short, long, overrides_with = "debug")]
    pub(super) debug: bool,
    /// Say nothing about what was refused; `RINGFENCE_QUIET=1` is the same
    #[arg(long, overrides_with = "quiet")]
    pub(super) quiet: bool,
    /// The settings file
    #[arg(short, long, value_name = "FILE", overrides_with = "settings")]
    pub(super) settings: Option<PathBuf>,
    /// A command for the shell, taken as it is
    #[arg(short = 'c', value_name = "COMMAND", overrides_with = "string")]
    #[arg(allow_hyphen_values = true)]
    string: Option<OsString>,
    /// Read settings that take the place of these, one a line, from this descriptor
    #[arg(long, value_name = "N", overrides_with = "control_fd", value_parser = control_fd)]
    pub(super) control_fd: Option<i32>,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, value_name = "CMD")]
    words: Vec<OsString>,
}

/// A mistake, or a question that the command line answers itself.
pub(super) struct Unparsed(clap::Error);

impl Unparsed {
    pub(super) fn show(&self, exit: u8) -> ExitCode {
        // Whoever asks for srt's version expects it to come first.
        if self.0.kind() == ErrorKind::DisplayVersion {
            output::print_text(VERSION);
            return ExitCode::SUCCESS;
        }
        usage("srt", &self.0, exit)
    }
}

impl SrtArgs {
    /// Reads the words after the first.
    pub(super) fn parse(words: Vec<OsString>) -> Result<Self, Unparsed> {
        let mut command = describe();
        let words = apart(words);
        let matches = command.try_get_matches_from_mut(words).map_err(Unparsed)?;
        Self::from_arg_matches(&matches).map_err(|error| Unparsed(error.format(&mut command)))
    }

    /// The command as a shell reads it.
    pub(super) fn command(&self) -> Result<OsString, Failure> {
        if let Some(string) = self.string.as_ref().filter(|string| !string.is_empty()) {
            return Ok(string.clone());
        }
        let Some(first) = self.words.first() else {
            return Err(Failure::new(
                "no-command",
                "there is no command to run",
                "name one: srt CMD…, or srt -c 'COMMAND'",
            ));
        };
        if let Some(name) = SUBCOMMANDS.iter().find(|name| first == *name) {
            let message = format!("srt's own subcommand {name} is not offered");
            let hint = format!("for a command of that name: srt -c {name}");
            return Err(Failure::new("srt-subcommand", message, hint));
        }
        Ok(self.shells_own().unwrap_or_else(|| quote(&self.words)))
    }

    /// The text of `sh -c TEXT`, which srt's own shell reads at once, whichever
    /// shell is named.
    fn shells_own(&self) -> Option<OsString> {
        match self.words.as_slice() {
            [shell, flag, text] if flag == "-c" && SHELLS.iter().any(|own| shell == own) => {
                Some(text.clone())
            }
            _ => None,
        }
    }
}

fn describe() -> Command {
    SrtArgs::augment_args(Command::new("srt"))
        .bin_name("srt")
        .version(VERSION)
}

/// A number from 3 on, written plainly.
fn control_fd(text: &str) -> Result<i32, &'static str> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| is_plain && *number >= 3);
    number.ok_or("a descriptor from 3 on; 0 to 2 are the command's own")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Option<SrtArgs> {
        let words = ["srt"].iter().chain(words).map(OsString::from);
        SrtArgs::parse(words.collect()).ok()
    }

    fn command(words: &[&str]) -> Option<String> {
        let command = parse(words)?.command().ok()?;
        command.into_string().ok()
    }

    #[test]
    fn words_become_text_for_a_shell() {
        for (words, want) in [
            (&["echo", "a b"][..], "echo 'a b'"),
            (&["-c", "echo $HOME"], "echo $HOME"),
            (&["-cexit 9"], "exit 9"),
            (&["-c", "-x"], "-x"),
            (&["--", "echo", "--", "-d"], "echo -- -d"),
            (&["sh", "-c", "[[ a ]]"], "[[ a ]]"),
            (&["bash", "-c", "exit 3"], "exit 3"),
            (&["sh", "-c", "a", "b"], "sh -c a b"),
            (&["python3", "-c", "print(1)"], "python3 -c 'print(1)'"),
            (&["--frob", "echo", "-n"], "--frob echo -n"),
            (&["-x", "y"], "-x y"),
        ] {
            assert_eq!(command(words).as_deref(), Some(want), "{words:?}");
        }
    }

    #[test]
    fn words_of_the_command_are_not_ours() {
        let typed = parse(&["-s", "f", "curl", "-s", "http://a.test", "-d", "x", "-V"]).unwrap();
        assert_eq!(typed.settings, Some("f".into()));
        assert!(!typed.debug);
        let typed = parse(&["-ds", "f", "--settings=g", "--control-fd", "7", "true"]).unwrap();
        assert_eq!(typed.settings, Some("g".into()));
        assert_eq!((typed.debug, typed.control_fd), (true, Some(7)));
    }

    #[test]
    fn what_names_no_command_is_refused() {
        for words in [
            &[][..],
            &["-c", ""],
            &["proxy", "--listen", "1"],
            &["windows-install"],
        ] {
            assert_eq!(command(words), None, "{words:?}");
        }
        assert_eq!(command(&["-c", "proxy"]).as_deref(), Some("proxy"));
    }

    #[test]
    fn descriptors_of_the_command_are_no_control_channel() {
        for text in ["2", "0", "-1", "+3", "0x3", " 3", "3e0", ""] {
            assert!(parse(&["--control-fd", text, "true"]).is_none(), "{text:?}");
        }
    }
}
