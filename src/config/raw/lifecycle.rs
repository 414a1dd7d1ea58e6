//! `deprecated`, global and of a route. Used by `compile::lifecycle` and `decode::lifecycle`.

use crate::config::problem::Spanned;
use dualgauge_model::time::Timestamp;
use dualgauge_patterns::side::Side;

/// `deprecated` of a route.
#[derive(Debug, Clone, PartialEq)]
pub enum RawEnd {
    /// `false`: the global table does not apply to this route.
    Never,
    /// The route's own table.
    Table(Box<RawDeprecated>),
}

/// `[deprecated]`, or `deprecated` of a route.
#[derive(Debug, Clone, PartialEq)]
pub struct RawDeprecated {
    /// The location of the table.
    pub here: Spanned<()>,
    /// `side`
    pub side: Spanned<Side>,
    /// `since`
    pub since: Spanned<Timestamp>,
    /// `sunset`
    pub sunset: Option<Spanned<Timestamp>>,
    /// `link`: an absolute URL.
    pub link: Option<Spanned<String>>,
    /// `brownouts`, in order.
    pub brownouts: Vec<RawWindow>,
}

/// One of `brownouts`.
#[derive(Debug, Clone, PartialEq)]
pub struct RawWindow {
    /// `from`
    pub from: Spanned<Timestamp>,
    /// `until`
    pub until: Spanned<Timestamp>,
}
