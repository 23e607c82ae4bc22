//! Destinations that cannot even be asked about.

use ringfence_audit::{Decided, HostText, Protocol, ReasonCode, Verdict, Via};

use super::Exit;
use crate::proxy::Caller;
use crate::refusal::Refused;

const CODE: &str = "malformed-host";

impl Exit {
    /// Refuses `host`, which is neither a name nor an address, and records it.
    pub(crate) fn refuse_malformed(
        &self,
        caller: &Caller,
        via: Via,
        host: &[u8],
        port: u16,
    ) -> Refused {
        let decided = Decided {
            connection: caller.connection,
            process: caller.process.clone(),
            via,
            host: Some(HostText::new(&String::from_utf8_lossy(host))),
            address: None,
            port,
            protocol: Protocol::Tcp,
            method: None,
            path: None,
            verdict: Verdict::Refused,
            reason: ReasonCode::new(CODE),
            rule: None,
            source: None,
            credential: None,
        };
        // It is refused either way.
        let _ = self.recorder.decision(decided);
        self.words
            .of_malformed(Refused::of_form(CODE, "malformed host"))
    }
}
