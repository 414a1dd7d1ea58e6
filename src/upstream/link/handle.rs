//! The handles between a worker and the task that owns a link. Used by `app` and `link`.

use std::future::pending;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use http::HeaderValue;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;

use super::cancel::CancelSignal;
use super::notifications::{self, NotificationSender, ReplySender};
use super::subscriber_set::{Subscriber, SubscriberSet};
use dualgauge_model::mcp::{InputCapabilities, LogFilter, ServerEra};
use dualgauge_model::pending::{LoginCall, Outbound, Priority, RequestError, RetryRule};
use dualgauge_patterns::json::Json;

/// Requests that the channel to a link task holds beyond the configured queue.
const ON_THE_WAY: usize = 64;

/// A guard for a request in flight on a link; the strong count is the load.
pub(super) type InFlightGuard = Arc<()>;

/// A request to a link task.
#[derive(Debug)]
pub struct LinkRequest {
    pub(super) outbound: Outbound,
    pub(super) start_by: Instant,
    pub(super) deadline: Instant,
    pub(super) repeat: RetryRule,
    pub(super) rank: Priority,
    pub(super) reply: ReplySender,
    /// The notification channel of the client that waits for the reply.
    pub(super) notifier: Option<NotificationSender>,
    /// A client that subscribes with this request to notifications for all clients.
    pub(super) subscriber: Option<Subscriber>,
    /// The receiver of the progress notifications of this request.
    pub(super) progress: Option<ProgressSink>,
    /// The cancellation signal of the client.
    pub(super) cancel_signal: Option<Arc<CancelSignal>>,
    /// The log messages of its own call that the client receives.
    pub(super) logs: LogFilter,
    /// The requests of the server that the client answers during its call.
    pub(super) input: InputCapabilities,
    /// Counts the request as load of its link for as long as it lives.
    pub(super) load: Option<InFlightGuard>,
}

/// The receiver of the progress notifications of a request.
#[derive(Debug)]
pub(super) struct ProgressSink {
    /// The token of the request on the link.
    pub(super) token: String,
    /// The token that the caller chose.
    pub(super) client_token: Json,
    pub(super) to: NotificationSender,
}

/// A handle to a link task. When the last handle is dropped, the task closes its link.
#[derive(Debug, Clone)]
pub struct LinkHandle {
    pub(super) requests: mpsc::Sender<LinkRequest>,
    /// Notified when a caller goes away.
    pub(super) caller_gone: Arc<Notify>,
    /// The number of the [`ServerEra`] of the link.
    pub(super) era: Arc<AtomicU8>,
}

/// A handle that does not keep the link task alive.
#[derive(Debug)]
pub struct WeakLinkHandle {
    requests: mpsc::WeakSender<LinkRequest>,
    caller_gone: Arc<Notify>,
    era: Arc<AtomicU8>,
}

impl WeakLinkHandle {
    /// Returns a handle while another one exists.
    #[must_use]
    pub fn upgrade(&self) -> Option<LinkHandle> {
        Some(LinkHandle {
            requests: self.requests.upgrade()?,
            caller_gone: self.caller_gone.clone(),
            era: self.era.clone(),
        })
    }
}

impl LinkHandle {
    /// Returns true if the link task has ended and takes no more requests.
    pub(super) fn has_ended(&self) -> bool {
        self.requests.is_closed()
    }

    /// Returns the era of the server.
    pub(super) fn era(&self) -> ServerEra {
        ServerEra::from_number(self.era.load(Ordering::Relaxed))
    }

    /// Forwards a request that another handle received.
    pub(super) async fn forward(&self, request: LinkRequest) -> Result<(), RequestError> {
        let sent = self.requests.send(request).await;
        sent.map_err(|_| RequestError::Unreachable)
    }

    /// Tells the link task that a caller has gone away.
    pub(super) fn notify_caller_gone(&self) {
        self.caller_gone.notify_one();
    }

    /// Returns an identity that distinguishes this link from others while it exists.
    pub(super) fn identity(&self) -> Weak<Notify> {
        Arc::downgrade(&self.caller_gone)
    }

    /// Returns a handle that does not keep the link task alive.
    #[must_use]
    pub fn downgrade(&self) -> WeakLinkHandle {
        WeakLinkHandle {
            requests: self.requests.downgrade(),
            caller_gone: self.caller_gone.clone(),
            era: self.era.clone(),
        }
    }
}

/// The receiving end of a link task, with the settings of its link.
#[derive(Debug)]
pub struct RequestReceiver {
    pub(super) requests: mpsc::Receiver<LinkRequest>,
    /// Notified when a caller goes away.
    pub(super) caller_gone: Arc<Notify>,
    /// The number of the [`ServerEra`] of the link.
    pub(super) era: Arc<AtomicU8>,
    /// The channel of the only client, if the link belongs to one client.
    pub(super) notifier: Option<NotificationSender>,
    /// The longest time in which the link may be unused.
    pub(super) idle: Option<Duration>,
    /// The age at which the link stops taking requests.
    pub(super) max_age: Option<Duration>,
    /// Becomes true when the upstream is changed or removed.
    pub(super) over: Option<watch::Receiver<bool>>,
    /// Notified each time the link becomes ready.
    pub(super) ready: Option<Arc<Notify>>,
    /// The `Authorization` of all requests, if the link belongs to one.
    pub(super) authorization: Option<HeaderValue>,
    /// The login of the link, if it takes values from the client.
    pub(super) login: Option<LoginCall>,
    /// True if the link ends, and its callers get the rejection, when the server rejects the handshake by its HTTP
    /// status. Otherwise the link is lost, and opened again after a pause.
    pub(super) ends_on_rejection: bool,
    /// The subscribers to notifications for all clients.
    pub(super) subscribers: SubscriberSet,
}

impl RequestReceiver {
    /// Configures the receiver for a link that belongs to one client.
    pub(super) fn for_client(
        self,
        notifier: Option<NotificationSender>,
        idle: Duration,
    ) -> RequestReceiver {
        RequestReceiver {
            notifier,
            idle: Some(idle),
            ..self
        }
    }

    /// Returns the `Authorization` of all requests, if the link belongs to one.
    #[must_use]
    pub fn authorization(&self) -> Option<HeaderValue> {
        self.authorization.clone()
    }

    /// Closes the channel and refuses all requests in it; none of them has been written.
    pub(super) fn refuse(&mut self) {
        self.requests.close();
        while let Ok(LinkRequest {
            reply, notifier, ..
        }) = self.requests.try_recv()
        {
            notifications::answer(reply, notifier.as_ref(), Err(RequestError::Unreachable));
        }
    }

    /// Ends the link when its upstream is changed or removed.
    #[must_use]
    pub fn ending_with(self, over: watch::Receiver<bool>) -> RequestReceiver {
        let over = Some(over);
        RequestReceiver { over, ..self }
    }

    /// Ends the link at an age; the next request opens another one.
    #[must_use]
    pub fn with_max_age(self, max_age: Option<Duration>) -> RequestReceiver {
        RequestReceiver { max_age, ..self }
    }
}

/// Creates a handle and receiver for a link task with a queue of `queue` requests.
#[must_use]
pub fn open(queue: usize) -> (LinkHandle, RequestReceiver) {
    let (sender, requests) = mpsc::channel(queue + ON_THE_WAY);
    let caller_gone = Arc::<Notify>::default();
    let era = Arc::<AtomicU8>::default();
    let handle = LinkHandle {
        requests: sender,
        caller_gone: caller_gone.clone(),
        era: era.clone(),
    };
    let inbox = RequestReceiver {
        requests,
        caller_gone,
        era,
        notifier: None,
        idle: None,
        max_age: None,
        over: None,
        ready: None,
        authorization: None,
        login: None,
        ends_on_rejection: false,
        subscribers: SubscriberSet::default(),
    };
    (handle, inbox)
}

/// Waits until the upstream is changed or removed; cancel-safe. Never completes without a receiver or a sender.
pub(super) async fn wait_until_over(over: &mut Option<watch::Receiver<bool>>) {
    if let Some(over) = over
        && over.wait_for(|over| *over).await.is_ok()
    {
        return;
    }
    pending().await
}
