//! Why a credential is refused.

use thiserror::Error;

use crate::host::PatternError;

/// Why a credential is refused. Each message shows the entry.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CredentialError {
    /// Empty, or more than a word.
    #[error("{0:?} is not a service name")]
    Service(String),
    /// The same service again.
    #[error("credential {0} is written twice")]
    Twice(String),
    /// Not a variable name.
    #[error("{0:?} is not a name of an environment variable")]
    Env(String),
    /// Not a path that means one file.
    #[error("{0:?} is neither an absolute path nor one below ~/")]
    File(String),
    /// Not a dotted path.
    #[error("{0:?} is not a dotted path into a JSON file")]
    Key(String),
    /// Not a program.
    #[error("{0:?} is not a program")]
    Command(String),
    /// A line that only a shell could read.
    #[error("command {0:?} holds characters that only a shell would read")]
    CommandLine(String),
    /// A command with both or neither of its forms.
    #[error("a command names either `argv` or `run`")]
    CommandForm,
    /// Not a name of the store.
    #[error("{0:?} is not a name of a stored secret")]
    Store(String),
    /// Nowhere to find it.
    #[error("credential {0} has no source")]
    NoSource(String),
    /// Several places in the short form.
    #[error("credential {0} has more than one source; their order is not told")]
    Sources(String),
    /// A source that is none, or several in one.
    #[error("an entry of `sources` names one of `env`, `file`, `command` and `secret`")]
    OneSource,
    /// Not an expression with a group.
    #[error("extract {entry:?}: {reason}")]
    Extract {
        /// The expression as written.
        entry: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Nowhere to send it.
    #[error("credential {0} is bound to no host")]
    NoHosts(String),
    /// A host entry that cannot be used.
    #[error(transparent)]
    Host(#[from] PatternError),
    /// Not said how it is sent.
    #[error("credential {0} does not say how it is sent")]
    NoKind(String),
    /// Said twice how it is sent.
    #[error("credential {0} says in more than one way how it is sent")]
    Kinds(String),
    /// One binding beside a list of bindings.
    #[error("credential {0} has `bindings`, and hosts or a way to send it beside them")]
    BesideBindings(String),
    /// Nothing inside holds the placeholder that is to be replaced.
    #[error("credential {0} replaces a placeholder that no variable holds")]
    NoVariable(String),
    /// Not a header name.
    #[error("{0:?} is not a header name")]
    Header(String),
    /// A header that frames the message or belongs to one hop.
    #[error("header {0:?} frames the message and cannot carry a secret")]
    FramingHeader(String),
    /// Not a value with one `%s`.
    #[error("format {0:?} does not hold exactly one %s, or holds other than printable ASCII")]
    Format(String),
    /// A format for something that is no header.
    #[error("`format` without `header`")]
    FormatAlone,
    /// Not a user name.
    #[error("user name {0:?} holds a colon or a control character")]
    Username(String),
    /// Not a name of a parameter.
    #[error("{0:?} is not a name of a query parameter")]
    Query(String),
    /// In clear to a host of the network.
    #[error("scheme http would send the secret in clear to {0}")]
    Clear(String),
}

impl CredentialError {
    /// Stable code for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Service(_) => "credential-service",
            Self::Twice(_) => "credential-twice",
            Self::Env(_) => "credential-env",
            Self::File(_) => "credential-file",
            Self::Key(_) => "credential-key",
            Self::Command(_) | Self::CommandLine(_) | Self::CommandForm => "credential-command",
            Self::Store(_) => "credential-secret",
            Self::NoSource(_) => "credential-no-source",
            Self::Sources(_) | Self::OneSource => "credential-sources",
            Self::Extract { .. } => "credential-extract",
            Self::NoHosts(_) => "credential-no-hosts",
            Self::Host(error) => error.code(),
            Self::NoKind(_) => "credential-no-kind",
            Self::Kinds(_) => "credential-kinds",
            Self::BesideBindings(_) => "credential-bindings",
            Self::NoVariable(_) => "credential-no-variable",
            Self::Header(_) => "credential-header",
            Self::FramingHeader(_) => "credential-framing-header",
            Self::Format(_) | Self::FormatAlone => "credential-format",
            Self::Username(_) => "credential-username",
            Self::Query(_) => "credential-query",
            Self::Clear(_) => "credential-in-clear",
        }
    }

    /// What to write instead.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Service(_) => "a service name is one word, such as github",
            Self::Twice(_) => "write one entry, with `bindings` for several ways to send it",
            Self::Env(_) => "name the variable that holds the secret, such as GITHUB_TOKEN",
            Self::File(_) => "write for example {path: ~/.config/tool/token.json, key: auth.token}",
            Self::Key(_) => "write for example auth.token",
            Self::Command(_) => "give a bare name or an absolute path: {argv: [tool, print-token]}",
            Self::CommandLine(_) | Self::CommandForm => "write {argv: [tool, print-token]}",
            Self::Store(_) => "use the name that `ringfence secret set` was given",
            Self::NoSource(_) => "add `env`, `file`, `command` or `secret`",
            Self::Sources(_) | Self::OneSource => {
                "list them in order: sources: [{env: TOKEN}, {secret: token}]"
            }
            Self::Extract { .. } => {
                "write an expression with one group, without look-around: token=(\\w+)"
            }
            Self::NoHosts(_) => "list the hosts that may get it",
            Self::Host(error) => error.hint(),
            Self::NoKind(_) | Self::Kinds(_) => {
                "write one of `bearer: true`, `header` with `format`, `basic`, `query`, `substitute`"
            }
            Self::BesideBindings(_) => "move them into an entry of `bindings`",
            Self::NoVariable(_) => {
                "add `variables` with the names that hold the placeholder inside"
            }
            Self::Header(_) => "a header name is letters, digits and '-', such as Authorization",
            Self::FramingHeader(_) => "use Authorization or a header of the service",
            Self::Format(_) => "write for example \"Bearer %s\"",
            Self::FormatAlone => "name the header too",
            Self::Username(_) => "write the user name alone: {username: x-access-token}",
            Self::Query(_) => "a parameter is letters, digits, '-', '.', '_' and '~'",
            Self::Clear(_) => "use https; http is only for host.ringfence.internal on a hostPort",
        }
    }
}
