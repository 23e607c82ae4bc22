//! G4: files that give rights to whoever runs them, by set-id bits or by
//! capabilities, do not change under them: the kernel takes these away when
//! such a file is written to by a call, and not when it is by a shared mapping.

use super::arena::{Arena, refused};

/// What gives the rights, and how to see that it still does.
const KINDS: [(&str, &str, &str); 4] = [
    ("set-user-id", "chmod 4755 tool", "test -u tool"),
    ("set-group-id", "chmod 2755 tool", "test -g tool"),
    (
        "set-user-id, of dependencies",
        "chmod 4755 tool; mkdir -p node_modules/a; mv tool node_modules/a; ln -s node_modules/a/tool",
        "test -u tool",
    ),
    (
        "capabilities",
        // CAP_NET_RAW, as a user may give it within a namespace of his own.
        "unshare -r python3 -c 'import os, struct; \
         os.setxattr(\"tool\", \"security.capability\", struct.pack(\"<5I\", 0x02000001, 0x2000, 0, 0, 0))'",
        "python3 -c 'import os; os.getxattr(\"tool\", \"security.capability\")'",
    ),
];

/// How the file is opened to be mapped.
const WAYS: [&str; 4] = ["plain", "old", "made", "again"];

fn prepared(give: &str) -> Arena {
    Arena::prepared(&format!("echo good > tool; {give}"))
}

fn attacked(way: &str, check: &str) -> String {
    format!("./attack map tool {way} && grep -q evil tool && {check}")
}

#[test]
fn g4_files_that_give_rights_are_not_changed_by_mappings() {
    for (kind, give, check) in KINDS {
        let outside = prepared(give);
        outside.outside(&attacked("plain", check)).expect_code(0);
        for flags in [&[][..], &["--disk", "100M"], &["--guard", "sweep"]] {
            // What nobody may change is looked for before, but for dependencies.
            if flags.contains(&"sweep") && kind.ends_with("dependencies") {
                continue;
            }
            let arena = prepared(give);
            for way in WAYS {
                println!("{kind}, {way}, {flags:?}");
                let attack = attacked(way, check);
                refused(&attack, arena.inside_with(flags, &attack));
                arena
                    .outside(&format!("grep -q good tool && {check}"))
                    .expect_code(0);
            }
        }
    }
}

#[test]
fn g11_other_files_are_mapped_and_written_as_outside() {
    // What is written by a call loses what gives rights, inside as outside.
    let script = "for way in plain old made again; do ./attack map file $way || exit 1; done; \
         cat file; echo more >> tool; test ! -u tool; cat tool";
    let prepare = "echo good > file; echo good > tool; chmod 4755 tool";
    let outside = Arena::prepared(prepare).outside(script).expect_code(0);
    for flags in [&[][..], &["--disk", "100M"]] {
        let arena = Arena::prepared(prepare);
        let inside = arena.inside_with(flags, script).expect_code(0);
        assert_eq!(inside.stdout, outside.stdout);
    }
}

/// What programs open to read and write that is not to be made.
#[test]
fn g11_opening_to_read_and_write_ends_as_outside() {
    let script = r#"python3 -c '
import errno, os
os.mkdir("directory"); os.mkfifo("pipe"); os.symlink("none", "nowhere")
with open("file", "w") as file: file.write("text")
for path in ["/dev/null", "/dev/tty", "/dev/ptmx", "/dev/zero", "directory", "directory/", "file/", "none",
             "none/", "file/x", ".", "", "pipe", "nowhere", "/dev/fd/0", "/proc/self/fd/0", "x" * 300]:
    try:
        file = os.open(path, os.O_RDWR)
        print(path[:9], "opened", os.get_inheritable(file))
        os.close(file)
    except OSError as error:
        print(path[:9], errno.errorcode[error.errno])
os.remove("pipe"); os.remove("nowhere"); os.rmdir("directory"); os.remove("file")
' < /dev/null"#;
    let arena = Arena::new();
    let outside = arena.outside(script).expect_code(0).stdout;
    assert!(outside.contains("pipe opened"), "{outside}");
    for flags in [&[][..], &["--disk", "100M"]] {
        let inside = arena.inside_with(flags, script).expect_code(0);
        assert_eq!(inside.stdout, outside, "{flags:?}");
    }
}
