//! Routes: one operation seen from both sides, and the table that finds the route of a call.
//!
//! A route is a pair of patterns with shared holes: an HTTP request and a JSON-RPC call. Reading one side binds the
//! holes, writing the other fills them. Laws: the route of a call does not depend on the order of declaration. Among
//! the matching routes the most specific one wins. Two routes that match the same call, neither of them more specific,
//! are refused.

mod arrange;
mod captured;
mod definition;
mod dialects;
mod docs;
mod draft;
mod extra;
mod form;
mod headers;
mod http_pass;
mod index;
mod message_parameter;
mod name_map;
mod near;
mod old;
mod options;
mod order;
mod overlaps;
mod parse;
mod path;
mod path_order;
mod path_texts;
mod query;
mod rpc_side;
mod segments;
mod source;
mod specificity;
mod table;
mod template;
mod url;
mod wire;

pub use captured::{HeaderPrefix, MAX_CAPTURED};
pub use definition::{RestCall, Route, RpcCall};
pub use dialects::indistinguishable;
pub use docs::{
    DescribedHeader, DescribedResponse, DescribedSchema, RouteDocs, SHARED, escaped, unescaped,
};
pub use draft::parse_route;
pub(crate) use form::{as_texts, is_file_content, typed};
pub use headers::{HeaderItem, is_reserved};
pub(crate) use headers::{
    header_of_page, parse_headers, read_headers, resolve_headers, write_headers,
};
pub use http_pass::HttpPass;
pub(crate) use message_parameter::write_message;
pub use message_parameter::{check_any_query, message_in};
pub use near::{Likeness, NearRoutes};
pub use old::{BodyContent, FRAME, OldRoutes, frame_line};
pub use options::{
    Effect, EmptyBody, Extra, ResultForm, RouteForm, TOOL_CALL, UnknownNames, UnknownQuery,
    has_content,
};
pub use overlaps::{OverlapGroup, TableError};
pub use parse::parse_method;
pub use path::PathMatch;
pub(crate) use path_texts::PathTexts;
pub use query::{Query, refuse_unknown};
pub use segments::{AmbiguousPath, Segments, without_slash};
pub use source::{Example, ExampleReply, ExampleWay, OldSource, RouteSource, Schemas};
pub use table::{RestSelection, RouteTable, has_version};
pub use template::{PlacedHole, QueryItem, SegmentPattern, Template};
pub use url::{read_url, write_url};
pub use wire::Wire;

/// The reason why a call cannot be translated.
pub use dualgauge_patterns::pattern::MatchError;

#[cfg(test)]
pub(crate) mod arbitrary;
#[cfg(test)]
pub(crate) mod test_syntax;
#[cfg(test)]
mod tests;
