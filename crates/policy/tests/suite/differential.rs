//! G3: our reading of a host against that of the `url` crate, which reads as
//! browsers do. What we take must be the same host for both; what only one of
//! us takes leads nowhere that was not judged.

use std::net::IpAddr;

use proptest::prelude::*;
use proptest::sample::select;
use ringfence_policy::{HostName, Target};
use url::{Host, Url};

/// The host that the other reader sees in a URL with `text` in its place; none
/// when that is no URL, or the text reaches beyond the host.
fn elsewhere(text: &str) -> Option<Target> {
    let url = Url::parse(&format!("http://{text}/")).ok()?;
    Some(match url.host()? {
        Host::Domain(name) => Target::Name(HostName::parse(name).ok()?),
        Host::Ipv4(address) => Target::Addr(address.into()),
        Host::Ipv6(address) => Target::Addr(IpAddr::from(address).to_canonical()),
    })
}

/// Whether a URL with `text` as its host is read as one with more than a host.
fn holds_more(text: &str) -> bool {
    Url::parse(&format!("http://{text}/")).is_ok_and(|url| {
        let is_plain = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        !is_plain || !url.username().is_empty() || url.password().is_some() || url.port().is_some()
    })
}

fn agree(text: &str) -> Result<(), String> {
    let Ok(ours) = Target::parse(text) else {
        return Ok(());
    };
    if holds_more(text) {
        return Err(format!("{text:?} is more than the host {ours}"));
    }
    match elsewhere(text) {
        Some(theirs) if theirs != ours => Err(format!("{text:?} is {ours} and {theirs}")),
        _ => Ok(()),
    }
}

#[test]
fn g3_addresses_in_every_spelling_are_the_same_address() {
    for (spellings, address) in [
        (
            &[
                "127.0.0.1",
                "127.1",
                "127.0.1",
                "2130706433",
                "0x7f000001",
                "0X7F.1",
                "0x7f.0x0.0x0.0x1",
                "017700000001",
                "0177.0.0.01",
                "127.0.0.1.",
                "[::ffff:127.0.0.1]",
                "[::FFFF:7f00:1]",
                "１２７.０.０.１",
                "127。0。0。1",
                "⑫7.0.0.1",
            ][..],
            "127.0.0.1",
        ),
        (&["0", "0x", "0.0", "00000"], "0.0.0.0"),
        (
            &["0xa9fea9fe", "169.254.43518", "0251.0376.0251.0376"],
            "169.254.169.254",
        ),
        (&["[::1]", "[0:0:0:0:0:0:0:1]", "[::0.0.0.1]"], "::1"),
        (
            &["[64:ff9b::10.1.2.3]", "[64:FF9B::a01:203]"],
            "64:ff9b::a01:203",
        ),
    ] {
        let want = Target::Addr(address.parse().unwrap());
        for text in spellings {
            assert_eq!(Target::parse(text).unwrap(), want, "{text}");
            assert_eq!(elsewhere(text), Some(want.clone()), "{text} elsewhere");
        }
    }
}

#[test]
fn g3_names_in_every_spelling_are_the_same_name() {
    for (spellings, name) in [
        (
            &[
                "example.org",
                "EXAMPLE.org",
                "example.org.",
                "ｅｘａｍｐｌｅ.org",
                "example。org",
                "example．org",
                "ex\u{ad}ample.org",
                "ⓔxample.org",
            ][..],
            "example.org",
        ),
        (
            &[
                "bücher.example",
                "BÜCHER.example",
                "xn--bcher-kva.example",
                "XN--BCHER-KVA.example",
            ],
            "xn--bcher-kva.example",
        ),
        (&["straße.example"], "xn--strae-oqa.example"),
        (&["evil-example.org"], "evil-example.org"),
        (&["example.org.evil.test"], "example.org.evil.test"),
        (&["_dmarc.example.org"], "_dmarc.example.org"),
    ] {
        for text in spellings {
            assert_eq!(Target::parse(text).unwrap().to_string(), name, "{text}");
            assert_eq!(
                elsewhere(text),
                Target::parse(name).ok(),
                "{text} elsewhere"
            );
        }
    }
}

#[test]
fn g3_what_readers_disagree_about_is_no_host() {
    for text in [
        "",
        ".",
        "..",
        "example.org..",
        ".example.org",
        "example..org",
        "example.org\0.evil.test",
        "example.org\0",
        "example.org%00.evil.test",
        "example%2eorg",
        "%65xample.org",
        "example.org%",
        "user@example.org",
        "example.org@evil.test",
        "user:pw@example.org",
        "example.org:80",
        "example.org/evil.test",
        "evil.test\\example.org",
        "evil.test\\@example.org",
        "evil.test#example.org",
        "evil.test?example.org",
        "evil.test;example.org",
        "evil.test,example.org",
        "example.org evil.test",
        " example.org",
        "example.org ",
        "example.org\t",
        "exam\tple.org",
        "exam\nple.org",
        "example.org\r\nHost: evil.test",
        "example.org\u{a0}",
        "example.org\u{3000}",
        "example.org\u{2028}",
        "example.org／evil.test",
        "evil.test／example.org",
        "evil.test＃example.org",
        "evil.test？example.org",
        "evil.test＠example.org",
        "evil.test：80",
        "℀.example.org",
        "[::1",
        "::1]",
        "[::1]x",
        "x[::1]",
        "[[::1]]",
        "[127.0.0.1]",
        "[example.org]",
        "[::1%25lo]",
        "[::1%lo]",
        "fe80::1%eth0",
        "1.2.3.4.5",
        "256.1.1.1",
        "1.2.3.256",
        "4294967296",
        "0x100000000",
        "08.0.0.1",
        "0x7g.1",
        "example.0x1",
        "example.1",
        "1..2",
        "127.0.0.1..",
        "-example.org",
        "xn--.example",
        "xn--a.example",
        "*.example.org",
        "*",
    ] {
        assert!(
            Target::parse(text).is_err(),
            "{text:?}: {:?}",
            Target::parse(text)
        );
    }
}

/// Pieces from which spellings are made that some reader takes.
const PIECES: &[&str] = &[
    "example",
    "org",
    "evil",
    "test",
    "a",
    "xn--",
    "xn--bcher-kva",
    "bücher",
    "ß",
    "ſ",
    "K",
    "İ",
    "１",
    "２",
    "７",
    "0",
    "1",
    "7",
    "8",
    "9",
    "127",
    "255",
    "256",
    "0x",
    "0X7f",
    "017",
    "2130706433",
    ".",
    ".",
    ".",
    ".",
    "。",
    "．",
    "｡",
    "․",
    "‥",
    "-",
    "--",
    "_",
    "\u{ad}",
    "\u{200b}",
    "\u{200d}",
    "\u{feff}",
    "\u{202e}",
    "%",
    "%2e",
    "%00",
    "\0",
    " ",
    "\t",
    "\n",
    "@",
    ":",
    "/",
    "\\",
    "?",
    "#",
    "[",
    "]",
    "::",
    "::1",
    "ffff:",
    "／",
    "＠",
    "：",
    "％",
    "℀",
];

fn spelling() -> impl Strategy<Value = String> {
    prop::collection::vec(select(PIECES), 1..8).prop_map(|pieces| pieces.concat())
}

/// One of the numbers of an address, in some base.
fn number(value: u32) -> impl Strategy<Value = String> {
    (0..5, 0..4usize).prop_map(move |(base, zeros)| {
        let zeros = "0".repeat(zeros);
        match base {
            0 => format!("{value}"),
            1 => format!("0x{zeros}{value:x}"),
            2 => format!("0X{zeros}{value:X}"),
            3 => format!("0{zeros}{value:o}"),
            // Also what is read as another number, or as none.
            _ => format!("{zeros}{value}"),
        }
    })
}

fn address_spelling() -> impl Strategy<Value = String> {
    let parts = prop_oneof![
        any::<u32>().prop_map(|all| vec![all]),
        (0..=300u32, 0..=0x1ff_ffffu32).prop_map(|(one, rest)| vec![one, rest]),
        prop::collection::vec(0..=300u32, 1..6),
    ];
    let spelled = parts.prop_flat_map(|parts| {
        let numbers: Vec<_> = parts.into_iter().map(|part| number(part).boxed()).collect();
        numbers
    });
    let dots = select(&[".", ".", ".", "。", "．"][..]);
    (spelled, dots, select(&["", "", ".", ".."][..]))
        .prop_map(|(numbers, dot, end)| numbers.join(dot) + end)
}

fn v6_spelling() -> impl Strategy<Value = String> {
    let group = prop_oneof![
        "[0-9a-fA-F]{1,5}".boxed(),
        Just(String::new()).boxed(),
        "[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}".boxed(),
    ];
    prop::collection::vec(group, 2..9).prop_map(|groups| format!("[{}]", groups.join(":")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn g3_spellings_of_names(text in spelling()) {
        prop_assert_eq!(agree(&text), Ok(()));
    }

    #[test]
    fn g3_spellings_of_addresses(text in address_spelling()) {
        prop_assert_eq!(agree(&text), Ok(()));
    }

    #[test]
    fn g3_spellings_of_long_addresses(text in v6_spelling()) {
        prop_assert_eq!(agree(&text), Ok(()));
    }

    #[test]
    fn g3_any_text(text in any::<String>()) {
        prop_assert_eq!(agree(&text), Ok(()));
    }

    #[test]
    fn g3_what_we_write_is_read_the_same_everywhere(text in prop_oneof![spelling(), address_spelling(), v6_spelling()]) {
        if let Ok(ours) = Target::parse(&text) {
            let written = ours.to_string();
            prop_assert_eq!(Target::parse(&written), Ok(ours.clone()));
            prop_assert_eq!(elsewhere(&written), Some(ours), "{}", written);
        }
    }
}
