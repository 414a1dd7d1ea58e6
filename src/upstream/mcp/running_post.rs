//! The POSTs that a session waits for. Used by `mcp::session`.

use std::pin::Pin;
use std::time::Duration;

use futures_util::future::Abortable;
use tokio::time::sleep;

use super::get_stream::StreamEnd;
use super::post_outcome::PostResult;

/// The time for the response to a cancelled call.
const CANCELLED_RESPONSE_WAIT: Duration = Duration::from_secs(1);

/// A running POST, or the GET stream.
pub(super) type RunningPost = Abortable<PostFuture>;
pub(super) type PostFuture = Pin<Box<dyn Future<Output = Completed>>>;

/// A completed [`RunningPost`].
pub(super) enum Completed {
    Post(PostKind, PostResult),
    OwnStream(StreamEnd),
    /// The time for the response to the cancelled call with this id is over.
    Overdue(u64),
}

/// The purpose of a POST.
#[derive(Debug, Clone, Copy)]
pub(super) enum PostKind {
    Initialize,
    Initialized,
    Call(u64),
    /// A notification of a caller, who waits for its delivery.
    Notice,
    /// A message of the link itself, which has no waiting caller.
    Own,
}

/// Waits until the response to a cancelled call is no longer awaited.
pub(super) fn overdue(id: u64) -> PostFuture {
    Box::pin(async move {
        sleep(CANCELLED_RESPONSE_WAIT).await;
        Completed::Overdue(id)
    })
}
