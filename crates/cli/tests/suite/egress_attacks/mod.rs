//! The code inside against the way out: hostile, with our source at hand.
//!
//! Every attack carries a mark of its own. Outside, the mark arrives; inside,
//! under a policy that allows something near, no server and no resolver ever
//! sees it.

mod addresses;
mod clear_http2;
mod crowds;
mod differential;
mod framings;
mod hellos;
mod hoards;
mod inherited;
mod nameless;
mod names;
mod records;
mod reload;
mod requests;

use std::fmt::Write as _;

use ringfence_testkit::wait_until;
use serde_json::json;

use super::clients::{Host, Run};

const SAY: &str = "/usr/bin/python3 say.py attacks.json";

/// Something to say to somebody.
#[derive(Debug, Clone)]
struct Attack {
    way: &'static str,
    host: String,
    port: u16,
    says: Vec<Vec<u8>>,
    mark: String,
}

impl Attack {
    /// Says `bytes`, in which the mark is, to a server of web.example.org.
    fn new(number: usize, port: u16, says: impl FnOnce(&str) -> Vec<Vec<u8>>) -> Self {
        let mark = format!("marked-{number}.test");
        Self {
            way: "direct",
            host: "web.example.org".to_owned(),
            port,
            says: says(&mark),
            mark,
        }
    }

    fn to_json(&self) -> serde_json::Value {
        let says: Vec<String> = self.says.iter().map(|part| hex(part)).collect();
        json!({"way": self.way, "host": self.host, "port": self.port, "says": says})
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A host with the script that carries attacks out.
fn host() -> Host {
    let host = Host::new();
    host.write("say.py", include_str!("scripts/say.py"));
    host
}

/// Writes the attacks down for the script.
fn prepare(host: &Host, attacks: &[Attack]) {
    let all: Vec<_> = attacks.iter().map(Attack::to_json).collect();
    host.write("attacks.json", &serde_json::Value::from(all).to_string());
}

/// The attacks whose mark arrived anywhere.
fn arrived<'a>(host: &Host, attacks: &'a [Attack]) -> Vec<&'a Attack> {
    let seen = |attack: &&Attack| host.net().saw(&attack.mark);
    attacks.iter().filter(seen).collect()
}

/// Carries attacks out outside, where every mark must arrive, then inside.
#[track_caller]
fn refuses(host: &Host, flags: &[&str], attacks: &[Attack]) -> Run {
    prepare(host, attacks);
    host.net().forget();
    host.online.outside(SAY).expect_code(0);
    // What was sent is on its way for a moment.
    let all_arrive = wait_until(|| arrived(host, attacks).len() == attacks.len());
    assert!(all_arrive, "outside: {}", arrived(host, attacks).len());
    stops(host, flags, attacks)
}

/// Carries attacks out inside, where no mark may arrive.
#[track_caller]
fn stops(host: &Host, flags: &[&str], attacks: &[Attack]) -> Run {
    prepare(host, attacks);
    let run = host.run(flags, SAY).expect_code(0);
    let arrived = arrived(host, attacks);
    let shown: Vec<String> = arrived.iter().map(|attack| shown(attack)).collect();
    assert!(shown.is_empty(), "arrived:\n{}", shown.join("\n"));
    run
}

fn shown(attack: &Attack) -> String {
    let says: Vec<_> = attack
        .says
        .iter()
        .map(|part| String::from_utf8_lossy(part))
        .collect();
    format!("{} {}:{} {says:?}", attack.way, attack.host, attack.port)
}
