//! Memory in System V segments, which stays when nobody has it attached.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustix::fs::OFlags;

use super::reserve::Reserve;

/// The segments of the sandbox's own IPC namespace.
const TABLE: &str = "/proc/sysvipc/shm";
/// More than the table of as many segments as there can be by default.
const LARGEST: u64 = 1 << 20;

/// Bytes in segments; none where it cannot be told.
pub(super) fn bytes(reserve: &Reserve) -> u64 {
    let mut text = String::new();
    let Ok(table) = reserve.open(Path::new(TABLE), OFlags::empty()) else {
        return 0;
    };
    let read = File::from(table).take(LARGEST).read_to_string(&mut text);
    read.map_or(0, |_| sum(&text))
}

/// Resident and swapped bytes, the last two columns (proc(5)).
fn sum(table: &str) -> u64 {
    let of_line = |line: &str| -> u64 {
        let columns = line.split_ascii_whitespace().rev().take(2);
        columns
            .filter_map(|column| column.parse::<u64>().ok())
            .sum()
    };
    table.lines().skip(1).map(of_line).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_and_swapped_bytes_count() {
        let table = "key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap\n\
            0 0 600 9999 1 1 0 0 0 0 0 1 1 1 4096 0\n\
            0 1 600 9999 1 1 0 0 0 0 0 1 1 1 8192 4096\n";
        assert_eq!(sum(table), 16384);
        assert_eq!(sum(""), 0);
    }
}
