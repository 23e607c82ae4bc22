//! Messages as a real `dbus-daemon` writes them, and what is made of others.

use proptest::prelude::*;

use super::*;

/// Its answer to `Hello`, its word of our name, and two more answers.
const HELLO: &[u8] = b"l\x02\x01\x01\t\0\0\0\x01\0\0\0=\0\0\0\x06\x01s\0\x04\0\0\0:1.0\0\0\0\0\
\x05\x01u\0\x01\0\0\0\x08\x01g\0\x01s\0\0\x07\x01s\0\x14\0\0\0org.freedesktop.DBus\0\0\0\0\
\x04\0\0\0:1.0\0";
const NAME_ACQUIRED: &[u8] = b"l\x04\x01\x01\t\0\0\0\x02\0\0\0\x8d\0\0\0\
\x01\x01o\0\x15\0\0\0/org/freedesktop/DBus\0\0\0\x02\x01s\0\x14\0\0\0org.freedesktop.DBus\0\0\0\0\
\x03\x01s\0\x0c\0\0\0NameAcquired\0\0\0\0\x06\x01s\0\x04\0\0\0:1.0\0\0\0\0\x08\x01g\0\x01s\0\0\
\x07\x01s\0\x14\0\0\0org.freedesktop.DBus\0\0\0\0\x04\0\0\0:1.0\0";
const PROCESS: &[u8] = b"l\x02\x01\x01\x04\0\0\0\x03\0\0\0=\0\0\0\x06\x01s\0\x04\0\0\0:1.0\0\0\0\0\
\x05\x01u\0\x02\0\0\0\x08\x01g\0\x01u\0\0\x07\x01s\0\x14\0\0\0org.freedesktop.DBus\0\0\0\0\
\xd7P\0\0";
const UNKNOWN_METHOD: &[u8] = b"l\x03\x01\x01=\0\0\0\x04\0\0\0u\0\0\0\x06\x01s\0\x04\0\0\0:1.0\0\
\0\0\0\x04\x01s\0(\0\0\0org.freedesktop.DBus.Error.UnknownMethod\0\0\0\0\0\0\0\0\
\x05\x01u\0\x03\0\0\0\x08\x01g\0\x01s\0\0\x07\x01s\0\x14\0\0\0org.freedesktop.DBus\0\0\0\0\
8\0\0\0org.freedesktop.DBus does not understand message Nothing\0";
const REAL: [&[u8]; 4] = [HELLO, NAME_ACQUIRED, PROCESS, UNKNOWN_METHOD];

#[test]
fn replies_are_read() {
    let hello = Message::decode(HELLO).unwrap();
    assert_eq!((hello.kind, hello.header.reply_to), (Kind::Reply, Some(1)));
    assert_eq!(hello.read("s").unwrap().text(), Ok(":1.0"));
    assert_eq!(hello.read("u").err(), Some(Malformed::Content));
    let process = Message::decode(PROCESS).unwrap();
    assert_eq!(process.read("u").unwrap().number(), Ok(0x50d7));
}

#[test]
fn signals_and_errors_are_read() {
    let signal = Message::decode(NAME_ACQUIRED).unwrap();
    assert!(signal.is_signal("org.freedesktop.DBus", "NameAcquired"));
    assert!(!signal.is_signal("org.freedesktop.DBus", "NameLost"));
    assert_eq!(signal.header.path.as_deref(), Some("/org/freedesktop/DBus"));
    let error = Message::decode(UNKNOWN_METHOD).unwrap();
    assert_eq!((error.kind, error.header.reply_to), (Kind::Error, Some(3)));
    let name = "org.freedesktop.DBus.Error.UnknownMethod";
    assert_eq!(error.header.error.as_deref(), Some(name));
}

#[test]
fn a_message_ends_where_it_says() {
    for bytes in REAL {
        assert_eq!(Message::length(&bytes[..PREAMBLE]), Ok(bytes.len()));
        let longer = [bytes, &[0]].concat();
        assert!(Message::decode(&longer).is_err());
        assert!(Message::decode(&bytes[..bytes.len() - 1]).is_err());
    }
}

/// `HELLO` with one byte changed.
fn changed(at: usize, byte: u8) -> Result<Message, Malformed> {
    let mut bytes = HELLO.to_vec();
    bytes[at] = byte;
    Message::decode(&bytes)
}

#[test]
fn what_is_wrong_is_named() {
    assert_eq!(changed(0, b'B'), Err(Malformed::Version));
    assert_eq!(changed(3, 2), Err(Malformed::Version));
    assert_eq!(changed(1, 9), Err(Malformed::Kind));
    assert_eq!(changed(8, 0), Err(Malformed::Serial));
    assert_eq!(changed(7, 1), Err(Malformed::Size));
    assert_eq!(changed(14, 1), Err(Malformed::Size));
    // The destination as a second number of the message that is answered.
    assert_eq!(changed(16, 5), Err(Malformed::Field));
    // A field that means nothing here, of a type that is a container.
    assert!(changed(16, 77).is_ok());
    let mut bytes = HELLO.to_vec();
    (bytes[16], bytes[18]) = (77, b'v');
    assert_eq!(Message::decode(&bytes), Err(Malformed::Field));
    // Something in the gap before the second field.
    assert_eq!(changed(31, 1), Err(Malformed::Gap));
}

fn text() -> impl Strategy<Value = Option<String>> {
    proptest::option::of("[^\0]{0,40}")
}

fn message() -> impl Strategy<Value = Message> {
    let kind = proptest::sample::select(Kind::ALL.map(|(_, kind)| kind).to_vec());
    let texts = (text(), text(), text(), text(), text(), text());
    let signature = proptest::option::of("[a-z(){}]{1,40}");
    let rest = (1..u32::MAX, any::<Option<u32>>(), signature);
    let body = proptest::collection::vec(any::<u8>(), 0..200);
    (kind, texts, rest, body).prop_map(|(kind, texts, rest, body)| Message {
        kind,
        serial: rest.0,
        header: Header {
            path: texts.0,
            interface: texts.1,
            member: texts.2,
            error: texts.3,
            destination: texts.4,
            sender: texts.5,
            reply_to: rest.1,
            signature: rest.2,
        },
        body,
    })
}

proptest! {
    #[test]
    fn what_was_written_is_read(message in message()) {
        let bytes = message.encode();
        prop_assert_eq!(Message::length(&bytes), Ok(bytes.len()));
        prop_assert_eq!(Message::decode(&bytes), Ok(message));
    }

    #[test]
    fn whatever_is_read_fits_what_came(
        which in 0..REAL.len(),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = REAL[which].to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(message) = Message::decode(&bytes) {
            prop_assert!(message.body.len() < bytes.len());
            let again = Message::decode(&message.encode());
            prop_assert_eq!(again, Ok(message));
        }
    }

    #[test]
    fn no_bytes_do_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(message) = Message::decode(&bytes) {
            prop_assert!(message.body.len() < bytes.len());
        }
    }
}
