//! Values that are given to a name: `name=value`, `name: value`, `--name value`.

use super::REDACTED;
use super::names::{is_secret_header, is_secret_name, is_secret_parameter};

/// What a value is that says nothing.
const PLAIN: [&str; 8] = [
    "yes", "no", "true", "false", "none", "null", "store", "cache",
];

/// `text` without the values of secret names, if it has any.
pub(super) fn without_values(text: &str) -> Option<String> {
    let mut cleaned = String::new();
    let mut kept = 0;
    let mut at = 0;
    while let Some(name) = next_name(text, at) {
        at = name.end;
        if let Some(value) = value_of(text, &name) {
            cleaned.extend([&text[kept..value.start], REDACTED]);
            kept = value.end;
            at = value.end;
        }
    }
    (kept > 0).then(|| cleaned + &text[kept..])
}

type Span = std::ops::Range<usize>;

fn is_of_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.')
}

fn next_name(text: &str, from: usize) -> Option<Span> {
    let start = from + text[from..].find(is_of_name)?;
    let length = text[start..].find(|character| !is_of_name(character));
    Some(start..length.map_or(text.len(), |length| start + length))
}

/// Where the value of a name is, if that is a secret.
fn value_of(text: &str, name: &Span) -> Option<Span> {
    let word = &text[name.clone()];
    let rest = &text[name.end..];
    let sign = rest.trim_start_matches(['"', '\'', '\\']);
    let sign = sign.trim_start_matches(' ');
    let start = |value: &str| text.len() - value.len();
    let value_at = |value: &str, length: usize| {
        let span = non_empty(start(value)..start(value) + length);
        span.filter(|_| !is_plain_value(&value[..length]))
    };
    if let Some(value) = sign.strip_prefix('=') {
        let is_parameter = text[..name.start].ends_with(['?', '&']) && is_secret_parameter(word);
        if !is_parameter && !is_secret_name(word) {
            return None;
        }
        let value = value.trim_start_matches(['=', '>', ' ']);
        return value_at(value, value_length(value));
    }
    if let Some(value) = sign
        .strip_prefix(':')
        .filter(|rest| !rest.starts_with("//"))
    {
        let value = value.trim_start_matches(' ');
        let length = if is_secret_header(word) {
            value.find(['"', '\'', '\n', '\r']).unwrap_or(value.len())
        } else if is_secret_name(word) {
            value_length(value)
        } else {
            0
        };
        return value_at(value, length);
    }
    let value = rest.trim_start_matches([' ', '\t']);
    let is_option = word.starts_with('-') && value.len() < rest.len() && is_secret_name(word);
    value_at(value, if is_option { value_length(value) } else { 0 })
}

/// Whether a value is nothing to hide, whatever it is given to.
pub(super) fn is_plain_value(value: &str) -> bool {
    value.is_empty() || PLAIN.contains(&value)
}

fn non_empty(span: Span) -> Option<Span> {
    (!span.is_empty()).then_some(span)
}

/// How long a value is: to its other quote, or to what ends a word. What
/// follows a backslash is part of it.
fn value_length(value: &str) -> usize {
    let unescaped = value.trim_start_matches('\\');
    let skipped = value.len() - unescaped.len();
    let quote = unescaped
        .chars()
        .next()
        .filter(|it| matches!(it, '"' | '\''));
    let is_end = |it: char| match quote {
        Some(quote) => it == quote,
        None => it.is_whitespace() || matches!(it, '&' | ';' | '|' | '"' | '\'' | '#'),
    };
    let first = skipped + quote.map_or(0, char::len_utf8);
    let mut is_escaped = false;
    for (at, character) in value[first..].char_indices() {
        // A quote that is escaped itself ends with an escaped one.
        if is_end(character) && (!is_escaped || skipped > 0) {
            return first + at + quote.map_or(0, char::len_utf8);
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    value.len()
}
