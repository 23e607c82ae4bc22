use hickory_proto::op::{Edns, Message, OpCode, ResponseCode};
use hickory_proto::rr::{DNSClass, Name, RData};
use proptest::prelude::*;

use super::testing::{ask, message, name_server, question};
use super::*;

const A: u16 = 1;
const PTR: u16 = 12;
const AAAA: u16 = 28;

fn parsed(bytes: &[u8]) -> Message {
    assert!(bytes.len() <= 512);
    Message::from_vec(bytes).unwrap()
}

fn answered(server: &NameServer, question: &Message) -> Message {
    let bytes = server.answer(&question.to_vec().unwrap());
    parsed(&bytes.unwrap())
}

fn addresses(answer: &Message) -> Vec<IpAddr> {
    let data = answer.answers.iter().map(|record| &record.data);
    data.filter_map(RData::ip_addr).collect()
}

#[test]
fn addresses_come_from_the_virtual_ranges() {
    let (server, notes) = name_server();
    let v4 = answered(&server, &message("api.Example.ORG", A));
    assert_eq!(addresses(&v4), [IpAddr::from([198, 18, 0, 2])]);
    let v6 = answered(&server, &message("api.example.org", AAAA));
    let wanted: IpAddr = "fd72:6966:656e:6365::2".parse().unwrap();
    assert_eq!(addresses(&v6), [wanted]);
    assert_eq!(notes.names(), ["api.example.org"; 2]);
    for answer in [v4, v6] {
        assert_eq!(answer.metadata.response_code, ResponseCode::NoError);
        assert_eq!(answer.answers[0].ttl, 60);
        assert!(answer.metadata.recursion_desired && answer.metadata.recursion_available);
        assert!(!answer.metadata.authentic_data && !answer.metadata.truncation);
    }
}

#[test]
fn the_case_of_the_question_is_kept() {
    let asked = message("wWw.ExAmPlE.oRg", A);
    let bytes = ask("wWw.ExAmPlE.oRg", A);
    assert_eq!(
        bytes[12..],
        [&asked.to_vec().unwrap()[12..], &bytes[33..]].concat()
    );
    let answer = parsed(&bytes);
    assert!(answer.queries[0].name().eq_case(asked.queries[0].name()));
    assert!(answer.answers[0].name.eq_case(asked.queries[0].name()));
}

#[test]
fn localhost_is_loopback() {
    for (kind, wanted) in [(A, "127.0.0.1"), (AAAA, "::1")] {
        let wanted: IpAddr = wanted.parse().unwrap();
        for name in ["localhost", "a.b.localhost"] {
            assert_eq!(addresses(&parsed(&ask(name, kind))), [wanted]);
        }
    }
}

#[test]
fn other_types_have_no_data() {
    for kind in [2, 5, 6, 15, 16, 33, 64, 65, 255, 257, 65_280] {
        let (server, notes) = name_server();
        let answer = answered(&server, &message("a.example.org", kind));
        assert_eq!(answer.metadata.response_code, ResponseCode::NoError);
        assert!(answer.answers.is_empty());
        assert!(matches!(answer.authorities[0].data, RData::SOA(_)));
        assert_eq!(notes.names(), ["a.example.org"], "{kind}");
    }
}

#[test]
fn names_that_no_host_has_do_not_exist() {
    for labels in [
        &[&b"a.b"[..], b"test"][..],
        &[b"a\0", b"test"],
        &[b"a b", b"test"],
        &[b"a%00", b"test"],
        &["ü".as_bytes(), b"test"],
        &[b"127", b"0", b"0", b"1"],
    ] {
        let (server, notes) = name_server();
        let mut asked = message("x", A);
        asked.queries[0].set_name(Name::from_labels(labels.iter().copied()).unwrap());
        let answer = answered(&server, &asked);
        assert_eq!(answer.metadata.response_code, ResponseCode::NXDomain);
        assert!(matches!(answer.authorities[0].data, RData::SOA(_)));
        assert!(notes.names().is_empty());
    }
}

#[test]
fn the_root_exists() {
    let (server, _) = name_server();
    let mut asked = message("x", 2);
    asked.queries[0].set_name(Name::root());
    let answer = answered(&server, &asked);
    assert_eq!(answer.metadata.response_code, ResponseCode::NoError);
}

#[test]
fn virtual_addresses_lead_back_to_their_names() {
    let (server, _) = name_server();
    let longest = ["abcdefg"; 31].join(".") + ".test";
    for (name, reverse) in [
        (longest.as_str(), "2.0.18.198.in-addr.arpa".to_owned()),
        (
            "b.test",
            format!(
                "3{}.5.6.3.6.e.6.5.6.6.6.9.6.2.7.d.f.IP6.arpa",
                ".0".repeat(15)
            ),
        ),
    ] {
        answered(&server, &message(name, A));
        let answer = answered(&server, &message(&reverse, PTR));
        let wanted = Name::from_ascii(format!("{name}.")).unwrap();
        let RData::PTR(found) = &answer.answers[0].data else {
            panic!("{answer}");
        };
        assert_eq!(found.0, wanted);
    }
}

#[test]
fn other_addresses_have_no_name() {
    for reverse in [
        "9.0.18.198.in-addr.arpa",
        "1.0.18.198.in-addr.arpa",
        "8.8.8.8.in-addr.arpa",
        "0.18.198.in-addr.arpa",
        "02.0.18.198.in-addr.arpa",
        "x.ip6.arpa",
        &format!("0{}.ip6.arpa", ".0".repeat(31)),
        &format!("0{}.ip6.arpa", ".0".repeat(32)),
    ] {
        let (server, notes) = name_server();
        let answer = answered(&server, &message(reverse, PTR));
        assert_eq!(
            answer.metadata.response_code,
            ResponseCode::NXDomain,
            "{reverse}"
        );
        assert!(notes.names().is_empty());
    }
    let (server, notes) = name_server();
    let answer = answered(&server, &message("_http._tcp.example.org", PTR));
    assert_eq!(answer.metadata.response_code, ResponseCode::NoError);
    assert_eq!(notes.names(), ["_http._tcp.example.org"]);
}

#[test]
fn extensions_are_answered_with_extensions() {
    let (server, _) = name_server();
    let mut asked = message("a.example.org", A);
    let mut edns = Edns::new();
    edns.set_max_payload(4096)
        .set_version(0)
        .set_dnssec_ok(true);
    asked.set_edns(edns.clone());
    let answer = answered(&server, &asked);
    let own = answer.edns.unwrap();
    assert_eq!((own.max_payload(), own.version()), (1232, 0));
    assert!(own.flags().dnssec_ok);
    assert_eq!(answer.answers.len(), 1);

    asked.set_edns(edns.set_version(1).clone());
    let answer = answered(&server, &asked);
    assert_eq!(u16::from(answer.metadata.response_code), 16);
    assert!(answer.answers.is_empty());
    assert!(parsed(&ask("a.example.org", A)).edns.is_none());
}

#[test]
fn what_is_no_question_for_a_resolver() {
    for (kind, code) in [
        (0, ResponseCode::FormErr),
        (41, ResponseCode::FormErr),
        (250, ResponseCode::NotImp),
        (251, ResponseCode::Refused),
        (252, ResponseCode::Refused),
    ] {
        // The library writes none of these.
        let mut bytes = question("a.example.org", A);
        let at = bytes.len() - 3;
        bytes[at] = u8::try_from(kind).unwrap();
        let (server, notes) = name_server();
        let answer = server.answer(&bytes).unwrap();
        assert_eq!(u16::from(answer[3] & 0xf), u16::from(code), "{kind}");
        assert!(notes.names().is_empty());
    }
    let mut chaos = message("version.bind", 16);
    chaos.queries[0].set_query_class(DNSClass::CH);
    let (server, notes) = name_server();
    let answer = answered(&server, &chaos);
    assert_eq!(answer.metadata.response_code, ResponseCode::Refused);
    assert!(notes.names().is_empty());
}

#[test]
fn other_operations_and_nonsense_get_a_short_no() {
    let (server, _) = name_server();
    let mut update = question("a.example.org", A);
    update[2] |= 5 << 3;
    let answer = parsed(&server.answer(&update).unwrap());
    assert_eq!(answer.metadata.response_code, ResponseCode::NotImp);
    assert_eq!(
        (answer.metadata.op_code, answer.metadata.id),
        (OpCode::Update, 7)
    );
    let mut cut = question("a.example.org", A);
    cut.pop();
    let answer = parsed(&server.answer(&cut).unwrap());
    assert_eq!(answer.metadata.response_code, ResponseCode::FormErr);
    assert_eq!(answer.metadata.id, 7);
    let answer = server.answer(&ask("a.example.org", A));
    assert_eq!(answer, None);
}

#[test]
fn a_full_table_fails_new_names_and_is_told_once() {
    let (server, notes) = name_server();
    for name in ["a.test", "b.test", "c.test"] {
        assert_eq!(addresses(&answered(&server, &message(name, A))).len(), 1);
    }
    for name in ["d.test", "e.test"] {
        let answer = answered(&server, &message(name, A));
        assert_eq!(answer.metadata.response_code, ResponseCode::ServFail);
        assert_eq!(notes.full.get(), 1);
    }
    assert_eq!(
        addresses(&answered(&server, &message("a.test", AAAA))).len(),
        1
    );
}

#[test]
fn g7_a_lookup_that_cannot_be_written_down_is_not_answered() {
    let (server, notes) = name_server();
    notes.unwritable.set(true);
    let answer = answered(&server, &message("a.test", A));
    assert_eq!(answer.metadata.response_code, ResponseCode::ServFail);
    assert!(answer.answers.is_empty());
}

proptest! {
    /// Whatever comes, an answer is small, is one, is to that message, and reads well.
    #[test]
    fn every_answer_is_well_formed(
        start in prop::collection::vec(any::<u8>(), 0..14),
        body in prop::collection::vec(any::<u8>(), 0..300),
        flip in any::<prop::sample::Index>(),
        with in any::<u8>(),
    ) {
        let (server, _) = name_server();
        let mut mended = question("a-long-name.example.org", A);
        let at = flip.index(mended.len());
        mended[at] = with;
        for bytes in [[start, body].concat(), mended] {
            let Some(answer) = server.answer(&bytes) else { continue };
            prop_assert!(answer.len() <= 512);
            prop_assert_eq!(&answer[..2], &bytes[..2]);
            prop_assert_eq!(answer[2] & 0x80, 0x80);
            prop_assert!(Message::from_vec(&answer).is_ok());
        }
    }

    /// Every name of every length is read as the library writes it.
    #[test]
    fn names_are_read_as_others_write_them(
        labels in prop::collection::vec("[a-z0-9]{1,20}", 1..9),
        kind in any::<u16>(),
    ) {
        let name = labels.join(".") + ".test";
        let (server, notes) = name_server();
        let answer = server.answer(&question(&name, kind)).unwrap();
        let read = Message::from_vec(&answer).unwrap();
        prop_assert_eq!(&read.queries, &message(&name, kind).queries);
        for noted in notes.names() {
            prop_assert_eq!(&noted, &name);
        }
    }
}
