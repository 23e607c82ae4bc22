//! What this machine can enforce, found out by trying, with the fix for what
//! it cannot.

mod advice;
mod groups;
mod hidden;

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ringfence_sys::{self as sys, Errno, IdMap, Probe};
use serde::Serialize;

use crate::host_env::HostEnv;

/// What was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Check {
    UserNamespaces,
    ProcMount,
    Landlock,
    SeccompListener,
    IdMappedMounts,
    NfTables,
    Limits,
    SubordinateIds,
    Kvm,
    ContainerEngine,
    HiddenFiles,
}

impl Check {
    /// The word used in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UserNamespaces => "user namespaces",
            Self::ProcMount => "own /proc",
            Self::Landlock => "Landlock",
            Self::SeccompListener => "seccomp listener",
            Self::IdMappedMounts => "id-mapped mounts",
            Self::NfTables => "nf_tables",
            Self::Limits => "limits",
            Self::SubordinateIds => "subordinate ids",
            Self::Kvm => "/dev/kvm",
            Self::ContainerEngine => "container engine",
            Self::HiddenFiles => "hidden files",
        }
    }
}

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Health {
    /// It is there.
    Ok,
    /// It is not there, and nothing that runs now needs it.
    Absent,
    /// It is not there, and the native backend cannot run without it.
    Missing,
}

/// One line of the examination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub check: Check,
    /// How it came out.
    pub health: Health,
    /// What was seen.
    pub detail: String,
    /// What to do about it.
    pub fix: Option<String>,
}

impl Finding {
    fn ok(check: Check, detail: impl Into<String>) -> Self {
        Self {
            check,
            health: Health::Ok,
            detail: detail.into(),
            fix: None,
        }
    }

    fn not_there(
        check: Check,
        health: Health,
        detail: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            check,
            health,
            detail: detail.into(),
            fix: Some(fix.into()),
        }
    }
}

/// Looks at everything. For a process with one thread.
pub fn examine(env: &HostEnv) -> Vec<Finding> {
    let mut findings = Vec::from(namespaces(env));
    findings.extend([landlock(), listener()]);
    findings.extend(id_mapped_mounts(env));
    findings.extend([
        nf_tables(),
        groups::limits(env),
        subordinate_ids(),
        kvm(),
        engine(env),
    ]);
    findings
}

/// Looks at what cannot be hidden of the hidden places in a home folder.
pub fn examine_hidden(home: &Path) -> Finding {
    hidden::examine(home)
}

fn own_map() -> IdMap {
    let (uid, gid) = (
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    );
    IdMap {
        inside_uid: uid,
        inside_gid: gid,
        outside_uid: uid,
        outside_gid: gid,
    }
}

fn namespaces(env: &HostEnv) -> [Finding; 2] {
    let map = own_map();
    let made = sys::in_child(Probe::InNamespaces, || {
        sys::write_own_maps(&map)?;
        // Ubuntu lets the namespace be made and then refuses to use it.
        sys::make_view_read_only()
    });
    let check = Check::UserNamespaces;
    let namespaces = match made {
        Ok(()) => Finding::ok(check, "usable without privilege"),
        Err(errno) => Finding::not_there(
            check,
            Health::Missing,
            errno.to_string(),
            advice::user_namespaces(env),
        ),
    };
    if made.is_err() {
        let detail = "not tried: it needs user namespaces";
        return [
            namespaces,
            Finding::not_there(Check::ProcMount, Health::Missing, detail, "see above"),
        ];
    }
    let mounted = sys::in_child(Probe::InNamespaces, || {
        sys::write_own_maps(&map)?;
        sys::procfs().map(drop)
    });
    let proc = match mounted {
        Ok(()) => Finding::ok(Check::ProcMount, "can be mounted"),
        Err(errno) => Finding::not_there(
            Check::ProcMount,
            Health::Missing,
            errno.to_string(),
            advice::proc_mount(),
        ),
    };
    [namespaces, proc]
}

fn landlock() -> Finding {
    match sys::landlock_abi() {
        0 => Finding::not_there(
            Check::Landlock,
            Health::Missing,
            "not in this kernel, or not enabled",
            "boot with lsm=landlock,… (Linux 5.13 or later), or accept one layer less: --weaker landlock",
        ),
        abi => Finding::ok(Check::Landlock, format!("ABI {abi}")),
    }
}

fn listener() -> Finding {
    match sys::probe_seccomp_listener() {
        Ok(()) => Finding::ok(Check::SeccompListener, "available"),
        Err(Errno::BUSY) => Finding::not_there(
            Check::SeccompListener,
            Health::Missing,
            "another listener is already above this process",
            "start ringfence outside of the sandbox that this shell is in, or accept that nothing of the host is writable and calls are not recorded: --weaker listener",
        ),
        Err(errno) => Finding::not_there(
            Check::SeccompListener,
            Health::Missing,
            errno.to_string(),
            "Linux 5.19 or later; in a container, allow the seccomp system call",
        ),
    }
}

/// Only root needs them: an ordinary user's sandbox has the user's own id.
fn id_mapped_mounts(env: &HostEnv) -> Option<Finding> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let check = Check::IdMappedMounts;
    let here = env.directory()?;
    Some(match try_id_mapping(here) {
        Ok(()) => Finding::ok(check, format!("work in {}", here.display())),
        Err(errno) => Finding::not_there(
            check,
            Health::Absent,
            format!("{}: {errno}", here.display()),
            "work on ext4, xfs, btrfs or tmpfs, or accept root's own id behind the sandbox: --weaker host-root",
        ),
    })
}

fn try_id_mapping(folder: &Path) -> Result<(), Errno> {
    use std::os::fd::AsFd;
    let owner = std::fs::metadata(folder).map_err(|_| Errno::NOENT)?;
    let map = IdMap {
        inside_uid: owner.uid(),
        inside_gid: owner.gid(),
        outside_uid: 65_533,
        outside_gid: 65_533,
    };
    let mapping = sys::IdMapping::new(&map)?;
    let place = rustix::fs::open(folder, rustix::fs::OFlags::PATH, rustix::fs::Mode::empty())?;
    let tree = sys::clone_tree(place.as_fd(), false)?;
    sys::set_id_mapping(tree.as_fd(), mapping.as_fd(), false)
}

fn nf_tables() -> Finding {
    match sys::probe_nf_tables() {
        Ok(()) => Finding::ok(
            Check::NfTables,
            "intercepts every port in an own network namespace",
        ),
        Err(errno) => Finding::not_there(
            Check::NfTables,
            Health::Absent,
            errno.to_string(),
            "load it once as root: modprobe nf_tables nft_tproxy; without it the ports that a policy names are served",
        ),
    }
}

fn subordinate_ids() -> Finding {
    let user = rustix::process::geteuid().as_raw();
    let names = advice::names_of(user);
    let table = std::fs::read_to_string("/etc/subuid").unwrap_or_default();
    let range = table.lines().find(|line| {
        names
            .iter()
            .any(|name| line.starts_with(&format!("{name}:")))
    });
    match range {
        Some(line) => Finding::ok(Check::SubordinateIds, line.to_owned()),
        None => Finding::not_there(
            Check::SubordinateIds,
            Health::Absent,
            "none in /etc/subuid; one id is mapped, which is all that a command without capabilities can use",
            format!(
                "if you want them: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {}",
                names[0]
            ),
        ),
    }
}

fn kvm() -> Finding {
    let device = Path::new("/dev/kvm");
    let usable = rustix::fs::access(
        device,
        rustix::fs::Access::READ_OK | rustix::fs::Access::WRITE_OK,
    )
    .is_ok();
    match (usable, device.exists()) {
        (true, _) => Finding::ok(Check::Kvm, "usable"),
        (false, true) => Finding::not_there(
            Check::Kvm,
            Health::Absent,
            "there, but not for this user",
            "usermod --append --groups kvm $USER, then log in again",
        ),
        (false, false) => Finding::not_there(
            Check::Kvm,
            Health::Absent,
            "not there",
            "needed only for microVMs: enable virtualisation in the firmware or the hypervisor",
        ),
    }
}

fn engine(env: &HostEnv) -> Finding {
    let path = env.variable("PATH").unwrap_or_default();
    let found: Vec<_> = ["podman", "docker"]
        .into_iter()
        .filter(|program| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()))
        .collect();
    if found.is_empty() {
        let fix = "needed only for container images: install podman";
        return Finding::not_there(Check::ContainerEngine, Health::Absent, "none on PATH", fix);
    }
    Finding::ok(Check::ContainerEngine, found.join(", "))
}
