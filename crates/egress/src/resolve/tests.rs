use std::net::Ipv4Addr;

use hickory_proto::op::{Message, OpCode, Query};
use hickory_proto::rr::RData;
use hickory_proto::rr::Record;
use hickory_proto::rr::rdata::{A, AAAA, CNAME, SOA};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::Notify;

use super::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Udp,
    Tcp,
}

/// What a name server does with a question.
type Behaviour = Box<dyn Fn(&Message, Over) -> Option<Message>>;

/// A name server on loopback, and what it was asked.
struct FakeServer {
    behaviour: Behaviour,
    asked: RefCell<Vec<(String, RecordType, Over)>>,
    heard: Notify,
}

impl FakeServer {
    fn names(&self) -> Vec<String> {
        let asked = self.asked.borrow();
        asked.iter().map(|(name, ..)| name.clone()).collect()
    }

    fn types(&self) -> Vec<RecordType> {
        let asked = self.asked.borrow();
        asked.iter().map(|(_, kind, _)| *kind).collect()
    }

    fn transports(&self) -> Vec<Over> {
        self.asked.borrow().iter().map(|(.., over)| *over).collect()
    }

    fn answer(&self, question: &[u8], over: Over) -> Option<Vec<u8>> {
        let question = Message::from_vec(question).unwrap();
        let asked = &question.queries[0];
        let entry = (asked.name().to_string(), asked.query_type(), over);
        self.asked.borrow_mut().push(entry);
        self.heard.notify_one();
        let answer = (self.behaviour)(&question, over)?;
        Some(answer.to_vec().unwrap())
    }

    async fn udp(self: Rc<Self>, socket: UdpSocket) {
        let mut buffer = vec![0; 4096];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
            if let Some(answer) = self.answer(&buffer[..length], Over::Udp) {
                socket.send_to(&answer, from).await.unwrap();
            }
        }
    }

    async fn tcp(self: Rc<Self>, listener: TcpListener) {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let length = stream.read_u16().await.unwrap();
            let mut question = vec![0; usize::from(length)];
            stream.read_exact(&mut question).await.unwrap();
            if let Some(answer) = self.answer(&question, Over::Tcp) {
                let length = u16::try_from(answer.len()).unwrap();
                stream.write_u16(length).await.unwrap();
                stream.write_all(&answer).await.unwrap();
            }
        }
    }
}

/// Sockets on `count` loopback addresses, all on one port.
async fn sockets(count: u8) -> (u16, Vec<(UdpSocket, TcpListener)>) {
    'ports: for _ in 0..100 {
        let mut all = Vec::new();
        let mut port = 0;
        for number in 1..=count {
            let address = Ipv4Addr::new(127, 0, 0, number);
            let Ok(listener) = TcpListener::bind((address, port)).await else {
                continue 'ports;
            };
            port = listener.local_addr().unwrap().port();
            let Ok(socket) = UdpSocket::bind((address, port)).await else {
                continue 'ports;
            };
            all.push((socket, listener));
        }
        return (port, all);
    }
    panic!("no port is free on all of them");
}

/// Starts name servers on 127.0.0.1 and following.
async fn start(behaviours: Vec<Behaviour>) -> (u16, Vec<Rc<FakeServer>>) {
    let (port, sockets) = sockets(u8::try_from(behaviours.len()).unwrap()).await;
    let mut servers = Vec::new();
    for (behaviour, (udp, tcp)) in behaviours.into_iter().zip(sockets) {
        let server = Rc::new(FakeServer {
            behaviour,
            asked: RefCell::default(),
            heard: Notify::new(),
        });
        tokio::task::spawn_local(Rc::clone(&server).udp(udp));
        tokio::task::spawn_local(Rc::clone(&server).tcp(tcp));
        servers.push(server);
    }
    (port, servers)
}

/// A resolver that knows these name servers, with further lines.
async fn resolver(behaviours: Vec<Behaviour>, lines: &str) -> (Resolver, Vec<Rc<FakeServer>>) {
    let (port, servers) = start(behaviours).await;
    let named = (1..=servers.len()).map(|number| format!("nameserver 127.0.0.{number}\n"));
    let text = named.collect::<String>() + lines;
    (Resolver::from_texts(&text, "", port), servers)
}

async fn one(
    behaviour: impl Fn(&Message, Over) -> Option<Message> + 'static,
) -> (Resolver, Rc<FakeServer>) {
    let (resolver, mut servers) = resolver(vec![Box::new(behaviour)], "").await;
    (resolver, servers.remove(0))
}

fn reply(question: &Message, code: ResponseCode, records: Vec<Record>) -> Message {
    let mut answer = Message::response(question.metadata.id, OpCode::Query);
    answer.metadata.response_code = code;
    answer.add_query(question.queries[0].clone());
    answer.insert_answers(records);
    answer
}

fn says(code: ResponseCode) -> Behaviour {
    Box::new(move |question, _| Some(reply(question, code, vec![])))
}

fn silent() -> Behaviour {
    Box::new(|_, _| None)
}

fn address_record(name: &Name, address: &str) -> Record {
    let data = match address.parse().unwrap() {
        IpAddr::V4(v4) => RData::A(A(v4)),
        IpAddr::V6(v6) => RData::AAAA(AAAA(v6)),
    };
    Record::from_rdata(name.clone(), 60, data)
}

fn alias_record(name: &str, target: &str) -> Record {
    let target = RData::CNAME(CNAME(Name::from_ascii(target).unwrap()));
    Record::from_rdata(Name::from_ascii(name).unwrap(), 60, target)
}

/// Gives those of `addresses` that are of the family asked for.
fn gives(addresses: &'static [&'static str]) -> Behaviour {
    Box::new(move |question, _| {
        let asked = &question.queries[0];
        let records = addresses
            .iter()
            .map(|address| address_record(asked.name(), address))
            .filter(|record| record.record_type() == asked.query_type());
        Some(reply(question, ResponseCode::NoError, records.collect()))
    })
}

fn name(text: &str) -> HostName {
    HostName::parse(text).unwrap()
}

fn texts(addresses: &[IpAddr]) -> Vec<String> {
    let mut texts: Vec<_> = addresses.iter().map(IpAddr::to_string).collect();
    texts.sort();
    texts
}

const ALWAYS: &dyn Fn() -> bool = &|| true;

const WWW: &str = "www.example.org";

async fn addresses_of(resolver: &Resolver, text: &str) -> Vec<String> {
    texts(&resolver.addresses_of(&name(text), ALWAYS).await.unwrap())
}

async fn failure(resolver: &Resolver, text: &str) -> ResolveError {
    resolver
        .addresses_of(&name(text), ALWAYS)
        .await
        .unwrap_err()
}

#[tokio::test(flavor = "local")]
async fn g2_exactly_the_name_is_asked_for_once_per_family() {
    let (resolver, server) = one(gives(&["192.0.2.1", "2001:db8::1"])).await;
    assert!(server.names().is_empty());
    assert_eq!(
        addresses_of(&resolver, WWW).await,
        ["192.0.2.1", "2001:db8::1"]
    );
    assert_eq!(server.names(), ["www.example.org."; 2]);
    let mut types = server.types();
    types.sort();
    assert_eq!(types, [RecordType::A, RecordType::AAAA]);
}

#[tokio::test(flavor = "local")]
async fn g2_search_lists_are_never_used() {
    let lines = "search corp.example.net lan\ndomain example.com\noptions ndots:9\n";
    let behaviours = vec![says(ResponseCode::NXDomain)];
    let (resolver, servers) = resolver(behaviours, lines).await;
    for asked in ["www", "printer.local", WWW] {
        let error = failure(&resolver, asked).await;
        assert!(matches!(error, ResolveError::NoSuchName), "{error}");
    }
    let wanted = [
        "www.",
        "www.",
        "printer.local.",
        "printer.local.",
        "www.example.org.",
        "www.example.org.",
    ];
    assert_eq!(servers[0].names(), wanted);
}

#[tokio::test(flavor = "local")]
async fn g2_the_target_of_an_alias_is_not_asked_for() {
    let (resolver, server) = one(|question, _| {
        let alias = alias_record("www.example.org.", "evil.example.net.");
        Some(reply(question, ResponseCode::NoError, vec![alias]))
    })
    .await;
    let error = failure(&resolver, WWW).await;
    assert!(matches!(error, ResolveError::NoAddresses), "{error}");
    assert_eq!(server.names(), ["www.example.org."; 2]);
}

#[tokio::test(flavor = "local")]
async fn aliases_are_followed_within_an_answer() {
    let (resolver, _) = one(|question, _| {
        let end = Name::from_ascii("c.example.net.").unwrap();
        let other = Name::from_ascii("other.example.net.").unwrap();
        let records = vec![
            address_record(&other, "192.0.2.66"),
            address_record(&end, "192.0.2.1"),
            alias_record("b.example.net.", "C.example.net."),
            alias_record("WWW.example.org.", "b.example.net."),
        ];
        Some(reply(question, ResponseCode::NoError, records))
    })
    .await;
    assert_eq!(addresses_of(&resolver, WWW).await, ["192.0.2.1"]);
}

#[tokio::test(flavor = "local")]
async fn aliases_in_a_circle_end() {
    let (resolver, _) = one(|question, _| {
        let records = vec![
            alias_record("www.example.org.", "b.example.net."),
            alias_record("b.example.net.", "www.example.org."),
        ];
        Some(reply(question, ResponseCode::NoError, records))
    })
    .await;
    assert!(matches!(
        failure(&resolver, WWW).await,
        ResolveError::NoAddresses
    ));
}

#[tokio::test(flavor = "local")]
async fn g2_names_that_mean_this_machine_or_nothing_are_not_asked_for() {
    let (resolver, server) = one(gives(&["192.0.2.66"])).await;
    for local in ["localhost", "a.localhost"] {
        assert_eq!(addresses_of(&resolver, local).await, ["127.0.0.1", "::1"]);
    }
    for nowhere in ["a.invalid", "abc.onion", HOST_ALIAS] {
        let error = failure(&resolver, nowhere).await;
        assert!(matches!(error, ResolveError::NoSuchName), "{error}");
    }
    assert!(server.names().is_empty());
}

#[tokio::test(flavor = "local")]
async fn g2_the_hosts_file_is_the_last_word() {
    let (port, servers) = start(vec![gives(&["192.0.2.1", "2001:db8::1"])]).await;
    let hosts = "10.0.0.5 www.example.org\n192.0.2.9 localhost\n";
    let resolver = Resolver::from_texts("nameserver 127.0.0.1", hosts, port);
    assert_eq!(addresses_of(&resolver, WWW).await, ["10.0.0.5"]);
    assert_eq!(
        addresses_of(&resolver, "localhost").await,
        ["127.0.0.1", "::1"]
    );
    assert!(servers[0].names().is_empty());
}

#[tokio::test(flavor = "local")]
async fn g1_virtual_addresses_do_not_exist_outside() {
    let (port, _servers) = start(vec![gives(&["198.18.0.2", "fd72:6966:656e:6365::2"])]).await;
    let hosts = "198.19.0.1 pinned.example.org\n";
    let resolver = Resolver::from_texts("nameserver 127.0.0.1", hosts, port);
    for asked in [WWW, "pinned.example.org"] {
        let error = failure(&resolver, asked).await;
        assert!(matches!(error, ResolveError::NoAddresses), "{error}");
    }
}

#[tokio::test(flavor = "local")]
async fn names_without_addresses_are_told_apart() {
    for (code, wanted) in [
        (ResponseCode::NXDomain, "the name does not exist"),
        (ResponseCode::NoError, "the name has no address"),
    ] {
        let (resolver, server) = one(says(code)).await;
        for _ in 0..2 {
            assert_eq!(failure(&resolver, WWW).await.to_string(), wanted);
        }
        assert_eq!(server.names().len(), 2, "kept for a while");
    }
}

#[tokio::test(flavor = "local")]
async fn a_server_that_fails_is_followed_by_the_next() {
    for code in [
        ResponseCode::ServFail,
        ResponseCode::Refused,
        ResponseCode::NotImp,
    ] {
        let (resolver, servers) = resolver(vec![says(code), gives(&["192.0.2.1"])], "").await;
        assert_eq!(addresses_of(&resolver, WWW).await, ["192.0.2.1"]);
        assert_eq!(servers[0].names().len(), 2);
    }
}

#[tokio::test(flavor = "local")]
async fn the_first_server_to_know_has_the_last_word() {
    let behaviours = vec![says(ResponseCode::NXDomain), gives(&["192.0.2.1"])];
    let (resolver, servers) = resolver(behaviours, "").await;
    assert!(matches!(
        failure(&resolver, WWW).await,
        ResolveError::NoSuchName
    ));
    assert!(servers[1].names().is_empty());
}

#[tokio::test(flavor = "local")]
async fn failures_of_all_servers_say_what_happened() {
    let (resolver, servers) =
        resolver(vec![says(ResponseCode::ServFail)], "options attempts:3").await;
    let error = failure(&resolver, WWW).await;
    assert!(matches!(
        &error,
        ResolveError::ServerFailed {
            fault: ServerFault::Said(ResponseCode::ServFail),
            ..
        }
    ));
    assert!(error.to_string().contains("127.0.0.1:"), "{error}");
    assert_eq!(servers[0].names().len(), 6);
}

#[tokio::test(flavor = "local")]
async fn a_closed_port_is_followed_by_the_next_at_once() {
    let (port, servers) = start(vec![gives(&["192.0.2.1"])]).await;
    let text = "nameserver 127.0.0.9\nnameserver 127.0.0.1\noptions timeout:30\n";
    let resolver = Resolver::from_texts(text, "", port);
    assert_eq!(addresses_of(&resolver, WWW).await, ["192.0.2.1"]);
    assert_eq!(servers[0].names().len(), 2);
    let resolver = Resolver::from_texts("nameserver 127.0.0.9", "", port);
    let error = failure(&resolver, WWW).await;
    assert!(matches!(
        error,
        ResolveError::ServerFailed {
            fault: ServerFault::Unreachable(_),
            ..
        }
    ));
}

#[tokio::test(flavor = "local")]
async fn a_silent_server_is_asked_last_for_a_while() {
    let (mut resolver, servers) = resolver(vec![silent(), gives(&["192.0.2.1"])], "").await;
    resolver.time = Duration::from_secs(2);
    assert_eq!(addresses_of(&resolver, WWW).await, ["192.0.2.1"]);
    assert_eq!(servers[0].names().len(), 2);
    assert_eq!(
        addresses_of(&resolver, "b.example.org").await,
        ["192.0.2.1"]
    );
    assert_eq!(servers[0].names().len(), 2);
    assert_eq!(servers[1].names().len(), 4);
}

#[tokio::test(flavor = "local")]
async fn silence_of_all_servers_is_a_time_out() {
    let (mut resolver, servers) = resolver(vec![silent(), silent()], "options attempts:5").await;
    resolver.time = Duration::from_millis(100);
    assert!(matches!(
        failure(&resolver, WWW).await,
        ResolveError::TimedOut
    ));
    for server in servers {
        assert!(!server.names().is_empty());
    }
}

#[tokio::test(flavor = "local")]
async fn a_family_without_answer_does_not_hold_up_the_other() {
    for (quiet, wanted) in [
        (RecordType::A, "2001:db8::1"),
        (RecordType::AAAA, "192.0.2.1"),
    ] {
        let both = gives(&["192.0.2.1", "2001:db8::1"]);
        let (resolver, _) = one(move |question, over| {
            let asked = question.queries[0].query_type();
            (asked != quiet).then(|| both(question, over))?
        })
        .await;
        assert_eq!(addresses_of(&resolver, WWW).await, [wanted]);
    }
}

#[tokio::test(flavor = "local")]
async fn a_family_that_fails_does_not_spoil_the_other() {
    let v4 = gives(&["192.0.2.1"]);
    let (resolver, _) = one(
        move |question, over| match question.queries[0].query_type() {
            RecordType::A => v4(question, over),
            _ => Some(reply(question, ResponseCode::ServFail, vec![])),
        },
    )
    .await;
    assert_eq!(addresses_of(&resolver, WWW).await, ["192.0.2.1"]);
}

#[tokio::test(flavor = "local")]
async fn long_answers_come_over_tcp() {
    let (resolver, server) = one(|question, over| {
        let asked = question.queries[0].name();
        let records = match over {
            Over::Udp => vec![],
            Over::Tcp => vec![address_record(asked, "192.0.2.1"); 60],
        };
        let mut answer = reply(question, ResponseCode::NoError, records);
        answer.metadata.truncation = over == Over::Udp;
        Some(answer)
    })
    .await;
    let found = resolver.addresses_of(&name(WWW), ALWAYS).await.unwrap();
    assert_eq!(found.len(), MOST_ADDRESSES);
    assert_eq!(server.transports().len(), 4);
}

#[tokio::test(flavor = "local")]
async fn the_options_of_the_host_are_kept() {
    let addresses = || vec![gives(&["192.0.2.1", "2001:db8::1"])];
    let (tcp, servers) = resolver(addresses(), "options use-vc").await;
    assert_eq!(addresses_of(&tcp, WWW).await.len(), 2);
    assert_eq!(servers[0].transports(), [Over::Tcp; 2]);
    let (v4, servers) = resolver(addresses(), "options no-aaaa").await;
    assert_eq!(addresses_of(&v4, WWW).await, ["192.0.2.1"]);
    assert_eq!(servers[0].names().len(), 1);
    let (in_turn, servers) = resolver(addresses(), "options single-request").await;
    assert_eq!(addresses_of(&in_turn, WWW).await.len(), 2);
    assert_eq!(servers[0].names().len(), 2);
    let (mut waiting, servers) = resolver(vec![silent()], "options single-request").await;
    waiting.time = Duration::from_millis(100);
    failure(&waiting, WWW).await;
    assert_eq!(servers[0].types(), [RecordType::A]);
}

#[tokio::test(flavor = "local")]
async fn servers_take_turns_when_the_host_wants_that() {
    let behaviours = vec![gives(&["192.0.2.1"]), gives(&["192.0.2.1"])];
    let (resolver, servers) = resolver(behaviours, "options rotate").await;
    for number in 0..4 {
        addresses_of(&resolver, &format!("n{number}.example.org")).await;
    }
    for server in servers {
        assert_eq!(server.names().len(), 4);
    }
}

#[tokio::test(flavor = "local")]
async fn extensions_are_given_up_where_they_are_not_known() {
    let addresses = gives(&["192.0.2.1"]);
    let behaviour: Behaviour = Box::new(move |question, over| match question.edns {
        Some(_) => {
            let mut bare = reply(question, ResponseCode::FormErr, vec![]);
            bare.queries.clear();
            Some(bare)
        }
        None => addresses(question, over),
    });
    let (resolver, servers) = resolver(vec![behaviour], "options edns0 trust-ad").await;
    assert_eq!(addresses_of(&resolver, WWW).await, ["192.0.2.1"]);
    assert_eq!(servers[0].names().len(), 4);
}

#[tokio::test(flavor = "local")]
async fn answers_are_kept_and_shared() {
    let (resolver, server) = one(gives(&["192.0.2.1"])).await;
    let wanted = name(WWW);
    let (first, second, third) = tokio::join!(
        resolver.addresses_of(&wanted, ALWAYS),
        resolver.addresses_of(&wanted, ALWAYS),
        resolver.addresses_of(&wanted, ALWAYS),
    );
    for found in [
        first,
        second,
        third,
        resolver.addresses_of(&wanted, ALWAYS).await,
    ] {
        assert_eq!(texts(&found.unwrap()), ["192.0.2.1"]);
    }
    assert_eq!(server.names().len(), 2);
}

#[tokio::test(flavor = "local")]
async fn who_stops_waiting_takes_nothing_from_others() {
    let (resolver, server) = one(gives(&["192.0.2.1"])).await;
    let wanted = name(WWW);
    let left = async {
        tokio::select! {
            biased;
            () = server.heard.notified() => {}
            _ = resolver.addresses_of(&wanted, ALWAYS) => panic!("it was answered first"),
        }
    };
    let (found, ()) = tokio::join!(
        async {
            tokio::task::yield_now().await;
            resolver.addresses_of(&wanted, ALWAYS).await
        },
        left
    );
    assert_eq!(texts(&found.unwrap()), ["192.0.2.1"]);
}

#[tokio::test(flavor = "local")]
async fn answers_to_other_questions_are_not_taken() {
    let forged = |question: &Message| {
        let mut other = question.clone();
        let elsewhere = Name::from_ascii("other.example.org.").unwrap();
        other.queries = vec![Query::query(elsewhere, question.queries[0].query_type())];
        other
    };
    let (resolver, _) =
        one(move |question, over| gives(&["192.0.2.66"])(&forged(question), over)).await;
    let error = failure(&resolver, WWW).await;
    assert!(matches!(
        error,
        ResolveError::ServerFailed {
            fault: ServerFault::Malformed,
            ..
        }
    ));
    let (mut resolver, _) = one(|question, over| {
        let mut answer = gives(&["192.0.2.66"])(question, over)?;
        answer.metadata.id = question.metadata.id.wrapping_add(1);
        Some(answer)
    })
    .await;
    resolver.time = Duration::from_millis(100);
    assert!(matches!(
        failure(&resolver, WWW).await,
        ResolveError::TimedOut
    ));
}

#[tokio::test(flavor = "local")]
async fn a_changed_configuration_is_read_again() {
    let behaviours = vec![gives(&["192.0.2.1"]), gives(&["192.0.2.2"])];
    let (port, _servers) = start(behaviours).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("resolv.conf");
    std::fs::write(&path, "nameserver 127.0.0.2\n# longer\n").unwrap();
    let resolver = Resolver::new(
        Source::File(path.clone()),
        Source::Text(String::new()),
        port,
    );
    assert_eq!(addresses_of(&resolver, WWW).await, ["192.0.2.2"]);
    std::fs::write(&path, "nameserver 127.0.0.1\n").unwrap();
    assert_eq!(addresses_of(&resolver, WWW).await, ["192.0.2.1"]);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(addresses_of(&resolver, WWW).await, ["192.0.2.1"]);
    std::fs::write(&path, "nameserver none\n").unwrap();
    let error = failure(&resolver, WWW).await;
    assert!(matches!(error, ResolveError::Misconfigured), "{error}");
}

#[test]
fn negative_answers_say_for_how_long_they_hold() {
    let mut question = Message::query();
    question.add_query(Query::query(
        Name::from_ascii("a.test.").unwrap(),
        RecordType::A,
    ));
    let mut answer = reply(&question, ResponseCode::NXDomain, vec![]);
    let name = Name::from_ascii("a.test.").unwrap();
    let keep = |answer: &Message| Found::read(answer, &name, RecordType::A).keep.as_secs();
    assert_eq!(keep(&answer), 5);
    for (minimum, wanted) in [(0, 1), (20, 20), (9999, 60)] {
        let zone = SOA::new(Name::root(), Name::root(), 1, 1, 1, 1, minimum);
        answer.authorities = vec![Record::from_rdata(Name::root(), 9999, RData::SOA(zone))];
        assert_eq!(keep(&answer), wanted);
    }
}

#[test]
fn the_longest_way_of_keeping_is_bounded() {
    let name = Name::from_ascii("a.test.").unwrap();
    let mut question = Message::query();
    question.add_query(Query::query(name.clone(), RecordType::A));
    for (seconds, wanted) in [(0, 1), (30, 30), (u32::MAX, 300)] {
        let mut record = address_record(&name, "192.0.2.1");
        record.ttl = seconds;
        let answer = reply(&question, ResponseCode::NoError, vec![record]);
        let found = Found::read(&answer, &name, RecordType::A);
        assert_eq!(found.keep.as_secs(), wanted);
    }
}

#[test]
fn families_alternate() {
    let all = ["1.1.1.1", "1.1.1.2", "1.1.1.3", "::a", "::b"].map(|text| text.parse().unwrap());
    let in_order = |v6_first| {
        let order = alternated(all.to_vec(), v6_first);
        order.iter().map(IpAddr::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        in_order(true),
        ["::a", "1.1.1.1", "::b", "1.1.1.2", "1.1.1.3"]
    );
    assert_eq!(
        in_order(false),
        ["1.1.1.1", "::a", "1.1.1.2", "::b", "1.1.1.3"]
    );
}

proptest! {
    #[test]
    fn no_address_is_lost_or_made_up(
        v4 in prop::collection::vec(any::<u32>(), 0..12),
        v6 in prop::collection::vec(any::<u128>(), 0..12),
        v6_first in any::<bool>(),
    ) {
        let v4 = v4.into_iter().map(|bits| IpAddr::from(Ipv4Addr::from_bits(bits)));
        let v6 = v6.into_iter().map(|bits| IpAddr::from(Ipv6Addr::from_bits(bits)));
        let all: Vec<_> = v4.chain(v6).collect();
        let order = alternated(all.clone(), v6_first);
        prop_assert_eq!(order.len(), all.len().min(MOST_ADDRESSES));
        prop_assert!(order.iter().all(|address| all.contains(address)));
        if all.len() <= MOST_ADDRESSES {
            prop_assert_eq!(texts(&order), texts(&all));
        }
    }
}
