//! [`Arguments`]: the words of a command, without what looks like a secret.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::text::{CUT, Text};
use crate::redact;

/// The most words that are kept.
const MOST_WORDS: usize = 64;

/// One word of a command. It is made with all the others, because a word may
/// say that the next one is a secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct ArgumentText(Text<512>);

impl ArgumentText {
    /// The word.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    pub(super) fn text(&mut self) -> &mut Text<512> {
        &mut self.0
    }
}

impl fmt::Display for ArgumentText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for ArgumentText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        Ok(Self(Text::new(&redact::text(&text))))
    }
}

/// The words of a command, 64 at most; of more, the last is `…`. What looks
/// like a secret is replaced by `[redacted]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Vec<ArgumentText>")]
#[schemars(inline)]
pub struct Arguments(#[schemars(length(max = MOST_WORDS))] Vec<ArgumentText>);

impl Arguments {
    /// Takes what may be kept of `words`.
    pub fn new<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> Self {
        let words = redact::words(words).take(MOST_WORDS + 1);
        let words = words.map(|word| ArgumentText(Text::new(&word)));
        Self::from(words.collect::<Vec<_>>())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(ArgumentText::as_str)
    }

    pub(super) fn words(&mut self) -> &mut [ArgumentText] {
        &mut self.0
    }
}

impl fmt::Display for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&command_line(self.iter()))
    }
}

/// The words of a command in one line, with quotes where a shell needs them.
pub fn command_line<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    let quoted = words.into_iter().map(|word| quoted(word.as_ref()));
    quoted.collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |it: char| it.is_alphanumeric() || "_./:=@+,%^-…".contains(it);
    // Our own word for what was left out is not worth quotes.
    let is_all_plain = word.replace(redact::REDACTED, "x").chars().all(is_plain);
    if is_all_plain && !word.is_empty() && !word.starts_with('=') {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

impl From<Vec<ArgumentText>> for Arguments {
    fn from(mut words: Vec<ArgumentText>) -> Self {
        if words.len() > MOST_WORDS {
            words.truncate(MOST_WORDS - 1);
            words.push(ArgumentText(Text::new(CUT)));
        }
        Self(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_words_are_cut() {
        let words = Arguments::new((0..100).map(|word| word.to_string()));
        assert_eq!(words.iter().count(), MOST_WORDS);
        assert_eq!(words.iter().last(), Some(CUT));
    }

    #[test]
    fn words_are_quoted_as_a_shell_would() {
        let words = [
            "sh",
            "-c",
            "echo 'a  b'; ls",
            "",
            "a=b",
            "--token=[redacted]",
            "$x",
        ];
        let want = r"sh -c 'echo '\''a  b'\''; ls' '' a=b --token=[redacted] '$x'";
        assert_eq!(command_line(words), want);
    }

    #[test]
    fn what_was_kept_reads_back_as_it_is() {
        let words = Arguments::new(["x", "--password", "abc", "--token=abc", "Bearer", "abcdef"]);
        let text = serde_json::to_string(&words).unwrap();
        assert_eq!(serde_json::from_str::<Arguments>(&text).unwrap(), words);
    }
}
