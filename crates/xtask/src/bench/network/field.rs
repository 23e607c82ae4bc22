//! Where contests take place: the server, and how a command line gets into
//! each sandbox with leave to reach that server.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::contest::{Entry, Standing};
use super::server::Server;
use crate::bench::alternatives::{self, SRT};

/// Holds the secret that is added.
const VARIABLE: &str = "BENCH_SECRET";
const SECRET: &str = "a-secret-that-is-only-for-measuring";

/// Makes a host looked into whose pages get no secret.
const UNUSED: &str = "    methods: [DELETE]\n";

/// Which sandbox a client runs in, and how it reaches the server from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// No sandbox.
    Outside,
    /// Ours, by the proxies that its variables name.
    Proxied,
    /// Ours, as if there were no proxy.
    Transparent,
    /// The same, with TLS looked into.
    Inspected,
    /// The same, with a secret that is added, and removed from what comes back.
    Bound,
    /// `srt`, by the proxies that its variables name.
    Srt,
}

impl Place {
    /// The server's name there. Without a proxy an address of the loopback is
    /// the sandbox's own.
    pub(super) fn host(self) -> &'static str {
        match self {
            Self::Transparent | Self::Inspected | Self::Bound => "host.ringfence.internal",
            Self::Outside | Self::Proxied | Self::Srt => "127.0.0.1",
        }
    }

    /// The value of curl's `--noproxy` there: none, since the variables would
    /// exempt the loopback, or all.
    pub(super) fn unproxied(self) -> &'static str {
        match self {
            Self::Transparent | Self::Inspected | Self::Bound => "*",
            Self::Outside | Self::Proxied | Self::Srt => "",
        }
    }

    fn standing(self) -> Standing {
        match self {
            Self::Srt => Standing::Optional,
            Self::Outside | Self::Proxied | Self::Transparent | Self::Inspected | Self::Bound => {
                Standing::Required
            }
        }
    }
}

/// The server and the ways to it.
pub(super) struct Field {
    pub(super) server: Server,
    ringfence: String,
    srt: Option<PathBuf>,
    /// Our policy for reaching the server without a proxy.
    policy: String,
    /// The same with TLS looked into.
    inspecting: String,
    /// The same with a credential.
    binding: String,
    /// The settings for `srt`.
    settings: String,
}

impl Field {
    /// Starts the server.
    pub(super) fn open(ringfence: &Path, download_mib: u64) -> Result<Self> {
        let server = Server::start(download_mib)?;
        let entries = server.entries();
        let settings = write_settings("network.json", &entries.each_ref().map(String::as_str))?;
        Ok(Self {
            policy: write("network.yaml", &open_policy(&server))?,
            inspecting: write("inspecting.yaml", &credential_policy(&server, UNUSED))?,
            binding: write("binding.yaml", &credential_policy(&server, ""))?,
            server,
            ringfence: ringfence.display().to_string(),
            srt: alternatives::locate(SRT),
            settings,
        })
    }

    /// An entry that runs `client` at `place`.
    pub(super) fn entry(&self, name: &'static str, place: Place, client: Vec<String>) -> Entry {
        let words = self.way_into(place).map(|mut words| {
            words.extend(client);
            words
        });
        Entry {
            name,
            words,
            standing: place.standing(),
        }
    }

    fn way_into(&self, place: Place) -> Result<Vec<String>> {
        let own = |text: &str| text.to_string();
        let ringfence = || [&self.ringfence, "run"].map(own).to_vec();
        Ok(match place {
            Place::Outside => Vec::new(),
            Place::Proxied => {
                let [http, https] = &self.server.entries();
                let options = ["--allow", http, "--allow", https, "--"].map(own);
                [ringfence(), options.to_vec()].concat()
            }
            Place::Transparent => [ringfence(), by_policy(&self.policy)].concat(),
            Place::Inspected => [with_secret(), ringfence(), by_policy(&self.inspecting)].concat(),
            Place::Bound => [with_secret(), ringfence(), by_policy(&self.binding)].concat(),
            Place::Srt => {
                let srt = self.srt.as_ref().context("not installed")?;
                let srt = srt.to_string_lossy();
                [&srt, "--settings", &self.settings, "--"].map(own).to_vec()
            }
        })
    }
}

fn with_secret() -> Vec<String> {
    vec!["env".to_string(), format!("{VARIABLE}={SECRET}")]
}

fn by_policy(path: &str) -> Vec<String> {
    ["--policy", path, "--"].map(str::to_string).to_vec()
}

/// The host's ports, and nothing else.
fn open_policy(server: &Server) -> String {
    let Server {
        http, https, h2, ..
    } = server;
    format!("version: 1\nnetwork:\n  hostPorts: [{http}, {https}, {h2}]\n")
}

/// With a credential for the host's own ports; `rest` says which requests of
/// a host that is looked into get it.
fn credential_policy(server: &Server, rest: &str) -> String {
    let Server { https, h2, .. } = server;
    format!(
        "{}  authorities: [{}]\ncredentials:\n  - service: measured\n    env: {VARIABLE}\n    \
         hosts: [host.ringfence.internal]\n    ports: [{https}, {h2}]\n    bearer: true\n{rest}",
        open_policy(server),
        server.certificate(),
    )
}

/// Writes settings for `srt` with this allow list and says where they are.
pub(super) fn write_settings(name: &str, allowed: &[&str]) -> Result<String> {
    let settings = serde_json::json!({
        "network": {"allowedDomains": allowed, "deniedDomains": []},
        "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []},
    });
    write(name, &settings.to_string())
}

/// Writes a file of the temporary folder.
fn write(name: &str, text: &str) -> Result<String> {
    let path = env::temp_dir().join(name);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path.display().to_string())
}
