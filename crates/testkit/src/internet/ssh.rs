//! A real `sshd`, started for each connection, in which the user who runs the
//! test can log in with a key made for it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::net::TcpStream;

use crate::{Program, is_root};

/// The keys of a server and of its one client.
#[derive(Debug, Clone)]
pub struct Ssh {
    folder: PathBuf,
}

const CLIENT_KEY: &str = "client";
const SERVER_KEY: &str = "server";
const SETTINGS: &str = "sshd_config";

impl Ssh {
    /// Makes the keys in a new folder below `parent`.
    pub(super) fn prepare(parent: &Path) -> Self {
        let folder = parent.join("ssh");
        std::fs::create_dir_all(&folder).expect("a folder");
        for name in [CLIENT_KEY, SERVER_KEY] {
            Program::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f", name])
                .folder(&folder)
                .run()
                .expect_code(0);
        }
        let ssh = Self { folder };
        std::fs::write(ssh.folder.join(SETTINGS), ssh.settings()).expect("a written file");
        ssh
    }

    /// The client's private key; its public half is beside it.
    pub fn client_key(&self) -> PathBuf {
        self.folder.join(CLIENT_KEY)
    }

    /// The server's public key, as a line for `known_hosts` after the name.
    pub fn server_key(&self) -> String {
        let public = self.folder.join(format!("{SERVER_KEY}.pub"));
        std::fs::read_to_string(public).expect("the server's public key")
    }

    /// The folder with all of it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn settings(&self) -> String {
        let folder = self.folder.display();
        // Only with PAM does root get in whose password is locked, and only
        // root can use PAM.
        let pam = if is_root() { "yes" } else { "no" };
        format!(
            "HostKey {folder}/{SERVER_KEY}\n\
             AuthorizedKeysFile {folder}/{CLIENT_KEY}.pub\n\
             PasswordAuthentication no\n\
             KbdInteractiveAuthentication no\n\
             PermitRootLogin prohibit-password\n\
             StrictModes no\n\
             UsePAM {pam}\n\
             PidFile none\n\
             PrintMotd no\n"
        )
    }

    /// Hands a connection to a new `sshd`.
    pub(super) async fn attend(&self, stream: TcpStream) -> io::Result<()> {
        let stream = stream.into_std()?;
        stream.set_nonblocking(false)?;
        let settings = self.folder.join(SETTINGS);
        let sshd = "/usr/sbin/sshd -i -e -f";
        let script = if is_root() {
            // It insists on this folder, which may not be there.
            format!("mount -t tmpfs none /run && mkdir -m 755 /run/sshd && exec {sshd} \"$0\"")
        } else {
            format!("exec {sshd} \"$0\"")
        };
        let mut command = if is_root() {
            let mut command = std::process::Command::new("unshare");
            command.args(["--mount", "--", "sh"]);
            command
        } else {
            std::process::Command::new("sh")
        };
        command
            .args(["-c", &script])
            .arg(settings)
            .stdin(std::os::fd::OwnedFd::from(stream.try_clone()?))
            .stdout(std::os::fd::OwnedFd::from(stream))
            .stderr(Stdio::null());
        let mut child = command.spawn()?;
        tokio::task::spawn_blocking(move || child.wait()).await??;
        Ok(())
    }
}
