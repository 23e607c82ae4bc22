//! A small internet: a network namespace that stands for this machine, and
//! one that stands for everything else, with real servers, a resolver and a
//! certificate authority. Programs run in it as on any other host, and see
//! this machine's files but for the few that describe the network.
//!
//! The servers run in the test itself, on sockets made in the namespaces, so
//! that what they saw can be read at any time, and all ends with the test.

mod capture;
mod dns;
mod grpc;
mod head;
mod http;
mod log;
mod namespaces;
pub mod place;
mod proxy;
mod raw;
mod server;
mod servers;
mod ssh;
mod tls;
mod web;
mod zone;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::{Folder, Outcome, Program};
use capture::Capture;
use log::Log;
use namespaces::{Namespaces, Side};
use server::Shared;
use servers::Servers;
use tls::Authority;
use web::Webs;

pub use dns::{Query, Transport};
pub use grpc::Grpc;
pub use log::Connection;
pub use server::Service;
pub use servers::Datagram;
pub use ssh::Ssh;
pub use tls::Certificate;
pub use web::Web;
pub use zone::{Answer, Zone};

/// Where programs in the internet find trusted certificates: in it, the test's
/// authority is the only one.
const TRUSTED: &str = "/etc/ssl/certs";

/// Variables by which this machine's own network would show.
const FOREIGN: &[&str] = &[
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

/// The internet of one test; gone when dropped.
#[derive(Debug)]
pub struct Internet {
    servers: Servers,
    namespaces: Namespaces,
    ssh: Arc<OnceLock<Ssh>>,
    webs: Webs,
    folder: Folder,
}

impl Internet {
    /// Makes one and starts its servers.
    pub fn start() -> Self {
        let folder = Folder::new();
        let binds = write_files(&folder);
        let namespaces = Namespaces::start(folder.path(), &binds);
        let zone = Zone::default();
        for (name, addresses) in place::NAMES {
            zone.set(name, Answer::addresses(addresses));
        }
        let world = namespaces.sockets(Side::World);
        let ssh = Arc::default();
        let webs = Webs::default();
        let shared = Shared {
            log: Log::default(),
            zone,
            authority: Authority::shared(),
            files: folder.join("files"),
            world: world.clone(),
            ssh: Arc::clone(&ssh),
            webs: webs.clone(),
        };
        let capture = Capture::start(world);
        let servers = Servers::start(&namespaces, shared, capture);
        // The cable may need a moment, in which it would lose what is sent.
        servers.settle();
        Self {
            servers,
            namespaces,
            ssh,
            webs,
            folder,
        }
    }

    /// A program that runs on the host of this internet, as the user who runs
    /// the test and in this folder. It is killed when the thread that starts
    /// it ends.
    pub fn program(&self, program: impl AsRef<OsStr>) -> Program {
        self.program_at(Side::Host, program.as_ref())
    }

    /// A program that runs elsewhere in the world.
    pub fn program_in_the_world(&self, program: impl AsRef<OsStr>) -> Program {
        self.program_at(Side::World, program.as_ref())
    }

    /// Runs a program with its arguments on the host.
    pub fn run_in(&self, command: &[&str]) -> Outcome {
        let (program, arguments) = command.split_first().expect("a program");
        self.program(program).args(arguments.iter().copied()).run()
    }

    /// Runs a shell script on the host.
    pub fn sh(&self, script: &str, folder: impl AsRef<Path>) -> Outcome {
        let shell = self.program("sh").args(["-c", script]);
        shell.folder(folder).run()
    }

    fn program_at(&self, side: Side, program: &OsStr) -> Program {
        let entrance = self.namespaces.entrance(side);
        // Entering a mount namespace loses the working folder.
        let script = format!(
            "exec {entrance} setpriv --pdeathsig KILL \
             sh -c 'cd \"$0\" && exec \"$@\"' \"$PWD\" \"$@\""
        );
        Program::new("/bin/sh")
            .args(["-c", &script, "sh"])
            .args([program])
            .with(|command| {
                for name in FOREIGN {
                    command.env_remove(name);
                }
            })
    }

    /// The names that the resolver knows.
    pub fn zone(&self) -> &Zone {
        &self.servers.resolver.zone
    }

    /// Every name that a resolver was asked for so far, in order, with
    /// repetitions.
    pub fn dns_queries(&self) -> Vec<String> {
        let queries = self.dns_log().into_iter();
        queries.map(|query| query.name).collect()
    }

    /// Every question that a resolver was asked so far.
    pub fn dns_log(&self) -> Vec<Query> {
        self.servers.settle();
        self.servers.resolver.queries()
    }

    /// Every TCP connection to a server so far, the host's own included.
    pub fn connections(&self) -> Vec<Connection> {
        self.servers.settle();
        self.servers.log.connections()
    }

    /// Whether a server saw `text`: in a head or body, as a name, in raw bytes
    /// or in a datagram.
    pub fn saw(&self, text: &str) -> bool {
        let connections = self.connections();
        let mut seen = connections.iter().flat_map(|connection| &connection.saw);
        let mut datagrams = self.datagrams().into_iter();
        seen.any(|seen| seen.contains(text))
            || datagrams.any(|datagram| datagram.text.contains(text))
            || self.dns_queries().iter().any(|name| name.contains(text))
    }

    /// Every UDP datagram that reached one of [`place::port::DATAGRAMS`] so far.
    pub fn datagrams(&self) -> Vec<Datagram> {
        self.servers.settle();
        self.servers.datagrams()
    }

    /// Everything that the host has sent out so far, as `tcp 45.0.0.10:443`
    /// for the opening of a connection, `udp [2a0f:ffff::10]:53` for a
    /// datagram and `icmp 45.0.0.10`: the proof that nothing left.
    pub fn packets(&self) -> Vec<String> {
        self.servers.settle();
        self.servers
            .packets()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    /// Forgets what the servers saw.
    pub fn forget(&self) {
        self.servers.settle();
        self.servers.forget();
    }

    /// The test authority's certificate, by a path that programs have in this
    /// internet, and in a sandbox in it. They trust it without being told.
    pub fn ca_file(&self) -> PathBuf {
        Path::new(TRUSTED).join("ca-certificates.crt")
    }

    /// The test authority's certificate.
    pub fn ca_pem(&self) -> String {
        Authority::shared().pem()
    }

    /// The certificate of the authority of [`Certificate::OfStranger`], which
    /// no program trusts unless told.
    pub fn stranger_pem(&self) -> String {
        Authority::shared().stranger().pem()
    }

    /// Makes the system's Java trust the test authority too, which takes a
    /// second.
    pub fn trust_in_java(&self) {
        let place = self.folder.join("certs/java/cacerts");
        std::fs::write(place, Authority::shared().java_store()).expect("a written file");
    }

    /// The folder that web servers show below `/files/`.
    pub fn files(&self) -> PathBuf {
        self.folder.join("files")
    }

    /// Gives a name a web server of its own, at [`place::port::HTTPS`] and
    /// [`place::port::HTTPS_HIGH`]. A name that is not known yet becomes one
    /// of [`place::OTHER_PUBLIC`].
    pub fn web(&self, name: &str, web: Web) {
        if self.zone().addresses(name).is_empty() {
            self.zone().set(name, place::OTHER_PUBLIC);
        }
        self.webs.set(name, web);
    }

    /// Starts a gRPC server for a name, at [`place::port::GRPC`].
    pub fn grpc(&self, name: &str) -> Grpc {
        if self.zone().addresses(name).is_empty() {
            self.zone().set(name, place::OTHER_PUBLIC);
        }
        Grpc::start(self, &self.folder, name)
    }

    /// Makes `sshd` work at [`place::port::SSH`].
    pub fn ssh(&self) -> &Ssh {
        self.ssh.get_or_init(|| Ssh::prepare(self.folder.path()))
    }
}

/// Writes the files that differ on the host, with the places they cover.
fn write_files(folder: &Folder) -> Vec<(PathBuf, &'static Path)> {
    std::fs::create_dir(folder.join("files")).expect("a folder");
    Authority::shared().write(&folder.join("certs"));
    let resolver = format!("nameserver {}\n", place::NAMESERVER);
    let hosts = "127.0.0.1 localhost\n::1 localhost\n";
    // Without the modules that ask a daemon of this machine.
    let order = "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n";
    vec![
        (
            folder.write("resolv.conf", &resolver),
            Path::new("/etc/resolv.conf"),
        ),
        (folder.write("hosts", hosts), Path::new("/etc/hosts")),
        (
            folder.write("nsswitch.conf", order),
            Path::new("/etc/nsswitch.conf"),
        ),
        (folder.join("certs"), Path::new(TRUSTED)),
    ]
}
