//! One large file, fetched with curl.

use anyhow::{Context as _, Result, ensure};

use super::contest::{Contest, Unit};
use super::field::{Field, Place};
use super::server::LARGE;
use crate::bench::bounded::Ended;
use crate::bench::scale::Scale;

/// Asks for a tunnel where curl would not by itself.
const TUNNEL: &[&str] = &["--proxytunnel"];

/// What curl is to print when it is done, for [`speed`].
pub(super) const FORMAT: &str = "%{size_download} %{speed_download}";

type Way = (&'static str, Place, &'static [&'static str]);

const HTTP: &[Way] = &[
    ("direct", Place::Outside, &[]),
    ("ringfence, forward proxy", Place::Proxied, &[]),
    ("ringfence, tunnel", Place::Proxied, TUNNEL),
    ("ringfence, transparent", Place::Transparent, &[]),
    ("srt, forward proxy", Place::Srt, &[]),
    ("srt, tunnel", Place::Srt, TUNNEL),
];

const HTTPS: &[Way] = &[
    ("direct", Place::Outside, &[]),
    ("ringfence, tunnel", Place::Proxied, &[]),
    ("ringfence, transparent", Place::Transparent, &[]),
    ("srt, tunnel", Place::Srt, &[]),
];

pub(super) fn http(field: &Field, scale: Scale) -> Contest {
    contest(field, scale, "http", HTTP)
}

pub(super) fn https(field: &Field, scale: Scale) -> Contest {
    contest(field, scale, "https", HTTPS)
}

fn contest(field: &Field, scale: Scale, scheme: &str, ways: &[Way]) -> Contest {
    let size = field.server.large;
    let entry = |(name, place, options): &Way| {
        field.entry(name, *place, client(field, scheme, *place, options))
    };
    Contest {
        title: format!(
            "Download of {} MiB over {}",
            scale.download_mib,
            scheme.to_uppercase()
        ),
        unit: Unit::MebibytesPerSecond,
        rounds: scale.downloads,
        reading: Box::new(move |ended| speed(ended, size)),
        entries: ways.iter().map(entry).collect(),
    }
}

fn client(field: &Field, scheme: &str, place: Place, options: &[&str]) -> Vec<String> {
    let port = match scheme {
        "https" => field.server.https,
        _ => field.server.http,
    };
    let url = format!("{scheme}://{}:{port}/{LARGE}", place.host());
    let fixed = ["curl", "--silent", "--show-error", "--fail", "--insecure"];
    let output = ["--output", "/dev/null", "--write-out"];
    let format = [FORMAT, "--noproxy", place.unproxied()];
    let words = fixed.iter().chain(&output).chain(&format).chain(options);
    let words = words.map(ToString::to_string);
    words.chain([url]).collect()
}

/// Mebibytes per second, if all of it came.
pub(super) fn speed(ended: &Ended, size: u64) -> Result<f64> {
    const MIB: f64 = 1024.0 * 1024.0;
    let (came, speed) = ended.printed.split_once(' ').context("curl says nothing")?;
    ensure!(came.parse() == Ok(size), "{came} of {size} bytes came");
    let speed: f64 = speed.trim().parse().context("curl says no speed")?;
    Ok(speed / MIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_file_has_no_speed() {
        let whole = Ended::printing("2048 1048576");
        assert_eq!(
            speed(&whole, 2048)
                .map(|speed| speed.to_string())
                .ok()
                .as_deref(),
            Some("1")
        );
        assert!(speed(&whole, 4096).is_err());
        assert!(speed(&Ended::printing(""), 0).is_err());
    }
}
