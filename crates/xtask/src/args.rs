//! The few arguments of the commands: known flags and plain words.
//! An unknown flag is an error, never ignored.

use anyhow::{Result, bail};

/// What was typed after a command's name.
#[derive(Debug)]
pub(crate) struct Args {
    flags: Vec<String>,
    words: Vec<String>,
}

impl Args {
    /// Reads `typed`, which may hold the `known` flags and up to `max_words` other words.
    pub(crate) fn parse(typed: &[String], known: &[&str], max_words: usize) -> Result<Self> {
        let (flags, words): (Vec<String>, Vec<String>) = typed
            .iter()
            .cloned()
            .partition(|argument| argument.starts_with('-'));
        if let Some(unknown) = flags.iter().find(|flag| !known.contains(&flag.as_str())) {
            let known = if known.is_empty() {
                "none"
            } else {
                &known.join(" ")
            };
            bail!("unknown option `{unknown}`; options here: {known}");
        }
        if let Some(extra) = words.get(max_words) {
            bail!("unexpected argument `{extra}`");
        }
        Ok(Self { flags, words })
    }

    /// Whether `flag` was given.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|given| given == flag)
    }

    /// The word at `index`, if that many were given.
    pub(crate) fn word(&self, index: usize) -> Option<&str> {
        self.words.get(index).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn flags_and_words_may_mix() {
        let args = Args::parse(&typed(&["dns", "--all"]), &["--all"], 1).unwrap();
        assert!(args.has("--all"));
        assert_eq!(args.word(0), Some("dns"));
        assert_eq!(args.word(1), None);
    }

    #[test]
    fn unknown_flags_and_extra_words_are_errors() {
        assert!(Args::parse(&typed(&["--al"]), &["--all"], 1).is_err());
        assert!(Args::parse(&typed(&["a", "b"]), &[], 1).is_err());
    }
}
