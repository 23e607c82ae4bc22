//! What would hold each limit here.

use ringfence_sandbox::{LimitName, Mechanism, limit_mechanisms};

use super::{Check, Finding, Health};
use crate::host_env::HostEnv;

/// Where there is no group at all.
const GET_A_GROUP: &str = "run where your own systemd can be reached (loginctl enable-linger; XDG_RUNTIME_DIR=/run/user/$(id -u)), or start ringfence as root, outside of a container or with a writable /sys/fs/cgroup";
/// Where a group was given to the user without all that it could have.
const GET_CONTROLLERS: &str = "give users every controller: systemctl edit user@.service, with [Service] Delegate=cpu memory pids, and log in again";

/// Whether a control group holds every limit that one can hold, and what does
/// otherwise.
pub(super) fn limits(env: &HostEnv) -> Finding {
    match env.look_at_host() {
        Ok(host) => finding(&limit_mechanisms(&host)),
        Err(error) => Finding::not_there(
            Check::Limits,
            Health::Absent,
            error.to_string(),
            error.hint(),
        ),
    }
}

fn finding(mechanisms: &[(LimitName, Mechanism)]) -> Finding {
    let each: Vec<String> = mechanisms.iter().copied().map(describe).collect();
    let detail = each.join(", ");
    let is_group = |mechanism: Mechanism| {
        matches!(
            mechanism,
            Mechanism::CgroupV2 | Mechanism::CgroupV1 | Mechanism::SystemdScope
        )
    };
    let groups = mechanisms
        .iter()
        .filter(|(_, mechanism)| is_group(*mechanism))
        .count();
    let fix = match groups {
        0 => GET_A_GROUP,
        all if all == mechanisms.len() => return Finding::ok(Check::Limits, detail),
        _ => GET_CONTROLLERS,
    };
    Finding::not_there(Check::Limits, Health::Absent, detail, fix)
}

fn describe((limit, mechanism): (LimitName, Mechanism)) -> String {
    let name = limit.as_str();
    match (limit, mechanism) {
        (LimitName::Cpu, Mechanism::Nothing) => format!("{name} only in whole cores, by affinity"),
        _ => format!("{name} by {}", mechanism.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_for_everything_are_fine() {
        let all = [
            (LimitName::Cpu, Mechanism::CgroupV1),
            (LimitName::Memory, Mechanism::CgroupV2),
            (LimitName::Pids, Mechanism::SystemdScope),
        ];
        let finding = finding(&all);
        assert_eq!(finding.health, Health::Ok);
        let detail = "cpu by cgroup-v1, memory by cgroup-v2, pids by systemd-scope";
        assert_eq!(finding.detail, detail);
    }

    #[test]
    fn less_than_a_group_comes_with_the_fix() {
        let some = [
            (LimitName::Cpu, Mechanism::Nothing),
            (LimitName::Memory, Mechanism::SystemdScope),
        ];
        let partial = finding(&some);
        assert_eq!(partial.health, Health::Absent);
        assert!(partial.detail.starts_with("cpu only in whole cores"));
        assert_eq!(partial.fix.as_deref(), Some(GET_CONTROLLERS));
        let none = finding(&[(LimitName::Memory, Mechanism::Watchdog)]);
        assert_eq!(none.fix.as_deref(), Some(GET_A_GROUP));
    }
}
