//! What to do where user namespaces or `/proc` are held back, by cause.

use std::path::Path;

use crate::host_env::HostEnv;
use crate::nesting::is_inside_sandbox;

/// The profile that lets one program use user namespaces on Ubuntu 24.04 and
/// later.
fn apparmor_profile(program: &str) -> String {
    format!(
        "as root: printf 'abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile ringfence {program} \
         flags=(unconfined) {{\\n  userns,\\n}}\\n' > /etc/apparmor.d/ringfence && apparmor_parser -r \
         /etc/apparmor.d/ringfence; or, for every program: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
    )
}

/// The fix for user namespaces that cannot be used.
pub(super) fn user_namespaces(env: &HostEnv) -> String {
    if is_inside_sandbox(env) {
        return "this is a ringfence sandbox already: start ringfence outside of it".to_owned();
    }
    let setting = |path: &str| {
        std::fs::read_to_string(path)
            .ok()
            .map(|text| text.trim().to_owned())
    };
    if setting("/proc/sys/user/max_user_namespaces").as_deref() == Some("0") {
        return "as root: sysctl -w user.max_user_namespaces=15000".to_owned();
    }
    if setting("/proc/sys/kernel/unprivileged_userns_clone").as_deref() == Some("0") {
        return "as root: sysctl -w kernel.unprivileged_userns_clone=1".to_owned();
    }
    if setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").as_deref() == Some("1") {
        return apparmor_profile(&own_program());
    }
    if in_pod() {
        return "in the pod's spec: hostUsers: false, and securityContext.seccompProfile and appArmorProfile of \
                type Unconfined or one that allows unshare, clone with namespaces, and mount"
            .to_owned();
    }
    if in_container() {
        return "start the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined, or \
                with profiles that allow namespaces and mounts"
            .to_owned();
    }
    "a kernel with CONFIG_USER_NS, and not from within a chroot, which may not make user namespaces"
        .to_owned()
}

/// The fix for `/proc` that cannot be mounted.
pub(super) fn proc_mount() -> String {
    if in_pod() {
        return "in the pod's spec: hostUsers: false and securityContext.procMount: Unmasked"
            .to_owned();
    }
    "the container's own /proc is masked: start it with --security-opt systempaths=unconfined"
        .to_owned()
}

fn own_program() -> String {
    std::env::current_exe().map_or_else(
        |_| "/usr/bin/ringfence".to_owned(),
        |path| path.display().to_string(),
    )
}

fn in_pod() -> bool {
    Path::new("/var/run/secrets/kubernetes.io").exists()
}

fn in_container() -> bool {
    Path::new("/.dockerenv").exists() || Path::new("/run/.containerenv").exists()
}

/// What a user may be called in `/etc/subuid`: a name, or the number itself.
pub(super) fn names_of(uid: u32) -> Vec<String> {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    users
        .lines()
        .filter(|line| line.split(':').nth(2) == Some(uid.to_string().as_str()))
        .filter_map(|line| line.split(':').next().map(str::to_owned))
        .chain([uid.to_string()])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_names_the_program() {
        let text = apparmor_profile("/opt/ringfence");
        assert!(text.contains("profile ringfence /opt/ringfence") && text.contains("userns,"));
    }

    #[test]
    fn a_user_is_also_known_by_number() {
        assert_eq!(names_of(0).first().map(String::as_str), Some("root"));
        assert_eq!(names_of(4_000_000_123), ["4000000123"]);
    }
}
