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
use crate::domain::jsonrpc::{self, Heard};
use crate::domain::mcp::{Body as Read, Looks, looks, read_body};
use crate::domain::outcome::{RestReply, refuses};
use crate::domain::pending::Unanswered;
use crate::domain::pieces::Pieces;
use crate::domain::plan::{McpPlan, UpstreamPlan, Variables};
use crate::domain::sse::{Block, MESSAGE, Piece, Reader};
use crate::telemetry::clock;
use crate::upstream::link::Event;
use crate::upstream::{
    Body, CodingError, Exchange, HttpUpstream, Inflow, Lease, Memory, ReadFault, Repeat, Tasks,
    UpstreamError, chain, read_whole,
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
pub(super) struct Letter {
    /// The id of a request.
    pub(super) id: Option<u64>,
    pub(super) body: Bytes,
    /// Those beside the usual ones.
    pub(super) headers: HeaderMap,
}

/// What comes of a POST.
#[derive(Debug)]
pub(super) struct Came {
    pub(super) outcome: Outcome,
    /// The session that the server has named.
    pub(super) session: Option<HeaderValue>,
}

/// What comes of a message.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The answer, with the id of the request.
    Answered(Bytes),
    /// It was taken, and nothing was said.
    Accepted,
    /// The server does not know the session, and has not taken the message.
    Forgotten,
    /// The server refused the request by its HTTP status, whatever the body says.
    Refused(RestReply),
    /// No answer.
    Failed(Unanswered),
}

/// Where POSTs go.
#[derive(Debug, Clone)]
pub(super) struct Door {
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
    pub(super) memory: Memory,
}

/// Where a stream stands, for the case that it breaks off.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) last: Option<HeaderValue>,
    pub(super) rest: Duration,
    /// How many events came.
    pub(super) heard: u64,
    pub(super) reader: Reader,
}

impl Place {
    /// The beginning of a stream whose events have a limit.
    pub(super) fn new(limit: usize) -> Place {
        Place {
            last: None,
            rest: REST,
            heard: 0,
            reader: Reader::new(limit),
        }
    }

    /// What is read from now on is of another answer.
    pub(super) fn begin(&mut self, limit: usize) {
        self.reader = Reader::new(limit);
    }
}

impl Door {
    pub(super) fn new(
        http: HttpUpstream,
        (tasks, memory): (Tasks, Memory),
        plan: &McpPlan,
    ) -> Door {
        Door {
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
    pub(super) fn with_ear(&self) -> (Door, mpsc::Receiver<Event>) {
        let (heard, ear) = mpsc::channel(HEARD);
        let heard = Some(heard);
        (
            Door {
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
    pub(super) async fn post(&self, letter: Letter) -> Came {
        let Letter { id, body, headers } = letter;
        let session = headers.get(SESSION).cloned();
        let mut request = self.request(
            Method::POST,
            headers.clone(),
            Body::from(Pieces::from(body)),
        );
        request
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let answered = match self.send(request).await {
            Ok(answered) => answered,
            Err(why) => {
                return Came {
                    outcome: Outcome::Failed(why),
                    session: None,
                };
            }
        };
        let named = answered.response.headers().get(SESSION).cloned();
        let outcome = self.outcome(answered, id, (headers, session)).await;
        Came {
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
            if read_whole(body, OTHER).await.is_ok() {
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

    pub(super) async fn send(&self, request: Request<Body>) -> Result<Exchange, Unanswered> {
        let plan = self.http.plan();
        let limit = plan.wait_for_turn(plan.timeout);
        let sent = async {
            let permit = self.http.reserve(limit).await?;
            let attempt = self.http.attempt(clock::now());
            let sent = (permit, request.into());
            self.http.send(&attempt, sent, Repeat::Unsent.into()).await
        };
        sent.await.map_err(|error| {
            let upstream = &self.http.plan().name;
            tracing::warn!(upstream, error = chain(&error), "a message reached nobody");
            match error {
                UpstreamError::Unreachable { .. } | UpstreamError::Resting { .. } => {
                    Unanswered::Unreachable
                }
                UpstreamError::Busy { .. } => Unanswered::Busy,
                UpstreamError::Broken(_) => Unanswered::Cut,
                UpstreamError::Malformed(_)
                | UpstreamError::Unframed(_)
                | UpstreamError::Padded => Unanswered::Unusable(0),
            }
        })
    }

    async fn outcome(
        &self,
        answered: Exchange,
        id: Option<u64>,
        (headers, session): (HeaderMap, Option<HeaderValue>),
    ) -> Outcome {
        let (head, body, lease) = parts(answered);
        let (status, success) = (head.status.as_u16(), head.status.is_success());
        let content_type = head
            .headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        let looks = looks(status, content_type);
        match (looks, id) {
            (Looks::Events, Some(_)) if is_coded(&head.headers) => {
                return Outcome::Failed(Unanswered::CodedStream);
            }
            (Looks::Events, Some(id)) => return self.stream(body, lease, (id, headers)).await,
            (Looks::Json | Looks::Other, _) | (Looks::Events, None) => {}
        }
        let most = match looks {
            Looks::Json => self.limit,
            Looks::Other | Looks::Events => OTHER,
        };
        if id.is_some() && refuses(status) {
            return Outcome::Refused(self.refused(head, (body, lease), most).await);
        }
        let body = match read_whole(body, most).await {
            Ok(body) => {
                lease.release();
                body
            }
            Err(ReadFault::TooLarge(_)) if looks == Looks::Json => {
                return Outcome::Failed(Unanswered::TooLarge(status));
            }
            // What it is not is known from its head.
            Err(_) if looks != Looks::Json => Bytes::new(),
            Err(_) => return Outcome::Failed(Unanswered::Cut),
        };
        let body = match self.plain(&head.headers, body, most) {
            Ok(body) => body,
            Err(CodingError::TooLarge(_)) => return Outcome::Failed(Unanswered::TooLarge(status)),
            Err(CodingError::NoRoom) => return Outcome::Failed(Unanswered::NoRoom),
            Err(CodingError::Malformed(_)) => {
                return Outcome::Failed(Unanswered::Unusable(status));
            }
        };
        let session = session
            .as_ref()
            .map(|session| session.to_str().unwrap_or_default());
        if looks == Looks::Json
            && let Some(all) = jsonrpc::parts(&body, self.depth)
        {
            return match self.overhear_all(all, id).await {
                Some(outcome) => outcome,
                None if id.is_none() && success => Outcome::Accepted,
                None => Outcome::Failed(Unanswered::Unusable(status)),
            };
        }
        match (read_body((status, &body), id, session, self.depth), id) {
            (Read::Answer(body), _) if looks == Looks::Json => Outcome::Answered(body),
            (Read::Forgotten, _) => Outcome::Forgotten,
            (_, None) if success => Outcome::Accepted,
            (_, _) => Outcome::Failed(Unanswered::Unusable(status)),
        }
    }

    /// Reads a stream up to the answer, and takes it up again where it breaks off and can be.
    async fn stream(
        &self,
        mut body: Inflow,
        mut lease: Lease,
        (id, headers): (u64, HeaderMap),
    ) -> Outcome {
        let mut place = Place::new(self.limit);
        let mut fruitless = 0;
        loop {
            let before = place.last.clone();
            if let Some(outcome) = self.listen(&mut body, &mut place, id).await {
                self.tail(body, lease);
                return outcome;
            }
            lease.spoil();
            if place.reader.is_losing() {
                // It would come again.
                return Outcome::Failed(Unanswered::TooLarge(200));
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
                    return Outcome::Failed(Unanswered::Cut);
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
    ) -> Option<(Inflow, Lease)> {
        sleep(rest).await;
        headers.insert(LAST_EVENT, last);
        let request = self.request(Method::GET, headers, Body::empty());
        let (head, body, lease) = parts(self.send(request).await.ok()?);
        let content_type = head
            .headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        let is_stream = looks(head.status.as_u16(), content_type) == Looks::Events;
        (is_stream && !is_coded(&head.headers)).then_some((body, lease))
    }

    /// Hears a stream up to the answer; nothing where it ends before.
    async fn listen(&self, body: &mut Inflow, place: &mut Place, id: u64) -> Option<Outcome> {
        loop {
            while let Some(piece) = place.reader.next() {
                let event = match piece {
                    Piece::Event(event) => event,
                    Piece::Oversize => return Some(Outcome::Failed(Unanswered::TooLarge(200))),
                    Piece::Between(_) | Piece::Feed(_) | Piece::Unfinished(_) => continue,
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
        place: &mut Place,
        id: Option<u64>,
    ) -> Option<Outcome> {
        let block = Block::read(event)?;
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
            Some(all) => self.overhear_all(all, id).await,
            None => self.overhear_one(message, id).await,
        }
    }

    /// Hears several messages; returns what comes of the request if one is for that.
    async fn overhear_all(&self, all: Vec<Bytes>, id: Option<u64>) -> Option<Outcome> {
        let mut outcome = None;
        for message in all {
            let own = self.overhear_one(message, id).await;
            outcome = outcome.or(own);
        }
        outcome
    }

    /// Hears a message; returns what comes of the request if it is for that.
    async fn overhear_one(&self, message: Bytes, id: Option<u64>) -> Option<Outcome> {
        match Heard::of(&message, self.depth) {
            Heard::Answer(own) if Some(own) == id => return Some(Outcome::Answered(message)),
            Heard::Unaddressed | Heard::Misnumbered(_) => {
                if let Read::Answer(answer) = read_body((200, &message), id, None, self.depth) {
                    return Some(Outcome::Answered(answer));
                }
                // Nothing else was asked here.
                if id.is_some() {
                    return Some(Outcome::Failed(Unanswered::Misnumbered));
                }
            }
            Heard::Answer(_)
            | Heard::Request { .. }
            | Heard::Notification { .. }
            | Heard::Noise => {}
        }
        if let Some(heard) = &self.heard {
            // A link that is gone hears nothing.
            let event = match id {
                Some(id) => Event::Beside(id, message),
                None => Event::Message(message),
            };
            let _ = heard.send(event).await;
        }
        None
    }

    /// Waits a moment for the end of a stream behind its answer, so that its connection can serve again.
    fn tail(&self, mut body: Inflow, lease: Lease) {
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
fn headers(said: &Variables) -> HeaderMap {
    let pairs = said.iter().filter_map(|(name, value)| {
        let mut value = HeaderValue::try_from(value).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::try_from(name).ok()?, value))
    });
    pairs.collect()
}

pub(super) fn parts(answered: Exchange) -> (http::response::Parts, Inflow, Lease) {
    let Exchange { response, lease } = answered;
    let (head, body) = response.into_parts();
    (head, body, lease)
}
