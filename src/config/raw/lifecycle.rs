//! What the files say of the end of routes: `deprecated`.

use crate::config::problem::Spanned;
use crate::domain::side::Side;
use crate::domain::time::Timestamp;

/// `deprecated` of a route.
#[derive(Debug, Clone, PartialEq)]
pub enum RawEnd {
    /// `false`: the default of all routes is not meant for this one.
    Never,
    /// Its own.
    Said(Box<RawDeprecated>),
}

/// `[deprecated]`, or that of a route.
#[derive(Debug, Clone, PartialEq)]
pub struct RawDeprecated {
    /// The table itself.
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
