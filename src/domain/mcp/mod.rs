//! MCP over Streamable HTTP, as a client speaks it: which revision a server knows, and how a message and its answer
//! look there.
//!
//! Revisions 2024-11-05 to 2025-11-25 begin with `initialize` and have sessions; 2026-07-28 has neither, and each
//! request says by itself who asks. No I/O is done here.

mod answer;
mod envelope;
mod mirrored;
mod outgoing;
mod result;
mod revision;
mod said;

pub use answer::{Body, FormerStream, Looks, NoStream, looks, no_stream, read_body};
pub use envelope::{Dressed, dressed, header_value};
pub use mirrored::{Mirrored, list_tools, next_page};
pub use outgoing::Outgoing;
pub use result::{Era, InputRequired, fitted, written};
pub use revision::{
    Revision, Verdict, agreeable, agreed, agrees, answered, discover, greeting, verdict,
};
pub use said::{Discord, check, check_message, complete, is_modern, named};
