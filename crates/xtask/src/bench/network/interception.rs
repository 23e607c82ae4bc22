//! What it costs to look into TLS: a large file, new connections and small
//! requests, beside going there directly, the tunnel that other hosts get, and
//! mitmproxy.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow, ensure};

use super::contest::{Comparison, Contest, Entry, Reading, Standing, Unit};
use super::field::{Field, Place};
use super::mitmproxy::Mitmproxy;
use super::server::{LARGE, SMALL};
use super::{download, requests};
use crate::bench::bounded::Ended;
use crate::bench::scale::Scale;

const MITMPROXY: &str = "mitmproxy";

const WAYS: &[(&str, Place)] = &[
    ("direct", Place::Outside),
    ("ringfence, tunnel", Place::Transparent),
    ("ringfence, looked into", Place::Inspected),
    ("ringfence, with a credential", Place::Bound),
];

/// The version of HTTP, and the programs that speak it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Version {
    fn name(self) -> &'static str {
        match self {
            Self::One => "HTTP/1.1",
            Self::Two => "HTTP/2",
        }
    }
}

/// Measures everything that is about looking into TLS.
pub(in crate::bench) fn measure(ringfence: &Path, scale: Scale) -> Result<Vec<Comparison>> {
    let field = Field::open(ringfence, scale.download_mib)?;
    let stand = Stand {
        mitmproxy: [field.server.https, field.server.h2].map(Mitmproxy::start),
        field,
        scale,
    };
    let contests = [
        stand.download(Version::One),
        stand.download(Version::Two),
        stand.connections(),
        stand.requests(1),
        stand.requests(16),
    ];
    contests.into_iter().map(Contest::hold).collect()
}

/// The field with mitmproxy in it, once for each version.
struct Stand {
    field: Field,
    mitmproxy: [Result<Mitmproxy>; 2],
    scale: Scale,
}

impl Stand {
    fn download(&self, version: Version) -> Contest {
        let size = self.field.server.large;
        let flag = match version {
            Version::One => "--http1.1",
            Version::Two => "--http2",
        };
        let client = |url: String| {
            let fixed = ["curl", flag, "--silent", "--show-error", "--fail"];
            let rest = ["--insecure", "--noproxy", "*", "--output", "/dev/null"];
            let words = fixed.iter().chain(&rest).copied();
            owned(words.chain(["--write-out", download::FORMAT, &url]))
        };
        let title = format!(
            "Download of {} MiB over HTTPS and {}",
            self.scale.download_mib,
            version.name()
        );
        let reading: Reading = Box::new(move |ended| download::speed(ended, size));
        Contest {
            title,
            unit: Unit::MebibytesPerSecond,
            rounds: self.scale.downloads,
            reading,
            entries: self.entries(version, LARGE, client),
        }
    }

    /// Each request makes a connection of its own.
    fn connections(&self) -> Contest {
        let time = format!("{}s", self.scale.request_seconds);
        let client = |url: String| {
            let close = "Connection: close";
            owned(["wrk", "-t", "1", "-c", "16", "-d", &time, "-H", close, &url].into_iter())
        };
        Contest {
            title: "New TLS connections with one small request each".into(),
            unit: Unit::RequestsPerSecond,
            rounds: self.scale.rounds,
            reading: Box::new(requests::rate),
            entries: self.entries(Version::One, SMALL, client),
        }
    }

    fn requests(&self, at_once: usize) -> Contest {
        let time = self.scale.request_seconds.to_string();
        let at_once = at_once.to_string();
        let client = |url: String| {
            let words = [
                "h2load", "-t", "1", "-c", "1", "-m", &at_once, "-D", &time, &url,
            ];
            owned(words.into_iter())
        };
        Contest {
            title: format!("Small requests over one connection of HTTP/2, {at_once} at once"),
            unit: Unit::RequestsPerSecond,
            rounds: self.scale.rounds,
            reading: Box::new(rate),
            entries: self.entries(Version::Two, SMALL, client),
        }
    }

    /// Everyone who asks for a file with `client`.
    fn entries(
        &self,
        version: Version,
        file: &str,
        client: impl Fn(String) -> Vec<String>,
    ) -> Vec<Entry> {
        let (port, proxy) = match version {
            Version::One => (self.field.server.https, &self.mitmproxy[0]),
            Version::Two => (self.field.server.h2, &self.mitmproxy[1]),
        };
        let url = |host: &str, port: u16| format!("https://{host}:{port}/{file}");
        let entry = |(name, place): &(&'static str, Place)| {
            self.field
                .entry(name, *place, client(url(place.host(), port)))
        };
        let through_proxy = Entry {
            name: MITMPROXY,
            words: match proxy {
                Ok(proxy) => Ok(client(url("127.0.0.1", proxy.port))),
                Err(error) => Err(anyhow!("{error:#}")),
            },
            standing: Standing::Optional,
        };
        let entries = WAYS.iter().map(entry);
        entries.chain([through_proxy]).collect()
    }
}

fn owned<'a>(words: impl Iterator<Item = &'a str>) -> Vec<String> {
    words.map(str::to_string).collect()
}

/// Requests per second of h2load, if each was answered well.
fn rate(ended: &Ended) -> Result<f64> {
    let line = |start: &str| {
        let mut lines = ended.printed.lines();
        lines.find_map(|line| line.strip_prefix(start))
    };
    let counts = line("requests: ").context("h2load says nothing of requests")?;
    let is_none = |what: &str| {
        counts
            .split(", ")
            .any(|part| part.trim() == format!("0 {what}"))
    };
    ensure!(is_none("failed") && is_none("errored"), "{counts}");
    let codes = line("status codes: ").context("h2load says no status")?;
    ensure!(codes.ends_with("0 3xx, 0 4xx, 0 5xx"), "{codes}");
    let figures = line("finished in ").context("h2load did not finish")?;
    let rate = figures
        .split(", ")
        .find_map(|part| part.strip_suffix(" req/s"));
    rate.context("h2load says no rate")?
        .parse()
        .context("no number")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "finished in 1.00s, 21934.50 req/s, 2.37MB/s\n\
        requests: 21935 total, 21936 started, 21935 done, 21935 succeeded, 0 failed, 0 errored, 0 timeout\n\
        status codes: 21936 2xx, 0 3xx, 0 4xx, 0 5xx\n";

    #[test]
    fn a_rate_with_refusals_or_failures_does_not_count() {
        let rate_of = |text: &str| rate(&Ended::printing(text));
        assert_eq!(rate_of(GOOD).unwrap().to_string(), "21934.5");
        assert!(rate_of(&GOOD.replace("0 failed", "7 failed")).is_err());
        assert!(rate_of(&GOOD.replace("0 5xx", "7 5xx")).is_err());
        assert!(rate_of("").is_err());
    }
}
