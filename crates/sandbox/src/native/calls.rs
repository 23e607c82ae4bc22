//! Names of system calls.

use syscalls::Sysno;

/// The name of a call of this architecture; its number where it has none.
pub(super) fn name(number: usize) -> String {
    Sysno::new(number).map_or_else(|| format!("call {number}"), |call| call.name().to_owned())
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
