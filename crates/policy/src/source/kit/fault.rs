//! What can be wrong with a kit beyond its single entries.

use thiserror::Error;

/// Why a kit is refused. Each message shows the entry.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KitFault {
    /// Not YAML, an unknown key, a missing key or a wrong type.
    #[error("{0}")]
    Document(String),
    /// No schema version.
    #[error("`schemaVersion` is missing")]
    NoVersion,
    /// A version this program does not read.
    #[error("schemaVersion {0:?} is not read; versions 1 and 2 are")]
    Version(String),
    /// The version whose kits are images.
    #[error("a kit of schemaVersion 3 is an OCI image, which is not read; versions 1 and 2 are")]
    ImageKit,
    /// Not a kind of kit.
    #[error("kind {0:?} is not known")]
    Kind(String),
    /// Not a kit's name.
    #[error("{0:?} is not a name of a kit")]
    Name(String),
    /// A block that this kind of kit has no use for.
    #[error("a kit of kind {kind} has no block `{block}`")]
    Block {
        /// The kind as written.
        kind: &'static str,
        /// The key.
        block: &'static str,
    },
    /// Not a name of an argument.
    #[error("{0:?} is not a name of an argument")]
    ArgumentName(String),
    /// An argument with both or neither of its forms.
    #[error("argument {0} has either a `default` or `required: true`")]
    ArgumentForm(String),
    /// A list and a pattern.
    #[error("argument {0} has both `enum` and `pattern`")]
    ArgumentChecks(String),
    /// Not a pattern, or one that is too large.
    #[error("argument {name}: pattern {pattern:?} cannot be used")]
    ArgumentPattern {
        /// The argument.
        name: String,
        /// As written.
        pattern: String,
    },
    /// Nothing was given for it.
    #[error("argument {0} is required")]
    ArgumentMissing(String),
    /// A value outside of its list or pattern.
    #[error("argument {name} cannot be {value:?}")]
    ArgumentValue {
        /// The argument.
        name: String,
        /// What was given.
        value: String,
    },
    /// Given and not declared, or referred to and not declared.
    #[error("argument {0} is not declared")]
    ArgumentUnknown(String),
    /// A default that needs itself.
    #[error("the default of argument {0} refers to itself")]
    ArgumentCircle(String),
    /// A reference that is none.
    #[error("{0:?} is not a reference to an argument")]
    Reference(String),
    /// A reference in a key.
    #[error("key {0:?} refers to an argument; only values can")]
    ReferenceInKey(String),
    /// A variable that belongs to the sandbox.
    #[error("variable {0} is reserved")]
    ReservedVariable(String),
    /// A service with hosts and without a header.
    #[error("service {0} has domains but no entry in `serviceAuth`")]
    NoServiceAuth(String),
    /// An address or a block of them.
    #[error("domain {0:?} is no host that a credential can be bound to")]
    ServiceDomain(String),
    /// Neither of the ways to get a secret.
    #[error("credential {0} has neither `apiKey` nor `oauth`")]
    NoSecret(String),
    /// Not a way to read a file.
    #[error("parser {0:?} is not known")]
    Parser(String),
    /// Not an order.
    #[error("priority {0:?} is not known")]
    Priority(String),
    /// Two ways to write a value, or none.
    #[error("an entry of `inject` has either a `header` with a `format`, or a `scheme`")]
    InjectForm,
    /// Not a scheme.
    #[error("scheme {0:?} is not known")]
    InjectScheme(String),
    /// A name for bearer, or none for basic.
    #[error("`username` goes with scheme basic, and scheme basic with `username`")]
    InjectUsername,
    /// The token itself would go inside.
    #[error("oauth of {0} hands the token itself to the sandbox")]
    Passthrough(String),
    /// No command.
    #[error("a command is empty or has a NUL in it")]
    Command,
    /// Not a place for a file.
    #[error("path {0:?} is not absolute, or leaves its folder")]
    Path(String),
    /// Not a file mode.
    #[error("mode {0:?} is not an octal file mode")]
    Mode(String),
    /// A file that is too large for a kit.
    #[error("the kit is larger than {0} bytes")]
    TooLarge(usize),
}

impl KitFault {
    /// Stable code for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Document(_) => "malformed-document",
            Self::NoVersion | Self::Version(_) | Self::ImageKit => "kit-version",
            Self::Kind(_) => "kit-kind",
            Self::Name(_) => "kit-name",
            Self::Block { .. } => "kit-block",
            Self::ArgumentName(_)
            | Self::ArgumentForm(_)
            | Self::ArgumentChecks(_)
            | Self::ArgumentPattern { .. } => "kit-args",
            Self::ArgumentMissing(_) => "kit-arg-missing",
            Self::ArgumentValue { .. } => "kit-arg-value",
            Self::ArgumentUnknown(_) => "kit-arg-unknown",
            Self::ArgumentCircle(_) => "kit-arg-circle",
            Self::Reference(_) | Self::ReferenceInKey(_) => "kit-reference",
            Self::ReservedVariable(_) => "kit-reserved-variable",
            Self::NoServiceAuth(_) | Self::ServiceDomain(_) | Self::NoSecret(_) => "kit-credential",
            Self::Parser(_) | Self::Priority(_) => "kit-credential-source",
            Self::InjectForm | Self::InjectScheme(_) | Self::InjectUsername => "kit-inject",
            Self::Passthrough(_) => "kit-passthrough",
            Self::Command => "kit-command",
            Self::Path(_) => "kit-path",
            Self::Mode(_) => "kit-mode",
            Self::TooLarge(_) => "kit-too-large",
        }
    }

    /// What to write instead.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Document(_) => "`ringfence policy schema kit-v2` prints every key and its type",
            Self::NoVersion | Self::Version(_) => "write `schemaVersion: \"2\"`",
            Self::ImageKit => {
                "use a release of the kit in version 1 or 2 if there is one; another number in this \
                 file is not enough: hosts go into `permissions.network.allow` and secrets into \
                 `credentials`, and the image's own programs must be on this machine"
            }
            Self::Kind(_) => "write `kind: mixin`",
            Self::Name(_) => "a name is lower-case letters, digits and '-', at most 64",
            Self::Block { .. } => "remove the block, or change `kind`",
            Self::ArgumentName(_) => "a name is letters, digits, '_' and '-'",
            Self::ArgumentForm(_) => "write {default: \"\"} or {required: true}",
            Self::ArgumentChecks(_) => "keep one of them",
            Self::ArgumentPattern { .. } => "write a regular expression such as ^[a-z]+$",
            Self::ArgumentMissing(_) => "give it: --kit-arg NAME=VALUE",
            Self::ArgumentValue { .. } => "the kit's spec.yaml says what each argument may be",
            Self::ArgumentUnknown(_) => "declare it below `args`",
            Self::ArgumentCircle(_) => "give one of the arguments a plain default",
            Self::Reference(_) => "write ${{ kit.args.NAME }}",
            Self::ReferenceInKey(_) => "write the key out",
            Self::ReservedVariable(_) => "use another name",
            Self::NoServiceAuth(_) => "add {headerName: Authorization, valueFormat: \"Bearer %s\"}",
            Self::ServiceDomain(_) => "write a host name such as api.example.org",
            Self::NoSecret(_) => "add `apiKey`",
            Self::Parser(_) => "write json:KEY, or leave it out for the whole file",
            Self::Priority(_) => "write env-first or file-first",
            Self::InjectForm => "write {domain: api.example.org, scheme: bearer}",
            Self::InjectScheme(_) => "write bearer or basic",
            Self::InjectUsername => "write {scheme: basic, username: NAME}",
            Self::Passthrough(_) => "remove `passthrough`; a secret never enters a sandbox",
            Self::Command => "install takes a line of shell, startup a list of words",
            Self::Path(_) => "write /home/agent/FILE, ${WORKDIR}/FILE or /tmp/FILE",
            Self::Mode(_) => "write for example \"0644\"",
            Self::TooLarge(_) => "a kit is a small text file",
        }
    }
}
