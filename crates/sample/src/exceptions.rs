//! The exceptions of tools. Used by `crud`, `database`, `rpc` and `tools`.

/// An exception of the server in Python. REST tells its text only; JSON-RPC also tells its class apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Raised {
    /// A `ValueError`, which JSON-RPC answers as invalid params.
    ValueError(String),
    /// Any other exception, which JSON-RPC answers as an internal error with the text beside it.
    Other(String),
}

impl Raised {
    /// What `str(exception)` gives.
    pub(super) fn text(&self) -> &str {
        match self {
            Raised::ValueError(text) | Raised::Other(text) => text,
        }
    }
}
