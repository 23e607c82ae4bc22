//! Where the secret store and the approvals are kept.

use std::ffi::OsString;
use std::path::PathBuf;

use ringfence_sandbox::Host;

use crate::audit_log::user_folder;

/// The folder of the secret store: `ringfence/secrets` below `XDG_DATA_HOME`,
/// or below `.local/share` in the home folder.
pub fn secret_folder(variable: &dyn Fn(&str) -> Option<OsString>, host: &Host) -> PathBuf {
    user_folder("XDG_DATA_HOME", ".local/share", variable, host).join("ringfence/secrets")
}

/// The folder of the approvals: `ringfence/approvals` below `XDG_STATE_HOME`,
/// or below `.local/state` in the home folder.
pub fn approvals_folder(variable: &dyn Fn(&str) -> Option<OsString>, host: &Host) -> PathBuf {
    user_folder("XDG_STATE_HOME", ".local/state", variable, host).join("ringfence/approvals")
}
