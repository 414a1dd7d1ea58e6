//! An MCP server over HTTP with SSE (MCP 2024-11-05, "Transports"), as a link: one event stream for everything that the
//! server sends, and a POST for each message to it.
//!
//! The link lives as long as its stream, whose first event names the target of the POSTs.
//!
//! Used by `app::link_thread`.

use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Uri};
use http_body_util::BodyExt;
use tokio::time::timeout;

use super::coded::is_coded;
use super::post::{OTHER, OWN_CONNECTIONS, PostClient, parts};
use crate::upstream::HttpUpstream;
use crate::upstream::link::{Event, Link, Transport};
use dualgauge_model::jsonrpc;
use dualgauge_model::mcp::{
    McpMessage, ResponseKind, StreamUrl, endpoint_of_event, endpoint_target, kind_of,
};
use dualgauge_model::outcome::{ReplyLimits, RestReply, is_rejection_status, refusal};
use dualgauge_model::pending::{INPUT_TIMEOUT, RequestError};
use dualgauge_model::plan::{McpPlan, UpstreamPlan};
use dualgauge_model::redact::Redaction;
use dualgauge_model::sse::{MESSAGE, RawEvent, SseReader, StreamPiece};
use dualgauge_net::{IncomingBody, Lease, MemoryBudget, Tasks, collect_all};

/// An MCP server to which event streams can be opened.
#[derive(Debug, Clone)]
pub struct SseServer {
    plan: Rc<McpPlan>,
    client: PostClient,
}

impl SseServer {
    /// Creates the server of a plan. `tasks` runs its connections; `memory` accounts for decoded bodies.
    #[must_use]
    pub fn new(
        upstream: &UpstreamPlan,
        plan: McpPlan,
        tasks: Tasks,
        memory: MemoryBudget,
    ) -> SseServer {
        let calls = plan.link.settings.order.in_flight();
        let http = UpstreamPlan {
            connections: calls + OWN_CONNECTIONS,
            queue: calls,
            ..upstream.clone()
        };
        let client = PostClient::new(HttpUpstream::new(http, tasks.clone()), tasks, memory, &plan);
        SseServer {
            plan: Rc::new(plan),
            client,
        }
    }

    /// Opens the event stream.
    async fn open_stream(&self) -> Result<(IncomingBody, Lease), String> {
        let body = dualgauge_net::Body::empty();
        let mut request = self.client.request(Method::GET, HeaderMap::new(), body);
        let accept = HeaderValue::from_static("text/event-stream");
        request.headers_mut().insert(ACCEPT, accept);
        let answered = self.client.send(request).await;
        let answered = answered.map_err(|_| "it cannot be reached".to_owned())?;
        let (head, body, lease) = parts(answered);
        let content_type = head.headers.get(CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        let status = head.status.as_u16();
        if kind_of(status, content_type) != ResponseKind::Events {
            return Err(format!(
                "it answered GET with the status {status} and no event stream"
            ));
        }
        if is_coded(&head.headers) {
            return Err("its event stream has a content coding".to_owned());
        }
        Ok((body, lease))
    }
}

impl Transport for SseServer {
    type Link = SseSession;

    fn redaction(&self) -> &Redaction {
        &self.plan.link.redaction
    }

    async fn open(&self) -> Result<SseSession, String> {
        let opened = async {
            let (body, mut lease) = self.open_stream().await?;
            // The stream ends with its connection.
            lease.mark_unusable();
            let mut session = SseSession {
                client: self.client.clone(),
                endpoint: Uri::default(),
                depth: self.plan.link.settings.depth,
                reader: SseReader::new(self.client.limit()),
                body,
                posts: FuturesUnordered::new(),
                ready_events: VecDeque::new(),
                _lease: lease,
            };
            session.endpoint = session.read_endpoint().await?;
            Ok(session)
        };
        let limit = self.plan.link.settings.start_timeout;
        let late = || Err("it sent no `endpoint` event in time".to_owned());
        timeout(limit, opened).await.unwrap_or_else(|_| late())
    }
}

/// A POST of a message that runs. Its output is the id of the call in it, if there is one, and the result.
type RunningPost = Pin<Box<dyn Future<Output = (Option<u64>, Posted)>>>;

/// The result of a POST.
enum Posted {
    Accepted,
    /// The server does not know the session any more.
    SessionLost,
    /// The server rejected the message by its HTTP status.
    Refused(RestReply),
    Failed(RequestError),
}

/// An event stream, and the target of messages to its server.
pub struct SseSession {
    client: PostClient,
    endpoint: Uri,
    depth: u16,
    reader: SseReader,
    body: IncomingBody,
    posts: FuturesUnordered<RunningPost>,
    /// Events that wait to be returned.
    ready_events: VecDeque<Event>,
    _lease: Lease,
}

impl SseSession {
    /// Reads the stream up to the `endpoint` event.
    async fn read_endpoint(&mut self) -> Result<Uri, String> {
        loop {
            while let Some(piece) = self.reader.next() {
                let StreamPiece::Event(event) = piece else {
                    continue;
                };
                if let Some(endpoint) = endpoint_of_event(&event) {
                    return self.target(&endpoint);
                }
            }
            let Some(Ok(frame)) = self.body.frame().await else {
                return Err("its event stream ended before the `endpoint` event".to_owned());
            };
            if let Ok(data) = frame.into_data() {
                self.reader.feed(&data);
            }
        }
    }

    fn target(&self, endpoint: &str) -> Result<Uri, String> {
        let plan = self.client.plan();
        let stream = StreamUrl {
            scheme: if plan.tls.is_some() { "https" } else { "http" },
            authority: plan.authority.as_str(),
            path: plan.path.path(),
        };
        let shown: String = endpoint.chars().take(100).collect();
        let target = endpoint_target(endpoint, stream);
        let target = target.map_err(|fault| {
            format!(
                "its endpoint `{}` is refused: {fault}",
                shown.escape_debug()
            )
        })?;
        Ok(Uri::from(target))
    }

    /// Queues the messages of an event.
    fn take_event(&mut self, event: &Bytes) {
        let Some(block) = RawEvent::read(event) else {
            return;
        };
        let Some(data) = block
            .data()
            .filter(|data| !data.is_empty() && block.event() == MESSAGE)
        else {
            return;
        };
        let message = Bytes::copy_from_slice(data.as_bytes());
        let all = jsonrpc::split_batch(&message, self.depth);
        let all = all.unwrap_or_else(|| vec![message]);
        self.ready_events
            .extend(all.into_iter().map(Event::Message));
    }

    /// Records the end of a POST.
    fn finish_post(&mut self, id: Option<u64>, posted: Posted) {
        let event = match (posted, id) {
            (Posted::Accepted, None) => Event::Written,
            // The response comes on the stream.
            (Posted::Accepted, Some(_)) => return,
            (Posted::SessionLost, _) => Event::Lost("it does not know the session".to_owned()),
            (Posted::Refused(reply), Some(id)) => {
                let limits = ReplyLimits {
                    depth: self.depth,
                    error_text: OTHER,
                };
                Event::Message(refusal(id, &reply, limits))
            }
            (Posted::Refused(reply), None) => {
                Event::Undelivered(RequestError::Unusable(reply.status))
            }
            (Posted::Failed(why), Some(id)) => Event::Failed(id, why),
            (Posted::Failed(why), None) => Event::Undelivered(why),
        };
        self.ready_events.push_back(event);
    }
}

impl Link for SseSession {
    async fn event(&mut self) -> Event {
        loop {
            if let Some(event) = self.ready_events.pop_front() {
                return event;
            }
            match self.reader.next() {
                Some(StreamPiece::Event(event)) => {
                    self.take_event(&event);
                    continue;
                }
                Some(StreamPiece::Oversize) => return Event::Overlong,
                Some(
                    StreamPiece::Between(_) | StreamPiece::Feed(_) | StreamPiece::Unfinished(_),
                ) => continue,
                None => {}
            }
            // Both branches are cancel-safe.
            tokio::select! {
                biased;
                frame = self.body.frame() => match frame {
                    Some(Ok(frame)) => {
                        if let Ok(data) = frame.into_data() {
                            self.reader.feed(&data);
                        }
                    }
                    Some(Err(_)) | None => return Event::Lost("its event stream ended".to_owned()),
                },
                Some((id, posted)) = self.posts.next(), if !self.posts.is_empty() => {
                    self.finish_post(id, posted);
                }
            }
        }
    }

    /// Calls are posted concurrently: a server may accept one only when it has served it.
    fn write(&mut self, message: Bytes) {
        self.client.forget_idle();
        let id = match McpMessage::new(&message, self.depth) {
            McpMessage::Initialize(id) | McpMessage::Call { id, .. } => Some(id),
            McpMessage::Initialized
            | McpMessage::Cancelled(_)
            | McpMessage::Notice
            | McpMessage::Response => None,
        };
        if id.is_some() {
            self.ready_events.push_back(Event::Written);
        }
        let (client, endpoint) = (self.client.clone(), self.endpoint.clone());
        // The response to a call comes on the stream, so its POST may be given up; another message was not delivered.
        let limit = client.plan().timeout;
        let (limit, late) = match id {
            None => (limit, Posted::Failed(RequestError::Late)),
            Some(_) => (limit + INPUT_TIMEOUT, Posted::Accepted),
        };
        self.posts.push(Box::pin(async move {
            let posted = timeout(limit, post(&client, endpoint, message)).await;
            (id, posted.unwrap_or(late))
        }));
    }

    /// Does nothing: the stream and the calls show if the server is alive.
    fn ping(&mut self) {}

    /// The end of the stream ends the session.
    async fn close(self) {}
}

/// Posts a message. Dropping the future closes the connection.
async fn post(client: &PostClient, endpoint: Uri, message: Bytes) -> Posted {
    let body = dualgauge_net::Body::from(dualgauge_patterns::rope::Rope::from(message));
    let mut request = client.request(Method::POST, HeaderMap::new(), body);
    *request.uri_mut() = endpoint;
    let json = HeaderValue::from_static("application/json");
    request.headers_mut().insert(CONTENT_TYPE, json);
    let answered = match client.send(request).await {
        Ok(answered) => answered,
        Err(why) => return Posted::Failed(why),
    };
    let (head, body, lease) = parts(answered);
    let status = head.status.as_u16();
    let body = match collect_all(body, OTHER).await {
        Ok(body) => {
            lease.release();
            body
        }
        Err(_) => Bytes::new(),
    };
    match status {
        200..=299 => Posted::Accepted,
        404 => Posted::SessionLost,
        _ if is_rejection_status(status) => Posted::Refused(RestReply {
            status,
            headers: head.headers,
            body,
        }),
        _ => Posted::Failed(RequestError::Unusable(status)),
    }
}
