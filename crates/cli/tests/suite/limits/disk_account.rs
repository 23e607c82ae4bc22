//! What is not added to storage is not counted, however often it is written.

use super::Ground;

const FLAGS: [&str; 2] = ["--disk", "64MiB"];

#[test]
fn a_file_that_is_written_again_and_again_is_counted_once() {
    let ground = Ground::new();
    for script in [
        "./load rewrite f 24 12",
        "./load overwrite f 40 12",
        "for i in $(seq 12); do ./load write f 40 || exit; done",
        "for i in $(seq 12); do ./load write g 24 && mv g f || exit; done",
        "for i in $(seq 12); do ./load write f 40 && rm f || exit; done",
        "for i in $(seq 12); do ./load deleted x 40 || exit; done",
        "for i in $(seq 12); do ./load nameless . 40 || exit; done",
        "for i in $(seq 12); do ./load mapped f 40 || exit; rm f; done",
        "for i in $(seq 12); do ./load write /tmp/f 40 && rm /tmp/f || exit; done",
        "for i in $(seq 12); do ./load write f 40 && truncate -s 0 f || exit; done",
    ] {
        ground.passes(&FLAGS, script);
        ground.passes(&[], "rm -f f g");
    }
}

#[test]
fn holes_cost_nothing() {
    let script = "./load sparse f 100000 && ./load sparse /tmp/f 100000 && truncate -s 1T g";
    Ground::new().passes(&FLAGS, script);
}

#[test]
fn temporary_files_that_come_and_go_cost_nothing() {
    for place in [".", "/tmp"] {
        let script = format!("./load churn {place} 10000 16");
        Ground::new().passes(&FLAGS, &script);
    }
}

#[test]
fn moving_and_linking_cost_nothing() {
    let script = "mkdir a b && ./load write a/f 40 && mv a/f b/f && ln b/f a/g && mv a c && \
                  for i in 1 2 3 4 5 6 7 8; do ln b/f b/f$i || exit; done && rm c/g && \
                  rm -r b && ./load write f 40";
    Ground::new().passes(&FLAGS, script);
}

#[test]
fn only_the_growth_of_an_earlier_file_counts() {
    let ground = Ground::new();
    ground.passes(&[], "./load write old 200 && ./load write other 100");
    // As much as before, in place and anew.
    for script in [
        "./load append old 1",
        "./load overwrite old 200 2",
        "./load write old 200",
        "./load write old 240",
        "mv old new && mv new old",
        "rm other && ./load write other 100",
        "rm other && ./load write third 140 && rm third",
    ] {
        ground.passes(&FLAGS, script);
    }
    ground.is_ended("disk", &FLAGS, "./load append old 80 hold");
}

#[test]
fn a_link_of_a_file_that_is_removed_keeps_its_bytes() {
    let ground = Ground::new();
    let script = "./load write f 40 && ln f g && rm f && ./load write f 40 hold";
    ground.is_ended("disk", &FLAGS, script);
}

#[test]
fn many_files_open_at_once_are_counted() {
    // More than are followed one by one.
    let ground = Ground::new();
    let script = "python3 -c '
import os
files = [open(\"f%d\" % i, \"wb\", 0) for i in range(900)]
for file in files: file.write(b\"x\" * 4096)
for file in files: os.unlink(file.name)
print(len(files))'";
    let ended = ground.passes(&FLAGS, script);
    assert_eq!(ended.outcome.stdout, "900\n");
}

#[test]
fn what_was_added_is_told() {
    let ended = Ground::new().passes(&FLAGS, "./load write f 20 && ./load write /tmp/f 20");
    let peak = ended.limit("disk").peak.expect("a peak");
    assert!(((40 << 20)..(48 << 20)).contains(&peak), "{ended}");
}

#[test]
fn ordinary_work_fits() {
    let script = "git init -q . && \
                  mkdir d && ./load many d 300 1 && git add . && git -c user.email=a@example.org -c user.name=A commit -qm one && git gc -q && \
                  tar cf /tmp/x.tar d && tar xf /tmp/x.tar -C /tmp && python3 -c 'import json, sqlite3; \
                  c = sqlite3.connect(\"data.db\"); c.execute(\"create table t (x)\"); \
                  [c.execute(\"insert into t values (?)\", (i,)) for i in range(2000)]; c.commit()'";
    Ground::new().passes(&FLAGS, script);
}
