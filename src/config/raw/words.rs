//! The closed sets of words that the files may say.

/// What happens to a REST call without a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnroutedWord {
    /// It goes to the REST upstream.
    Passthrough,
    /// It is answered by the proxy.
    Reject,
}

/// What happens to a REST call without a route whose path a lenient server may read as the path of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IrregularWord {
    /// It passes as any other call without a route.
    Pass,
    /// It is refused.
    Reject,
}

/// What an upstream gets of the caller's credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialsWord {
    /// All.
    Forward,
    /// None.
    Drop,
}

/// What a call does to the server behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectWord {
    /// Nothing.
    Safe,
    /// Twice is the same as once.
    Idempotent,
    /// Twice is not the same as once.
    Unsafe,
}

/// What a percentage means for a caller without a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithoutKeyWord {
    /// The flag does not apply.
    Out,
    /// The flag applies.
    In,
}

/// How a line of the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormatWord {
    /// For people.
    Text,
    /// For machines.
    Json,
}

/// The least important line that is logged.
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
    /// The word itself.
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
    /// Requests for them pass on.
    Passed,
}
