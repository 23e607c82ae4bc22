//! The main job works at all.

use ringfence_testkit::Folder;

use super::inside;

#[test]
fn a_command_runs_and_writes_in_its_folder() {
    let folder = Folder::new();
    let outcome = inside(folder.path(), "echo hello; echo text > file").expect_code(0);
    assert_eq!(outcome.stdout, "hello\n");
    assert_eq!(folder.read("file"), "text\n");
}
