//! Reasons for no proposal. Used by `proposal::native` and `proposal::row`.

/// The reason why no row is proposed for a group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoRow {
    /// The report is not as this version writes it.
    #[error("the report has no responses that can be read")]
    Unreadable,
    /// The proxy failed.
    #[error("the proxy could not translate the response; `explain` shows why")]
    Failure,
    /// A row of the route wrote the response.
    #[error("a row of the route already writes this response; change that row")]
    HasRow,
    /// Both are successes that differ in values.
    #[error("both sides succeed; a row does not change values")]
    Values,
    /// A written value is unknown.
    #[error("the other response has no value for `{0}`, and the report shows no text for it; {hint}", hint = SHOW)]
    Unknown(String),
    /// The row does not make the responses equal.
    #[error("a row would write {0}")]
    StillDiffers(String),
}

const SHOW: &str = "with `compare.show = true` a row can contain it";
