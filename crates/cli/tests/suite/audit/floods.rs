//! A flood of calls neither fills the log nor hides what happened.

use std::time::Duration;

use super::{LOG, Ledger, Recorded};

#[test]
fn g7_a_flood_of_refusals_is_counted_in_a_small_log() {
    // Far more than are told one by one.
    is_counted(50_000);
}

#[test]
#[ignore = "slow: minutes for a million calls"]
fn g7_a_million_refusals_are_counted_in_a_small_log() {
    is_counted(1_000_000);
}

/// Has something refused that often.
#[track_caller]
fn is_counted(many: u64) {
    let ledger = Ledger::new();
    let words = ["./probe", "flood", &many.to_string(), ".bashrc"];
    let command = ledger.command(&["--quiet"], &words);
    let outcome = command.within(Duration::from_mins(30)).run().expect_code(0);
    assert_eq!(outcome.stdout, format!("{many}\n"));
    let recorded = Recorded {
        outcome,
        events: ledger.events(),
    };
    let size = std::fs::metadata(ledger.state.join(LOG))
        .expect("the log")
        .len();
    assert!(size < 4 << 20, "{size} bytes");
    let ended = recorded.of_kind("run-ended").next().expect("its end");
    assert_eq!(ended["refusals"], many, "{ended}");
    // Told one by one, summed up, or counted: together they are all of them.
    let told = recorded
        .of_kind("call")
        .filter(|call| call["outcome"].get("refused").is_some());
    let summed = recorded
        .of_kind("summary")
        .filter_map(|summary| summary["count"].as_u64());
    let all = told.count() as u64 + summed.sum::<u64>() + recorded.counted("openat");
    assert!(all >= many, "{all}");
    ledger.audit(&["verify"]).expect_code(0);
    let story = ledger.audit(&["show"]).expect_code(0).stdout;
    assert!(story.contains(".bashrc"), "{story}");
}

#[test]
fn g7_a_flood_of_different_refusals_is_bounded() {
    let ledger = Ledger::new();
    let script = "python3 -c '
import os
for i in range(20000):
    try: os.mkdir(\"/etc/made-%d\" % i)
    except OSError: pass'; echo > .bashrc; ./attack unshare 0x10000000; true";
    let recorded = ledger.run(&["--quiet"], script).expect_code(0);
    let size = std::fs::metadata(ledger.state.join(LOG))
        .expect("the log")
        .len();
    assert!(size < 8 << 20, "{size} bytes");
    let ended = recorded.of_kind("run-ended").next().expect("its end");
    assert_eq!(ended["refusals"], 20_002, "{ended}");
    // What comes after the flood and is of another kind is still told.
    assert!(
        recorded
            .of_kind("call")
            .any(|call| call["call"] == "unshare")
    );
    ledger.audit(&["verify"]).expect_code(0);
}

#[test]
fn g7_a_flood_of_programs_is_bounded_and_counted() {
    let ledger = Ledger::new();
    let script = "i=0; while [ $i -lt 3000 ]; do /bin/true; i=$((i+1)); done";
    let recorded = ledger.run(&[], script).expect_code(0);
    let told = recorded.calls("exec").len() as u64;
    let summed = recorded
        .of_kind("summary")
        .filter_map(|summary| summary["count"].as_u64());
    assert_eq!(told + summed.sum::<u64>(), 3001, "{told}");
    let size = std::fs::metadata(ledger.state.join(LOG))
        .expect("the log")
        .len();
    assert!(size < 4 << 20, "{size} bytes");
}
