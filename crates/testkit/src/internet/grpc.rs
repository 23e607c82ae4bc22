//! A real gRPC server in the world, by Python's `grpcio`.

use std::path::PathBuf;

use super::place::port;
use super::{Authority, Internet};
use crate::{Folder, Started, wait_until};

const SERVER: &str = include_str!("grpc_server.py");

/// A running server with the methods of `echo.Echo`: `Say` answers one message
/// with it, `Stream` a stream message by message, `Who` with what came as
/// `authorization` in a compressed message, `Fail` with a status.
#[derive(Debug)]
pub struct Grpc {
    server: Started,
    log: PathBuf,
}

impl Grpc {
    pub(super) fn start(net: &Internet, folder: &Folder, name: &str) -> Self {
        let (certificate, key) = Authority::shared().files_for(name);
        folder.write("grpc.pem", &certificate);
        folder.write("grpc.key", &key);
        folder.write("grpc_server.py", SERVER);
        let log = folder.write("grpc.log", "");
        let server = net
            .program_in_the_world("/usr/bin/python3")
            .args(["grpc_server.py", &port::GRPC.to_string()])
            .folder(folder)
            .start();
        let grpc = Self { server, log };
        assert!(wait_until(|| grpc.saw("ready\n")), "no gRPC server");
        grpc
    }

    /// Whether it was told `text`: in a message, as metadata, as a method.
    pub fn saw(&self, text: &str) -> bool {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        log.contains(text)
    }

    /// Forgets what it was told.
    pub fn forget(&self) {
        std::fs::write(&self.log, "").expect("an emptied file");
    }
}

impl Drop for Grpc {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.server.child().kill();
        let _ = self.server.child().wait();
    }
}
