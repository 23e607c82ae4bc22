//! `cargo xtask bench`: what ordinary work costs inside, how long a start takes,
//! how much memory it holds, what it leaves behind and what its way to the
//! network costs, each beside its alternatives and measured in one run.
//! Speed is reported, never judged; something left behind is a failure.

mod alternatives;
mod audit;
mod bounded;
mod leaks;
mod machine;
mod memory;
mod network;
mod procfs;
mod report;
mod scale;
mod timing;
mod work;
mod worker;

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::de::DeserializeOwned;

use crate::args::Args;
use crate::cargo::{self, Profile};
use crate::outcome::Outcome;
use crate::stage::{Runner, Stage};
use crate::{process, setup};
use network::Network;
use report::{NetworkFigures, Report, Section, StartFigures};
use scale::Scale;
use work::Works;

/// The command that measures inside a stage; not meant for people.
pub(crate) const WORKER: &str = "bench-worker";
/// The command that makes single calls; not meant for people either.
pub(crate) const CALLS: &str = "bench-calls";

const QUICK: &str = "--quick";
const FULL: &str = "--full";
const JSON: &str = "--json";

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// What people do inside.
    Work,
    /// Sandboxes without network.
    Start,
    /// The way out.
    Network,
    /// What looking into TLS costs.
    Interception,
    /// What recording costs.
    Audit,
}

impl Part {
    const ALL: [Self; 5] = [
        Self::Work,
        Self::Start,
        Self::Network,
        Self::Interception,
        Self::Audit,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Start => "start",
            Self::Network => "network",
            Self::Interception => "interception",
            Self::Audit => "audit",
        }
    }

    fn parse(name: &str) -> Result<Self> {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|part| part.name() == name);
        let known = Self::ALL.map(Self::name).join(" ");
        found.with_context(|| format!("unknown part `{name}`; parts: {known}"))
    }
}

/// Runs the command.
pub(crate) fn run(typed: &[String]) -> Result<Outcome> {
    let args = Args::parse(typed, &[QUICK, FULL, JSON], 1)?;
    let scale = scale(&args)?;
    let parts = match args.word(0) {
        Some(name) => vec![Part::parse(name)?],
        None => Part::ALL.to_vec(),
    };
    if parts.contains(&Part::Interception) {
        setup::for_comparing();
    }
    let load = machine::load();
    let ringfence = cargo::build_ringfence(Profile::Release)?;
    let mut sections = Vec::new();
    for runner in runners()? {
        sections.push(Bench::new(&ringfence, runner, scale)?.section(&parts)?);
    }
    let report = Report {
        machine: machine::describe(),
        load,
        scale,
        sections,
    };
    if args.has(JSON) {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{}", report.markdown());
    }
    Ok(Outcome::when(!report.has_leaks()))
}

/// Runs the measuring command.
pub(crate) fn run_worker(typed: &[String]) -> Result<Outcome> {
    let args = Args::parse(typed, &[], 3)?;
    let part = Part::parse(args.word(0).context("nothing to measure")?)?;
    let ringfence = Path::new(args.word(1).context("no program to measure")?);
    let scale: Scale = serde_json::from_str(args.word(2).context("no amounts")?)?;
    let measured = match part {
        Part::Work => serde_json::to_string(&work::measure(ringfence, scale)?)?,
        Part::Start => serde_json::to_string(&worker::measure(ringfence, scale.starts)?)?,
        Part::Network => serde_json::to_string(&network::measure(ringfence, scale)?)?,
        Part::Interception => {
            serde_json::to_string(&network::measure_interception(ringfence, scale)?)?
        }
        Part::Audit => serde_json::to_string(&audit::measure(ringfence, scale)?)?,
    };
    println!("{measured}");
    Ok(Outcome::Success)
}

/// Runs the command that makes single calls.
pub(crate) fn run_calls(typed: &[String]) -> Result<Outcome> {
    let args = Args::parse(typed, &[], 1)?;
    work::run_calls(args.word(0).context("how often?")?)
}

fn scale(args: &Args) -> Result<Scale> {
    Ok(match (args.has(QUICK), args.has(FULL)) {
        (true, true) => bail!("{QUICK} or {FULL}, not both"),
        (true, false) => Scale::QUICK,
        (false, true) => Scale::FULL,
        (false, false) => Scale::USUAL,
    })
}

fn runners() -> Result<Vec<Runner>> {
    let mut runners = vec![Runner::Invoker];
    if rustix::process::geteuid().is_root() {
        runners.push(Runner::test_user()?);
    }
    Ok(runners)
}

/// Measuring as one user.
struct Bench {
    user: String,
    stage: Stage,
    ringfence: PathBuf,
    worker: PathBuf,
    scale: Scale,
}

impl Bench {
    fn new(ringfence: &Path, runner: Runner, scale: Scale) -> Result<Self> {
        let user = runner.name();
        let stage = Stage::new(runner)?;
        Ok(Self {
            ringfence: stage.add(ringfence, "ringfence")?,
            worker: stage.add(&env::current_exe()?, "worker")?,
            user,
            stage,
            scale,
        })
    }

    fn section(&self, parts: &[Part]) -> Result<Section> {
        let wants = |part| parts.contains(&part);
        Ok(Section {
            user: self.user.clone(),
            works: wants(Part::Work).then(|| self.works()).transpose()?,
            start: wants(Part::Start).then(|| self.start()).transpose()?,
            network: wants(Part::Network).then(|| self.network()).transpose()?,
            interception: wants(Part::Interception)
                .then(|| self.work(Part::Interception))
                .transpose()?
                .unwrap_or_default(),
            audit: wants(Part::Audit)
                .then(|| self.work(Part::Audit))
                .transpose()?
                .unwrap_or_default(),
        })
    }

    /// Only root can have a folder in memory.
    fn works(&self) -> Result<Works> {
        let is_root = rustix::process::geteuid().is_root();
        let _memory = is_root
            .then(|| self.stage.add_memory(work::IN_MEMORY))
            .transpose()?;
        self.work(Part::Work)
    }

    fn start(&self) -> Result<StartFigures> {
        Ok(StartFigures {
            measured: self.work(Part::Start)?,
            // Memory is read from here, because root may read what the user may not.
            memory: memory::measure(&self.stage, &self.ringfence)?,
        })
    }

    fn network(&self) -> Result<NetworkFigures> {
        let measured: Network = self.work(Part::Network)?;
        let settings = &measured.settings;
        Ok(NetworkFigures {
            memory: memory::measure_with_network(&self.stage, &self.ringfence, settings)?,
            measured,
        })
    }

    /// The loop itself runs as that user: switching users for each start would
    /// be part of every figure.
    fn work<T: DeserializeOwned>(&self, part: Part) -> Result<T> {
        eprintln!("measuring {} as {}", part.name(), self.user);
        let mut command = self.stage.command(&self.worker)?;
        command
            .args([WORKER, part.name()])
            .arg(&self.ringfence)
            .arg(serde_json::to_string(&self.scale)?);
        if let Some(srt) = env::var_os(alternatives::SRT_VARIABLE) {
            command.env(alternatives::SRT_VARIABLE, srt);
        }
        let printed = process::stdout_of(&mut command)?;
        serde_json::from_slice(&printed).context("the measuring process printed something else")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_known_by_name() {
        for part in Part::ALL {
            assert_eq!(Part::parse(part.name()).unwrap(), part);
        }
        assert!(Part::parse("networks").is_err());
    }

    #[test]
    fn quick_and_full_exclude_each_other() {
        let scale = |typed: &[&str]| {
            let typed: Vec<String> = typed.iter().map(ToString::to_string).collect();
            scale(&Args::parse(&typed, &[QUICK, FULL], 0).unwrap())
        };
        assert_eq!(scale(&[]).unwrap(), Scale::USUAL);
        assert_eq!(scale(&[FULL]).unwrap(), Scale::FULL);
        assert!(scale(&[QUICK, FULL]).is_err());
    }
}
