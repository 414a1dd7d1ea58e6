//! The choices that a route declares, each with its default and its meaning.
//!
//! Used by `config`, `model`, `gateway` and `server`.

use http::Method;

use crate::rollout::Glob;
use dualgauge_patterns::pattern::UnknownMembers;

/// The content that is sent where an object body has no members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyBody {
    /// `{}`: servers that expect a body refuse a request without content.
    Sent,
    /// No content.
    Omitted,
}

/// The treatment of members and query names that a route does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extra {
    /// Dropped and counted.
    Drop,
    /// Refused as an error of the caller.
    Reject,
    /// Carried: unknown members of the body become members of params, and the other way round.
    Carry,
}

impl Extra {
    /// Returns the treatment by a pattern reader. A carried member has a place, so it is not unknown.
    #[must_use]
    pub fn unknown_members(self) -> UnknownMembers {
        match self {
            Extra::Drop | Extra::Carry => UnknownMembers::Dropped,
            Extra::Reject => UnknownMembers::Refused,
        }
    }

    /// Returns the word used in configuration and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Extra::Drop => "drop",
            Extra::Reject => "reject",
            Extra::Carry => "carry",
        }
    }
}

/// The treatment of unknown query names in translated calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownQuery {
    /// The names that are dropped and counted.
    pub ignored: Vec<Glob>,
    /// The treatment of all other names.
    pub others: UnknownNames,
}

/// The treatment of names that a route does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownNames {
    /// Refused as an error of the caller.
    Refused,
    /// Dropped and counted: the route has `extra = "drop"`.
    Dropped,
}

impl UnknownQuery {
    /// Returns the treatment for a route's `ignore_query` and `extra`.
    pub(super) fn new(ignored: Vec<Glob>, extra: Option<Extra>) -> UnknownQuery {
        let others = match extra {
            Some(Extra::Drop) => UnknownNames::Dropped,
            Some(Extra::Reject | Extra::Carry) | None => UnknownNames::Refused,
        };
        UnknownQuery { ignored, others }
    }

    /// Returns true when a name is dropped.
    #[must_use]
    pub fn drops(&self, name: &str) -> bool {
        self.others == UnknownNames::Dropped || self.ignored.iter().any(|glob| glob.fits(name))
    }
}

/// The method whose results may be marked as errors (MCP, "Tools").
pub const TOOL_CALL: &str = "tools/call";

/// The form of a tool's result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResultForm {
    /// The REST body is the result of the RPC call as it is.
    #[default]
    Plain,
    /// The REST body is the value of a tool: `structuredContent`, and its text in `content`.
    Tool,
}

/// The form of a route's declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteForm {
    /// The params are an object of the holes by name and of the body's members.
    Short,
    /// `params` and `body` are spelled out.
    Full,
}

/// The effect of a second call (RFC 9110 §9.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Reads only.
    Safe,
    /// A second call has no further effect.
    Idempotent,
    /// Anything else.
    Unsafe,
}

impl Effect {
    /// Returns the word used in configuration and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Effect::Safe => "safe",
            Effect::Idempotent => "idempotent",
            Effect::Unsafe => "unsafe",
        }
    }

    /// Returns the effect that an HTTP method promises.
    #[must_use]
    pub fn from_method(method: &Method) -> Effect {
        if method.is_safe() {
            Effect::Safe
        } else if method.is_idempotent() {
            Effect::Idempotent
        } else {
            Effect::Unsafe
        }
    }

    /// Returns true when the call may be repeated although the first one may have been processed.
    #[must_use]
    pub fn may_repeat(self) -> bool {
        match self {
            Effect::Safe | Effect::Idempotent => true,
            Effect::Unsafe => false,
        }
    }
}

/// Returns true when content has a defined meaning in requests with this method (RFC 9110 §9.3).
#[must_use]
pub fn has_content(method: &Method) -> bool {
    !matches!(
        *method,
        Method::GET | Method::HEAD | Method::DELETE | Method::OPTIONS | Method::TRACE
    )
}
