//! Requests that no library would send, said byte by byte or field by field
//! over TLS by `say.py`.

use ringfence_testkit::Outcome;
use serde_json::{Value, json};

use super::super::clients::Run;
use super::Bound;

/// One request, and how its connection is made.
#[derive(Debug, Clone)]
pub(super) struct Said(Value);

/// What came of it; the rest is for whoever looks at a failure.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) status: u64,
    _answer: String,
}

/// The fields of an HTTP/2 request for a page.
pub(super) fn fields(authority: &str, path: &str) -> Vec<(String, String)> {
    let pairs = [
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", authority),
        (":path", path),
    ];
    pairs
        .map(|(name, value)| (name.into(), value.into()))
        .to_vec()
}

impl Said {
    /// Over HTTP/1.1 and TLS to `name`, in parts that are sent one by one.
    pub(super) fn one(name: &str, parts: &[&str]) -> Self {
        Self(json!({"dial": [name, 443], "sni": name, "alpn": "http/1.1", "raw": parts}))
    }

    /// Over HTTP/2 and TLS to `name`: the fields, then the parts of a body.
    pub(super) fn two(name: &str, fields: &[(String, String)], body: &[&str]) -> Self {
        Self(json!({
            "dial": [name, 443], "sni": name, "alpn": "h2", "headers": fields, "body": body,
        }))
    }

    /// Without TLS.
    pub(super) fn plain(name: &str, port: u16, parts: &[&str]) -> Self {
        Self(json!({"dial": [name, port], "raw": parts}))
    }

    /// Dials the address of another name.
    pub(super) fn dialling(mut self, name: &str) -> Self {
        self.0["dial"][0] = name.into();
        self
    }

    /// Asks TLS for another name, or for none.
    pub(super) fn asking_for(mut self, name: Option<&str>) -> Self {
        self.0["sni"] = name.into();
        self
    }
}

impl Bound {
    fn prepare(&self, all: &[Said]) {
        let all: Vec<&Value> = all.iter().map(|said| &said.0).collect();
        self.host.write("said.json", &json!(all).to_string());
    }

    /// Says them inside, and then what stands for the secret.
    #[track_caller]
    pub(super) fn say(&self, flags: &[String], all: &[Said]) -> (Run, Vec<Heard>) {
        self.prepare(all);
        let script = "echo token=$API_TOKEN; exec /usr/bin/python3 say.py said.json";
        let run = self.run(flags, script).expect_code(0);
        let heard = heard(&run.outcome);
        assert_eq!(heard.len(), all.len(), "{:?}", run.outcome);
        (run, heard)
    }

    /// Says them on the host, with the secret itself.
    #[track_caller]
    pub(super) fn say_outside(&self, all: &[Said]) -> Vec<Heard> {
        self.prepare(all);
        let outcome = self.outside("/usr/bin/python3 say.py said.json");
        heard(&outcome.expect_code(0))
    }
}

fn heard(outcome: &Outcome) -> Vec<Heard> {
    let lines = outcome.stdout.lines().filter(|line| line.starts_with('{'));
    let parse = |line| {
        let value: Value = serde_json::from_str(line).expect("a line of JSON");
        Heard {
            status: value["status"].as_u64().unwrap_or_default(),
            _answer: value["answer"].as_str().unwrap_or_default().to_owned(),
        }
    };
    lines.map(parse).collect()
}
