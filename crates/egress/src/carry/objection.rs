//! Why a connection does not go on, and whether TLS on it asks for the host that
//! was admitted.

use ringfence_audit::CloseReason;
use ringfence_policy::Target;

use crate::attempt::Attempt;
use crate::exit::Exit;
use crate::tls::Wanted;

/// Why a connection that was opened does not go on.
pub(super) enum Objection {
    Cut(CloseReason),
    Refused {
        code: &'static str,
        phrase: &'static str,
        /// What the client really asks for, where that is known.
        meant: Option<Target>,
    },
}

impl Objection {
    pub(super) fn malformed_tls() -> Self {
        Self::because("malformed-tls", "the TLS hello is malformed")
    }

    pub(super) fn because(code: &'static str, phrase: &'static str) -> Self {
        Self::Refused {
            code,
            phrase,
            meant: None,
        }
    }

    /// Writes a refusal down, as one of what the client really asks for.
    pub(super) fn record(self, mut attempt: Attempt, exit: &Exit) {
        if let Self::Refused {
            code,
            phrase,
            meant,
        } = self
        {
            if let Some(target) = meant {
                attempt.target = target;
            }
            exit.refuse(&attempt, code, phrase);
        }
    }
}

/// TLS must ask for the host that was admitted. One that asks for none means
/// the place that its connection leads to, which is that host, unless it may ask
/// for another one in secret.
pub(super) fn check_name(target: &Target, wanted: &Wanted) -> Result<(), Objection> {
    match (target, wanted) {
        (_, Wanted::Unnamed) | (Target::Addr(_), Wanted::Hidden) => Ok(()),
        (target, Wanted::Host(name)) if target == name => Ok(()),
        (Target::Name(_), Wanted::Hidden) => Err(Objection::because(
            "tls-without-name",
            "the TLS client does not say in clear which host it wants",
        )),
        (_, Wanted::Host(name)) => Err(Objection::Refused {
            code: "tls-name-mismatch",
            phrase: "the TLS client asks for another host than its connection",
            meant: Some(name.clone()),
        }),
    }
}

/// The same where requests are judged or get secrets: every name must agree, and
/// no name does not.
pub(super) fn check_named(target: &Target, wanted: &Wanted) -> Result<(), Objection> {
    match (target, wanted) {
        (Target::Name(_), Wanted::Unnamed) => Err(Objection::because(
            "tls-without-name",
            "the TLS client does not say which host it wants",
        )),
        _ => check_name(target, wanted),
    }
}
