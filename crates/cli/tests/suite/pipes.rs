//! G11: named pipes have the ends that processes have open, and waiting for the
//! other one can be interrupted.

use ringfence_testkit::{Folder, sh};

use super::inside;

/// What a script prints, which is the same on both sides of the fence.
#[track_caller]
fn alike(script: &str) -> String {
    let script = format!("rm -f pipe; mkfifo pipe; {script}");
    let folder = Folder::new();
    let outside = sh(&script, folder.path()).expect_code(0).stdout;
    let inside = inside(&folder, &script).expect_code(0).stdout;
    assert_eq!(inside, outside, "{script}");
    inside
}

/// Opens the pipe while a timer sends a signal every 50 ms.
fn under_signals(flags: &str, handler: &str, rest: &str) -> String {
    let program = format!(
        "import os, signal, threading\n\
         def handler(*_): {handler}\n\
         signal.signal(signal.SIGALRM, handler)\n\
         {rest}\n\
         signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)\n\
         try: os.open(\"pipe\", {flags}); said = \"opened\"\n\
         except TimeoutError: said = \"interrupted\"\n\
         signal.setitimer(signal.ITIMER_REAL, 0)\n\
         print(said)"
    );
    alike(&format!("python3 -c '{program}'"))
}

#[test]
fn g11_a_killed_writer_does_not_live_on() {
    // A reader that comes later finds nobody, and waits.
    let script = "sh -c 'echo > waiting; exec 3> pipe' & writer=$!; \
        until [ -e waiting ]; do :; done; sleep 0.1; kill -KILL $writer; wait $writer; \
        timeout 0.3 cat pipe; echo $?; rm waiting";
    assert_eq!(alike(script), "124\n");
}

#[test]
fn g11_a_writer_waits_for_a_reader_and_a_reader_for_a_writer() {
    let script = "for i in 1 2 3; do { sleep 0.0$i; echo $i > pipe; } & cat pipe; done; \
        for i in 4 5 6; do { sleep 0.0$i; cat pipe; } & echo $i > pipe; wait; done";
    assert_eq!(alike(script), "1\n2\n3\n4\n5\n6\n");
    let reader = "python3 -c '\nimport os\n\
        end = os.open(\"pipe\", os.O_RDONLY | os.O_CREAT)\nprint(os.read(end, 9))'";
    assert_eq!(
        alike(&format!("{reader} & echo words > pipe; wait")),
        "b'words\\n'\n"
    );
    assert_eq!(
        alike(&format!("{{ sleep 0.1; : > pipe; }} & {reader}")),
        "b''\n"
    );
}

#[test]
fn g11_a_wait_for_the_other_end_is_interrupted_by_a_handled_signal() {
    for flags in ["os.O_WRONLY | os.O_CREAT", "os.O_RDONLY | os.O_CREAT"] {
        let told = under_signals(
            flags,
            "signal.setitimer(signal.ITIMER_REAL, 0); raise TimeoutError",
            "",
        );
        assert_eq!(told, "interrupted\n", "{flags}");
    }
}

#[test]
fn g11_a_wait_goes_on_after_a_signal_that_restarts_calls() {
    let rest = "signal.siginterrupt(signal.SIGALRM, False)\n\
        if os.fork() == 0:\n\
        \x20   import time\n\
        \x20   time.sleep(0.4)\n\
        \x20   os.close(os.open(\"pipe\", os.O_RDONLY))\n\
        \x20   os._exit(0)";
    let told = under_signals("os.O_WRONLY | os.O_CREAT", "pass", rest);
    assert_eq!(told, "opened\n");
}
