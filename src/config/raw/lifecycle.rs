//! What the files say of the end of routes: `deprecated`.

use crate::config::problem::Located;
use crate::domain::calendar::Moment;
use crate::domain::side::Side;

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
    pub here: Located<()>,
    /// `side`
    pub side: Located<Side>,
    /// `since`
    pub since: Located<Moment>,
    /// `sunset`
    pub sunset: Option<Located<Moment>>,
    /// `link`: an absolute URL.
    pub link: Option<Located<String>>,
    /// `brownouts`, in order.
    pub brownouts: Vec<RawWindow>,
}

/// One of `brownouts`.
#[derive(Debug, Clone, PartialEq)]
pub struct RawWindow {
    /// `from`
    pub from: Located<Moment>,
    /// `until`
    pub until: Located<Moment>,
}
