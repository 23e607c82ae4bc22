//! A small Debian with systemd in a folder, made by debootstrap in namespaces
//! of its own. Needs root, as debootstrap does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::packages::Packages;
use crate::process;

/// What a user's own service manager needs, beyond the smallest system.
const INCLUDED: &str = "dbus,dbus-user-session,libpam-systemd,systemd-sysv";
/// Seconds that it may take.
const LONGEST: &str = "900";

/// The system's folder below `folder`, made if it is not there yet.
pub(super) fn fetch(folder: &Path, packages: &Packages) -> Result<PathBuf> {
    let system = folder.join("system");
    if system.exists() {
        return Ok(system);
    }
    if !rustix::process::geteuid().is_root() {
        bail!("a system with systemd is made by root only");
    }
    let about = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let release = release_in(&about).context("this machine is no Debian")?;
    let fresh = folder.join("system.new");
    let _ = fs::remove_dir_all(&fresh);
    println!("guest: making a small Debian with systemd (this can take minutes)");
    process::run(&mut debootstrap(packages, release, &fresh))?;
    fs::rename(&fresh, &system)?;
    Ok(system)
}

fn debootstrap(packages: &Packages, release: &str, folder: &Path) -> Command {
    let mut command = Command::new("timeout");
    command
        .args(["--signal", "KILL", LONGEST, "nice", "-n", "10"])
        // What it mounts and starts ends with it.
        .args([
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--mount-proc",
            "--kill-child",
            "sh",
        ])
        .arg(packages.path("usr/sbin/debootstrap"))
        .args(["--variant=minbase", "--include", INCLUDED, release])
        .arg(folder)
        .env("DEBOOTSTRAP_DIR", packages.path("usr/share/debootstrap"))
        .stdout(std::process::Stdio::null());
    command
}

/// The name of the release in the text of `/etc/os-release`, if it is Debian's.
fn release_in(about: &str) -> Option<&str> {
    let value = |name: &str| {
        let mut lines = about.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
    };
    value("ID").filter(|id| *id == "debian")?;
    value("VERSION_CODENAME")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_debian_has_a_release_of_debian() {
        let debian = "NAME=\"Debian\"\nVERSION_CODENAME=trixie\nID=debian\n";
        assert_eq!(release_in(debian), Some("trixie"));
        assert_eq!(release_in("ID=other\nVERSION_CODENAME=noble\n"), None);
        assert_eq!(release_in(""), None);
    }
}
