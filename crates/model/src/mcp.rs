//! MCP over Streamable HTTP, client side: the server's revision, and the form of messages and responses.
//!
//! Revisions 2024-11-05 to 2025-11-25 begin with `initialize` and have sessions; 2026-07-28 has neither, and each
//! request names its client. The module does no I/O.
//!
//! Used by `config`, `model`, `gateway` and `upstream`.

mod client_info;
mod envelope;
mod era;
mod era_bridge;
mod error;
mod greeting;
mod header_check;
mod input;
mod log_level;
mod outgoing;
mod param_headers;
mod protected_resource;
mod response;
mod result;
mod revision;
mod server_request;
mod session_metadata;
mod session_resources;
mod sse_endpoint;
mod tool_error;

pub use client_info::{ClientInfo, SESSION_PREFIX};
pub use envelope::{AnnotatedRequest, annotated, header_value, with_subscription};
pub use era::{CallEra, Era};
pub use era_bridge::{BridgeAction, BridgeActions, ServerEra, discover_from_initialize};
pub use error::{ConvertedError, convert_error};
pub use greeting::{agreed_revision, initialize_error};
pub use header_check::{
    HeaderMismatch, check, check_client_capabilities, check_message, is_modern, named,
};
pub use input::{InputCapabilities, InputProgress, InputRound};
pub use log_level::{LogFilter, LogLevel, SET_LEVEL, SessionLevels, SessionLogLevel};
pub use outgoing::McpMessage;
pub use param_headers::{ParamHeaders, list_tools, next_page};
pub use protected_resource::{
    METADATA_PATH, PublicUrl, PublicUrlFault, ResourceNaming, check_any_metadata,
    metadata_resource, name_metadata, name_resource,
};
pub use response::{
    FormerStream, NoStream, ResponseBody, ResponseKind, kind_of, no_stream, read_body,
};
pub use result::{
    ClientRevision, InputRequired, ResultType, is_input_required, missing_members_for, render_for,
};
pub use revision::{
    DiscoverResult, Revision, accepted_revisions, answer_locally, check_revision, discover,
    discover_result, initialize_response, is_unsupported,
};
pub use server_request::{OpenRequest, SuspensionEvent, request_state, state_of_retry, withdrawal};
pub use session_metadata::with_session_metadata;
pub use session_resources::{
    ListChanges, ResourceChange, ResourceId, SessionResources, Settled, SubscriptionAnswer,
    listen_request,
};
pub use sse_endpoint::{
    EndpointFault, SessionEvent, StreamUrl, check_any_endpoint, endpoint_event, endpoint_of_event,
    endpoint_target,
};
pub use tool_error::invalid_arguments;
