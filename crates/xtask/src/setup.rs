//! `cargo xtask setup`: what the tests need, installed where that is allowed.
//! Quick and silent about what is already there.

mod tools;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::args::Args;
use crate::outcome::Outcome;
use crate::{cargo, process, programs};

/// Something a test needs from the system.
#[derive(Clone, Copy, Debug)]
enum Need {
    /// A program that an ordinary user can start.
    Program(&'static str),
    /// A module of the system's Python.
    PythonModule(&'static str),
    /// A file at its usual place.
    File(&'static str),
}

/// A need and the Debian packages that meet it.
type Requirement = (Need, &'static [&'static str]);

/// What the tests and the measurements start.
const SYSTEM: &[Requirement] = &[
    (Need::Program("bwrap"), &["bubblewrap"]),
    (
        Need::File("/etc/ssl/certs/ca-certificates.crt"),
        &["ca-certificates"],
    ),
    (Need::Program("ccache"), &["ccache"]),
    (Need::Program("chromium"), &["chromium"]),
    (Need::Program("curl"), &["curl"]),
    (Need::Program("dbus-daemon"), &["dbus-daemon"]),
    (Need::Program("dig"), &["bind9-dnsutils"]),
    (Need::Program("gcc"), &["gcc", "libc6-dev"]),
    (Need::Program("git"), &["git"]),
    (Need::Program("go"), &["golang-go"]),
    (Need::Program("h2load"), &["nghttp2-client"]),
    (Need::Program("ip"), &["iproute2"]),
    (Need::Program("java"), &["default-jdk-headless"]),
    (Need::Program("make"), &["make"]),
    (Need::Program("mvn"), &["maven"]),
    (
        Need::File("/usr/share/maven-repo/org/apache/maven/plugins/maven-compiler-plugin"),
        &["libmaven-compiler-plugin-java"],
    ),
    (
        Need::File("/usr/share/maven-repo/org/apache/maven/plugins/maven-jar-plugin"),
        &["libmaven-jar-plugin-java"],
    ),
    (
        Need::File("/usr/share/maven-repo/org/apache/maven/plugins/maven-resources-plugin"),
        &["libmaven-resources-plugin-java"],
    ),
    (
        Need::File("/usr/share/maven-repo/org/apache/maven/plugins/maven-surefire-plugin"),
        &["libsurefire-java"],
    ),
    (Need::Program("newuidmap"), &["uidmap"]),
    (Need::Program("nginx"), &["nginx-light"]),
    (Need::Program("node"), &["nodejs", "npm"]),
    (Need::Program("openssl"), &["openssl"]),
    // The server's own programs are in a directory of its version.
    (Need::Program("pg_ctlcluster"), &["postgresql"]),
    (Need::Program("ps"), &["procps"]),
    (Need::Program("python3"), &["python3"]),
    (Need::PythonModule("aiohttp"), &["python3-aiohttp"]),
    (Need::PythonModule("ensurepip"), &["python3-venv"]),
    (Need::PythonModule("grpc"), &["python3-grpcio"]),
    (Need::PythonModule("h2"), &["python3-h2"]),
    (Need::PythonModule("httpx"), &["python3-httpx"]),
    (Need::PythonModule("requests"), &["python3-requests"]),
    (Need::PythonModule("websockets"), &["python3-websockets"]),
    (Need::Program("redis-cli"), &["redis-tools"]),
    (Need::Program("rg"), &["ripgrep"]),
    (Need::Program("setpriv"), &["util-linux"]),
    (Need::Program("socat"), &["socat"]),
    (Need::Program("sqlite3"), &["sqlite3"]),
    (Need::Program("ssh"), &["openssh-client"]),
    (Need::Program("sshd"), &["openssh-server"]),
    (Need::Program("tmux"), &["tmux"]),
    (Need::Program("useradd"), &["passwd"]),
    (Need::Program("vim"), &["vim"]),
    (Need::Program("wget"), &["wget"]),
    (Need::Program("wrk"), &["wrk"]),
];

/// What is only compared with, where it can be had.
const COMPARED: &[Requirement] = &[(Need::Program("mitmdump"), &["mitmproxy"])];

/// Runs the command.
pub(crate) fn run(typed: &[String]) -> Result<Outcome> {
    Args::parse(typed, &[], 0)?;
    everything()?;
    println!("setup: everything is there");
    Ok(Outcome::Success)
}

/// Programs for the tests, and cargo's own tools for `ci`.
pub(crate) fn everything() -> Result<()> {
    system_programs()?;
    tools::everything()?;
    cargo_tool("cargo-deny")?;
    if has_nightly() {
        cargo_tool("cargo-fuzz")?;
    }
    Ok(())
}

/// Programs for the tests only. Without the tools of `tools` their own tests fail, and no others.
pub(crate) fn for_tests() -> Result<()> {
    system_programs()?;
    if let Err(error) = tools::everything() {
        println!("setup: {error:#}");
    }
    Ok(())
}

fn system_programs() -> Result<()> {
    let missing = missing(SYSTEM);
    if missing.is_empty() {
        return Ok(());
    }
    install(&missing)?;
    let still = self::missing(SYSTEM);
    if !still.is_empty() {
        bail!("installed, yet still missing: {}", names(&still));
    }
    Ok(())
}

/// Programs for comparing; without them there is less to compare with.
pub(crate) fn for_comparing() {
    let missing = missing(COMPARED);
    if missing.is_empty() {
        return;
    }
    if let Err(error) = install(&missing) {
        println!("setup: not compared with {}: {error:#}", names(&missing));
    }
}

/// Whether `cargo fuzz` can be run: the tool and the toolchain it needs.
pub(crate) fn can_fuzz() -> bool {
    has_nightly() && programs::find("cargo-fuzz", &programs::own_path()).is_some()
}

fn missing(wanted: &'static [Requirement]) -> Vec<&'static Requirement> {
    // Root's tests run a second time as an ordinary user, so a program in a
    // folder that only root may enter does not count.
    let path = if rustix::process::geteuid().is_root() {
        programs::public_path()
    } else {
        programs::own_path()
    };
    let missing = wanted.iter().filter(|(need, _)| !is_met(*need, &path));
    missing.collect()
}

fn names(missing: &[&Requirement]) -> String {
    let name = |(need, _): &&Requirement| match need {
        Need::Program(name) => (*name).to_string(),
        Need::PythonModule(module) => format!("python3's {module}"),
        Need::File(path) => (*path).to_string(),
    };
    missing.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn is_met(need: Need, path: &[PathBuf]) -> bool {
    match need {
        Need::Program(name) => programs::find(name, path).is_some(),
        Need::PythonModule(module) => {
            programs::find("python3", path).is_some_and(|python| can_import(&python, module))
        }
        Need::File(file) => Path::new(file).exists(),
    }
}

fn can_import(python: &Path, module: &str) -> bool {
    let mut command = Command::new(python);
    command.args(["-c", &format!("import {module}")]);
    process::output(&mut command).is_ok_and(|output| output.status.success())
}

fn install(missing: &[&Requirement]) -> Result<()> {
    let packages: Vec<&str> = missing
        .iter()
        .flat_map(|(_, packages)| *packages)
        .copied()
        .collect();
    let apt = programs::find("apt-get", &programs::own_path());
    let Some(apt) = apt.filter(|_| rustix::process::geteuid().is_root()) else {
        bail!(
            "missing, and not to be installed from here: {}\nas root, on Debian or Ubuntu:\n  \
             apt-get install --no-install-recommends {}",
            names(missing),
            packages.join(" ")
        );
    };
    println!(
        "setup: installing {} (this can take minutes)",
        packages.join(" ")
    );
    process::run(apt_get(&apt).args(["update", "-qq"]))?;
    process::run(
        apt_get(&apt)
            .args(["install", "-y", "-qq", "--no-install-recommends"])
            .args(packages),
    )
}

fn apt_get(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn cargo_tool(name: &str) -> Result<()> {
    if programs::find(name, &programs::own_path()).is_some() {
        return Ok(());
    }
    println!("setup: building {name} (this can take minutes)");
    process::run(&mut cargo::cargo(&["install", name, "--locked"]))
}

fn has_nightly() -> bool {
    let mut list = Command::new("rustup");
    list.args(["toolchain", "list"]);
    process::output(&mut list).is_ok_and(|output| {
        let names = String::from_utf8_lossy(&output.stdout).into_owned();
        names.lines().any(|name| name.starts_with("nightly"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_need_is_met_only_from_the_given_folders() {
        let system = [PathBuf::from("/usr/bin"), PathBuf::from("/bin")];
        assert!(is_met(Need::Program("sh"), &system));
        assert!(!is_met(Need::Program("sh"), &[PathBuf::from("/proc")]));
        assert!(!is_met(
            Need::PythonModule("sys"),
            &[PathBuf::from("/proc")]
        ));
        assert!(is_met(Need::File("/proc/self/exe"), &[]));
        assert!(!is_met(Need::File("/proc/self/nothing"), &[]));
    }
}
