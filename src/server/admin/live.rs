//! The live stream: the overview as server-sent events, sent again whenever it changes.
//!
//! A stream asks the owner of the state once a second, who computes an overview once for all streams. It ends with the
//! listener, when the owner ends, and before the lifetime of its connection: the page then opens another one. Its
//! connection may be displaced like that of a slow reader.
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
use tokio::sync::watch;
use tokio::time::sleep;

use super::api::AdminApi;
use crate::server::admin::{AdminCommand, ViewCommand};

/// The body of a response: whole, or a stream.
pub type AdminBody = UnsyncBoxBody<Bytes, Infallible>;

/// The interval of looking for changes.
const EVERY: Duration = Duration::from_secs(1);
/// The number of looks after which a stream ends; shorter than the lifetime of a connection.
const LOOKS: u32 = 50;
/// The number of looks without a change after which a comment shows that the stream is alive.
const QUIET: u32 = 10;

/// The shutdown signal of the listener: it carries no value, and fires when its sender is dropped. Requests carry it as
/// an extension.
#[derive(Debug, Clone)]
pub(super) struct Closing(pub(super) watch::Receiver<()>);

impl Closing {
    async fn wait(&mut self) {
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
    looks: u32,
    quiet: u32,
    last: Bytes,
}

impl LiveStream {
    /// Waits for the next event; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Bytes> {
        while self.looks < LOOKS {
            if self.looks > 0 {
                self.pause().await?;
            }
            self.looks += 1;
            let ask = |reply| AdminCommand::View(ViewCommand::Overview(reply));
            let page = self.admin.ask(ask).await.ok()?;
            if page != self.last {
                self.quiet = 0;
                self.last = page;
                let head = b"event: overview\ndata: ";
                return Some([head, self.last.trim_ascii_end(), b"\n\n"].concat().into());
            }
            self.quiet += 1;
            if self.quiet >= QUIET {
                self.quiet = 0;
                return Some(Bytes::from_static(b": no change\n\n"));
            }
        }
        None
    }

    /// Waits for the next look; `None` if the listener closes.
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

impl AdminApi {
    /// Responds with the live stream.
    pub(super) async fn live(&self, head: &Parts) -> http::Response<AdminBody> {
        let mut stream = LiveStream {
            admin: self.clone(),
            closing: head.extensions.get::<Closing>().cloned(),
            looks: 0,
            quiet: 0,
            last: Bytes::new(),
        };
        // The first event is made before the response, so that a failure has a status.
        let Some(first) = stream.next().await else {
            let problem = super::problem::unavailable("no response: the process is shutting down");
            return problem.render().map(whole);
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
