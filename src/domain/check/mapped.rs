//! Which replies of a route its own rows map. The others go by the built-in table, of which a proof of the calls says
//! nothing: the two servers may answer in different forms.

use crate::domain::outcome::ToolResult;
use crate::domain::route::{ExpectsReply, Route};

/// Which replies the rows of a route map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replies {
    /// Nobody waits for a reply, or a frame without a row is no reply.
    None,
    /// Success is mapped.
    Mapped,
    /// Only failures are mapped.
    FailuresOnly,
    /// There are no rows.
    NotMapped,
}

impl Replies {
    /// Returns which replies of a route are mapped.
    #[must_use]
    pub fn new(route: &Route) -> Replies {
        let rows = route.outcomes.rows();
        if route.waits == ExpectsReply::No || route.is_frame() {
            Replies::None
        } else if rows.is_empty() {
            Replies::NotMapped
        } else if rows.iter().any(|row| row.maps_success()) {
            Replies::Mapped
        } else {
            Replies::FailuresOnly
        }
    }

    /// The word for programs.
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

/// Whether a route calls a tool and has no row for a result that says `isError: true`.
#[must_use]
pub fn lacks_tool_failures(route: &Route) -> bool {
    let is_tool =
        route.outcomes.tool() == ToolResult::Succeeded && route.waits == ExpectsReply::Yes;
    is_tool
        && !route
            .outcomes
            .rows()
            .iter()
            .any(|row| row.maps_tool_failure())
}
