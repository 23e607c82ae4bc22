//! The same cases against srt itself, if `RINGFENCE_COMPARE_SRT` says where it
//! is: the differences must be those that the cases tell of.

use super::case::{Case, Speaker};
use super::{command_line, control, files, network, processes};

/// Names srt's own program.
pub(super) const SRT: &str = "RINGFENCE_COMPARE_SRT";

fn all() -> Vec<(&'static str, Case)> {
    let parts = [
        command_line::all(),
        files::all(),
        network::all(),
        processes::all(),
    ];
    parts.into_iter().flatten().collect()
}

/// srt itself, where it is installed.
fn srt() -> Option<Speaker> {
    let path = std::env::var_os(SRT);
    if path.is_none() {
        println!("skipped: {SRT} does not say where srt is");
    }
    path.map(|path| Speaker::Srt(path.into()))
}

#[test]
fn srt_itself_differs_only_where_a_case_says_so() {
    let Some(srt) = srt() else { return };
    let faults: Vec<String> = all()
        .into_iter()
        .filter_map(|(name, case)| Some(format!("{name}: {}", case.fault(&srt)?)))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

#[test]
fn srt_itself_ends_and_changes_alike() {
    let Some(srt) = srt() else { return };
    control::change(&srt);
    processes::leave_behind(&srt);
    // Ours says which signal it was, and passes others on as well.
    processes::end(&srt, "TERM", 0);
}

#[test]
fn what_differs_is_a_difference() {
    let same = |case: &Case| {
        let srt = Speaker::Srt("srt".into());
        case.is_told_apart() && case.wanted(&srt) == case.wanted(&Speaker::Ours)
    };
    let idle: Vec<String> = all()
        .into_iter()
        .filter(|(_, case)| same(case))
        .map(|(name, case)| format!("{name}: {}", case.label))
        .collect();
    assert_eq!(idle, Vec::<String>::new());
}
