//! The first message of a TLS client, read for the name it asks for.
//!
//! Nothing is decrypted and nothing is consumed: the bytes are looked at and
//! passed on as they came. Whatever two readers could understand differently
//! (two names, a name that is none, fragments of other records) is malformed,
//! never "no name". With an encrypted hello, the outer name is the name, and
//! one without an outer name asks for what nobody but its server can tell.

use ringfence_policy::Target;

/// A fatal `access_denied` alert in a record that every TLS client reads.
pub(crate) const ACCESS_DENIED: [u8; 7] = alert(49);
/// A fatal `internal_error` alert, for a server that cannot be reached.
pub(crate) const INTERNAL_ERROR: [u8; 7] = alert(80);

/// The most bytes that are read for one hello.
pub(crate) const LONGEST_HELLO: usize = 64 * 1024;
/// A hello of that length needs five records; clients that split it on purpose
/// use a few more.
const MOST_RECORDS: usize = 64;
const LONGEST_RECORD: usize = 16 * 1024;
/// Encryption makes records longer.
const LONGEST_CIPHERTEXT: usize = LONGEST_RECORD + 2048;

const HANDSHAKE_HEADER: usize = 4;
const HANDSHAKE: u8 = 22;
const ALERT: u8 = 21;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const ENCRYPTED_HELLO: u16 = 0xfe0d;
const HOST_NAME: u8 = 0;

const fn alert(description: u8) -> [u8; 7] {
    [21, 3, 3, 0, 2, 2, description]
}

/// What the first bytes of a client are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hello {
    /// The beginning of TLS, perhaps; more is needed to tell.
    NeedMore,
    /// Not TLS.
    NotTls,
    /// TLS that no two readers need to agree about.
    Malformed,
    /// A whole hello.
    Complete(Wanted),
}

/// Which host a hello asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The one of this name or address.
    Host(Target),
    /// Whichever its connection leads to.
    Unnamed,
    /// None in clear, and perhaps another one where only the server can read it.
    Hidden,
}

/// A hello that is not a plain, whole one.
enum Stop {
    NeedMore,
    Malformed,
}

/// Reads the beginning of what a client sent. Asking again with more bytes
/// changes nothing but [`Hello::NeedMore`].
pub(crate) fn read_hello(bytes: &[u8]) -> Hello {
    match looks_like_tls(bytes) {
        None => return Hello::NeedMore,
        Some(false) => return Hello::NotTls,
        Some(true) => {}
    }
    match whole_hello(bytes) {
        Ok((wanted, _)) => Hello::Complete(wanted),
        Err(Stop::NeedMore) if bytes.len() < LONGEST_HELLO => Hello::NeedMore,
        Err(_) => Hello::Malformed,
    }
}

/// What a client says next, as long as it speaks in clear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Following {
    /// More is needed to tell.
    NeedMore,
    /// A record of this length that holds no hello.
    Other(usize),
    /// A hello in records of this length.
    Hello {
        /// Which host it asks for.
        wanted: Wanted,
        /// With the headers of its records.
        length: usize,
    },
    /// No record, or one that nobody should read.
    Malformed,
    /// Something that comes after all hellos.
    Over,
}

/// Tells what follows in `bytes` after a hello, or the hello itself.
pub(crate) fn following(bytes: &[u8]) -> Following {
    match bytes {
        [HANDSHAKE, _, _, _, _, CLIENT_HELLO, ..] => match whole_hello(bytes) {
            Ok((wanted, length)) => Following::Hello { wanted, length },
            Err(Stop::NeedMore) if bytes.len() < LONGEST_HELLO => Following::NeedMore,
            Err(_) => Following::Malformed,
        },
        [HANDSHAKE, _, _, 0, 0, ..] => Following::Malformed,
        [HANDSHAKE, _, _, _, _, _, ..] => Following::Over,
        [20..=24, _, _, high, low, ..] => {
            let length = 5 + usize::from(u16::from_be_bytes([*high, *low]));
            match bytes.len() < length {
                true if length > 5 + LONGEST_CIPHERTEXT => Following::Malformed,
                true => Following::NeedMore,
                false => Following::Other(length),
            }
        }
        [] | [20..=24, ..] => Following::NeedMore,
        _ => Following::Malformed,
    }
}

/// Whether a server's first bytes ask the client for another hello (RFC 8446,
/// 4.1.4). `None` when there are too few to tell.
pub(crate) fn asks_again(bytes: &[u8]) -> Option<bool> {
    const SERVER_HELLO: u8 = 2;
    const RANDOM: [u8; 32] = [
        0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8,
        0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8,
        0x33, 0x9c,
    ];
    match bytes {
        [
            HANDSHAKE,
            _,
            _,
            _,
            _,
            SERVER_HELLO,
            _,
            _,
            _,
            _,
            _,
            random @ ..,
        ] => {
            if random.len() >= RANDOM.len() {
                Some(random.starts_with(&RANDOM))
            } else {
                None
            }
        }
        [HANDSHAKE, ..] if bytes.len() < 6 => None,
        [] => None,
        _ => Some(false),
    }
}

/// Whether this is a record of any kind: servers exist that read an alert
/// before the hello. The version of a record is not looked at by servers, some
/// of which take any below 16, so it is not what tells. `None` when there is
/// too little to tell.
fn looks_like_tls(bytes: &[u8]) -> Option<bool> {
    match bytes {
        [] | [20..=24] | [20..=24, 3] => None,
        [20..=24, 3, ..] => Some(true),
        [HANDSHAKE | ALERT, 0..16, rest @ ..] if rest.len() < 4 => None,
        [HANDSHAKE, 0..16, _, _, _, first, ..] => Some(*first == CLIENT_HELLO),
        [ALERT, 0..16, _, 0, 2, 1 | 2, ..] => Some(true),
        // The hello of SSL 2, which has no name: two bytes of length, type 1,
        // and the version that is wanted.
        [0x80..=0xff, rest @ ..] => match rest {
            [] | [_] | [_, 1] | [_, 1, 0] => None,
            [_, 1, 3, ..] | [_, 1, 0, 2, ..] => Some(true),
            _ => Some(false),
        },
        _ => Some(false),
    }
}

/// What a hello that is there as a whole wants, and the length of its records.
fn whole_hello(bytes: &[u8]) -> Result<(Wanted, usize), Stop> {
    let mut rest = bytes;
    let mut message = Vec::new();
    for _ in 0..MOST_RECORDS {
        message.extend_from_slice(next_fragment(&mut rest)?);
        if let Some(length) = announced_length(&message)?
            && message.len() >= length
        {
            let surplus = message.len() - length;
            let wanted = wanted(&message[HANDSHAKE_HEADER..length], surplus)?;
            return Ok((wanted, bytes.len() - rest.len()));
        }
    }
    Err(Stop::Malformed)
}

/// The content of the next record, which must be part of a handshake.
fn next_fragment<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Stop> {
    let [kind, major, minor, high, low, after @ ..] = rest else {
        return match rest {
            [kind, ..] if *kind != HANDSHAKE => Err(Stop::Malformed),
            _ => Err(Stop::NeedMore),
        };
    };
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    let handshake = *kind == HANDSHAKE && *major == 3 && *minor <= 4;
    if !handshake || length == 0 || length > LONGEST_RECORD {
        return Err(Stop::Malformed);
    }
    let (fragment, after) = after.split_at_checked(length).ok_or(Stop::NeedMore)?;
    *rest = after;
    Ok(fragment)
}

/// How long the hello is with its header, once that is known.
fn announced_length(message: &[u8]) -> Result<Option<usize>, Stop> {
    match message {
        [CLIENT_HELLO, high, middle, low, ..] => {
            let length = u32::from_be_bytes([0, *high, *middle, *low]);
            let length = usize::try_from(length).map_err(|_| Stop::Malformed)? + HANDSHAKE_HEADER;
            if length > LONGEST_HELLO {
                return Err(Stop::Malformed);
            }
            Ok(Some(length))
        }
        [CLIENT_HELLO, ..] => Ok(None),
        _ => Err(Stop::Malformed),
    }
}

/// Which host a hello asks for. `surplus` bytes follow it in its record.
fn wanted(hello: &[u8], surplus: usize) -> Result<Wanted, Stop> {
    if surplus > 0 {
        return Err(Stop::Malformed);
    }
    let extensions = extensions_of(&mut Reader(hello)).ok_or(Stop::Malformed)?;
    let names = contents_of(SERVER_NAME, &mut Reader(extensions)).ok_or(Stop::Malformed)?;
    match names[..] {
        [] => {
            let encrypted = contents_of(ENCRYPTED_HELLO, &mut Reader(extensions));
            let is_hidden = encrypted.is_none_or(|found| !found.is_empty());
            Ok(if is_hidden {
                Wanted::Hidden
            } else {
                Wanted::Unnamed
            })
        }
        [only] => match only_host_name(&mut Reader(only)) {
            Some(name) => Ok(Wanted::Host(name)),
            None => Err(Stop::Malformed),
        },
        _ => Err(Stop::Malformed),
    }
}

/// The extensions of a hello whose other parts are sound.
fn extensions_of<'a>(hello: &mut Reader<'a>) -> Option<&'a [u8]> {
    let [major, _] = hello.array()?;
    let _random: [u8; 32] = hello.array()?;
    let session = hello.short_vector()?;
    let suites = hello.vector()?;
    let compressions = hello.short_vector()?;
    let is_sound = major == 3
        && session.len() <= 32
        && suites.len() >= 2
        && suites.len().is_multiple_of(2)
        && !compressions.is_empty();
    let extensions = if hello.0.is_empty() {
        &[]
    } else {
        hello.vector()?
    };
    (is_sound && hello.0.is_empty()).then_some(extensions)
}

/// The contents of all extensions of one kind.
fn contents_of<'a>(wanted: u16, extensions: &mut Reader<'a>) -> Option<Vec<&'a [u8]>> {
    let mut found = Vec::new();
    while !extensions.0.is_empty() {
        let kind = extensions.number()?;
        let content = extensions.vector()?;
        if kind == wanted {
            found.push(content);
        }
    }
    Some(found)
}

/// The list must hold one host name and nothing else.
fn only_host_name(extension: &mut Reader<'_>) -> Option<Target> {
    let mut list = Reader(extension.vector()?);
    let [kind] = list.array()?;
    let name = list.vector()?;
    let alone = kind == HOST_NAME && list.0.is_empty() && extension.0.is_empty();
    // Unicode would be mapped by our reader and by nobody else's.
    if !alone || !name.is_ascii() {
        return None;
    }
    Target::parse(std::str::from_utf8(name).ok()?).ok()
}

/// Takes pieces off the front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn number(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// Bytes after a length of one byte.
    fn short_vector(&mut self) -> Option<&'a [u8]> {
        let [length] = self.array()?;
        self.take(usize::from(length))
    }

    /// Bytes after a length of two bytes.
    fn vector(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(usize::from(length))
    }
}

#[cfg(test)]
mod tests;
