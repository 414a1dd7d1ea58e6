//! A single POST and its response: one message, a stream of messages, or neither. Used by `mcp`.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, response};
use http_body_util::BodyExt;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::coded::{decode_body, is_coded};
use super::post_outcome::{OutboundPost, PostOutcome, PostResult};
use super::stream_cursor::StreamCursor;
use crate::telemetry::clock;
use crate::upstream::HttpUpstream;
use crate::upstream::link::Event;
use dualgauge_model::jsonrpc::{self, PeerMessage};
use dualgauge_model::mcp::{ResponseBody as Read, ResponseKind, kind_of, read_body};
use dualgauge_model::outcome::{RestReply, is_rejection_status};
use dualgauge_model::pending::RequestError;
use dualgauge_model::plan::{McpPlan, SecretMap, UpstreamPlan};
use dualgauge_model::sse::{MESSAGE, RawEvent, StreamPiece};
use dualgauge_net::{
    Body, CollectError, DecodeError, Exchange, IncomingBody, Lease, MemoryBudget, RetryPolicy,
    Tasks, UpstreamError, chain, collect_all,
};
use dualgauge_patterns::rope::Rope;

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// The maximum number of bytes read from a response that is not a message, so that its connection can be reused.
pub(super) const OTHER: usize = 64 * 1024;
/// Connections for the link's own messages, in addition to those for calls and subscriptions.
pub(super) const OWN_CONNECTIONS: usize = 16;
/// The time to wait for the end of a stream after the response has arrived.
const TAIL: Duration = Duration::from_secs(1);
/// The maximum number of consecutive resumptions that bring nothing new.
const RESUMES: u32 = 2;
/// The capacity of the event channel of a link.
const EVENTS: usize = 16;

/// A client for POSTs to one server.
#[derive(Debug, Clone)]
pub(super) struct PostClient {
    http: Rc<HttpUpstream>,
    tasks: Tasks,
    target: Uri,
    /// The headers that the plan sets on each request.
    pub(super) fixed: HeaderMap,
    /// The maximum size of a message in bytes.
    limit: usize,
    depth: u16,
    /// The receiver of messages that are not responses.
    received: Option<mpsc::Sender<Event>>,
    memory: MemoryBudget,
}

impl PostClient {
    pub(super) fn new(
        http: HttpUpstream,
        tasks: Tasks,
        memory: MemoryBudget,
        plan: &McpPlan,
    ) -> PostClient {
        PostClient {
            target: http.plan().path.clone().into(),
            http: Rc::new(http),
            tasks,
            fixed: headers(&plan.headers),
            limit: plan.message_limit,
            depth: plan.link.settings.depth,
            received: None,
            memory,
        }
    }

    /// Returns a client that forwards messages other than responses, and their receiver.
    pub(super) fn with_notifications(&self) -> (PostClient, mpsc::Receiver<Event>) {
        let (received, events) = mpsc::channel(EVENTS);
        let received = Some(received);
        (
            PostClient {
                received,
                ..self.clone()
            },
            events,
        )
    }

    pub(super) fn forget_idle(&self) {
        self.http.pool().forget_idle();
    }

    /// Sends a message and waits for its outcome. Dropping the future closes the connection.
    pub(super) async fn post(&self, post: OutboundPost) -> PostResult {
        let OutboundPost { id, body, headers } = post;
        let session = headers.get(SESSION).cloned();
        let mut request = self.request(Method::POST, headers.clone(), Body::from(Rope::from(body)));
        request
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let answered = match self.send(request).await {
            Ok(answered) => answered,
            Err(why) => {
                return PostResult {
                    outcome: PostOutcome::Failed(why),
                    session: None,
                };
            }
        };
        let named = answered.response.headers().get(SESSION).cloned();
        let outcome = self.outcome(answered, id, headers, session).await;
        PostResult {
            outcome,
            session: named,
        }
    }

    /// Ends a session. Status 405, which means that the server does not support it, is fine too.
    pub(super) async fn delete(&self, headers: HeaderMap) {
        if let Ok(answered) = self
            .send(self.request(Method::DELETE, headers, Body::empty()))
            .await
        {
            let (_, body, lease) = parts(answered);
            if collect_all(body, OTHER).await.is_ok() {
                lease.release();
            }
        }
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    pub(super) fn plan(&self) -> &UpstreamPlan {
        self.http.plan()
    }

    pub(super) fn request(&self, method: Method, headers: HeaderMap, body: Body) -> Request<Body> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = self.target.clone();
        *request.headers_mut() = self.fixed.clone();
        request.headers_mut().extend(headers);
        let accept = HeaderValue::from_static("application/json, text/event-stream");
        request.headers_mut().insert(ACCEPT, accept);
        if let Some(host) = self.plan().authority.host() {
            request.headers_mut().insert(HOST, host.clone());
        }
        request
    }

    pub(super) async fn send(&self, request: Request<Body>) -> Result<Exchange, RequestError> {
        let plan = self.http.plan();
        let limit = plan.queue_wait(plan.timeout);
        let sent = async {
            let permit = self.http.pool().reserve(limit).await?;
            let tracker = self.http.pool().track_call(clock::now());
            let options = RetryPolicy::Unprocessed.into();
            self.http
                .pool()
                .send(&tracker, permit, request.into(), options)
                .await
        };
        sent.await.map_err(|error| {
            let upstream = &self.http.plan().name;
            tracing::warn!(upstream, error = chain(&error), "cannot deliver a message");
            match error {
                UpstreamError::Unreachable { .. } | UpstreamError::CircuitOpen { .. } => {
                    RequestError::Unreachable
                }
                UpstreamError::Busy { .. } => RequestError::Busy,
                UpstreamError::Broken(_) => RequestError::Cut,
                UpstreamError::Malformed(_)
                | UpstreamError::InvalidFraming(_)
                | UpstreamError::PaddedHeaderValue => RequestError::Unusable(0),
            }
        })
    }

    async fn outcome(
        &self,
        answered: Exchange,
        id: Option<u64>,
        headers: HeaderMap,
        session: Option<HeaderValue>,
    ) -> PostOutcome {
        let (head, body, lease) = parts(answered);
        let (status, success) = (head.status.as_u16(), head.status.is_success());
        let looks = kind_of(status, content_type(&head.headers));
        match (looks, id) {
            (ResponseKind::Events, Some(_)) if is_coded(&head.headers) => {
                return PostOutcome::Failed(RequestError::CodedStream);
            }
            (ResponseKind::Events, Some(id)) => {
                return self.stream(body, lease, id, headers).await;
            }
            (ResponseKind::Json | ResponseKind::Other, _) | (ResponseKind::Events, None) => {}
        }
        let most = match looks {
            ResponseKind::Json => self.limit,
            ResponseKind::Other | ResponseKind::Events => OTHER,
        };
        if id.is_some() && is_rejection_status(status) {
            return PostOutcome::Refused(self.refused(head, body, lease, most).await);
        }
        let body = match collect_all(body, most).await {
            Ok(body) => {
                lease.release();
                body
            }
            Err(CollectError::TooLarge(_)) if looks == ResponseKind::Json => {
                return PostOutcome::Failed(RequestError::TooLarge(status));
            }
            // The head alone shows that the body is not a message.
            Err(_) if looks != ResponseKind::Json => Bytes::new(),
            Err(_) => return PostOutcome::Failed(RequestError::Cut),
        };
        let body = match decode_body(&self.memory, &head.headers, body, most) {
            Ok(body) => body,
            Err(DecodeError::TooLarge(_)) => {
                return PostOutcome::Failed(RequestError::TooLarge(status));
            }
            Err(DecodeError::NoRoom) => return PostOutcome::Failed(RequestError::NoMemory),
            Err(DecodeError::Malformed(_)) => {
                return PostOutcome::Failed(RequestError::Unusable(status));
            }
        };
        let session = session.as_ref().map(|id| id.to_str().unwrap_or_default());
        if looks == ResponseKind::Json
            && let Some(all) = jsonrpc::split_batch(&body, self.depth)
        {
            return match self.forward_events(all, id).await {
                Some(outcome) => outcome,
                None if id.is_none() && success => PostOutcome::Accepted,
                None => PostOutcome::Failed(RequestError::Unusable(status)),
            };
        }
        match (read_body(status, &body, id, session, self.depth), id) {
            (Read::Answer(body), _) if looks == ResponseKind::Json => PostOutcome::Answered(body),
            (Read::Forgotten, _) => PostOutcome::SessionLost,
            (_, None) if success => PostOutcome::Accepted,
            (_, _) => PostOutcome::Failed(RequestError::Unusable(status)),
        }
    }

    /// Reads a response whose status rejects the request. An unreadable body counts as empty.
    async fn refused(
        &self,
        head: response::Parts,
        body: IncomingBody,
        lease: Lease,
        most: usize,
    ) -> RestReply {
        let mut reply = RestReply {
            status: head.status.as_u16(),
            headers: head.headers,
            body: Bytes::new(),
        };
        // An event stream may have no end.
        if !reply.is_event_stream()
            && let Ok(body) = collect_all(body, most).await
        {
            lease.release();
            let decoded = decode_body(&self.memory, &reply.headers, body, most);
            reply.body = decoded.unwrap_or_default();
        }
        if reply.body.is_empty() {
            reply.headers.remove(CONTENT_TYPE);
        }
        reply
    }

    /// Reads a stream up to the response, and resumes it where it breaks off, if possible.
    async fn stream(
        &self,
        mut body: IncomingBody,
        mut lease: Lease,
        id: u64,
        headers: HeaderMap,
    ) -> PostOutcome {
        let mut cursor = StreamCursor::new(self.limit);
        let mut fruitless = 0;
        loop {
            let before = cursor.last.clone();
            if let Some(outcome) = self.listen(&mut body, &mut cursor, id).await {
                self.tail(body, lease);
                return outcome;
            }
            lease.mark_unusable();
            if cursor.reader.is_losing() {
                // Resuming would bring the same event again.
                return PostOutcome::Failed(RequestError::TooLarge(200));
            }
            drop((body, lease));
            fruitless = if cursor.last == before {
                fruitless + 1
            } else {
                0
            };
            loop {
                let last = cursor.last.clone().filter(|_| fruitless < RESUMES);
                let Some(last) = last else {
                    return cursor.outcome();
                };
                match self.resume(headers.clone(), last, cursor.rest).await {
                    Some(again) => {
                        (body, lease) = again;
                        cursor.begin(self.limit);
                        break;
                    }
                    None => fruitless += 1,
                }
            }
        }
    }

    /// Requests the rest of a stream that broke off (MCP 2025-11-25, "Resumability and Redelivery").
    async fn resume(
        &self,
        mut headers: HeaderMap,
        last: HeaderValue,
        rest: Duration,
    ) -> Option<(IncomingBody, Lease)> {
        sleep(rest).await;
        headers.insert(LAST_EVENT, last);
        let request = self.request(Method::GET, headers, Body::empty());
        let (head, body, lease) = parts(self.send(request).await.ok()?);
        let content_type = head
            .headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        let is_stream = kind_of(head.status.as_u16(), content_type) == ResponseKind::Events;
        (is_stream && !is_coded(&head.headers)).then_some((body, lease))
    }

    /// Reads a stream up to the response. Returns `None` if it ends before.
    async fn listen(
        &self,
        body: &mut IncomingBody,
        cursor: &mut StreamCursor,
        id: u64,
    ) -> Option<PostOutcome> {
        loop {
            while let Some(piece) = cursor.reader.next() {
                let event = match piece {
                    StreamPiece::Event(event) => event,
                    StreamPiece::Oversize => {
                        return Some(PostOutcome::Failed(RequestError::TooLarge(200)));
                    }
                    StreamPiece::Between(_) | StreamPiece::Feed(_) | StreamPiece::Unfinished(_) => {
                        continue;
                    }
                };
                if let Some(outcome) = self.event(&event, cursor, Some(id)).await {
                    return Some(outcome);
                }
            }
            let Some(frame) = body.frame().await else {
                cursor.is_complete = true;
                return None;
            };
            if let Ok(data) = frame.ok()?.into_data() {
                cursor.reader.feed(&data);
            }
        }
    }

    /// Processes an event. Returns the outcome of the request if the event decides it.
    pub(super) async fn event(
        &self,
        event: &Bytes,
        cursor: &mut StreamCursor,
        id: Option<u64>,
    ) -> Option<PostOutcome> {
        let block = RawEvent::read(event)?;
        cursor.advance(&block, event);
        // An event without data only carries the position in the stream.
        let data = block
            .data()
            .filter(|data| !data.is_empty() && block.event() == MESSAGE)?;
        let message = Bytes::copy_from_slice(data.as_bytes());
        match jsonrpc::split_batch(&message, self.depth) {
            Some(all) => self.forward_events(all, id).await,
            None => self.forward_event(message, id).await,
        }
    }

    /// Processes several messages. Returns the outcome of the request if one of them decides it.
    async fn forward_events(&self, all: Vec<Bytes>, id: Option<u64>) -> Option<PostOutcome> {
        let mut outcome = None;
        for message in all {
            let own = self.forward_event(message, id).await;
            outcome = outcome.or(own);
        }
        outcome
    }

    /// Processes a message. Returns the outcome of the request if the message decides it.
    async fn forward_event(&self, message: Bytes, id: Option<u64>) -> Option<PostOutcome> {
        match PeerMessage::new(&message, self.depth) {
            PeerMessage::Answer(own) if Some(own) == id => {
                return Some(PostOutcome::Answered(message));
            }
            PeerMessage::Unaddressed | PeerMessage::Misnumbered(_) => {
                if let Read::Answer(answer) = read_body(200, &message, id, None, self.depth) {
                    return Some(PostOutcome::Answered(answer));
                }
                // The request is the only one here, so the misnumbered response belongs to it.
                if id.is_some() {
                    return Some(PostOutcome::Failed(RequestError::Misnumbered));
                }
            }
            PeerMessage::Answer(_)
            | PeerMessage::Request { .. }
            | PeerMessage::Notification { .. }
            | PeerMessage::NotAMessage => {}
        }
        if let Some(received) = &self.received {
            // The send fails only when the link is gone.
            let event = match id {
                Some(id) => Event::StreamMessage(id, message),
                None => Event::Message(message),
            };
            let _ = received.send(event).await;
        }
        None
    }

    /// Waits briefly for the end of a stream after the response, so that its connection can be reused.
    fn tail(&self, mut body: IncomingBody, lease: Lease) {
        self.tasks.start(async move {
            let ended = timeout(TAIL, async {
                let mut read = 0;
                while let Some(frame) = body.frame().await {
                    read += frame.ok()?.into_data().map_or(0, |data| data.len());
                    if read > OTHER {
                        return None;
                    }
                }
                Some(())
            });
            if let Ok(Some(())) = ended.await {
                lease.release();
            }
        });
    }
}

/// Converts the plan's headers. Names and values were validated with the configuration; the values may be secrets.
fn headers(said: &SecretMap) -> HeaderMap {
    let pairs = said.iter().filter_map(|(name, value)| {
        let mut value = HeaderValue::try_from(value).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::try_from(name).ok()?, value))
    });
    pairs.collect()
}

pub(super) fn parts(answered: Exchange) -> (response::Parts, IncomingBody, Lease) {
    let Exchange { response, lease } = answered;
    let (head, body) = response.into_parts();
    (head, body, lease)
}

fn content_type(headers: &HeaderMap) -> Option<&str> {
    headers.get(CONTENT_TYPE)?.to_str().ok()
}
