//! `[[stream]]`

use std::time::Duration;

use http::Method;

use crate::config::problem::Located;
use crate::domain::side::Side;

/// `[[stream]]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawStream {
    /// `name`
    pub name: Located<String>,
    /// `rest`: a method and a path.
    pub rest: Located<(Method, String)>,
    /// `rpc`: a method and a path.
    pub rpc: Located<(Method, String)>,
    /// `upstream`: for both sides, or for one.
    pub upstreams: Vec<(Option<Side>, Located<String>)>,
    /// `max_age`: not zero.
    pub max_age: Option<Located<Duration>>,
}
