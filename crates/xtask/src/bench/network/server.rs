//! nginx with one process on the loopback, for HTTP and for HTTPS with a
//! certificate of its own, over HTTP/1.1 and over HTTP/2. It ends with the
//! value that stands for it, and with this process at the latest.

use std::env;
use std::fs::{self, File};
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::bench::bounded;
use crate::programs;

/// The large file.
pub(super) const LARGE: &str = "large.bin";
/// The small file.
pub(super) const SMALL: &str = "small.txt";

const CERTIFICATE: &str = "certificate.pem";
/// The names by which it is reached, from outside and from inside.
const NAMES: &str = "subjectAltName=IP:127.0.0.1,DNS:host.ringfence.internal";
const MIB: u64 = 1024 * 1024;
const NEEDED: [&str; 5] = ["curl", "h2load", "nginx", "openssl", "wrk"];
/// How long the server may take until it answers, and the certificate to be made.
const START: Duration = Duration::from_secs(30);

/// A server that answers.
pub(super) struct Server {
    process: Child,
    folder: PathBuf,
    /// Size of the large file in bytes.
    pub(super) large: u64,
    pub(super) http: u16,
    /// HTTP/1.1 over TLS.
    pub(super) https: u16,
    /// HTTP/2 over TLS.
    pub(super) h2: u16,
}

impl Server {
    /// Starts it with a large file of `large_mib`.
    pub(super) fn start(large_mib: u64) -> Result<Self> {
        needs_are_met()?;
        let folder = env::temp_dir().join("server");
        fs::create_dir(&folder).context("cannot make the server's folder")?;
        let large = large_mib * MIB;
        fill(&folder, large).context("cannot write what the server serves")?;
        make_certificate(&folder)?;
        let ports = free_ports()?;
        fs::write(folder.join("nginx.conf"), configuration(&folder, ports))?;
        let [http, https, h2] = ports;
        let mut server = Self {
            process: nginx(&folder)?,
            folder,
            large,
            http,
            https,
            h2,
        };
        server.wait_until_it_answers()?;
        Ok(server)
    }

    /// Entries of an allow list for it.
    pub(super) fn entries(&self) -> [String; 2] {
        [self.http, self.https].map(|port| format!("127.0.0.1:{port}"))
    }

    /// Where its certificate is, which vouches for itself.
    pub(super) fn certificate(&self) -> String {
        self.folder.join(CERTIFICATE).display().to_string()
    }

    fn wait_until_it_answers(&mut self) -> Result<()> {
        let deadline = Instant::now() + START;
        while Instant::now() < deadline {
            if self.process.try_wait()?.is_some() {
                let log = fs::read_to_string(self.folder.join("error.log")).unwrap_or_default();
                bail!("nginx ended: {}", log.trim());
            }
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.https));
            if TcpStream::connect(address).is_ok() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(10));
        }
        bail!("nginx does not answer");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; what remains is cleared with the folder above.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn needs_are_met() -> Result<()> {
    let path = programs::public_path();
    let mut needed = NEEDED.iter();
    match needed.find(|program| programs::find(program, &path).is_none()) {
        Some(missing) => bail!(
            "{missing} is not installed; `cargo xtask setup` installs it, \
             `cargo xtask bench start` does without"
        ),
        None => Ok(()),
    }
}

fn fill(folder: &Path, large: u64) -> Result<()> {
    // A hole takes no room on the disk and is served from memory all the same.
    File::create(folder.join(LARGE))?.set_len(large)?;
    File::create(folder.join(SMALL))?.write_all(b"hello\n")?;
    Ok(())
}

fn make_certificate(folder: &Path) -> Result<()> {
    let mut openssl = Command::new("openssl");
    openssl
        .args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1",
        ])
        .args(["-subj", "/CN=127.0.0.1", "-addext", NAMES])
        // That of an authority would not be taken for a server's.
        .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
        .arg(folder.join("key.pem"))
        .arg("-out")
        .arg(folder.join(CERTIFICATE));
    bounded::output(&mut openssl, START)?.success()?;
    Ok(())
}

/// Ports that nobody listens at in this moment.
pub(super) fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let listen = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    // All at once, or the second might be the first again.
    let listeners: Vec<TcpListener> = (0..N).map(listen).collect::<Result<_, _>>()?;
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}

fn nginx(folder: &Path) -> Result<Child> {
    // The signal at the parent's death survives what becomes of the process
    // by exec (PR_SET_PDEATHSIG, prctl(2)).
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "KILL", "--", "nginx", "-p"])
        .arg(folder)
        .arg("-c")
        .arg(folder.join("nginx.conf"))
        .arg("-e")
        .arg(folder.join("error.log"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().context("cannot start nginx")
}

/// Everything is in `folder`, so that any user can run it. Without a master
/// there is one process to end.
fn configuration(folder: &Path, [http, https, h2]: [u16; 3]) -> String {
    let folder = folder.display();
    format!(
        "daemon off; master_process off; pid {folder}/nginx.pid;
events {{ worker_connections 2048; }}
http {{
  access_log off; sendfile on; keepalive_requests 10000000; root {folder};
  ssl_certificate {folder}/{CERTIFICATE}; ssl_certificate_key {folder}/key.pem;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{ listen 127.0.0.1:{http}; }}
  server {{ listen 127.0.0.1:{https} ssl; }}
  server {{ listen 127.0.0.1:{h2} ssl http2; }}
}}
"
    )
}
