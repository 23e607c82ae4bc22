//! Secrets that are known by how they look.

use super::REDACTED;

/// How well-known tokens begin, and how many characters follow at least.
const TOKENS: [(&str, usize); 30] = [
    ("SG.", 16),
    ("ya29.", 16),
    ("pypi-", 16),
    ("dckr_pat_", 16),
    ("glrt-", 8),
    ("glptt-", 8),
    ("shpat_", 16),
    ("ghp_", 16),
    ("gho_", 16),
    ("ghu_", 16),
    ("ghs_", 16),
    ("ghr_", 16),
    ("github_pat_", 16),
    ("glpat-", 8),
    ("sk-", 16),
    ("sk_live_", 8),
    ("sk_test_", 8),
    ("rk_live_", 8),
    ("xoxa-", 8),
    ("xoxb-", 8),
    ("xoxe-", 8),
    ("xoxp-", 8),
    ("xoxr-", 8),
    ("xoxs-", 8),
    ("xapp-", 8),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("hf_", 16),
    ("npm_", 30),
];

/// How the parts of a JSON Web Token begin.
const WEB_TOKEN: &str = "eyJ";
/// What is around a private key.
const KEY_BEGINS: &str = "-----BEGIN ";
const KEY_ENDS: &str = "-----END ";
const OF_KEYS: &str = "PRIVATE KEY-----";

/// Without private keys in PEM.
pub(super) fn without_private_keys(text: &str) -> Option<String> {
    let mut cleaned = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(KEY_BEGINS) {
        let inside = &rest[start..];
        let title_end = inside.find(OF_KEYS).filter(|end| *end < 64);
        let Some(body) = title_end.map(|end| end + OF_KEYS.len()) else {
            let past = start + KEY_BEGINS.len();
            cleaned.push_str(&rest[..past]);
            rest = &rest[past..];
            continue;
        };
        let end = inside[body..].find(KEY_ENDS).and_then(|end| {
            let end = body + end;
            let close = inside[end..].find(OF_KEYS)?;
            Some(end + close + OF_KEYS.len())
        });
        cleaned.extend([&rest[..start], REDACTED]);
        rest = &inside[end.unwrap_or_else(|| body + coded_length(&inside[body..]))..];
    }
    (rest.len() < text.len()).then(|| cleaned + rest)
}

/// How much of a text is lines of a key whose end is missing. Anything else
/// could be put behind its beginning to be left out.
fn coded_length(text: &str) -> usize {
    const SHORTEST_LINE: usize = 32;
    let is_code = |it: char| it.is_ascii_alphanumeric() || matches!(it, '+' | '/' | '=');
    let mut length = 0;
    for line in text.split_inclusive(char::is_whitespace) {
        let code = line.trim_end();
        if !code.is_empty() && (code.len() < SHORTEST_LINE || !code.chars().all(is_code)) {
            break;
        }
        length += line.len();
    }
    length
}

/// Without the user and the password of URLs.
pub(super) fn without_users(text: &str) -> Option<String> {
    let mut cleaned = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let start = at + "://".len();
        let after = &rest[start..];
        let is_end = |it: char| it.is_whitespace() || matches!(it, '/' | '?' | '#' | '"' | '\'');
        let authority = &after[..after.find(is_end).unwrap_or(after.len())];
        cleaned.push_str(&rest[..start]);
        let host = authority.rfind('@').filter(|end| *end > 0);
        let host = host.or_else(|| end_of_odd_password(authority, after));
        if host.is_some() {
            cleaned.push_str(REDACTED);
        }
        rest = &after[host.unwrap_or(0)..];
    }
    (!cleaned.is_empty()).then(|| cleaned + rest)
}

/// Where a password ends that has in it what ends an authority; what follows
/// the colon is then no port.
fn end_of_odd_password(authority: &str, after: &str) -> Option<usize> {
    let (_, begins) = authority.split_once(':')?;
    let is_port = begins.bytes().all(|byte| byte.is_ascii_digit());
    let is_end = |it: char| it.is_whitespace() || matches!(it, '"' | '\'');
    let word = &after[..after.find(is_end).unwrap_or(after.len())];
    word.rfind('@').filter(|_| !is_port)
}

/// Without what follows `Bearer` and `Basic`.
pub(super) fn without_schemes(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let starts = |scheme: &'static str| lower.match_indices(scheme);
    let mut found: Vec<(usize, &str)> = starts("bearer ").chain(starts("basic ")).collect();
    found.sort_unstable();
    let mut cleaned = String::new();
    let mut kept = 0;
    for (at, scheme) in found {
        let value = at + scheme.len();
        let length = text[value..].find(|it| !is_of_scheme(it));
        let end = length.map_or(text.len(), |length| value + length);
        if at >= kept && is_boundary(text, at) && is_credential(&text[value..end]) {
            cleaned.extend([&text[kept..value], REDACTED]);
            kept = end;
        }
    }
    (kept > 0).then(|| cleaned + &text[kept..])
}

fn is_of_scheme(character: char) -> bool {
    character.is_ascii_alphanumeric()
        || matches!(character, '+' | '/' | '=' | '.' | '_' | '~' | '-')
}

/// Not a word of a sentence.
pub(super) fn is_credential(value: &str) -> bool {
    let mut later = value.chars().skip(1);
    value.len() >= 6 && later.any(|it| !it.is_ascii_lowercase())
}

/// Without tokens of services, by how they begin.
pub(super) fn without_tokens(text: &str) -> Option<String> {
    let mut cleaned = String::new();
    let mut kept = 0;
    for (at, _) in text.char_indices() {
        if at < kept || !is_boundary(text, at) {
            continue;
        }
        if let Some(length) = token_length(&text[at..]) {
            cleaned.extend([&text[kept..at], REDACTED]);
            kept = at + length;
        }
    }
    (kept > 0).then(|| cleaned + &text[kept..])
}

fn token_length(text: &str) -> Option<usize> {
    let is_of_token = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
    if text.starts_with(WEB_TOKEN) {
        let is_of_parts = |it: char| is_of_token(it) || it == '.';
        let end = text.find(|it| !is_of_parts(it)).unwrap_or(text.len());
        return (text[..end].matches('.').count() >= 2).then_some(end);
    }
    let (begins, least) = TOKENS.iter().find(|(begins, _)| text.starts_with(begins))?;
    // Of those, the parts are separated by dots.
    let has_parts = begins.ends_with('.');
    let is_of_it = |it: char| is_of_token(it) || (has_parts && it == '.');
    let end = text[begins.len()..].find(|it| !is_of_it(it));
    let length = end.unwrap_or(text.len() - begins.len());
    (length >= *least).then_some(begins.len() + length)
}

/// Whether a word begins here.
fn is_boundary(text: &str, at: usize) -> bool {
    let before = text[..at].chars().next_back();
    !before.is_some_and(|it| it.is_ascii_alphanumeric() || it == '_')
}
