//! `ringfence trust`: approves what a file of the working folder or a kit asks
//! for, as it is now.

mod asking;
mod file;
mod kit;

use std::path::{Path, PathBuf};

use ringfence_runtime::{Approval, Approvals, ApprovalsError, Directories};
use ringfence_sandbox::Host;

use self::asking::Asking;
use self::kit::KitArgs;
use crate::environment;
use crate::error::Failure;
use crate::exit::ExitCode;
use crate::output;

/// Digits of a sum that people see.
const SHORT_SUM: usize = 12;

/// Show what a file of the working folder or a kit asks for, and approve it
///
/// An approval holds for one content, and of a file where it lies. Without it
/// a ringfence.toml is not used, and the credentials that a kit, a policy or
/// settings in the working folder ask for are withheld. A kit that changes
/// keeps its approval as long as it asks for no more.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  ringfence trust --dry-run .        what the folder's ringfence.toml asks for
  ringfence trust ./ringfence.toml   approve it as it is now
  ringfence trust ./policy.yaml      approve the credentials of a policy in the folder
  ringfence trust ./my-kit           approve a kit: a folder, a .zip or git+https://…
  ringfence trust --list             what is approved
  ringfence trust --remove .         take it back"
)]
pub(crate) struct TrustArgs {
    /// The file, its folder, or a kit; for --remove also the beginning of a sum
    #[arg(value_name = "FILE", required_unless_present = "list")]
    subject: Option<PathBuf>,
    #[command(flatten)]
    kit: KitArgs,
    /// Only show what it asks for
    #[arg(long, conflicts_with_all = ["list", "remove"])]
    dry_run: bool,
    /// List what is approved
    #[arg(long, conflicts_with_all = ["subject", "remove"])]
    list: bool,
    /// Take an approval back
    #[arg(long)]
    remove: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn main(arguments: &TrustArgs) -> ExitCode {
    match start(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.show(arguments.json),
    }
}

fn start(arguments: &TrustArgs) -> Result<(), Failure> {
    let env = environment::own();
    let host = env.look_at_host()?;
    let folder = Directories::of(&env, &host).approvals;
    let mut approvals = Approvals::open(&folder)?;
    let Some(subject) = &arguments.subject else {
        list(&approvals, arguments.json);
        return Ok(());
    };
    if arguments.remove {
        return remove(&mut approvals, subject, arguments.json);
    }
    let asking = find(subject, &arguments.kit, &host)?;
    if !arguments.dry_run {
        asking.approve(&mut approvals)?;
    }
    asking.show(&approvals, arguments.json);
    Ok(())
}

fn find(subject: &Path, arguments: &KitArgs, host: &Host) -> Result<Asking, Failure> {
    match kit::reference(subject)? {
        Some(reference) => {
            let kit = arguments.read(&reference)?;
            Ok(Asking::Kit(Box::new(kit)))
        }
        None => arguments.refuse().and_then(|()| file::read(subject, host)),
    }
}

fn list(approvals: &Approvals, json: bool) {
    let approvals = approvals.list();
    if json {
        output::print_json(&approvals);
    } else if approvals.is_empty() {
        output::tell!("ringfence: nothing is approved");
    } else {
        let titles = ["FILE", "SUM", "APPROVED", "CREDENTIALS"].map(str::to_owned);
        let rows: Vec<Vec<String>> = std::iter::once(titles.to_vec())
            .chain(approvals.iter().map(cells))
            .collect();
        output::print_text(&output::columns(&rows));
    }
}

fn cells(approval: &Approval) -> Vec<String> {
    let sum = approval.subject.digest.to_string();
    let services = match approval.services.as_slice() {
        [] => "-".to_owned(),
        services => services.join(", "),
    };
    vec![
        approval.subject.name.clone(),
        sum.chars().take(SHORT_SUM).collect(),
        approval.at.to_seconds(),
        services,
    ]
}

/// By where it is; by its name, also of what is not there any more; or by sum.
fn remove(approvals: &mut Approvals, wanted: &Path, json: bool) -> Result<(), Failure> {
    let kit = kit::reference(wanted).ok().flatten();
    let place = match kit {
        Some(reference) => Some(reference.place()),
        None => file::locate(wanted)
            .ok()
            .map(|path| path.display().to_string()),
    };
    let typed = wanted.to_string_lossy().into_owned();
    let mut removed = 0;
    for name in place.into_iter().chain([typed]) {
        if removed == 0 {
            removed = approvals.remove(&name)?;
        }
    }
    if removed == 0 {
        let message = format!("{} is not approved", wanted.display());
        let hint = "ringfence trust --list shows what is";
        return Err(Failure::new("not-approved", message, hint));
    }
    if json {
        output::print_json(&serde_json::json!({ "removed": removed }));
    } else {
        output::tell!("ringfence: approvals taken back: {removed}");
    }
    Ok(())
}

impl From<ApprovalsError> for Failure {
    fn from(error: ApprovalsError) -> Self {
        Self::new(error.code(), error.to_string(), error.hint())
    }
}
