//! Where a secret may take the place of its placeholder.
//!
//! What stands before it is the sandbox's own choice. An escape that is left
//! open there takes the first characters of the secret for its digits, and a
//! text in another charset or with lengths in it is read in other pieces than
//! those that were put together here: the server then holds, and may give back,
//! something that is none of the forms of the secret.

use std::borrow::Cow;

use percent_encoding::percent_decode;
use thiserror::Error;

use super::substitute::Context;
use super::watch::Placeholders;

/// The longest escape that may be open: `\U0000004`, `&#x000004`.
const LONGEST_OPEN: usize = 12;
/// Charsets in which every character of ASCII is one byte, and that byte
/// nothing else.
const CHARSETS: [&str; 7] = [
    "utf-8",
    "utf8",
    "us-ascii",
    "ascii",
    "iso-8859-1",
    "latin1",
    "windows-1252",
];
const QUOTED_PRINTABLE: &[u8] = b"quoted-printable";
const CHARSET: &[u8] = b"charset=";

/// Why a secret cannot take the place of its placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum Misplaced {
    #[error("the placeholder stands right after an escape that is not complete")]
    Escape,
    #[error("the placeholder stands in text that is not UTF-8")]
    Charset,
    #[error("the placeholder stands in content that is no text")]
    Binary,
}

/// What is known of a text with a placeholder in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quoting {
    /// `=` has no meaning of its own.
    None,
    /// It begins an escape.
    Printable,
}

impl Quoting {
    fn of(is_printable: bool) -> Self {
        if is_printable {
            Self::Printable
        } else {
            Self::None
        }
    }
}

impl Placeholders {
    /// Whether the secret of `service` may go into the value of a header.
    pub(crate) fn check_header(&self, service: &str, value: &[u8]) -> Result<(), Misplaced> {
        let value = self.opened(value);
        check_utf8(&value)?;
        // Encoded words (RFC 2047).
        let quoting = Quoting::of(contains(&value, b"=?"));
        self.check_escapes(service, &value, quoting)
    }

    /// The same for path and query.
    pub(crate) fn check_target(&self, service: &str, target: &[u8]) -> Result<(), Misplaced> {
        check_utf8(&Cow::from(percent_decode(target)))?;
        self.check_escapes(service, target, Quoting::None)
    }

    /// The same for a body, by the values of `Content-Type` and
    /// `Content-Transfer-Encoding`.
    pub(crate) fn check_body(
        &self,
        service: &str,
        body: &[u8],
        (kind, transfer): (&str, &str),
    ) -> Result<(), Misplaced> {
        if is_framed(kind) {
            return Err(Misplaced::Binary);
        }
        let names_charsets = |text: &[u8]| charsets_of(text).all(|name| is_harmless(&name));
        // Parts of a message have types of their own.
        let has_parts = matches!(
            essence(kind).split('/').next(),
            Some("multipart" | "message")
        );
        if !names_charsets(kind.as_bytes()) || has_parts && !names_charsets(body) {
            return Err(Misplaced::Charset);
        }
        check_text(body)?;
        if Context::of(kind) == Context::Form {
            check_utf8(&Cow::from(percent_decode(body)))?;
        }
        let is_quoted = [transfer.as_bytes(), body]
            .into_iter()
            .any(|text| contains(&text.to_ascii_lowercase(), QUOTED_PRINTABLE));
        let quoting = Quoting::of(is_quoted);
        self.check_escapes(service, body, quoting)
    }

    fn check_escapes(&self, service: &str, text: &[u8], quoting: Quoting) -> Result<(), Misplaced> {
        let own = self
            .texts
            .find_iter(text)
            .filter(|found| self.all[found.pattern()].service == service);
        for found in own {
            let before = &text[..found.start()];
            if ends_open(
                &before[before.len().saturating_sub(LONGEST_OPEN)..],
                quoting,
            ) {
                return Err(Misplaced::Escape);
            }
        }
        Ok(())
    }
}

/// Whether content of this type says how long its parts are.
pub(crate) fn is_framed(kind: &str) -> bool {
    const WHOLE: [&str; 12] = [
        "protobuf",
        "x-protobuf",
        "proto",
        "msgpack",
        "x-msgpack",
        "vnd.msgpack",
        "cbor",
        "bson",
        "avro",
        "x-thrift",
        "x-bittorrent",
        "octet-stream",
    ];
    const LAST: [&str; 4] = ["proto", "protobuf", "msgpack", "cbor"];
    let essence = essence(kind);
    let Some((family, subtype)) = essence.split_once('/') else {
        return false;
    };
    let last = subtype.rsplit('+').next().unwrap_or(subtype);
    family == "application"
        && (subtype.starts_with("grpc")
            || subtype.starts_with("connect+")
            || WHOLE.contains(&subtype)
            || subtype != last && LAST.contains(&last))
}

/// The type without its parameters, in small letters.
fn essence(kind: &str) -> String {
    let essence = kind.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

fn check_utf8(text: &[u8]) -> Result<(), Misplaced> {
    let checked = std::str::from_utf8(text);
    checked.map(|_| ()).map_err(|_| Misplaced::Charset)
}

/// Text has no control characters but those that end lines, set tabs, and
/// begin the records of `application/json-seq`.
fn check_text(body: &[u8]) -> Result<(), Misplaced> {
    check_utf8(body)?;
    let is_text = |byte: &u8| !byte.is_ascii_control() || b"\t\n\r\x0c\x1e".contains(byte);
    if body.iter().all(is_text) {
        Ok(())
    } else {
        Err(Misplaced::Binary)
    }
}

/// The charsets that a text names.
fn charsets_of(text: &[u8]) -> impl Iterator<Item = String> {
    let text = text.to_ascii_lowercase();
    let mut names = Vec::new();
    let mut rest = &text[..];
    while let Some(at) = position(rest, CHARSET) {
        rest = rest[at + CHARSET.len()..].trim_ascii_start();
        let name = rest.strip_prefix(b"\"").unwrap_or(rest);
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte);
        let end = name.iter().position(|byte| !is_part(byte));
        let name = &name[..end.unwrap_or(name.len())];
        names.push(String::from_utf8_lossy(name).into_owned());
    }
    names.into_iter()
}

fn is_harmless(charset: &str) -> bool {
    CHARSETS.contains(&charset)
}

fn contains(text: &[u8], what: &[u8]) -> bool {
    position(text, what).is_some()
}

fn position(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

/// Whether an escape is open at the end of a text.
fn ends_open(text: &[u8], quoting: Quoting) -> bool {
    let digits = |radix: u32, most: usize| {
        let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
        text.iter().rev().take_while(is_digit).take(most).count()
    };
    // Whether `before` and up to `most` digits are at the end.
    let open = |before: &[u8], radix: u32, most: usize| {
        (0..=digits(radix, most)).any(|count| text[..text.len() - count].ends_with(before))
    };
    open(b"%", 16, 1)
        || open(b"%u", 16, 3)
        || open(b"\\", 8, 3)
        || open(b"\\x", 16, 1)
        || open(b"\\u", 16, 3)
        || open(b"\\U", 16, 7)
        || open(b"\\x{", 16, 8)
        || open(b"\\u{", 16, 8)
        || open(b"\\o{", 8, 8)
        || open(b"&#", 10, 9)
        || open(b"&#x", 16, 9)
        || open(b"&#X", 16, 9)
        || quoting == Quoting::Printable && open(b"=", 16, 1)
}

#[cfg(test)]
mod tests {
    use data_encoding::BASE64;

    use super::*;
    use crate::secret::Placeholder;

    const TEXT: &str = "rf-0123456789abcdef0123456789abcdef";

    fn placeholders() -> Placeholders {
        let one = Placeholder {
            service: "one".to_owned(),
            text: TEXT.to_owned(),
        };
        Placeholders::new(&[one]).unwrap()
    }

    fn body(before: &[u8], kind: &str) -> Result<(), Misplaced> {
        let text = [before, TEXT.as_bytes(), b"."].concat();
        placeholders().check_body("one", &text, (kind, ""))
    }

    #[test]
    fn g5_an_open_escape_takes_nothing_of_a_secret() {
        for open in [
            "%",
            "%4",
            "%u",
            "%u004",
            "\\",
            "\\0",
            "\\16",
            "\\x",
            "\\x4",
            "\\u",
            "\\u004",
            "\\u{",
            "\\u{4",
            "\\x{4",
            "\\U0000004",
            "&#",
            "&#11",
            "&#x",
            "&#x7",
            "&#X7",
            "a%4",
            "\"\\",
        ] {
            let text = format!("{open}{TEXT}");
            let checked = placeholders().check_header("one", text.as_bytes());
            assert_eq!(checked, Err(Misplaced::Escape), "{open}");
            assert_eq!(
                body(open.as_bytes(), "text/plain"),
                Err(Misplaced::Escape),
                "{open}"
            );
            if !open.contains('#') {
                let checked = placeholders().check_target("one", format!("/?{text}").as_bytes());
                assert_eq!(checked, Err(Misplaced::Escape), "{open}");
            }
            let pair = BASE64.encode(format!("me:{text}").as_bytes());
            let checked = placeholders().check_header("one", format!("Basic {pair}").as_bytes());
            assert_eq!(checked, Err(Misplaced::Escape), "{open}");
        }
        for closed in [
            "", "=", "%41", "a=4", "\\u0041", "&#65;", "x", "&", "key=", "u004", "41",
        ] {
            let text = format!("{closed}{TEXT}");
            let checked = placeholders().check_header("one", text.as_bytes());
            assert_eq!(checked, Ok(()), "{closed}");
            assert_eq!(
                body(closed.as_bytes(), "application/json"),
                Ok(()),
                "{closed}"
            );
        }
    }

    #[test]
    fn g5_quoted_printable_is_known_by_its_name() {
        let part = b"Content-Transfer-Encoding: Quoted-Printable\r\n\r\na=";
        assert_eq!(body(part, "multipart/mixed"), Err(Misplaced::Escape));
        let text = format!("={TEXT}");
        for transfer in ["quoted-printable", "7bit"] {
            let checked =
                placeholders().check_body("one", text.as_bytes(), ("text/plain", transfer));
            assert_eq!(checked.is_err(), transfer != "7bit", "{transfer}");
        }
        let word = format!("=?utf-8?q?={TEXT}?=");
        let checked = placeholders().check_header("one", word.as_bytes());
        assert_eq!(checked, Err(Misplaced::Escape));
    }

    #[test]
    fn g5_text_in_another_charset_gets_no_secret() {
        for kind in [
            "text/plain; charset=gbk",
            "text/plain; charset=UTF-16LE",
            "application/json; charset=\"cp037\"",
            "application/x-www-form-urlencoded;charset=shift_jis",
            "text/plain; charset=",
        ] {
            assert_eq!(body(b"", kind), Err(Misplaced::Charset), "{kind}");
        }
        let part = b"--x\r\nContent-Type: text/plain; charset=gbk\r\n\r\n";
        assert_eq!(
            body(part, "multipart/form-data; boundary=x"),
            Err(Misplaced::Charset)
        );
        assert_eq!(body(b"\x81", "text/plain"), Err(Misplaced::Charset));
        let form = "application/x-www-form-urlencoded";
        assert_eq!(body(b"a=%81", form), Err(Misplaced::Charset));
        assert_eq!(body(b"a=%C3%A9", form), Ok(()));
        assert_eq!(body("é".as_bytes(), "text/plain; charset=utf-8"), Ok(()));
        let query = format!("/?a=%81{TEXT}");
        let checked = placeholders().check_target("one", query.as_bytes());
        assert_eq!(checked, Err(Misplaced::Charset));
        let pair = BASE64.encode(&[b"me:\x81", TEXT.as_bytes()].concat());
        let checked = placeholders().check_header("one", format!("Basic {pair}").as_bytes());
        assert_eq!(checked, Err(Misplaced::Charset));
    }

    #[test]
    fn g5_content_that_tells_lengths_gets_no_secret() {
        for kind in [
            "application/grpc",
            "application/grpc+proto",
            "application/grpc-web-text",
            "Application/X-Protobuf",
            "application/connect+json",
            "application/vnd.api+cbor",
            "application/octet-stream",
        ] {
            assert_eq!(body(b"", kind), Err(Misplaced::Binary), "{kind}");
        }
        assert_eq!(body(b"\n\x08", ""), Err(Misplaced::Binary));
        assert_eq!(body(b"\r\n\t", ""), Ok(()));
    }
}
