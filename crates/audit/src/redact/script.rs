//! Passwords that the text of a script gives to the tools that it starts.
//!
//! This knows words, quotes and where a command ends, and no more of a shell.

use super::tools::{Command, Meaning};
use super::{REDACTED, password_in};

/// The most texts within quotes within each other that are looked into.
const DEEPEST: usize = 3;

/// `text` without the passwords in it, if it is a script and has any.
pub(super) fn without_passwords(text: &str) -> Option<String> {
    let is_script = text.contains(char::is_whitespace) && text.contains(" -");
    is_script
        .then(|| cleaned(text, DEEPEST))
        .filter(|cleaned| cleaned != text)
}

fn cleaned(text: &str, depth: usize) -> String {
    let mut command = Command::default();
    let mut cleaned = String::with_capacity(text.len());
    for piece in Pieces(text) {
        match piece {
            Piece::Between(between) => {
                if between.contains(['\n', ';', '|', '&', '(', '`']) {
                    command = Command::default();
                }
                cleaned.push_str(between);
            }
            Piece::Word(word) => cleaned.push_str(&cleaned_word(&mut command, word, depth)),
        }
    }
    cleaned
}

fn cleaned_word(command: &mut Command, word: &str, depth: usize) -> String {
    let quote = word.chars().next().filter(|it| is_quote(*it));
    let inside = quote.map_or(word, |quote| word.trim_matches(quote));
    match command.take(inside) {
        Meaning::Secret => REDACTED.to_owned(),
        // What a word of a script holds is for what looks at values.
        Meaning::SecretFrom(start) if inside.starts_with('-') && !inside.contains('=') => {
            [&inside[..start], REDACTED].concat()
        }
        Meaning::UserAndPassword(start, sign) => match password_in(&inside[start..], sign) {
            Some(at) => [&inside[..start + at], REDACTED].concat(),
            None => word.to_owned(),
        },
        _ if depth > 0 && inside.contains(char::is_whitespace) => {
            // Also one that nobody closes, such as in a comment.
            let start = word.find(is_quote).map_or(0, |at| at + 1);
            [&word[..start], &*cleaned(&word[start..], depth - 1)].concat()
        }
        _ => word.to_owned(),
    }
}

fn is_quote(character: char) -> bool {
    matches!(character, '\'' | '"')
}

/// A word of a script, with its quotes, or what is between two.
enum Piece<'a> {
    Word(&'a str),
    Between(&'a str),
}

struct Pieces<'a>(&'a str);

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let is_between = |it: char| it.is_whitespace() || ";|&()`".contains(it);
        let is_word = !self.0.starts_with(is_between) && !self.0.is_empty();
        let length = if is_word {
            word_length(self.0, is_between)
        } else {
            let end = self.0.find(|it| !is_between(it));
            end.unwrap_or(self.0.len())
        };
        let (piece, rest) = self.0.split_at(length);
        self.0 = rest;
        match (is_word, piece) {
            (_, "") => None,
            (true, word) => Some(Piece::Word(word)),
            (false, between) => Some(Piece::Between(between)),
        }
    }
}

/// Up to what ends a word outside of quotes.
fn word_length(text: &str, is_end: impl Fn(char) -> bool) -> usize {
    let mut quote = None;
    let mut is_escaped = false;
    for (at, character) in text.char_indices() {
        match (quote, character) {
            _ if is_escaped => is_escaped = false,
            (None | Some('"'), '\\') => is_escaped = true,
            (None, it) if is_end(it) => return at,
            (None, it) if is_quote(it) => quote = Some(it),
            (Some(open), it) if it == open => quote = None,
            _ => {}
        }
    }
    text.len()
}
