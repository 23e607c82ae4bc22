//! TLS hellos that ask for another name than their connection was made to.

use super::{Attack, hex, host, refuses};

const ECHO: u16 = 5432;
const FLAGS: [&str; 2] = ["--allow", "web.example.org:5432"];
const OWN: &str = "web.example.org";

fn with_length(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    [&length.to_be_bytes()[..], bytes].concat()
}

fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &with_length(content)].concat()
}

/// The extension that asks for these names.
fn names(names: &[&str]) -> Vec<u8> {
    let entry = |name: &&str| [&[0][..], &with_length(name.as_bytes())].concat();
    let list: Vec<u8> = names.iter().flat_map(entry).collect();
    extension(0, &with_length(&list))
}

/// A handshake message with a hello that has these extensions.
fn message(extensions: &[u8]) -> Vec<u8> {
    let versions = extension(43, &[2, 3, 4]);
    let body = [
        &[3, 3][..],
        &[7; 32],
        &[0],
        &[0, 2, 0x13, 1],
        &[1, 0],
        &with_length(&[extensions, &versions].concat()),
    ]
    .concat();
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[1][..], &length[1..], &body].concat()
}

fn record(version: [u8; 2], content: &[u8]) -> Vec<u8> {
    [&[22][..], &version, &with_length(content)].concat()
}

/// One whole hello for a name.
fn hello(name: &str) -> Vec<u8> {
    record([3, 1], &message(&names(&[name])))
}

/// What is said, given the mark.
type Says<'a> = &'a dyn Fn(&str) -> Vec<Vec<u8>>;

fn attacks(made: &[Says<'_>]) -> Vec<Attack> {
    let numbered = made.iter().enumerate();
    let attack = |(number, say): (usize, &Says<'_>)| Attack::new(number, ECHO, |mark| say(mark));
    numbered.map(attack).collect()
}

#[test]
fn g3_a_hello_for_another_name() {
    let all = attacks(&[
        &|mark| vec![hello(mark)],
        &|mark| {
            vec![hello(
                &mark
                    .to_uppercase()
                    .replace("MARKED", "marked")
                    .replace("TEST", "test"),
            )]
        },
        &|mark| vec![hello(&format!("{mark}."))],
        &|mark| vec![hello(&format!("{OWN}\0{mark}"))],
        &|mark| vec![hello(&format!("{mark}\0{OWN}"))],
        &|mark| vec![hello(&format!("{OWN} {mark}"))],
        &|mark| vec![hello(&format!("{OWN},{mark}"))],
        &|mark| vec![hello(&format!("{OWN}@{mark}"))],
        &|mark| vec![hello(&format!("{OWN}.{mark}"))],
        // Two names, and two lists of names.
        &|mark| vec![record([3, 1], &message(&names(&[OWN, mark])))],
        &|mark| vec![record([3, 1], &message(&names(&[mark, OWN])))],
        &|mark| {
            vec![record(
                [3, 1],
                &message(&[names(&[OWN]), names(&[mark])].concat()),
            )]
        },
        &|mark| {
            vec![record(
                [3, 1],
                &message(&[names(&[mark]), names(&[OWN])].concat()),
            )]
        },
        // Two hellos in one record.
        &|mark| {
            let both = [message(&names(&[OWN])), message(&names(&[mark]))].concat();
            vec![record([3, 1], &both)]
        },
        // Something else first.
        &|mark| vec![[&[21, 3, 1, 0, 2, 1, 0][..], &hello(mark)].concat()],
        &|mark| vec![[&[22, 3, 1, 0, 0][..], &hello(mark)].concat()],
        &|mark| vec![[&[20, 3, 3, 0, 1, 1][..], &hello(mark)].concat()],
        // In pieces, over records and over packets.
        &|mark| {
            let whole = message(&names(&[mark]));
            let (front, back) = whole.split_at(3);
            vec![[record([3, 1], front), record([3, 1], back)].concat()]
        },
        &|mark| {
            let whole = hello(mark);
            let (front, back) = whole.split_at(4);
            vec![front.to_vec(), back.to_vec()]
        },
        // With an encrypted one inside.
        &|mark| {
            let encrypted = extension(0xfe0d, &[0; 40]);
            vec![record(
                [3, 1],
                &message(&[names(&[mark]), encrypted].concat()),
            )]
        },
        // In there alone.
        &|mark| {
            vec![record(
                [3, 1],
                &message(&extension(0xfe0d, mark.as_bytes())),
            )]
        },
    ]);
    refuses(&host(), &FLAGS, &all);
}

/// RFC 8446, 5.1: the version of a record means nothing.
#[test]
fn g3_a_hello_in_a_record_of_another_version() {
    let in_version =
        |version: [u8; 2]| move |mark: &str| vec![record(version, &message(&names(&[mark])))];
    let versions = [
        [3, 5],
        [3, 9],
        [3, 0x7f],
        [3, 0xff],
        [2, 0],
        [2, 3],
        [4, 3],
        [0, 0],
        [0xf, 0xff],
    ];
    let made: Vec<_> = versions.into_iter().map(in_version).collect();
    let made: Vec<Says<'_>> = made.iter().map(|one| one as _).collect();
    refuses(&host(), &FLAGS, &attacks(&made));
}

/// The second hello, which follows a server's wish for another key, is read by
/// servers like the first.
#[test]
fn g3_a_second_hello_for_another_name() {
    // In one piece, before a server has said that it wants no other.
    let all = attacks(&[
        &|mark| vec![[hello(OWN), hello(mark)].concat()],
        &|mark| vec![[hello(OWN), vec![20, 3, 3, 0, 1, 1], hello(mark)].concat()],
        &|mark| vec![[hello(OWN), vec![23, 3, 3, 0, 1, 7], hello(mark)].concat()],
        &|mark| vec![[hello(OWN), hello(OWN), hello(mark)].concat()],
        &|mark| vec![[hello(OWN), record([3, 9], &message(&names(&[mark])))].concat()],
    ]);
    refuses(&host(), &FLAGS, &all);
}

/// A real client and a real server, which completes the handshake.
const REAL: &str = "import ssl, socket, sys
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
inward, outward = ssl.MemoryBIO(), ssl.MemoryBIO()
session = context.wrap_bio(inward, outward, server_hostname='marked.test')
stream = socket.create_connection(('v4.example.org', 443), 60)
version = bytes.fromhex(sys.argv[1])
while True:
    try:
        session.do_handshake()
        break
    except ssl.SSLWantReadError:
        said = bytearray(outward.read())
        if version:
            said[1:3], version = version, b''
        stream.sendall(said)
        more = stream.recv(65536)
        if not more:
            sys.exit('closed')
        inward.write(more)
";

#[test]
fn g3_a_real_client_that_asks_for_another_name() {
    let host = host();
    host.write("real.py", REAL);
    for version in [[3, 1], [3, 5], [3, 0xff]] {
        let attack = format!("/usr/bin/python3 real.py {}", hex(&version));
        host.net().forget();
        host.online.outside(&attack).expect_code(0);
        assert!(host.net().saw("sni marked.test"), "{version:?}");
        host.run(&["--allow", "v4.example.org:443"], &attack);
        assert!(!host.net().saw("sni marked.test"), "{version:?}");
    }
}
