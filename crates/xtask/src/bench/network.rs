//! What the way out of a sandbox costs, beside going there directly: starts
//! with an allow list, downloads, small requests and client processes.
//! Nothing leaves the machine: the server listens on its loopback.

mod contest;
mod download;
mod field;
mod interception;
mod mitmproxy;
mod processes;
mod requests;
mod server;

use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

#[cfg(test)]
pub(super) use contest::Row;
pub(super) use contest::{Comparison, Unit};
pub(super) use interception::measure as measure_interception;

use super::alternatives::{self, BWRAP, BWRAP_LEAST, BWRAP_SANDBOX, SRT};
use super::scale::Scale;
use super::timing::{COMMAND, Candidate};
use super::worker::{self, Measured};
use field::Field;

/// An allow list of one entry, for starts that never use it.
pub(super) const ENTRY: &str = "127.0.0.1:9";

/// The figures, handed to the reporting process as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Network {
    /// A settings file for `srt` with an allow list, for whoever measures on.
    pub(super) settings: String,
    /// Starts with an allow list.
    pub(super) start: Measured,
    pub(super) comparisons: Vec<Comparison>,
}

/// Measures everything that is about the network.
pub(super) fn measure(ringfence: &Path, scale: Scale) -> Result<Network> {
    let settings = field::write_settings("start.json", &[ENTRY])?;
    let start = starts(ringfence, &settings, scale.starts)?;
    let field = Field::open(ringfence, scale.download_mib)?;
    let contests = [
        download::http(&field, scale),
        download::https(&field, scale),
        requests::contest(&field, scale, 1),
        requests::contest(&field, scale, 16),
        processes::contest(&field, scale),
    ];
    let comparisons = contests.into_iter().map(contest::Contest::hold);
    Ok(Network {
        settings,
        start,
        comparisons: comparisons.collect::<Result<_>>()?,
    })
}

fn starts(ringfence: &Path, settings: &str, runs: usize) -> Result<Measured> {
    let ours = |name, options: &[&str]| {
        let words = [options, &[COMMAND]].concat();
        Candidate::new(name, ringfence, &words)
    };
    let closed = ours("ringfence run", &["run", "--"]);
    let as_srt = ours("ringfence srt", &["srt", "--settings", settings]);
    let open = ours("ringfence run --allow", &["run", "--allow", ENTRY, "--"]);
    let optional = [
        alternatives::start("bwrap, the least", BWRAP, BWRAP_LEAST),
        alternatives::start("bwrap", BWRAP, BWRAP_SANDBOX),
        alternatives::start("srt", SRT, &["--settings", settings, "--"]),
    ];
    worker::compare(Vec::new(), optional, &[&closed, &as_srt, &open], runs)
}
