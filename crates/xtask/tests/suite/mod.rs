//! Each check is a function from data to complaints, so that it can be shown
//! to fail; one test per check then hands it the real workspace.

mod dependencies;
mod manifests;
mod names;
mod registries;
mod surroundings;
mod unsafe_code;
mod workspace;

/// Fails with every complaint, one per line.
#[track_caller]
fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}
