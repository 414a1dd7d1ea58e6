//! MCP over Streamable HTTP, as a client speaks it: which revision a server knows, and how a message and its answer
//! look there.
//!
//! Revisions 2024-11-05 to 2025-11-25 begin with `initialize` and have sessions; 2026-07-28 has neither, and each
//! request says by itself who asks. No I/O is done here.

mod envelope;
mod header_check;
mod outgoing;
mod param_headers;
mod response;
mod result;
mod revision;

pub use envelope::{AnnotatedRequest, annotated, header_value};
pub use header_check::{HeaderMismatch, check, check_message, complete, is_modern, named};
pub use outgoing::McpMessage;
pub use param_headers::{ParamHeaders, list_tools, next_page};
pub use response::{
    FormerStream, NoStream, ResponseBody, ResponseKind, kind_of, no_stream, read_body,
};
pub use result::{ClientRevision, InputRequired, fitted, written};
pub use revision::{
    DiscoverResult, Revision, agreeable, agreed, agrees, answered, discover, greeting, verdict,
};
