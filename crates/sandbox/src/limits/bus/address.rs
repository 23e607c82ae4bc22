//! Where the user's bus listens.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::PathBuf;

use percent_encoding::percent_decode;

use crate::host::BusVariables;

/// The sockets of ours that a bus may listen on, the likeliest first.
pub(crate) fn addresses(variables: &BusVariables) -> Vec<PathBuf> {
    let named = variables.address.as_deref().map(paths_in);
    let usual = variables.runtime.as_ref().map(PathBuf::from);
    let mut found: Vec<PathBuf> = Vec::new();
    for path in named
        .into_iter()
        .flatten()
        .chain(usual.map(|folder| folder.join("bus")))
    {
        if !found.contains(&path) && is_our_socket(&path) {
            found.push(path);
        }
    }
    found
}

/// The paths in a list of addresses such as `unix:path=/run/bus,guid=5;tcp:…`
/// (D-Bus Specification, "Server Addresses").
fn paths_in(list: &OsStr) -> Vec<PathBuf> {
    let addresses = list.as_bytes().split(|byte| *byte == b';');
    addresses.filter_map(path_in).collect()
}

fn path_in(address: &[u8]) -> Option<PathBuf> {
    let pairs = address.strip_prefix(b"unix:")?;
    let mut pairs = pairs.split(|byte| *byte == b',');
    let path = pairs.find_map(|pair| pair.strip_prefix(b"path="))?;
    let path: Vec<u8> = percent_decode(path).collect();
    path.starts_with(b"/")
        .then(|| PathBuf::from(OsStr::from_bytes(&path)))
}

fn is_our_socket(path: &PathBuf) -> bool {
    std::fs::metadata(path).is_ok_and(|found| {
        found.file_type().is_socket() && found.uid() == rustix::process::geteuid().as_raw()
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    fn paths(list: &str) -> Vec<String> {
        let paths = paths_in(OsStr::new(list)).into_iter();
        paths.map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn paths_are_found_in_lists_of_addresses() {
        assert_eq!(paths("unix:path=/run/bus"), ["/run/bus"]);
        assert_eq!(
            paths("unix:guid=5,path=/a%20b;unix:path=/c"),
            ["/a b", "/c"]
        );
        for other in [
            "",
            ";",
            "unix:",
            "unix:path=",
            "unix:path=relative",
            "unix:abstract=/tmp/x",
            "tcp:host=bus.test,port=1",
            "path=/run/bus",
        ] {
            assert!(paths(other).is_empty(), "{other}");
        }
    }

    #[test]
    fn only_a_socket_of_ours_counts_and_only_once() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("bus");
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let with = |address: String| BusVariables {
            address: Some(address.into()),
            runtime: Some(folder.path().into()),
        };
        let both = with(format!(
            "unix:path={};unix:path={}",
            file.display(),
            socket.display()
        ));
        assert!(addresses(&both).is_empty());
        let _listener = UnixListener::bind(&socket).unwrap();
        assert_eq!(addresses(&both), [socket]);
        assert!(addresses(&BusVariables::default()).is_empty());
    }
}
