//! `ringfence allow` and `ringfence deny`: rules of the project, one by one.

use std::path::PathBuf;

use ringfence_audit::{Filter, Group, Grouped, Records, Verdict, Via};
use ringfence_policy::Reason;
use ringfence_runtime::{Here, ProjectError, RuleChange, RuleEntry, RuleList};
use serde::Serialize;

use super::audit::{WhichRun, folder};
use crate::environment;
use crate::error::Failure;
use crate::exit::ExitCode;
use crate::output;

/// Reasons of refusals that an entry of the allow list lifts.
const LIFTED: [Reason; 3] = [
    Reason::NotInAllowlist,
    Reason::PortNotAllowed,
    Reason::NetworkClosed,
];

/// Allow hosts in this project
///
/// Adds them to ringfence.toml of the working folder, which is made where it is
/// missing and keeps its comments and its form. A file that was trusted, or
/// made by this, is trusted as it is then.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  ringfence allow api.example.org             on ports 80 and 443
  ringfence allow '*.example.org:8443'        any name below, on that port
  ringfence allow --run last                  all hosts that the last run here was refused
  ringfence allow api.example.org --run 3f2a  that host, on the ports that this run wanted"
)]
pub(crate) struct AllowArgs {
    /// A host, an address or a block of addresses, with or without a port
    #[arg(value_name = "HOST", required_unless_present = "run")]
    hosts: Vec<String>,
    /// Those that this run was refused: last (in this folder), an id, or how it begins
    #[arg(long, value_name = "ID")]
    run: Option<WhichRun>,
    #[command(flatten)]
    common: CommonArgs,
}

/// Deny hosts in this project, whatever else allows them
///
/// Adds them to ringfence.toml of the working folder, as `ringfence allow` does.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  ringfence deny telemetry.example.org
  ringfence deny 10.9.0.0/16"
)]
pub(crate) struct DenyArgs {
    /// A host, an address or a block of addresses, with or without a port
    #[arg(value_name = "HOST", required = true)]
    hosts: Vec<String>,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, clap::Args)]
struct CommonArgs {
    /// Only show what would be added
    #[arg(long)]
    dry_run: bool,
    /// The working folder
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn allow(arguments: &AllowArgs) -> ExitCode {
    let entries = match &arguments.run {
        None => parsed(&arguments.hosts, RuleList::Allow),
        Some(run) => {
            refused_in(run, &arguments.common).and_then(|refused| chosen(refused, &arguments.hosts))
        }
    };
    finish(entries, RuleList::Allow, &arguments.common)
}

pub(crate) fn deny(arguments: &DenyArgs) -> ExitCode {
    let entries = parsed(&arguments.hosts, RuleList::Deny);
    finish(entries, RuleList::Deny, &arguments.common)
}

fn finish(
    entries: Result<Vec<RuleEntry>, Failure>,
    list: RuleList,
    common: &CommonArgs,
) -> ExitCode {
    match entries.and_then(|entries| change(&entries, list, common)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.show(common.json),
    }
}

fn parsed(hosts: &[String], list: RuleList) -> Result<Vec<RuleEntry>, Failure> {
    let entries = hosts.iter().map(|text| RuleEntry::parse(text, list));
    let entries: Result<Vec<_>, _> = entries.collect();
    entries.map_err(|error| ProjectError::from(error).into())
}

/// A destination that a run was refused.
struct Wanted {
    host: String,
    entry: RuleEntry,
}

/// What an entry would have let out in a run.
fn refused_in(run: &WhichRun, common: &CommonArgs) -> Result<Vec<Wanted>, Failure> {
    let folder = folder()?;
    let run = run.find(&folder, common.cwd.as_deref())?;
    let filter = Filter {
        run: run.run.to_string().parse().ok(),
        verdict: Some(Verdict::Refused),
        ..Filter::default()
    };
    let mut grouped = Grouped::default();
    for record in Records::open(&folder, filter)? {
        grouped.add(&record?.event);
    }
    let refused = grouped.into_sorted();
    let mut wanted: Vec<Wanted> = refused
        .iter()
        .filter_map(|(group, _)| wanted(group))
        .collect();
    wanted.sort_by(|one, other| one.entry.cmp(&other.entry));
    wanted.dedup_by(|one, other| one.entry == other.entry);
    if wanted.is_empty() {
        let message = format!("run {} was refused no host that could be allowed", run.run);
        let hint = "what runs were refused: ringfence policy log --blocked";
        return Err(Failure::new("nothing-refused", message, hint));
    }
    Ok(wanted)
}

/// Names that were only looked up have no port to allow.
fn wanted(group: &Group) -> Option<Wanted> {
    let reason = group.reason.as_ref()?.as_str();
    let is_lifted = LIFTED.iter().any(|lifted| lifted.code() == reason);
    if !is_lifted || group.via == Some(Via::Dns) {
        return None;
    }
    let destination = group.destination()?;
    let entry = RuleEntry::parse(&destination, RuleList::Allow).ok()?;
    let (host, _) = destination.rsplit_once(':')?;
    Some(Wanted {
        host: host.to_owned(),
        entry,
    })
}

/// Those that were named, each of which must be among the refused; all of them
/// where none was.
fn chosen(refused: Vec<Wanted>, hosts: &[String]) -> Result<Vec<RuleEntry>, Failure> {
    if hosts.is_empty() {
        return Ok(refused.into_iter().map(|wanted| wanted.entry).collect());
    }
    let mut entries = Vec::new();
    for host in hosts {
        let named = RuleEntry::parse(host, RuleList::Allow).map_err(ProjectError::from)?;
        let is_named = |wanted: &&Wanted| wanted.entry == named || wanted.host == named.as_str();
        let found: Vec<_> = refused.iter().filter(is_named).collect();
        if found.is_empty() {
            let message = format!("{} was not refused in that run", named.as_str());
            let hint = "leave --run out to allow it all the same";
            return Err(Failure::new("not-refused", message, hint));
        }
        entries.extend(found.into_iter().map(|wanted| wanted.entry.clone()));
    }
    Ok(entries)
}

fn change(entries: &[RuleEntry], list: RuleList, common: &CommonArgs) -> Result<(), Failure> {
    let here = Here::look(&environment::own(), common.cwd.as_deref())?;
    let project = here.project();
    let change = if common.dry_run {
        project.preview(list, entries)?
    } else {
        project.add(list, entries)?
    };
    show(&change, list, common);
    Ok(())
}

#[derive(Serialize)]
struct Shown<'a> {
    file: String,
    added: Vec<&'a str>,
    known: Vec<&'a str>,
    removed: Vec<&'a str>,
    trusted: bool,
}

fn show(change: &RuleChange, list: RuleList, common: &CommonArgs) {
    let file = change.path.display().to_string();
    if common.json {
        let texts = |entries| texts(entries).collect();
        return output::print_json(&Shown {
            file,
            added: texts(&change.added),
            known: texts(&change.known),
            removed: texts(&change.removed),
            trusted: change.trusted,
        });
    }
    let (word, other) = match list {
        RuleList::Allow => ("allow", "deny"),
        RuleList::Deny => ("deny", "allow"),
    };
    let lines = texts(&change.added).map(|entry| format!("+ {word} {entry}"));
    let lines = lines.chain(texts(&change.removed).map(|entry| format!("- {other} {entry}")));
    let lines = lines.chain(texts(&change.known).map(|entry| format!("  {word} {entry}")));
    output::print_text(&lines.collect::<Vec<_>>().join("\n"));
    tell_state(&file, change, common.dry_run);
}

fn tell_state(file: &str, change: &RuleChange, dry_run: bool) {
    let file = output::printable(file);
    if dry_run {
        output::tell!("ringfence: {file} is as it was");
    } else if !change.trusted {
        output::tell!(
            "ringfence: {file} is not trusted and not used; to look at it and use it: ringfence trust {file}"
        );
    }
}

fn texts(entries: &[RuleEntry]) -> impl Iterator<Item = &str> {
    entries.iter().map(RuleEntry::as_str)
}

impl From<ProjectError> for Failure {
    fn from(error: ProjectError) -> Self {
        Self::new(error.code(), error.to_string(), error.hint())
    }
}
