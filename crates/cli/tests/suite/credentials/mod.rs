//! Credentials that are added outside: real clients on a host that is online,
//! and servers that tell what reached them. Each test knows one secret, and
//! proves where it went and that it is nowhere else.

mod clients;
mod commands;
mod disagreements;
mod elsewhere;
mod hostile;
mod kinds;
mod nowhere;
mod returning;
mod rotation;
mod rules;
mod said;
mod surroundings;

use std::fmt::Write as _;

use data_encoding::{BASE64, HEXLOWER};
use ringfence_testkit::{Folder, Internet, Web};

use super::clients::{Host, Run, read_log};

/// The host that the secret belongs to.
const HOST: &str = "api.my-service.test";
/// A host that is allowed and gets nothing.
const OTHER: &str = "other.my-service.test";
/// With characters that encodings change.
const SECRET: &str = "s3cr3t/of+the=Service~0123456789";
/// The variable that holds it outside, and what stands for it inside.
const VARIABLE: &str = "API_TOKEN";

/// What most policies here say about the secret.
const BEARER: &str = "service: my-service
    env: API_TOKEN
    hosts: [api.my-service.test]
    header: Authorization
    format: \"Bearer %s\"";

/// What is written down when it was added so.
const ADDED: &str = "my-service (header authorization: Bearer %s)";

/// A host whose sandboxes have a credential.
struct Bound {
    host: Host,
    /// Where policies are: not in the working folder.
    policies: Folder,
}

impl Bound {
    fn new() -> Self {
        let host = Host::new();
        for name in [HOST, OTHER] {
            host.net().web(name, Web::new());
        }
        for (name, text) in [
            ("ask.py", include_str!("scripts/ask.py")),
            ("ask.js", include_str!("scripts/ask.js")),
            ("call.py", include_str!("scripts/call.py")),
            ("say.py", include_str!("scripts/say.py")),
            ("slow.py", include_str!("scripts/slow.py")),
            ("talk.py", include_str!("scripts/talk.py")),
            ("socket_talk.py", include_str!("scripts/socket_talk.py")),
        ] {
            host.write(name, text);
        }
        Self {
            host,
            policies: Folder::durable(),
        }
    }

    fn net(&self) -> &Internet {
        self.host.net()
    }

    /// A policy with this credential, allowing its host and another; the
    /// flags that name it.
    fn policy(&self, credential: &str) -> [String; 2] {
        let text = format!("credentials:\n  - {credential}\n");
        self.policy_of(&[HOST, OTHER], &text)
    }

    /// A policy that allows these, with more of its text.
    fn policy_of(&self, allowed: &[&str], more: &str) -> [String; 2] {
        let allowed: Vec<String> = allowed.iter().map(|entry| format!("\"{entry}\"")).collect();
        let text = format!(
            "version: 1\nnetwork:\n  allow: [{}]\n{more}",
            allowed.join(", ")
        );
        let path = self.policies.write("policy.yaml", &text);
        ["--policy".to_owned(), path.display().to_string()]
    }

    /// Runs a script inside; outside, the variable holds the secret.
    fn run(&self, flags: &[String], script: &str) -> Run {
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let run = self.host.run_with(&[(VARIABLE, SECRET)], &flags, script);
        self.holds_nothing(&run);
        run
    }

    /// Runs a script on the host itself, which has the secret.
    fn outside(&self, script: &str) -> ringfence_testkit::Outcome {
        self.net().forget();
        let script = format!("export {VARIABLE}='{SECRET}'; {script}");
        self.host.online.outside(&script)
    }

    /// Whether a server of `name` saw `text`.
    fn saw(&self, name: &str, text: &str) -> bool {
        let sni = format!("sni {name}");
        let connections = self.net().connections();
        let mut of_name = connections
            .iter()
            .filter(|connection| connection.saw.first() == Some(&sni));
        of_name.any(|connection| connection.saw.iter().any(|seen| seen.contains(text)))
    }

    /// Fails the test if the secret is in what a run showed or left behind.
    #[track_caller]
    fn holds_nothing(&self, run: &Run) {
        let folder = &self.host.online.arena.folder;
        let files = folder.listing().into_iter();
        let files = files.filter_map(|name| std::fs::read(folder.join(name)).ok());
        let files: String = files
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .collect();
        for (place, text) in [
            ("standard output", run.stdout()),
            ("standard error", &run.outcome.stderr),
            ("the record", &read_log(&run.state)),
            ("the working folder", &files),
        ] {
            assert_eq!(leak(text), None, "in {place}:\n{text}");
        }
    }

    /// Fails the test if the secret reached another server than that of its
    /// host.
    #[track_caller]
    fn went_only_there(&self) {
        let own = format!("sni {HOST}");
        for connection in self.net().connections() {
            let is_own = connection.saw.first() == Some(&own);
            let seen = connection.saw.join("\n");
            assert!(is_own || leak(&seen).is_none(), "{connection:?}");
        }
        for datagram in self.net().datagrams() {
            assert_eq!(leak(&datagram.text), None);
        }
        assert_eq!(leak(&self.net().dns_queries().join("\n")), None);
    }
}

/// The forms in which a value could show.
fn forms(value: &str) -> Vec<String> {
    let shifted = |filling: &str| {
        let encoded = BASE64.encode(format!("{filling}{value}").as_bytes());
        // Without what the neighbours of the value decide.
        encoded[4..encoded.len() - 4].to_owned()
    };
    let percent = value.bytes().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "%{byte:02x}");
        text
    });
    let usual = value
        .replace('/', "%2f")
        .replace('+', "%2b")
        .replace('=', "%3d");
    vec![
        value.to_owned(),
        shifted(""),
        shifted("u"),
        shifted("u:"),
        percent,
        usual,
        value.replace('/', "\\/"),
        HEXLOWER.encode(value.as_bytes()),
    ]
}

/// What basic authentication makes of a name and the secret.
fn basic(username: &str) -> String {
    BASE64.encode(format!("{username}:{SECRET}").as_bytes())
}

/// The form of the secret that is in a text.
fn leak(text: &str) -> Option<String> {
    leak_of(SECRET, text)
}

/// The form of a value that is in a text, in any case of letters.
fn leak_of(value: &str, text: &str) -> Option<String> {
    let text = text.to_ascii_lowercase();
    let mut forms = forms(value).into_iter();
    forms.find(|form| text.contains(&form.to_ascii_lowercase()))
}

/// What stands for the secret, if a script printed `token=…`.
fn placeholder(run: &Run) -> &str {
    let line = run
        .stdout()
        .lines()
        .find_map(|line| line.strip_prefix("token="));
    line.unwrap_or_else(|| panic!("no placeholder: {}", run.stdout()))
}

#[test]
fn every_form_of_the_secret_is_known() {
    for form in [
        format!("Bearer {SECRET}"),
        BASE64.encode(format!("user:{SECRET}!").as_bytes()),
        BASE64.encode(format!("use:{SECRET}!!").as_bytes()),
        BASE64.encode(format!("us:{SECRET}").as_bytes()),
        "%73%33%63%72%33%74%2f%6f%66%2b%74%68%65%3d%53%65%72%76%69%63%65%7e%30%31%32%33%34%35%36%37%38%39".to_owned(),
    ] {
        assert!(leak(&form).is_some(), "{form}");
    }
    assert_eq!(leak("something else"), None);
}
