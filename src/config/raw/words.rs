//! Keys with a closed set of words. Used by `app`, `compile`, `decode` and `flags`.

/// `unrouted`: the treatment of a REST call without a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnroutedWord {
    /// It passes to the REST upstream.
    Passthrough,
    /// The proxy rejects it.
    Reject,
}

/// `unrouted_irregular`: the treatment of a REST call without a route whose path a lenient server may read as the path
/// of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IrregularWord {
    /// It passes like any other call without a route.
    Pass,
    /// The proxy rejects it.
    Reject,
}

/// `credentials`: whether an upstream receives the caller's credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialsWord {
    /// All.
    Forward,
    /// None.
    Drop,
}

/// `effect`: the result of repeating a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectWord {
    /// A call changes nothing.
    Safe,
    /// A repeated call has the effect of one call.
    Idempotent,
    /// A repeated call may have another effect.
    Unsafe,
}

/// `without_key`: whether a flag with a percentage applies to a caller without a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithoutKeyWord {
    /// The flag does not apply.
    Out,
    /// The flag applies.
    In,
}

/// `format` of `[log]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormatWord {
    /// For people.
    Text,
    /// For machines.
    Json,
}

/// `level` of `[log]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevelWord {
    /// `error`
    Error,
    /// `warn`
    Warn,
    /// `info`
    Info,
    /// `debug`
    Debug,
    /// `trace`
    Trace,
}

impl LogLevelWord {
    /// Returns the word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            LogLevelWord::Error => "error",
            LogLevelWord::Warn => "warn",
            LogLevelWord::Info => "info",
            LogLevelWord::Debug => "debug",
            LogLevelWord::Trace => "trace",
        }
    }
}

/// `websocket` of `[rpc]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketsWord {
    /// The proxy serves WebSockets itself.
    Served,
    /// Upgrade requests pass to the upstream.
    Passed,
}
