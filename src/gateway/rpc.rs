//! The RPC face: one function serves a call, alone or in a batch.

use std::rc::Rc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;
use http::{HeaderMap, Method, Request, Response, request};
use hyper::body::Incoming;

use super::ask::{self, Reply};
use super::forward::{Forwarded, at_upstream, forward};
use super::record::Record;
use super::render::{self, Answer, Whole};
use super::rest::{decide, identify};
use super::translated::{self, belongs, no_response};
use super::{AnswerBody, Arrival, Installed, Worker, intake};
use crate::domain::failure::{Advice, Failure, Reason};
use crate::domain::json::Json;
use crate::domain::jsonrpc::{self, Call, Invalid, Item, MessageError, RequestId, parse_response};
use crate::domain::outcome::RpcAnswer;
use crate::domain::pieces::Pieces;
use crate::domain::rollout::{Caller, Stage};
use crate::domain::route::Route;
use crate::domain::side::Side;
use crate::upstream::{Body, HttpUpstream, Progress, Repeat, Upload};

/// What the messages of one HTTP request have in common.
struct Letter {
    worker: Rc<Worker>,
    installed: Rc<Installed>,
    head: request::Parts,
    /// As it came; empty where it could not be read.
    body: Bytes,
    arrival: Arrival,
}

/// What a message is answered with.
enum Said {
    /// A response of its own.
    Message(Box<Whole>),
    /// The upstream's HTTP answer as it comes; only for a message that is alone.
    Forwarded(Response<AnswerBody>),
    /// Nothing: it was a notification, or a response of the client.
    Nothing,
}

/// Whether a message is the only one of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Company {
    Alone,
    Batch,
}

/// Serves one HTTP request to an RPC path.
pub(super) async fn serve(
    worker: &Rc<Worker>,
    installed: &Rc<Installed>,
    request: Request<Incoming>,
    arrival: Arrival,
) -> Response<AnswerBody> {
    let mut reading = Record::begin(worker, installed, Side::Rpc, &request);
    if request.method() != Method::POST {
        return pass(reading, request, arrival).await;
    }
    let (head, body) = request.into_parts();
    identify(&mut reading, &installed.plan, &head.headers);
    let (body, incoming) = match read(&reading, &head.headers, body).await {
        Ok(read) => read,
        Err(failure) => return render::failure(reading, failure),
    };
    // From here on each message has a record of its own.
    reading.discard();
    let letter = Letter {
        worker: worker.clone(),
        installed: installed.clone(),
        head,
        body,
        arrival,
    };
    match incoming {
        jsonrpc::Incoming::Single(item) => letter.alone(item).await,
        jsonrpc::Incoming::Batch(items) => letter.batch(items).await,
    }
}

async fn read(
    reading: &Record,
    headers: &HeaderMap,
    body: Incoming,
) -> Result<(Bytes, jsonrpc::Incoming), Failure> {
    reading.admit()?;
    let limits = &reading.installed().plan.limits;
    let body = intake::message(headers, body, limits).await?;
    let incoming = jsonrpc::parse(&body, limits.message()).map_err(unread)?;
    Ok((body, incoming))
}

fn unread(error: MessageError) -> Failure {
    let reason = match &error {
        MessageError::Json(_) => Reason::MalformedJson,
        MessageError::TooDeep(_) => Reason::TooDeep,
        MessageError::EmptyBatch => Reason::InvalidRequest,
        MessageError::BatchTooLarge { .. } => Reason::BatchTooLarge,
    };
    Failure::new(reason, error.to_string())
}

/// GET and DELETE on an RPC path belong to the RPC upstream.
async fn pass(
    mut record: Record,
    request: Request<Incoming>,
    arrival: Arrival,
) -> Response<AnswerBody> {
    let installed = record.installed().clone();
    let (mut head, body) = request.into_parts();
    identify(&mut record, &installed.plan, &head.headers);
    let passed = async {
        record.admit()?;
        let upstream = installed
            .upstream(Side::Rpc)
            .ok_or_else(|| no_method(&head.method))?;
        let upgrade = head.extensions.remove();
        head.uri = at_upstream(&upstream.plan().path, head.uri.query())?;
        let (body, progress) = Upload::begin(body);
        forward(
            &mut record,
            upstream,
            Forwarded {
                head,
                body,
                progress,
                upgrade,
            },
            &arrival,
        )
        .await
    };
    match passed.await {
        Ok(answer) => render::answer(record, answer),
        Err(failure) => render::failure(record, failure),
    }
}

fn no_method(method: &Method) -> Failure {
    let message = format!("{method} is not a method of an RPC path; send JSON-RPC by POST");
    Failure::new(Reason::MethodNotAllowed, message).advise(Advice::Allow("POST".to_owned()))
}

impl Letter {
    fn record(&self) -> Record {
        let mut request = Request::new(());
        *request.method_mut() = self.head.method.clone();
        *request.uri_mut() = self.head.uri.clone();
        Record::begin(&self.worker, &self.installed, Side::Rpc, &request)
    }

    /// The answer to all messages at once, where none of them can have its own.
    fn refuse(&self, failure: Failure) -> Response<AnswerBody> {
        let mut record = self.record();
        identify(&mut record, &self.installed.plan, &self.head.headers);
        render::failure(record, failure)
    }

    fn silence(&self) -> Response<AnswerBody> {
        render::respond(render::acknowledged(
            self.installed.plan.face.notification_status,
        ))
    }

    async fn alone(&self, item: Item) -> Response<AnswerBody> {
        match self.item(item, Company::Alone).await {
            Said::Message(whole) => render::respond(*whole),
            Said::Forwarded(response) => response,
            Said::Nothing => self.silence(),
        }
    }

    /// A batch is a map over the single call; answers keep the order of the calls (JSON-RPC 2.0 §6).
    async fn batch(&self, items: Vec<Item>) -> Response<AnswerBody> {
        let plan = &self.installed.plan;
        let calls = stream::iter(items).map(|item| self.item(item, Company::Batch));
        let said: Vec<Said> = calls.buffered(plan.face.batch_concurrency).collect().await;
        let messages: Vec<Pieces> = said
            .into_iter()
            .filter_map(|said| match said {
                Said::Message(whole) => Some(whole.body),
                Said::Forwarded(_) | Said::Nothing => None,
            })
            .collect();
        if messages.is_empty() {
            return self.silence();
        }
        let length: usize = messages.iter().map(Pieces::len).sum();
        if length > plan.limits.answer {
            let message = format!(
                "the answers of this batch are longer than {} bytes; send fewer calls",
                plan.limits.answer
            );
            return self.refuse(Failure::new(Reason::UpstreamTooLarge, message));
        }
        render::respond(render::rpc_message(jsonrpc::batch(messages)))
    }

    /// One message, from its record to its answer.
    async fn item(&self, item: Item, company: Company) -> Said {
        let mut record = self.record();
        let caller = identify(&mut record, &self.installed.plan, &self.head.headers);
        match item {
            Item::Invalid(Invalid { id, why }) => {
                self.fail(record, Failure::new(Reason::InvalidRequest, why), Some(&id))
            }
            Item::Response(text) => match self.client_response(&mut record, text).await {
                Ok(answer) if company == Company::Alone => {
                    Said::Forwarded(render::answer(record, answer))
                }
                Ok(answer) => {
                    // Nobody waits for what the upstream says to it.
                    drop(render::answer(record, answer));
                    Said::Nothing
                }
                Err(failure) => self.fail(record, failure, Some(&RequestId::null())),
            },
            Item::Call(call) => {
                record.names_method(&call.method);
                match self.call(&mut record, &call, (caller, company)).await {
                    Ok(Spoken::Answer(whole)) if call.id.is_some() => Said::Message(whole),
                    Ok(Spoken::Answer(_) | Spoken::Nothing) => Said::Nothing,
                    Ok(Spoken::Stream(answer)) => Said::Forwarded(render::answer(record, answer)),
                    Err(failure) => self.fail(record, failure, call.id.as_ref()),
                }
            }
        }
    }

    /// A failure for the call that bears an id; a notification gets none, but its record tells.
    fn fail(&self, mut record: Record, failure: Failure, id: Option<&RequestId>) -> Said {
        let Some(id) = id else {
            record.failed(
                self.installed.plan.face.notification_status.as_u16(),
                &failure,
            );
            return Said::Nothing;
        };
        let whole = render::rpc_failure(&failure, id);
        record.failed(whole.status.as_u16(), &failure);
        Said::Message(Box::new(whole))
    }

    /// A response of the client to a request of the server goes to the server.
    async fn client_response(&self, record: &mut Record, text: Json) -> Result<Answer, Failure> {
        let upstream = self.installed.upstream(Side::Rpc).ok_or_else(|| {
            Failure::new(
                Reason::InvalidRequest,
                "a response to nothing: there is no RPC upstream that could have asked",
            )
        })?;
        self.forward(record, upstream, text.into_bytes().into())
            .await
    }

    async fn call(
        &self,
        record: &mut Record,
        call: &Call,
        (caller, company): (Caller<'_>, Company),
    ) -> Result<Spoken, Failure> {
        record.admit()?;
        let plan = &self.installed.plan;
        let selected = plan.routes.select_rpc(&call.method, call.params.as_ref());
        let decision = decide(record, plan, caller, selected);
        match (decision.stage, selected) {
            (Stage::Retired, Some(index)) => Err(retired(plan.routes.route(index))),
            (Stage::Translate, Some(index)) => {
                self.translate(record, plan.routes.route(index), call).await
            }
            (Stage::Passthrough | Stage::Translate | Stage::Retired, _) => {
                let upstream = self
                    .installed
                    .upstream(Side::Rpc)
                    .ok_or_else(|| unknown(&call.method))?;
                self.passthrough(record, upstream, call, company).await
            }
        }
    }

    async fn translate(
        &self,
        record: &mut Record,
        route: &Route,
        call: &Call,
    ) -> Result<Spoken, Failure> {
        let context = (&self.head, &self.arrival);
        let (answer, brought) =
            translated::rpc_call(record, route, call.params.as_ref(), context).await?;
        let id = call.id.clone().unwrap_or(RequestId::null());
        let mut whole = render::rpc_message(match answer {
            RpcAnswer::Result(result) => jsonrpc::result(&id, result),
            RpcAnswer::Error(error) => jsonrpc::error(&id, &error),
        });
        whole.headers.extend(brought);
        Ok(Spoken::Answer(Box::new(whole)))
    }

    /// Alone and with an id that servers give back, a call goes and returns as the same bytes. Else it goes
    /// with an id of the proxy's own, and the client's is put back into the answer.
    async fn passthrough(
        &self,
        record: &mut Record,
        upstream: &Rc<HttpUpstream>,
        call: &Call,
        company: Company,
    ) -> Result<Spoken, Failure> {
        let travels = call.id.as_ref().is_none_or(RequestId::travels);
        if company == Company::Alone && travels {
            let answer = self
                .forward(record, upstream, self.body.clone().into())
                .await?;
            return Ok(match (&call.id, answer) {
                (None, Answer::Stream(stream))
                    if stream.head.status.is_success() && !is_empty(&stream.body) =>
                {
                    // JSON-RPC 2.0 §4.1: a notification is not answered, whatever the server says to it.
                    record.answered(stream.head.status.as_u16());
                    Spoken::Nothing
                }
                (_, answer) => Spoken::Stream(answer),
            });
        }
        let id = self.worker.mint();
        let reply = self.exchange(record, upstream, call.with_id(id)).await?;
        if call.id.is_none() {
            record.answered(reply.status.as_u16());
            return Ok(Spoken::Nothing);
        }
        let limits = &self.installed.plan.limits;
        let response = parse_response(&reply.body, limits.depth);
        let response = response.map_err(|fault| no_response(&reply, fault, limits.error_text))?;
        belongs(&response, id)?;
        match &response.reply {
            jsonrpc::Reply::Result(_) => record.answered(200),
            jsonrpc::Reply::Error(error) => record.answered_error(200, error.code),
        }
        let id = call.id.clone().unwrap_or(RequestId::null());
        let whole = render::rpc_message(response.with_id(&reply.body, &id));
        Ok(Spoken::Answer(Box::new(whole)))
    }

    async fn forward(
        &self,
        record: &mut Record,
        upstream: &Rc<HttpUpstream>,
        body: Pieces,
    ) -> Result<Answer, Failure> {
        let mut head = self.head.clone();
        head.uri = at_upstream(&upstream.plan().path, self.head.uri.query())?;
        head.headers.remove(http::header::EXPECT);
        head.headers
            .insert(http::header::CONTENT_LENGTH, body.len().into());
        head.headers.remove(http::header::TRAILER);
        let forwarded = Forwarded {
            head,
            body: body.into(),
            progress: Progress::complete(),
            upgrade: None,
        };
        forward(record, upstream, forwarded, &self.arrival).await
    }

    async fn exchange(
        &self,
        record: &mut Record,
        upstream: &Rc<HttpUpstream>,
        body: Bytes,
    ) -> Result<Reply, Failure> {
        let mut headers = super::headers::translated(
            &self.head.headers,
            upstream.plan(),
            super::headers::HasBody::Yes,
        );
        super::headers::add_hop(
            &mut headers,
            super::headers::Hop::of(&self.head, &self.arrival),
        );
        let mut request = Request::new(Body::from(Pieces::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = at_upstream(&upstream.plan().path, self.head.uri.query())?;
        *request.headers_mut() = headers;
        let limit = upstream.plan().timeout;
        ask::whole(record, upstream, request, Repeat::Unsent, limit).await
    }
}

/// What a call is answered with, before it is known whether it may be answered.
enum Spoken {
    Answer(Box<Whole>),
    Stream(Answer),
    Nothing,
}

fn is_empty(body: &Incoming) -> bool {
    hyper::body::Body::is_end_stream(body)
}

fn unknown(method: &str) -> Failure {
    let method: String = method.chars().take(100).collect();
    Failure::new(
        Reason::RouteNotFound,
        format!("no route takes the method `{}`", method.escape_debug()),
    )
}

fn retired(route: &Route) -> Failure {
    let message = match &route.successor {
        Some(successor) => format!(
            "the JSON-RPC way of the route `{}` is retired; use {successor}",
            route.name
        ),
        None => format!(
            "the JSON-RPC way of the route `{}` is retired; call {} over REST",
            route.name, route.method
        ),
    };
    let failure = Failure::new(Reason::Retired, message);
    match &route.successor {
        Some(successor) => failure.advise(Advice::Successor(successor.clone())),
        None => failure,
    }
}
