use proptest::prelude::*;

use super::*;

/// An extension of `kind`.
fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &sized(content)].concat()
}

/// `content` after its length in two bytes.
fn sized(content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap();
    [&length.to_be_bytes()[..], content].concat()
}

fn sni(names: &[(u8, &[u8])]) -> Vec<u8> {
    let list: Vec<u8> = names
        .iter()
        .flat_map(|(kind, name)| [&[*kind][..], &sized(name)].concat())
        .collect();
    extension(SERVER_NAME, &sized(&list))
}

/// The handshake message, with its header.
fn message(extensions: Option<&[u8]>) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([2, 9, 9]);
    body.extend(sized(&[0x13, 0x01, 0x13, 0x02]));
    body.extend([1, 0]);
    body.extend(extensions.map(sized).unwrap_or_default());
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[CLIENT_HELLO][..], &length[1..], &body].concat()
}

/// `message` in records of at most `most` bytes.
fn records(message: &[u8], most: usize) -> Vec<u8> {
    message
        .chunks(most)
        .flat_map(|part| [&[HANDSHAKE, 3, 1][..], &sized(part)].concat())
        .collect()
}

fn hello(extensions: &[u8]) -> Vec<u8> {
    records(&message(Some(extensions)), LONGEST_RECORD)
}

fn named(text: &str) -> Hello {
    Hello::Complete(Wanted::Host(Target::parse(text).unwrap()))
}

#[test]
fn the_name_is_read_wherever_it_stands() {
    let name = sni(&[(0, b"API.example.org")]);
    let padding = extension(21, &[0; 1500]);
    let ech = extension(0xfe0d, &[1; 200]);
    for extensions in [
        name.clone(),
        [&padding[..], &name].concat(),
        [&name[..], &ech, &padding].concat(),
    ] {
        assert_eq!(read_hello(&hello(&extensions)), named("api.example.org"));
    }
    assert_eq!(
        read_hello(&hello(&sni(&[(0, b"127.0.0.1")]))),
        named("127.0.0.1")
    );
}

#[test]
fn a_hello_may_have_no_name() {
    let none = Hello::Complete(Wanted::Unnamed);
    assert_eq!(read_hello(&hello(&extension(43, &[2, 3, 4]))), none);
    assert_eq!(read_hello(&records(&message(None), 100)), none);
    assert_eq!(read_hello(&hello(&[])), none);
}

#[test]
fn g3_a_hello_may_hide_its_name() {
    let ech = extension(ENCRYPTED_HELLO, &[1; 200]);
    let versions = extension(43, &[2, 3, 4]);
    for extensions in [ech.clone(), [&versions[..], &ech].concat()] {
        let found = read_hello(&hello(&extensions));
        assert_eq!(found, Hello::Complete(Wanted::Hidden));
    }
}

#[test]
fn g3_names_that_two_readers_could_split_are_malformed() {
    let name = sni(&[(0, b"a.example.org")]);
    for extensions in [
        [&name[..], &name].concat(),
        sni(&[(0, b"a.example.org"), (0, b"b.example.org")]),
        sni(&[(0, b"a.example.org"), (1, b"b.example.org")]),
        sni(&[(1, b"a.example.org")]),
        sni(&[]),
        sni(&[(0, b"")]),
        sni(&[(0, b"a.example.org\0.b.test")]),
        sni(&[(0, b"a.example.org:443")]),
        sni(&[(0, b"a example.org")]),
        sni(&[(0, b"*.example.org")]),
        sni(&[(0, "bücher.example".as_bytes())]),
        sni(&[(0, b"\xff\xfe")]),
        extension(SERVER_NAME, &[]),
        extension(SERVER_NAME, &[0, 0]),
        extension(SERVER_NAME, &[0, 4, 0, 0, 1, b'a', 0]),
        extension(SERVER_NAME, &[0, 9, 0, 0, 1, b'a']),
        [&name[..], &[0, 43, 0, 9, 1]].concat(),
    ] {
        assert_eq!(
            read_hello(&hello(&extensions)),
            Hello::Malformed,
            "{extensions:?}"
        );
    }
}

#[test]
fn bent_messages_are_malformed() {
    let good = message(Some(&sni(&[(0, b"a.example.org")])));
    let with = |at: usize, byte: u8| {
        let mut bent = good.clone();
        bent[at] = byte;
        records(&bent, LONGEST_RECORD)
    };
    let cases = [
        ("another message", with(0, 2)),
        ("version 2", with(HANDSHAKE_HEADER, 2)),
        ("long session id", with(HANDSHAKE_HEADER + 34, 33)),
        ("odd suites", with(HANDSHAKE_HEADER + 38, 3)),
        (
            "surplus",
            records(&[&good[..], &[0]].concat(), LONGEST_RECORD),
        ),
        (
            "too long",
            records(&[&[1, 0xff, 0, 0][..], &good[4..]].concat(), LONGEST_RECORD),
        ),
        (
            "empty record",
            [&[22, 3, 1, 0, 0][..], &records(&good, 99)].concat(),
        ),
        (
            "alert first",
            [&[21, 3, 1, 0, 2, 1, 0][..], &records(&good, 99)].concat(),
        ),
        (
            "change first",
            [&[20, 3, 3, 0, 1, 1][..], &records(&good, 99)].concat(),
        ),
        (
            "alert between",
            [&records(&good, 20)[..25], &[21, 3, 1, 0, 2, 1, 0]].concat(),
        ),
        ("long record", [22, 3, 1, 0x40, 1].to_vec()),
        ("ssl 2", [0x80, 0x2e, 1, 0, 2, 0, 21].to_vec()),
        ("ssl 2 form", [0x80, 0x2e, 1, 3, 1, 0, 21].to_vec()),
        ("one byte each", records(&good, 1)),
    ];
    for (what, bytes) in cases {
        assert_eq!(read_hello(&bytes), Hello::Malformed, "{what}");
    }
}

#[test]
fn other_protocols_are_not_tls() {
    for bytes in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"SSH-2.0-x\r\n",
        &[0, 0, 0, 8, 4, 210, 22, 47],
        &[5, 1, 0],
        // A length in the order of small machines, as MongoDB has it.
        &[22, 1, 0, 0, 7, 0],
        &[22, 16],
        &[21, 0, 0, 0, 7, 1],
        &[0x80, 0x2e, 2],
        &[0xff, 0, 1, 7],
    ] {
        assert_eq!(read_hello(bytes), Hello::NotTls, "{bytes:?}");
    }
}

#[test]
fn g3_the_version_of_a_record_hides_no_hello() {
    let plain = records(
        &message(Some(&sni(&[(0, b"a.example.org")]))),
        LONGEST_RECORD,
    );
    for version in [[3, 5], [3, 255], [2, 0], [4, 4], [0, 0], [15, 255]] {
        let mut odd = plain.clone();
        odd[1..3].copy_from_slice(&version);
        assert_eq!(read_hello(&odd), Hello::Malformed, "{version:?}");
    }
}

#[test]
fn a_hello_that_never_ends_is_malformed() {
    let endless = records(
        &[&[1, 0, 0xff, 0xfc][..], &vec![0; 0xff00]].concat(),
        LONGEST_RECORD,
    );
    assert_eq!(read_hello(&endless[..60_000]), Hello::NeedMore);
    let mut longer = endless;
    longer.extend([0; 1000]);
    assert_eq!(read_hello(&longer), Hello::Malformed);
}

#[test]
fn alerts_are_fatal() {
    assert_eq!(ACCESS_DENIED, [21, 3, 3, 0, 2, 2, 49]);
    assert_eq!(INTERNAL_ERROR[6], 80);
}

proptest! {
    #[test]
    fn any_split_and_any_prefix_agree(size in 1usize..2000, padding in 0usize..3000) {
        let extensions = [extension(21, &vec![0; padding]), sni(&[(0, b"a.example.org")])].concat();
        let message = message(Some(&extensions));
        prop_assume!(message.len().div_ceil(size) <= MOST_RECORDS);
        let bytes = records(&message, size);
        prop_assert_eq!(read_hello(&bytes), named("a.example.org"));
        for end in 0..bytes.len() {
            prop_assert_eq!(read_hello(&bytes[..end]), Hello::NeedMore, "{}", end);
        }
        let more = [&bytes[..], &[23, 3, 3, 0, 1, 0]].concat();
        prop_assert_eq!(read_hello(&more), named("a.example.org"));
    }

    #[test]
    fn noise_is_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let verdict = read_hello(&bytes);
        let framed = records(&bytes, 50);
        let _ = read_hello(&framed);
        let _ = read_hello(&records(&[&[1, 0, 1, 0][..], &bytes].concat(), 70));
        if verdict != Hello::NeedMore {
            let more = [&bytes[..], &[0; 64]].concat();
            prop_assert_eq!(read_hello(&more), verdict);
        }
    }
}
