//! How much of everything is measured.

use serde::{Deserialize, Serialize};

/// Amounts; times are per command and figures per user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Scale {
    /// Starts of each command.
    pub(super) starts: usize,
    /// Size of a download.
    pub(super) download_mib: u64,
    /// Downloads of each kind.
    pub(super) downloads: usize,
    /// How long small requests are sent in one round.
    pub(super) request_seconds: u64,
    /// Rounds of small requests and of processes.
    pub(super) rounds: usize,
    /// Client processes, one after the other, in one round.
    pub(super) processes: usize,
    /// Files in each of a thousand folders that are searched.
    pub(super) files_in_folder: usize,
    /// Rounds of recorded work.
    pub(super) works: usize,
    /// Rounds of ordinary work.
    pub(super) tasks: usize,
    /// Whether some of it is done on the disk as well.
    pub(super) on_disk: bool,
    /// Single calls of a kind in one round.
    pub(super) calls: usize,
    /// Calls while a timer goes off.
    pub(super) interrupted_calls: usize,
}

impl Scale {
    /// For a glance: the network takes half a minute.
    pub(super) const QUICK: Self = Self {
        starts: 20,
        download_mib: 64,
        downloads: 3,
        request_seconds: 1,
        rounds: 1,
        processes: 50,
        files_in_folder: 20,
        works: 3,
        tasks: 1,
        on_disk: false,
        calls: 2_000,
        interrupted_calls: 20_000,
    };

    /// Figures that can be compared, in a few minutes.
    pub(super) const USUAL: Self = Self {
        starts: 200,
        download_mib: 256,
        downloads: 5,
        request_seconds: 1,
        rounds: 3,
        processes: 200,
        files_in_folder: 100,
        works: 10,
        tasks: 3,
        on_disk: false,
        calls: 10_000,
        interrupted_calls: 100_000,
    };

    /// Figures to write down.
    pub(super) const FULL: Self = Self {
        starts: 200,
        download_mib: 1024,
        downloads: 5,
        request_seconds: 8,
        rounds: 3,
        processes: 200,
        files_in_folder: 100,
        works: 20,
        tasks: 7,
        on_disk: true,
        calls: 20_000,
        interrupted_calls: 100_000,
    };
}
