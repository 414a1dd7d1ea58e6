//! Limits of documents. Used by `import` and `mcp`.

/// Maximum size of a file or a response.
pub(in crate::cli) const LARGEST: usize = 32 * 1024 * 1024;
