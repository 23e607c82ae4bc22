//! `ringfence policy schema`: JSON Schemas of the file formats.

use clap::ValueEnum;

use crate::exit::ExitCode;
use crate::output;

/// Print the JSON Schema of a file format
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ringfence policy schema policy > policy.schema.json")]
pub(crate) struct SchemaArgs {
    /// Which format
    #[arg(value_enum, default_value = "policy")]
    format: Format,
    /// Print JSON (a schema always is)
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The native policy
    Policy,
    /// A preset
    Preset,
    /// Settings of srt
    SrtSettings,
    /// The record that run --report writes
    Report,
    /// A line of the audit log
    AuditEvent,
    /// A sandbox kit's spec.yaml, version 1
    KitV1,
    /// A sandbox kit's spec.yaml, version 2
    KitV2,
}

pub(crate) fn main(arguments: &SchemaArgs) -> ExitCode {
    let schema = match arguments.format {
        Format::Policy => ringfence_policy::schema::policy(),
        Format::Preset => ringfence_policy::schema::preset(),
        Format::SrtSettings => ringfence_policy::schema::srt_settings(),
        Format::Report => ringfence_runtime::report_schema(),
        Format::AuditEvent => ringfence_audit::event_schema(),
        Format::KitV1 => ringfence_policy::schema::kit_v1(),
        Format::KitV2 => ringfence_policy::schema::kit_v2(),
    };
    output::print_json(&schema);
    ExitCode::SUCCESS
}
