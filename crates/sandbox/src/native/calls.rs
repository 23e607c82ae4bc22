//! Names of system calls.

use syscalls::Sysno;

/// The name of a call of this architecture; its number where it has none.
pub(super) fn name(number: usize) -> String {
    Sysno::new(number).map_or_else(|| format!("call {number}"), |call| call.name().to_owned())
}

/// The same for a number as `libc` has them.
pub(super) fn name_of(number: libc::c_long) -> String {
    name(usize::try_from(number).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_names() {
        let number = |call: libc::c_long| usize::try_from(call).unwrap();
        assert_eq!(name(number(libc::SYS_execve)), "execve");
        assert_eq!(name(number(libc::SYS_openat)), "openat");
        assert_eq!(name(100_000), "call 100000");
    }
}
