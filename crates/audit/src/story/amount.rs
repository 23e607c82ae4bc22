//! Numbers as people read them.

/// A number with its unit: `128.0 MiB`, `2.000 s`, `1.500 cores`, `12 tasks`.
pub fn amount(number: u64, unit: &str) -> String {
    const MIB: u64 = 1 << 20;
    match unit {
        "bytes" if number >= MIB => {
            format!("{}.{} MiB", number / MIB, number % MIB * 10 / MIB)
        }
        "milliseconds" => format!("{}.{:03} s", number / 1000, number % 1000),
        "millicores" => format!("{}.{:03} cores", number / 1000, number % 1000),
        unit => format!("{number} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_units_that_people_use() {
        for (number, unit, want) in [
            (134_217_728, "bytes", "128.0 MiB"),
            (1000, "bytes", "1000 bytes"),
            (2000, "milliseconds", "2.000 s"),
            (1500, "millicores", "1.500 cores"),
            (12, "tasks", "12 tasks"),
            (u64::MAX, "bytes", "17592186044415.9 MiB"),
        ] {
            assert_eq!(amount(number, unit), want);
        }
    }
}
