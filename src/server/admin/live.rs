//! The live stream: the overview as server-sent events, sent again whenever it changes.
//!
//! A stream asks the owner of the state once a second, who computes an overview once for all streams. It ends with the
//! lifetime of its connection, with the listener, and when the owner ends: the page then opens another one. Its
//! connection may be displaced like that of a slow reader. The number of streams is limited.
//!
//! Used by `admin::response` and `admin::serve`.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::unfold;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::request::Parts;
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::sleep;

use super::api::AdminApi;
use super::problem::busy;
use crate::server::admin::ViewCommand;

/// The body of a response: whole, or a stream.
pub type AdminBody = UnsyncBoxBody<Bytes, Infallible>;

/// The interval of looking for changes.
const EVERY: Duration = Duration::from_secs(1);
/// The number of looks without a change after which a comment shows that the stream is alive.
const QUIET: u32 = 10;

/// The shutdown signal of the listener or of a connection: it carries no value, and fires when its sender is dropped.
/// Requests carry that of their connection as an extension.
#[derive(Debug, Clone)]
pub(super) struct Closing(watch::Receiver<()>);

impl Closing {
    /// Creates a signal, and its sender.
    pub(super) fn channel() -> (watch::Sender<()>, Closing) {
        let (open, closing) = watch::channel(());
        (open, Closing(closing))
    }

    /// Waits until the sender is dropped. Cancel-safe.
    pub(super) async fn wait(&mut self) {
        // The sender never sends; an error means that it is gone.
        let _ = self.0.changed().await;
    }
}

/// Makes a body of a whole response.
pub(super) fn whole(body: Full<Bytes>) -> AdminBody {
    body.boxed_unsync()
}

/// One stream.
struct LiveStream {
    admin: AdminApi,
    closing: Option<Closing>,
    last: Bytes,
    quiet: u32,
    _permit: OwnedSemaphorePermit,
}

impl LiveStream {
    /// Waits for the next event; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            self.pause().await?;
            let page = self.admin.show(ViewCommand::Overview).await.ok()?;
            if page != self.last {
                self.quiet = 0;
                self.last = page;
                return Some(event(&self.last));
            }
            self.quiet += 1;
            if self.quiet >= QUIET {
                self.quiet = 0;
                return Some(Bytes::from_static(b": no change\n\n"));
            }
        }
    }

    /// Waits for the next look; `None` if the connection is to close.
    async fn pause(&mut self) -> Option<()> {
        let Some(closing) = &mut self.closing else {
            sleep(EVERY).await;
            return Some(());
        };
        // Cancel-safe: neither branch holds anything.
        tokio::select! {
            () = sleep(EVERY) => Some(()),
            () = closing.wait() => None,
        }
    }
}

/// Renders an overview as an event.
fn event(page: &[u8]) -> Bytes {
    [b"event: overview\ndata: ", page.trim_ascii_end(), b"\n\n"]
        .concat()
        .into()
}

impl AdminApi {
    /// Responds with the live stream.
    pub(super) async fn live(&self, head: &Parts) -> http::Response<AdminBody> {
        let Some(permit) = self.streams.admit() else {
            return busy("limit of live streams reached; retry later").map(whole);
        };
        // The first overview is made before the response, so that a failure has a status.
        let page = match self.show(ViewCommand::Overview).await {
            Ok(page) => page,
            Err(problem) => {
                self.streams.failed();
                return problem.render().map(whole);
            }
        };
        self.streams.opened();
        let first = event(&page);
        let stream = LiveStream {
            admin: self.clone(),
            closing: head.extensions.get::<Closing>().cloned(),
            last: page,
            quiet: 0,
            _permit: permit,
        };
        let events = unfold((Some(first), stream), |(first, mut stream)| async move {
            let event = match first {
                Some(first) => first,
                None => stream.next().await?,
            };
            Some((Ok(Frame::data(event)), (None, stream)))
        });
        let mut response = http::Response::new(StreamBody::new(events).boxed_unsync());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }
}
