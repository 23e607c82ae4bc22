//! Where srt's own words end and the command begins.
//!
//! As with srt, an option that is not its own begins the command, and a value
//! may be written right behind a short option.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

const FLAGS: [&str; 4] = ["--debug", "--quiet", "--help", "--version"];
const VALUED: [&str; 2] = ["--settings", "--control-fd"];
const SHORT_FLAGS: &[u8] = b"dhV";
const SHORT_VALUED: &[u8] = b"sc";

/// What one word is.
enum Word {
    /// Options, written apart; the last may want the next word.
    Options {
        words: Vec<OsString>,
        wants_value: bool,
    },
    /// `--`.
    Mark,
    /// The command's first.
    Command,
}

/// The same words with `--` before the command and every value apart. The
/// first is the program's name.
pub(super) fn apart(typed: Vec<OsString>) -> Vec<OsString> {
    let mut typed = typed.into_iter().peekable();
    let mut words: Vec<OsString> = typed.next().into_iter().collect();
    while let Some(word) = typed.peek() {
        match Word::read(word) {
            Word::Options {
                words: options,
                wants_value,
            } => {
                typed.next();
                words.extend(options);
                words.extend(wants_value.then(|| typed.next()).flatten());
            }
            Word::Mark => {
                typed.next();
                break;
            }
            Word::Command => break,
        }
    }
    if typed.peek().is_some() {
        words.push("--".into());
    }
    words.extend(typed);
    words
}

impl Word {
    fn read(word: &OsStr) -> Self {
        match word.as_bytes() {
            b"--" => Self::Mark,
            [b'-', b'-', ..] => Self::read_long(word),
            [b'-', letters @ ..] if !letters.is_empty() => Self::read_short(letters),
            _ => Self::Command,
        }
    }

    fn read_long(word: &OsStr) -> Self {
        let text = word.to_string_lossy();
        let name = text.split('=').next().unwrap_or_default();
        let options = |wants_value| Self::Options {
            words: vec![word.to_owned()],
            wants_value,
        };
        if FLAGS.contains(&name) {
            options(false)
        } else if VALUED.contains(&name) {
            options(!text.contains('='))
        } else {
            Self::Command
        }
    }

    fn read_short(letters: &[u8]) -> Self {
        let flags = letters
            .iter()
            .take_while(|letter| SHORT_FLAGS.contains(letter))
            .count();
        let short = |letters: &[u8]| OsString::from_vec([b"-", letters].concat());
        let mut words = Vec::new();
        if flags > 0 {
            words.push(short(&letters[..flags]));
        }
        match &letters[flags..] {
            [] => Self::Options {
                words,
                wants_value: false,
            },
            [letter, value @ ..] if SHORT_VALUED.contains(letter) => {
                words.push(short(&[*letter]));
                if !value.is_empty() {
                    words.push(OsString::from_vec(value.to_vec()));
                }
                Self::Options {
                    words,
                    wants_value: value.is_empty(),
                }
            }
            _ => Self::Command,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(words: &str) -> String {
        let words = ["srt"].into_iter().chain(words.split_whitespace());
        let apart = apart(words.map(OsString::from).collect());
        let words: Vec<_> = apart[1..]
            .iter()
            .map(|word| word.to_string_lossy())
            .collect();
        words.join(" ")
    }

    #[test]
    fn the_command_begins_at_its_first_word() {
        for (words, want) in [
            ("", ""),
            ("-d", "-d"),
            ("echo -s x", "-- echo -s x"),
            ("-d -s f echo -d", "-d -s f -- echo -d"),
            (
                "--settings=f --control-fd 3 a",
                "--settings=f --control-fd 3 -- a",
            ),
            ("--debug -- -d -- x", "--debug -- -d -- x"),
            ("-sf -cx y", "-s f -c x -- y"),
            ("-ds f -dsf a", "-d -s f -d -s f -- a"),
            ("-c -x y", "-c -x -- y"),
            ("--frob -s f", "-- --frob -s f"),
            ("-x -s f", "-- -x -s f"),
            ("-dx", "-- -dx"),
            ("- x", "-- - x"),
            ("--settings", "--settings"),
            ("--", ""),
        ] {
            assert_eq!(typed(words), want, "{words}");
        }
    }
}
