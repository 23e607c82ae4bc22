//! `ringfence doctor`: what this machine can enforce.

use std::path::PathBuf;

use ringfence_runtime::{Finding, Health, examine, examine_hidden};

use crate::environment;
use crate::exit::ExitCode;
use crate::output;

/// Show what this machine can enforce, and how to mend what it cannot
///
/// Exits with 1 when the native backend cannot run here.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ringfence doctor --json")]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn main(arguments: &DoctorArgs) -> ExitCode {
    let env = environment::own();
    let mut findings = examine(&env);
    let home = env.variable("HOME").map(PathBuf::from);
    let home = home.filter(|home| home.is_absolute());
    findings.extend(home.map(|home| examine_hidden(&home)));
    let runs = findings
        .iter()
        .all(|finding| finding.health != Health::Missing);
    if arguments.json {
        output::print_json(&serde_json::json!({ "native": runs, "checks": findings }));
    } else {
        output::print_text(&table(&findings));
        let verdict = if runs {
            "The native backend runs here."
        } else {
            "The native backend cannot run here."
        };
        output::print_text(&format!("\n{verdict}"));
    }
    ExitCode::from(u8::from(!runs))
}

/// One line each, with the fix below what is not there.
pub(crate) fn table(findings: &[Finding]) -> String {
    let rows: Vec<Vec<String>> = findings
        .iter()
        .map(|finding| {
            let word = match finding.health {
                Health::Ok => "ok",
                Health::Absent => "absent",
                Health::Missing => "MISSING",
            };
            let fix = finding
                .fix
                .as_ref()
                .map(|fix| format!("; fix: {fix}"))
                .unwrap_or_default();
            vec![
                word.to_owned(),
                finding.check.as_str().to_owned(),
                format!("{}{fix}", finding.detail),
            ]
        })
        .collect();
    output::columns(&rows)
}
