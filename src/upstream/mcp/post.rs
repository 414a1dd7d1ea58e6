//! One POST and what comes back: a message, a stream of messages, or neither.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::BodyExt;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::coded::is_coded;
use super::retry::retry;
use crate::domain::jsonrpc::{self, PeerMessage};
use crate::domain::mcp::{ResponseBody as Read, ResponseKind, kind_of, read_body};
use crate::domain::outcome::{RestReply, refuses};
use crate::domain::pending::RequestError;
use crate::domain::plan::{McpPlan, SecretMap, UpstreamPlan};
use crate::domain::rope::Rope;
use crate::domain::sse::{MESSAGE, RawEvent, SseReader, StreamPiece};
use crate::telemetry::clock;
use crate::upstream::link::Event;
use crate::upstream::{
    Body, CollectError, DecodeError, Exchange, HttpUpstream, IncomingBody, Lease, MemoryBudget,
    RetryPolicy, Tasks, UpstreamError, chain, collect_all,
};

/// The session, as the server has named it.
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The revision that is spoken.
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// How much is read of an answer that is no message, so that its connection can serve again.
pub(super) const OTHER: usize = 64 * 1024;
/// How long the end of a stream is waited for behind the answer.
const TAIL: Duration = Duration::from_secs(1);
/// How long a stream that broke off rests unless the server says otherwise, and how long at most.
pub(super) const REST: Duration = Duration::from_secs(1);
pub(super) const LONGEST_REST: Duration = Duration::from_secs(30);
/// How often in a row a stream is taken up again that brings nothing new.
const RESUMES: u32 = 2;
/// How many messages may wait to be heard.
const HEARD: usize = 16;

/// A message on its way.
#[derive(Debug)]
pub(super) struct OutboundPost {
    /// The id of a request.
    pub(super) id: Option<u64>,
    pub(super) body: Bytes,
    /// Those beside the usual ones.
    pub(super) headers: HeaderMap,
}

/// What comes of a POST.
#[derive(Debug)]
pub(super) struct PostResult {
    pub(super) outcome: PostOutcome,
    /// The session that the server has named.
    pub(super) session: Option<HeaderValue>,
}

/// What comes of a message.
#[derive(Debug)]
pub(super) enum PostOutcome {
    /// The answer, with the id of the request.
    Answered(Bytes),
    /// It was taken, and nothing was said.
    Accepted,
    /// The server does not know the session, and has not taken the message.
    Forgotten,
    /// The server refused the request by its HTTP status, whatever the body says.
    Refused(RestReply),
    /// No answer.
    Failed(RequestError),
}

/// Where POSTs go.
#[derive(Debug, Clone)]
pub(super) struct PostClient {
    http: Rc<HttpUpstream>,
    tasks: Tasks,
    target: Uri,
    /// What each request bears by its plan.
    fixed: HeaderMap,
    /// The most bytes of a message.
    limit: usize,
    depth: u16,
    /// Where messages go that answer nothing.
    heard: Option<mpsc::Sender<Event>>,
    /// Counts what is decoded.
    pub(super) memory: MemoryBudget,
}

/// Where a stream stands, for the case that it breaks off.
#[derive(Debug)]
pub(super) struct StreamCursor {
    pub(super) last: Option<HeaderValue>,
    pub(super) rest: Duration,
    /// How many events came.
    pub(super) heard: u64,
    pub(super) reader: SseReader,
}

impl StreamCursor {
    /// The beginning of a stream whose events have a limit.
    pub(super) fn new(limit: usize) -> StreamCursor {
        StreamCursor {
            last: None,
            rest: REST,
            heard: 0,
            reader: SseReader::new(limit),
        }
    }

    /// What is read from now on is of another answer.
    pub(super) fn begin(&mut self, limit: usize) {
        self.reader = SseReader::new(limit);
    }
}

impl PostClient {
    pub(super) fn new(
        http: HttpUpstream,
        (tasks, memory): (Tasks, MemoryBudget),
        plan: &McpPlan,
    ) -> PostClient {
        PostClient {
            target: http.plan().path.clone().into(),
            http: Rc::new(http),
            tasks,
            fixed: headers(&plan.headers),
            limit: plan.message_limit,
            depth: plan.link.settings.depth,
            heard: None,
            memory,
        }
    }

    /// The same, for a link that hears what the server says beside answers.
    pub(super) fn with_notifications(&self) -> (PostClient, mpsc::Receiver<Event>) {
        let (heard, ear) = mpsc::channel(HEARD);
        let heard = Some(heard);
        (
            PostClient {
                heard,
                ..self.clone()
            },
            ear,
        )
    }

    pub(super) fn forget_idle(&self) {
        self.http.forget_idle();
    }

    /// Sends a message, and waits for what comes of it. Dropped, it closes the connection.
    pub(super) async fn post(&self, letter: OutboundPost) -> PostResult {
        let OutboundPost { id, body, headers } = letter;
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
        let outcome = self.outcome(answered, id, (headers, session)).await;
        PostResult {
            outcome,
            session: named,
        }
    }

    /// Ends a session; a server that does not want to be told (405) is as good.
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

    /// What the plan says of the server.
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
            let permit = self.http.reserve(limit).await?;
            let attempt = self.http.attempt(clock::now());
            let sent = (permit, request.into());
            self.http
                .send(&attempt, sent, RetryPolicy::Unsent.into())
                .await
        };
        sent.await.map_err(|error| {
            let upstream = &self.http.plan().name;
            tracing::warn!(upstream, error = chain(&error), "a message reached nobody");
            match error {
                UpstreamError::Unreachable { .. } | UpstreamError::Resting { .. } => {
                    RequestError::Unreachable
                }
                UpstreamError::Busy { .. } => RequestError::Busy,
                UpstreamError::Broken(_) => RequestError::Cut,
                UpstreamError::Malformed(_)
                | UpstreamError::Unframed(_)
                | UpstreamError::Padded => RequestError::Unusable(0),
            }
        })
    }

    async fn outcome(
        &self,
        answered: Exchange,
        id: Option<u64>,
        (headers, session): (HeaderMap, Option<HeaderValue>),
    ) -> PostOutcome {
        let (head, body, lease) = parts(answered);
        let (status, success) = (head.status.as_u16(), head.status.is_success());
        let looks = kind_of(status, content_type(&head.headers));
        match (looks, id) {
            (ResponseKind::Events, Some(_)) if is_coded(&head.headers) => {
                return PostOutcome::Failed(RequestError::CodedStream);
            }
            (ResponseKind::Events, Some(id)) => {
                return self.stream(body, lease, (id, headers)).await;
            }
            (ResponseKind::Json | ResponseKind::Other, _) | (ResponseKind::Events, None) => {}
        }
        let most = match looks {
            ResponseKind::Json => self.limit,
            ResponseKind::Other | ResponseKind::Events => OTHER,
        };
        if id.is_some() && refuses(status) {
            return PostOutcome::Refused(self.refused(head, (body, lease), most).await);
        }
        let body = match collect_all(body, most).await {
            Ok(body) => {
                lease.release();
                body
            }
            Err(CollectError::TooLarge(_)) if looks == ResponseKind::Json => {
                return PostOutcome::Failed(RequestError::TooLarge(status));
            }
            // What it is not is known from its head.
            Err(_) if looks != ResponseKind::Json => Bytes::new(),
            Err(_) => return PostOutcome::Failed(RequestError::Cut),
        };
        let body = match self.plain(&head.headers, body, most) {
            Ok(body) => body,
            Err(DecodeError::TooLarge(_)) => {
                return PostOutcome::Failed(RequestError::TooLarge(status));
            }
            Err(DecodeError::NoRoom) => return PostOutcome::Failed(RequestError::NoRoom),
            Err(DecodeError::Malformed(_)) => {
                return PostOutcome::Failed(RequestError::Unusable(status));
            }
        };
        let session = session.as_ref().map(|id| id.to_str().unwrap_or_default());
        if looks == ResponseKind::Json
            && let Some(all) = jsonrpc::parts(&body, self.depth)
        {
            return match self.forward_events(all, id).await {
                Some(outcome) => outcome,
                None if id.is_none() && success => PostOutcome::Accepted,
                None => PostOutcome::Failed(RequestError::Unusable(status)),
            };
        }
        match (read_body((status, &body), id, session, self.depth), id) {
            (Read::Answer(body), _) if looks == ResponseKind::Json => PostOutcome::Answered(body),
            (Read::Forgotten, _) => PostOutcome::Forgotten,
            (_, None) if success => PostOutcome::Accepted,
            (_, _) => PostOutcome::Failed(RequestError::Unusable(status)),
        }
    }

    /// Reads a stream up to the answer, and takes it up again where it breaks off and can be.
    async fn stream(
        &self,
        mut body: IncomingBody,
        mut lease: Lease,
        (id, headers): (u64, HeaderMap),
    ) -> PostOutcome {
        let mut place = StreamCursor::new(self.limit);
        let mut fruitless = 0;
        loop {
            let before = place.last.clone();
            if let Some(outcome) = self.listen(&mut body, &mut place, id).await {
                self.tail(body, lease);
                return outcome;
            }
            lease.mark_unusable();
            if place.reader.is_losing() {
                // It would come again.
                return PostOutcome::Failed(RequestError::TooLarge(200));
            }
            drop((body, lease));
            fruitless = if place.last == before {
                fruitless + 1
            } else {
                0
            };
            loop {
                let last = place.last.clone().filter(|_| fruitless < RESUMES);
                let Some(last) = last else {
                    return PostOutcome::Failed(RequestError::Cut);
                };
                match self.resume(headers.clone(), last, place.rest).await {
                    Some(again) => {
                        (body, lease) = again;
                        place.begin(self.limit);
                        break;
                    }
                    None => fruitless += 1,
                }
            }
        }
    }

    /// Asks for what a stream that broke off would have brought (MCP 2025-11-25, "Resumability and Redelivery").
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

    /// Hears a stream up to the answer; nothing where it ends before.
    async fn listen(
        &self,
        body: &mut IncomingBody,
        place: &mut StreamCursor,
        id: u64,
    ) -> Option<PostOutcome> {
        loop {
            while let Some(piece) = place.reader.next() {
                let event = match piece {
                    StreamPiece::Event(event) => event,
                    StreamPiece::Oversize => {
                        return Some(PostOutcome::Failed(RequestError::TooLarge(200)));
                    }
                    StreamPiece::Between(_) | StreamPiece::Feed(_) | StreamPiece::Unfinished(_) => {
                        continue;
                    }
                };
                if let Some(outcome) = self.event(&event, place, Some(id)).await {
                    return Some(outcome);
                }
            }
            let data = body.frame().await?.ok()?.into_data();
            if let Ok(data) = data {
                place.reader.feed(&data);
            }
        }
    }

    /// Hears an event; returns what comes of the request if it is for that.
    pub(super) async fn event(
        &self,
        event: &Bytes,
        place: &mut StreamCursor,
        id: Option<u64>,
    ) -> Option<PostOutcome> {
        let block = RawEvent::read(event)?;
        place.heard += 1;
        if let Some(last) = block.id() {
            place.last = HeaderValue::from_str(last)
                .ok()
                .filter(|last| !last.is_empty());
        }
        if let Some(rest) = retry(event) {
            place.rest = rest.min(LONGEST_REST);
        }
        // An event without data only says where the stream stands.
        let data = block
            .data()
            .filter(|data| !data.is_empty() && block.event() == MESSAGE)?;
        let message = Bytes::copy_from_slice(data.as_bytes());
        match jsonrpc::parts(&message, self.depth) {
            Some(all) => self.forward_events(all, id).await,
            None => self.forward_event(message, id).await,
        }
    }

    /// Hears several messages; returns what comes of the request if one is for that.
    async fn forward_events(&self, all: Vec<Bytes>, id: Option<u64>) -> Option<PostOutcome> {
        let mut outcome = None;
        for message in all {
            let own = self.forward_event(message, id).await;
            outcome = outcome.or(own);
        }
        outcome
    }

    /// Hears a message; returns what comes of the request if it is for that.
    async fn forward_event(&self, message: Bytes, id: Option<u64>) -> Option<PostOutcome> {
        match PeerMessage::new(&message, self.depth) {
            PeerMessage::Answer(own) if Some(own) == id => {
                return Some(PostOutcome::Answered(message));
            }
            PeerMessage::Unaddressed | PeerMessage::Misnumbered(_) => {
                if let Read::Answer(answer) = read_body((200, &message), id, None, self.depth) {
                    return Some(PostOutcome::Answered(answer));
                }
                // Nothing else was asked here.
                if id.is_some() {
                    return Some(PostOutcome::Failed(RequestError::Misnumbered));
                }
            }
            PeerMessage::Answer(_)
            | PeerMessage::Request { .. }
            | PeerMessage::Notification { .. }
            | PeerMessage::Noise => {}
        }
        if let Some(heard) = &self.heard {
            // A link that is gone hears nothing.
            let event = match id {
                Some(id) => Event::Aside(id, message),
                None => Event::Message(message),
            };
            let _ = heard.send(event).await;
        }
        None
    }

    /// Waits a moment for the end of a stream behind its answer, so that its connection can serve again.
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

/// Names and values were checked with the configuration; the values may be secrets.
fn headers(said: &SecretMap) -> HeaderMap {
    let pairs = said.iter().filter_map(|(name, value)| {
        let mut value = HeaderValue::try_from(value).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::try_from(name).ok()?, value))
    });
    pairs.collect()
}

pub(super) fn parts(answered: Exchange) -> (http::response::Parts, IncomingBody, Lease) {
    let Exchange { response, lease } = answered;
    let (head, body) = response.into_parts();
    (head, body, lease)
}

fn content_type(headers: &HeaderMap) -> Option<&str> {
    headers.get(CONTENT_TYPE)?.to_str().ok()
}
