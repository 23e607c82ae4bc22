//! The machine that the figures are from.

use std::fs;
use std::thread;

use super::procfs::field;

/// Kernel, processor, cores and memory in one line.
pub(super) fn describe() -> String {
    let kernel = read("/proc/sys/kernel/osrelease");
    let processors = read("/proc/cpuinfo");
    let memory = read("/proc/meminfo");
    let cores = thread::available_parallelism().map_or(1, usize::from);
    format!(
        "Linux {}, {}, {cores} cores, {}",
        kernel.trim(),
        model(&processors),
        total(&memory)
    )
}

/// How many processes wanted to run of late.
pub(super) fn load() -> String {
    let averages = read("/proc/loadavg");
    let last_minute = averages.split_whitespace().next();
    format!("load average {} before", last_minute.unwrap_or("unknown"))
}

fn model(processors: &str) -> &str {
    let named = field(processors, "model name").and_then(|value| value.strip_prefix(':'));
    named.map_or("unknown processor", str::trim)
}

fn total(memory: &str) -> String {
    let kib: Option<u64> = field(memory, "MemTotal:")
        .and_then(|value| value.split_whitespace().next())
        .and_then(|number| number.parse().ok());
    kib.map_or_else(
        || "unknown memory".to_string(),
        |kib| format!("{} MiB memory", kib / 1024),
    )
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_found_or_said_to_be_unknown() {
        assert_eq!(
            model("processor\t: 0\nmodel name\t: Some CPU\n"),
            "Some CPU"
        );
        assert_eq!(model(""), "unknown processor");
        assert_eq!(total("MemTotal:        2048 kB\n"), "2 MiB memory");
        assert_eq!(total(""), "unknown memory");
    }
}
