//! What can be a secret: one line of text, neither guessable nor endless.

use std::io::Read;

use ringfence_egress::{Secret, untold};
use zeroize::Zeroizing;

/// Shorter ones would be found everywhere in what servers answer.
const SHORTEST: usize = 8;
/// The largest secret, in bytes.
pub(crate) const LARGEST: usize = 64 * 1024;

/// What a secret has at least in the characters that have to be tried, had each
/// of them been drawn from all of its kinds: what takes months to try at that
/// pace.
const FEWEST_BITS: f64 = 44.0;
/// How many different characters it has.
const FEWEST_DIFFERENT: usize = 5;

/// Why a value is no secret. Holds nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// There is none.
    #[error("it is empty")]
    Empty,
    /// It is too short.
    #[error("it is shorter than {SHORTEST} bytes")]
    TooShort,
    /// It is too long.
    #[error("it is longer than {LARGEST} bytes")]
    TooLong,
    /// It is not one line.
    #[error("it has a line break or another control character in it")]
    Control,
    /// It is no text.
    #[error("it is not UTF-8 text")]
    NotText,
    /// It can be guessed.
    #[error("it is so short, or of so few different characters, that it can be found by trying")]
    Weak,
}

/// Why no secret was read.
#[derive(Debug, thiserror::Error)]
pub enum ReadSecretError {
    /// Nothing could be read.
    #[error(transparent)]
    Read(#[from] std::io::Error),
    /// What was read is none.
    #[error(transparent)]
    Value(#[from] ValueError),
}

impl ValueError {
    /// What to do about it.
    pub fn hint(self) -> &'static str {
        match self {
            Self::Empty => "give the value on standard input, or type it when asked",
            Self::TooShort => "a secret that short is found by trying; use a longer one",
            Self::TooLong => "a secret is at most 64 KiB",
            Self::Control => "give one line: a line break in a header would be a way in",
            Self::NotText => "encode it first, for example as base64",
            Self::Weak => "use a longer one, or say `weak: true` in its credential",
        }
    }
}

/// Reads a secret to its end, with the line end that may follow it.
pub fn read_secret(source: impl Read) -> Result<Secret, ReadSecretError> {
    // Room for all of it at once: a buffer that grows leaves copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(LARGEST + 4));
    source.take(LARGEST as u64 + 3).read_to_end(&mut bytes)?;
    let mut text = text(bytes)?;
    without_line_end(&mut text);
    Ok(secret(text)?)
}

/// Takes bytes as text over.
pub(super) fn text(bytes: Zeroizing<Vec<u8>>) -> Result<Zeroizing<String>, ValueError> {
    let mut bytes = bytes;
    String::from_utf8(std::mem::take(&mut *bytes))
        .map(Zeroizing::new)
        .map_err(|error| {
            drop(Zeroizing::new(error.into_bytes()));
            ValueError::NotText
        })
}

/// Takes away the line end that programs and editors add.
pub(super) fn without_line_end(text: &mut String) {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
}

/// Checks that a text can be used as a secret.
pub(super) fn secret(mut text: Zeroizing<String>) -> Result<Secret, ValueError> {
    check(&text)?;
    Ok(Secret::new(std::mem::take(&mut *text)))
}

/// Whether a server that sends back what it is sent would help to find a text:
/// what matches is hidden in answers, and hundreds of thousands can be tried in
/// a second.
pub(super) fn is_weak(text: &str) -> bool {
    let mut different: Vec<u8> = text.bytes().collect();
    different.sort_unstable();
    different.dedup();
    let tried = u32::try_from(untold(text.len())).unwrap_or(u32::MAX);
    different.len() < FEWEST_DIFFERENT || f64::from(tried) * alphabet(text).log2() < FEWEST_BITS
}

/// How many characters there are of the kinds that a text has. In small letters
/// it is found as well.
fn alphabet(text: &str) -> f64 {
    let all = |is_one: fn(&u8) -> bool| text.bytes().all(|byte| is_one(&byte));
    if all(u8::is_ascii_digit) {
        return 10.0;
    }
    if all(u8::is_ascii_hexdigit) {
        return 16.0;
    }
    let has = |is_one: fn(&u8) -> bool, size: f64| match text.bytes().find(is_one) {
        Some(_) => size,
        None => 0.0,
    };
    has(u8::is_ascii_digit, 10.0)
        + has(u8::is_ascii_alphabetic, 26.0)
        + has(|byte| !byte.is_ascii_alphanumeric(), 32.0)
}

fn check(text: &str) -> Result<(), ValueError> {
    match text.len() {
        0 => Err(ValueError::Empty),
        length if length > LARGEST => Err(ValueError::TooLong),
        _ if text.contains(char::is_control) => Err(ValueError::Control),
        length if length < SHORTEST => Err(ValueError::TooShort),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Secret, ValueError> {
        read_secret(bytes).map_err(|error| match error {
            ReadSecretError::Value(error) => error,
            ReadSecretError::Read(error) => panic!("{error}"),
        })
    }

    #[test]
    fn g5_what_can_be_found_by_trying_is_weak() {
        for text in [
            "12345678",
            "123456789012",
            "password",
            "abcabcabcabcabcabc",
            "aaaaaaaaaaaaaaaa",
            "12345678901234",
            "correcthorse",
            "Zk4pQ81x",
            "0f3a9c1d77be",
            "0f3a9c1d77be0f3a9c1d77be",
            "73104427518093502421331044275180",
        ] {
            assert!(is_weak(text), "{text}");
        }
        for text in [
            "hunter2-hunter2",
            "correcthorsebatterystaple",
            "Zk4pQ81xY7wB2",
            "0f3a9c1d77be0f3a9c1d77be123",
            "731044275180935024213310442751809",
        ] {
            assert!(!is_weak(text), "{text}");
        }
    }

    #[test]
    fn g5_a_secret_is_one_line_of_some_length() {
        for line in ["12345678", "12345678\n", "12345678\r\n"] {
            assert_eq!(read(line.as_bytes()).unwrap().expose(), "12345678");
        }
        for (bytes, error) in [
            (&b""[..], ValueError::Empty),
            (b"\n", ValueError::Empty),
            (b"1234567", ValueError::TooShort),
            (b"1234567\n", ValueError::TooShort),
            (b"12345678\n\n", ValueError::Control),
            (b"12345678\r", ValueError::Control),
            (b"1234\n5678", ValueError::Control),
            (b"1234\x005678", ValueError::Control),
            (b"12345678\xff", ValueError::NotText),
        ] {
            assert_eq!(read(bytes), Err(error), "{bytes:?}");
        }
        assert!(read(&vec![b'a'; LARGEST]).is_ok());
        assert_eq!(
            read(&vec![b'a'; LARGEST + 1]).unwrap_err(),
            ValueError::TooLong
        );
    }
}
