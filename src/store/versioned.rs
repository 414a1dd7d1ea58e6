//! Texts with revisions, by which a writer detects that another one was first. Used by `app` and `store`.

/// A text with its revision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Versioned {
    /// The number of replacements so far; 0 if the text was never written.
    pub revision: u64,
    /// The text; empty at revision 0.
    pub text: String,
}
