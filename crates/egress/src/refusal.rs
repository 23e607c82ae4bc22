//! What people see when something is refused or fails.

mod words;

use ringfence_policy::{
    Decision, Explanation, Reason, Request, Resolved, SuggestionFormat, explain,
};

pub use self::words::RefusalWords;

/// The value of `X-Proxy-Error` of a refusal.
const BLOCKED: &str = "blocked-by-allowlist";
/// The same where a name is allowed and the address that it leads to is not, as srt has it.
const ADDRESS_BLOCKED: &str = "blocked-by-sandbox-runtime";

/// A refusal, already written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    /// A stable reason code.
    pub(crate) code: &'static str,
    /// The value of `X-Proxy-Error`.
    pub(crate) error: &'static str,
    /// One line for people, fit for a status line.
    pub(crate) phrase: String,
    /// What to add to allow it, if adding something can.
    pub(crate) help: Option<String>,
    /// All that is said, where it is not said in our own words.
    pub(crate) body: Option<String>,
}

/// What kind of request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// An ordinary one.
    Request,
    /// `CONNECT`, of whose answer most clients show the status line only.
    Connect,
}

impl Refused {
    /// A refusal of the way something was asked, whoever asks for what.
    pub(crate) fn of_form(code: &'static str, phrase: &str) -> Self {
        Self {
            code,
            error: BLOCKED,
            phrase: one_line(phrase),
            help: None,
            body: None,
        }
    }

    /// A refusal by the policy.
    pub(crate) fn by_policy(
        policy: &Resolved<ringfence_policy::Policy>,
        request: &Request<'_>,
        decision: &Decision,
    ) -> Self {
        Self {
            code: decision.reason.code(),
            error: error_of(request, decision.reason),
            phrase: one_line(phrase_of(decision)),
            help: help(&explain(policy, request)),
            body: None,
        }
    }
}

fn error_of(request: &Request<'_>, reason: Reason) -> &'static str {
    let is_resolved = request.host.is_some() && request.addr.is_some();
    if is_resolved && reason.is_about_address() {
        ADDRESS_BLOCKED
    } else {
        BLOCKED
    }
}

fn phrase_of(decision: &Decision) -> &str {
    decision
        .message
        .as_deref()
        .unwrap_or(match decision.reason {
            Reason::DeniedByRule => "host is on the deny list",
            reason => reason.text(),
        })
}

fn help(explanation: &Explanation) -> Option<String> {
    let best = explanation.suggestions.first()?;
    Some(match best.format {
        SuggestionFormat::Flag => format!("To allow it: {}", best.line),
        _ => format!("To allow it: {} in {}", best.line, best.place),
    })
}

/// Text of a policy's author, in one line of visible ASCII and no markup of
/// HTTP's own.
pub(crate) fn one_line(text: &str) -> String {
    text.chars()
        .map(|character| {
            if character.is_ascii_graphic() || character == ' ' {
                character
            } else {
                '?'
            }
        })
        .take(200)
        .collect()
}

/// The answer to a refused HTTP request.
pub(crate) fn http_response(refused: &Refused, form: Form) -> Vec<u8> {
    let phrase = match form {
        Form::Request => "Forbidden",
        Form::Connect => refused.phrase.as_str(),
    };
    let headers = format!(
        "X-Proxy-Error: {}\r\nX-Ringfence-Reason: {}\r\n",
        refused.error, refused.code
    );
    let text = match (&refused.body, form) {
        // As srt ends the answer to a tunnel.
        (Some(body), Form::Connect) => body.clone(),
        _ => text(refused),
    };
    response(403, phrase, &headers, &text)
}

/// What people read about a refused request.
pub(crate) fn text(refused: &Refused) -> String {
    if let Some(body) = &refused.body {
        return format!("{body}\n");
    }
    let help = refused
        .help
        .as_deref()
        .unwrap_or("See why with: ringfence policy log --blocked");
    format!(
        "Connection blocked by network allowlist: {}\n{help}\n",
        refused.phrase
    )
}

/// The answer to a request that cannot be served.
pub(crate) fn http_error(status: u16, why: &str) -> Vec<u8> {
    response(
        status,
        phrase_for(status),
        "",
        &format!("{}\n", one_line(why)),
    )
}

/// The answer to a request that was refused because it cannot be served.
pub(crate) fn http_unserved(status: u16, refused: &Refused) -> Vec<u8> {
    let headers = format!("X-Ringfence-Reason: {}\r\n", refused.code);
    let text = format!("{}\n", refused.phrase);
    response(status, phrase_for(status), &headers, &text)
}

/// The answer to a proxy request without the credentials that are wanted.
pub(crate) fn http_credentials_wanted(realm: &str) -> Vec<u8> {
    let header = format!("Proxy-Authenticate: Basic realm=\"{realm}\"\r\n");
    response(
        407,
        phrase_for(407),
        &header,
        "Proxy credentials are missing or wrong\n",
    )
}

fn response(status: u16, phrase: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status} {phrase}\r\nContent-Type: text/plain\r\n{headers}\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn phrase_for(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        414 => "URI Too Long",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_cannot_add_lines_to_the_answer() {
        let refused = Refused::of_form("denied-by-rule", "no\r\nSet-Cookie: a=b\u{0}");
        let answer = String::from_utf8(http_response(&refused, Form::Connect)).unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 403 no??Set-Cookie: a=b?\r\n"),
            "{answer}"
        );
    }

    #[test]
    fn the_length_is_that_of_the_body() {
        let answer = String::from_utf8(http_error(502, "no such name")).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("Content-Length: {}", body.len())),
            "{answer}"
        );
        assert!(head.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{answer}");
    }
}
