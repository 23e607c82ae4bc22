//! The shared memory of the whole machine: files in memory, System V segments
//! and shared mappings of everybody, and what lies in swap.
//!
//! It is no measure of a sandbox, but what the sandbox takes is in it, whether
//! or not a process has it mapped: a hint that it is worth looking for.

use std::io::Read;

const TABLE: &str = "/proc/meminfo";
/// More than the table has.
const LARGEST: u64 = 16 * 1024;

/// Bytes in use; nothing where it cannot be told.
pub(super) fn shared_memory() -> Option<u64> {
    let mut text = String::new();
    let table = std::fs::File::open(TABLE).ok()?;
    table.take(LARGEST).read_to_string(&mut text).ok()?;
    sum(&text)
}

/// Shared memory moves to swap, which has no number of its own for it.
fn sum(table: &str) -> Option<u64> {
    let value = |wanted: &str| {
        let mut found = super::census::fields(table).filter(|(key, _)| *key == wanted);
        found.next().map(|(_, kibibytes)| kibibytes)
    };
    let swapped = value("SwapTotal")?.saturating_sub(value("SwapFree")?);
    Some(value("Shmem")?.saturating_add(swapped).saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_swapped_counts_as_well() {
        let table = "MemTotal: 99 kB\nSwapTotal: 8 kB\nSwapFree: 5 kB\nShmem:     4 kB\nShmemHugePages: 9 kB\n";
        assert_eq!(sum(table), Some(7 * 1024));
        assert_eq!(sum("MemTotal: 99 kB\n"), None);
        assert!(shared_memory().is_some());
    }
}
