//! The flags that limit what a run may use.

use ringfence_policy::FlagLimits;

const LIMITS: &str = "Limits";

/// Limits on a run.
#[derive(Debug, clap::Args)]
pub(crate) struct LimitArgs {
    /// CPU cores at once, such as 2 or 0.5
    #[arg(long, value_name = "CORES", allow_hyphen_values = true, help_heading = LIMITS)]
    cpu: Option<String>,
    /// Memory of all processes together, such as 512MiB [default: 80 % of the machine's]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = LIMITS)]
    memory: Option<String>,
    /// Processes and threads [default: 4096]
    #[arg(long, value_name = "COUNT", allow_hyphen_values = true, help_heading = LIMITS)]
    pids: Option<String>,
    /// What the run may add to storage, /tmp and writable folders together
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = LIMITS)]
    disk: Option<String>,
    /// End the command after this time, such as 90s, 10m or 2h30m
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, help_heading = LIMITS)]
    time: Option<String>,
    /// CPU time of all processes together
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, help_heading = LIMITS)]
    cpu_time: Option<String>,
    /// End the command when it writes more than this to its output
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = LIMITS)]
    output: Option<String>,
    /// Open files of each process
    #[arg(long, value_name = "COUNT", allow_hyphen_values = true, help_heading = LIMITS)]
    files: Option<String>,
    /// The size of any one file
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = LIMITS)]
    file_size: Option<String>,
    /// Run only if a control group holds cpu, memory, pids and cpu-time
    #[arg(long, help_heading = LIMITS)]
    require_limits: bool,
}

impl From<LimitArgs> for FlagLimits {
    fn from(args: LimitArgs) -> Self {
        Self {
            cpu: args.cpu,
            memory: args.memory,
            pids: args.pids,
            disk: args.disk,
            time: args.time,
            cpu_time: args.cpu_time,
            output: args.output,
            files: args.files,
            file_size: args.file_size,
            required: args.require_limits,
        }
    }
}
