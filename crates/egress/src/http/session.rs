//! What both kinds of session have in common.

use ringfence_audit::CloseReason;

use super::exchange::{Failure, Plan};
use super::head::{Request, Upgrade};
use super::response::Asked;
use super::sharing::Sharing;
use crate::attempt::{Attempt, HttpSeen};
use crate::refusal::{self, Refused};

/// How a session ends.
pub(super) enum End {
    /// In order.
    Closed,
    /// With a response that came while the client was still sending.
    Early,
    /// With a last answer.
    Answered(Vec<u8>, CloseReason),
    /// In another protocol.
    Switched,
    /// In the middle of something.
    Cut(CloseReason),
}

/// Method and path of a request.
pub(super) fn seen_in(request: &Request<'_, '_>) -> HttpSeen {
    let path = request.path();
    HttpSeen {
        method: request.method.to_owned(),
        path: [path.slash, path.path].concat(),
    }
}

/// Notes method and path.
pub(super) fn see(attempt: &mut Attempt, request: &Request<'_, '_>) {
    let path = request.path();
    let seen = attempt.http.get_or_insert_with(|| HttpSeen {
        method: String::new(),
        path: String::new(),
    });
    seen.method.clear();
    seen.method.push_str(request.method);
    seen.path.clear();
    seen.path.push_str(path.slash);
    seen.path.push_str(path.path);
}

/// Refuses what would get round the judging of single requests, where the rule
/// wants that.
pub(super) fn check_inspected(plan: &Plan) -> Result<(), (&'static str, &'static str)> {
    if plan.overrides {
        let phrase = "a header would replace the method or path that was judged";
        return Err(("method-override", phrase));
    }
    if plan.upgrade == Upgrade::Other {
        let phrase = "the rule looks at every request, and this one asks for another protocol";
        return Err(("needs-inspection", phrase));
    }
    Ok(())
}

/// What the exchange needs to know.
pub(super) fn plan(request: &Request<'_, '_>, head: usize) -> Plan {
    Plan {
        head,
        framing: request.framing,
        version: request.version,
        persistence: request.persistence(),
        upgrade: request.upgrade,
        asked: Asked::by(request.method),
        sharing: Sharing::by_head(request.method, request.framing, request.expects),
        overrides: request.overrides,
    }
}

/// The answer to a refused request.
pub(super) fn refused_page(refused: &Refused) -> Vec<u8> {
    refusal::http_response(refused, refusal::Form::Request)
}

/// The end of a client that does not finish its request.
pub(super) fn late() -> End {
    let answer = refusal::http_error(408, "the request took too long");
    End::Answered(answer, CloseReason::Idle)
}

/// The end of a session whose exchange failed.
pub(super) fn failed(failure: Failure) -> End {
    match failure {
        Failure::Client => End::Cut(CloseReason::ClientReset),
        Failure::Server => End::Cut(CloseReason::ServerReset),
        Failure::CutShort => End::Cut(CloseReason::Refused),
        Failure::Refused(refused) => End::Answered(refused_page(&refused), CloseReason::Refused),
        Failure::BadBody(bad) => {
            let answer = refusal::http_error(400, &bad.to_string());
            End::Answered(answer, CloseReason::Malformed)
        }
        Failure::NoAnswer => {
            let answer = refusal::http_error(502, "the server closed the connection");
            End::Answered(answer, CloseReason::ServerReset)
        }
        Failure::BadAnswer(bad) => {
            let answer = refusal::http_error(502, &bad.to_string());
            End::Answered(answer, CloseReason::Failed)
        }
    }
}
