//! G7: what cannot be written is an error, and the log is whole again after it.

use ringfence_audit::{Log, LogError, Recorder, verify};
use ringfence_testkit::{Folder, Program};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::support::{RUN, TestClock, allowed, connection, numbered, read, refused};

/// Set in a process that was started to run one test only.
const ALONE: &str = "RINGFENCE_TEST_ALONE";

/// Runs `body` in a process of its own, which `wrapper` prepares and executes.
pub(crate) fn run_this_test_again(name: &str, wrapper: &[&str], body: impl FnOnce()) {
    if std::env::var_os(ALONE).is_some() {
        return body();
    }
    let this = std::env::current_exe().unwrap();
    let (program, arguments) = wrapper.split_first().unwrap();
    let outcome = Program::new(program)
        .args(arguments.iter().copied())
        .args([this.to_str().unwrap(), "--exact", name, "--nocapture"])
        .env(ALONE, "1")
        .run()
        .expect_code(0);
    assert!(outcome.stdout.contains("1 passed"), "{}", outcome.stdout);
}

/// Without this, the kernel would end the process at its limit.
const WITHOUT_SIGNAL: [&str; 3] = ["sh", "-c", "trap '' XFSZ; exec \"$0\" \"$@\""];

/// Lets files grow to `bytes` only; without a number, as far as before.
fn limit_files(bytes: Option<u64>) {
    let before = getrlimit(Resource::Fsize);
    let limit = Rlimit {
        current: bytes.or(before.maximum),
        maximum: before.maximum,
    };
    setrlimit(Resource::Fsize, limit).unwrap();
}

#[test]
fn g7_a_full_disk_is_an_error_and_no_record_is_lost_by_it() {
    run_this_test_again(
        "full_disk::g7_a_full_disk_is_an_error_and_no_record_is_lost_by_it",
        &WITHOUT_SIGNAL,
        || {
            let folder = Folder::new();
            let mut log = Log::open(folder.path()).unwrap();
            limit_files(Some(5000));
            let kept = (0..1000).find(|n| log.record(&numbered(0, *n)).is_err());
            let kept = kept.expect("a full disk");
            assert!(kept > 10, "{kept}");
            // What fitted of the line is taken back, so the next has as much room.
            let error = log.record(&numbered(0, 1000)).unwrap_err();
            assert!(matches!(error, LogError::Short { .. }), "{error:?}");
            assert!(error.hint().contains("room"));
            assert_eq!(error.code(), "audit-unavailable");

            limit_files(None);
            log.record(&numbered(0, 2000)).unwrap();
            let (events, torn) = read(folder.path());
            let numbers: Vec<u64> = events.iter().map(connection).collect();
            assert_eq!(numbers, (0..kept).chain([2000]).collect::<Vec<_>>());
            assert_eq!(torn, 0);
            assert!(verify(folder.path()).unwrap().is_fine());
        },
    );
}

#[test]
fn g7_what_would_only_be_counted_is_an_error_too_while_the_disk_is_full() {
    run_this_test_again(
        "full_disk::g7_what_would_only_be_counted_is_an_error_too_while_the_disk_is_full",
        &WITHOUT_SIGNAL,
        || {
            let folder = Folder::new();
            let log = Log::open(folder.path()).unwrap();
            let clock = TestClock::default();
            let recorder = Recorder::with_clock(Some(log), RUN, None, Box::new(clock));
            // Far beyond what is written one by one.
            for _ in 0..50 {
                recorder.decision(refused("a.example.org")).unwrap();
            }
            let size = folder.join("audit.jsonl").metadata().unwrap().len();
            limit_files(Some(size));
            recorder.decision(allowed("b.example.org")).unwrap_err();
            for _ in 0..3 {
                recorder.decision(refused("a.example.org")).unwrap_err();
            }
            recorder.finish().unwrap_err();
            // Later it is told why there is no seal.
            let noted = folder.join(format!("audit.full.{RUN}"));
            assert!(noted.exists());
            limit_files(None);
            recorder.decision(refused("a.example.org")).unwrap();
            recorder.finish().unwrap();

            let totals = recorder.totals();
            assert_eq!(
                (totals.allowed(), totals.refused(), totals.unrecorded()),
                (0, 55, 4)
            );
            let unwritable = totals.refusals().iter();
            let unwritable: Vec<_> = unwritable
                .filter(|refusal| refusal.rule == "audit-unavailable")
                .map(|refusal| refusal.subject)
                .collect();
            assert_eq!(unwritable, ["b.example.org:443"]);
            assert_eq!(crate::floods::counted(folder.path()), 51);
        },
    );
}
