//! mitmproxy in front of the server, where it is installed. It ends with the
//! value that stands for it, and with this process at the latest.

use std::env;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::server;
use crate::bench::alternatives;

const PROGRAM: &str = "mitmdump";
/// How long it may take until it answers.
const START: Duration = Duration::from_secs(30);

/// One that answers, and looks into all that it passes on.
pub(super) struct Mitmproxy {
    process: Child,
    pub(super) port: u16,
}

impl Mitmproxy {
    /// Starts it before the server at this port of the loopback.
    pub(super) fn start(server: u16) -> Result<Self> {
        let program = alternatives::locate(PROGRAM).context("not installed")?;
        let [port] = server::free_ports()?;
        let folder = env::temp_dir().join("mitmproxy");
        // It dies with us, as the server does.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program)
            .args(["--quiet", "--ssl-insecure", "--listen-host", "127.0.0.1"])
            .args(["--listen-port", &port.to_string()])
            .args(["--mode", &format!("reverse:https://127.0.0.1:{server}")])
            // Or it would collect a whole body first.
            .args(["--set", "stream_large_bodies=64k"])
            .args(["--set", &format!("confdir={}", folder.display())])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = command.spawn().context("cannot start it")?;
        let mut proxy = Self { process, port };
        proxy.wait_until_it_answers()?;
        Ok(proxy)
    }

    fn wait_until_it_answers(&mut self) -> Result<()> {
        let deadline = Instant::now() + START;
        while Instant::now() < deadline {
            if let Some(status) = self.process.try_wait()? {
                bail!("it ended: {status}");
            }
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
            if TcpStream::connect(address).is_ok() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(10));
        }
        bail!("it does not answer");
    }
}

impl Drop for Mitmproxy {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
