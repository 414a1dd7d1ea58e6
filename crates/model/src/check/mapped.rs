//! The replies of a route that its own rows map. All others use the built-in table, for which a proof of the calls
//! proves nothing: the two servers may answer in different forms.
//!
//! Used by `cli` and `check`.

use crate::outcome::{ToolResult, ToolValue};
use crate::route::Route;

/// The replies that the rows of a route map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replies {
    /// The route has no replies: it sends notifications, or frames without a row.
    None,
    /// Successful replies are mapped.
    Mapped,
    /// Only failures are mapped.
    FailuresOnly,
    /// The route has no rows.
    NotMapped,
}

impl Replies {
    /// Returns the replies of a route that are mapped.
    #[must_use]
    pub fn new(route: &Route) -> Replies {
        let rows = route.outcomes.rows();
        if !route.expects_reply || route.is_frame() {
            Replies::None
        } else if route.outcomes.tool_value() != ToolValue::Whole {
            Replies::Mapped
        } else if rows.is_empty() {
            Replies::NotMapped
        } else if rows.iter().any(|row| row.maps_success()) {
            Replies::Mapped
        } else {
            Replies::FailuresOnly
        }
    }

    /// Returns the word for programs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Replies::None => "none",
            Replies::Mapped => "mapped",
            Replies::FailuresOnly => "failures_only",
            Replies::NotMapped => "not_mapped",
        }
    }
}

/// Returns true when a route calls a tool whose whole result is the REST body, and has no row for a result with `isError: true`.
#[must_use]
pub fn lacks_tool_failures(route: &Route) -> bool {
    let is_whole = route.outcomes.tool_value() == ToolValue::Whole;
    let is_tool = is_whole && route.outcomes.tool() == ToolResult::Succeeded && route.expects_reply;
    is_tool
        && !route
            .outcomes
            .rows()
            .iter()
            .any(|row| row.maps_tool_failure())
}
