//! The environment that this program was started in, which nothing below it
//! reads by itself.

use std::ffi::OsString;

use ringfence_runtime::{HostEnv, Variables};

/// Our own variables and directory.
pub(crate) fn own() -> HostEnv {
    HostEnv::new(OwnVariables, std::env::current_dir().ok())
}

struct OwnVariables;

impl Variables for OwnVariables {
    fn value(&self, name: &str) -> Option<OsString> {
        std::env::var_os(name)
    }

    fn matching(&self, wanted: &dyn Fn(&[u8]) -> bool) -> Vec<(OsString, OsString)> {
        ringfence_sys::environment_where(wanted)
    }
}
