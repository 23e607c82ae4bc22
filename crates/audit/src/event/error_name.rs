//! [`ErrorName`]: an error of the kernel by its name.

use rustix::io::Errno;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text::Text;

/// Errors that calls of an ordinary program end with.
const NAMES: [(Errno, &str); 43] = [
    (Errno::PERM, "EPERM"),
    (Errno::NOENT, "ENOENT"),
    (Errno::SRCH, "ESRCH"),
    (Errno::INTR, "EINTR"),
    (Errno::IO, "EIO"),
    (Errno::NXIO, "ENXIO"),
    (Errno::TOOBIG, "E2BIG"),
    (Errno::NOEXEC, "ENOEXEC"),
    (Errno::BADF, "EBADF"),
    (Errno::CHILD, "ECHILD"),
    (Errno::AGAIN, "EAGAIN"),
    (Errno::NOMEM, "ENOMEM"),
    (Errno::ACCESS, "EACCES"),
    (Errno::FAULT, "EFAULT"),
    (Errno::BUSY, "EBUSY"),
    (Errno::EXIST, "EEXIST"),
    (Errno::XDEV, "EXDEV"),
    (Errno::NODEV, "ENODEV"),
    (Errno::NOTDIR, "ENOTDIR"),
    (Errno::ISDIR, "EISDIR"),
    (Errno::INVAL, "EINVAL"),
    (Errno::NFILE, "ENFILE"),
    (Errno::MFILE, "EMFILE"),
    (Errno::NOTTY, "ENOTTY"),
    (Errno::TXTBSY, "ETXTBSY"),
    (Errno::FBIG, "EFBIG"),
    (Errno::NOSPC, "ENOSPC"),
    (Errno::ROFS, "EROFS"),
    (Errno::MLINK, "EMLINK"),
    (Errno::PIPE, "EPIPE"),
    (Errno::NAMETOOLONG, "ENAMETOOLONG"),
    (Errno::NOSYS, "ENOSYS"),
    (Errno::NOTEMPTY, "ENOTEMPTY"),
    (Errno::LOOP, "ELOOP"),
    (Errno::DQUOT, "EDQUOT"),
    (Errno::OPNOTSUPP, "EOPNOTSUPP"),
    (Errno::AFNOSUPPORT, "EAFNOSUPPORT"),
    (Errno::ADDRINUSE, "EADDRINUSE"),
    (Errno::NETUNREACH, "ENETUNREACH"),
    (Errno::CONNRESET, "ECONNRESET"),
    (Errno::TIMEDOUT, "ETIMEDOUT"),
    (Errno::CONNREFUSED, "ECONNREFUSED"),
    (Errno::HOSTUNREACH, "EHOSTUNREACH"),
];

/// An error of the kernel by its name, such as `EACCES`; by its number, such as
/// `E132`, where it has no name here.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(inline)]
pub struct ErrorName(Text<16>);

impl ErrorName {
    /// The name of an error number.
    pub fn of(number: i32) -> Self {
        let named = NAMES
            .iter()
            .find(|(error, _)| error.raw_os_error() == number);
        Self(match named {
            Some((_, name)) => Text::new(name),
            None => Text::new(&format!("E{number}")),
        })
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_their_names() {
        for (number, name) in [(13, "EACCES"), (2, "ENOENT"), (132, "E132"), (-1, "E-1")] {
            assert_eq!(ErrorName::of(number).as_str(), name);
        }
    }
}
