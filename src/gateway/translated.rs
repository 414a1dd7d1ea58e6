//! Translation: a call rewritten for the other side's upstream, the answer rewritten back.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode, request};

use super::Arrival;
use super::ask::{self, Reply};
use super::framed;
use super::headers::{self, HasBody, Known};
use super::intake::{self, Content};
use super::linked;
use super::long_texts::{self, RouteOf};
use super::record::Record;
use super::render::{self, Answer, Whole, status};
use crate::domain::failure::{Blame, Failure, Reason};
use crate::domain::json::Json;
use crate::domain::jsonrpc::{
    self, Call, Members, Response, ResponseFault, Unnumbered, parse_response,
};
use crate::domain::outcome::{RestReply, RpcAnswer, refuses};
use crate::domain::pattern::Bindings;
use crate::domain::pending;
use crate::domain::pieces::Pieces;
use crate::domain::plan::{Credentials, Limits};
use crate::domain::refusal;
use crate::domain::route::{Carries, Route, Segments, Waits};
use crate::domain::side::Side;
use crate::domain::translate::{self, RestHead, Terms};
use crate::telemetry::clock;
use crate::upstream::link::LinkUpstream;
use crate::upstream::{
    Body, Coding, CodingError, Full, HttpUpstream, Outgoing, Repeat, Upstream, placed,
};

/// A REST call, answered by the RPC upstream.
pub(super) async fn rest_call(
    record: &mut Record,
    index: usize,
    (head, body): (Box<request::Parts>, Content),
    arrival: &Arrival,
) -> Result<Answer, Failure> {
    let installed = record.installed().clone();
    let route = installed.plan.routes.route(index);
    let limits = &installed.plan.limits;
    // What refuses the call without its body does so before it is read, and asked for by `100 Continue`.
    let terms = terms(limits);
    let rest_head = RestHead {
        segments: &Segments::split(head.uri.path()),
        query: head.uri.query(),
        headers: &head.headers,
    };
    let reading = translate::read_rest_call(route, rest_head, terms).map_err(refusal::bind)?;
    if route.carries() == Carries::Nothing && !body.is_empty() {
        return Err(refusal::bind(translate::no_body(route)));
    }
    let since = body.is_awaited().then(clock::now);
    let bounds = (limits, &**record.worker());
    let body = intake::json(&head.headers, body, bounds, record.purse()).await?;
    record.body_came(since);
    let of = RouteOf {
        plan: &installed.plan,
        index,
    };
    let call = long_texts::to_rpc(record.worker(), of, (reading, body)).await?;
    record.dropped(call.dropped);
    let said = (&*call.method, call.params);
    let carried = carried(record, route, said, (&*head, arrival)).await?;
    record.worker().rooms().keep(head);
    match carried {
        Some(answered) => rest_answer(record, (of, &call.call), answered).await,
        None => {
            record.answered(StatusCode::ACCEPTED.as_u16());
            let acknowledged = render::acknowledged(StatusCode::ACCEPTED);
            Ok(Answer::Whole(Box::new(acknowledged)))
        }
    }
}

/// Asks the RPC upstream of a route, whatever carries the call there, and gives its answer with the id that the call
/// had; none where it has none. `head` is what the client has sent with the call.
pub(super) async fn carried(
    record: &mut Record,
    route: &Route,
    (method, params): (&str, Pieces),
    (head, arrival): (&request::Parts, &Arrival),
) -> Result<Option<(Reply, u64)>, Failure> {
    let depth = record.installed().plan.limits.depth;
    let upstream = upstream(record, Side::Rpc)?;
    let members = headers::credentials(upstream.plan(), &head.headers, depth);
    let upstream = match &upstream {
        Upstream::Http(http) => http,
        Upstream::Link(link) => {
            return over_link(record, (link, route), (method, params), &members).await;
        }
        // It is of the other side.
        Upstream::Frames(_) => return Err(refusal::no_upstream(Side::Rpc)),
    };
    let id = record.worker().mint();
    let message = match route.waits {
        Waits::Yes => jsonrpc::request(id, method, params, &members),
        Waits::No => jsonrpc::notification(method, params, &members),
    };
    let mut headers = headers::translated(record, (head, arrival), upstream.plan(), HasBody::Yes);
    if let Some(known) = Known::of(record, (&head.headers, arrival)) {
        known.write(&mut headers);
    }
    let target = upstream.plan().path.clone().into();
    let outgoing = Outgoing::new(Method::POST, target, headers, Body::from(message));
    if route.waits == Waits::No {
        let limit = route.timeout.unwrap_or(upstream.plan().timeout);
        ask::forget(record, upstream, outgoing, limit).await?;
        return Ok(None);
    }
    let reply = ask(record, upstream, route, outgoing).await?;
    Ok(Some((reply, id)))
}

/// A call that goes over a link, where it gets an id that no other call has.
async fn over_link(
    record: &mut Record,
    (link, route): (&LinkUpstream, &Route),
    (method, params): (&str, Pieces),
    members: Members<'_>,
) -> Result<Option<(Reply, u64)>, Failure> {
    let limit = route.timeout.unwrap_or(link.plan().timeout);
    if route.waits == Waits::No {
        let message = jsonrpc::notification(method, params, members);
        let said = (method, message.into_bytes());
        linked::tell(record, link, said, limit).await?;
        return Ok(None);
    }
    let question = linked::Question {
        method,
        call: Unnumbered::new(method, params, members),
        repeat: match route.effect.may_repeat() {
            true => pending::Repeat::Once,
            false => pending::Repeat::Never,
        },
        recall: None,
        subscription: None,
    };
    linked::ask(record, link, question, limit).await.map(Some)
}

/// The response that an RPC upstream has given to a call of a route, with its code where it is an error.
pub(super) fn response(
    record: &Record,
    route: &Route,
    (reply, id): (&Reply, u64),
) -> Result<(jsonrpc::Reply, Option<i64>), Failure> {
    read_response(&record.installed().plan.limits, route, (reply, id))
}

/// Returns the response to a call of a route, with its code where it is an error.
pub(super) fn read_response(
    limits: &Limits,
    route: &Route,
    (reply, id): (&Reply, u64),
) -> Result<(jsonrpc::Reply, Option<i64>), Failure> {
    let answer = parse_response(&reply.body, limits.depth)
        .map_err(|fault| no_response(reply, fault, limits.error_text))?;
    let code = match &answer.reply {
        jsonrpc::Reply::Result(_) => None,
        jsonrpc::Reply::Error(error) => Some(error.code),
    };
    belongs(&answer, id)?;
    if let jsonrpc::Reply::Result(result) = &answer.reply {
        refusal::unless_valid(route, result)?;
    }
    Ok((answer.reply, code))
}

/// Makes the REST answer of an RPC answer.
async fn rest_answer(
    record: &mut Record,
    (of, call): (RouteOf<'_>, &Bindings),
    (reply, id): (Reply, u64),
) -> Result<Answer, Failure> {
    let (answered, code) = if refuses(reply.status.as_u16()) {
        let terms = terms(&of.plan.limits);
        let outcomes = &of.route().outcomes;
        let refused = outcomes.refused(&rest_reply(&reply), call, terms);
        (refused.answered, refused.code)
    } else {
        long_texts::rest_answer(record.worker(), of, call, (&reply, id)).await?
    };
    record.dropped(answered.dropped);
    let answer = answered.answer;
    match code {
        None if answered.tool_error => record.answered_tool_error(answer.status),
        None => record.answered(answer.status),
        Some(code) if answered.row.is_some() && answer.status < 400 => {
            record.answered_by_row(answer.status, code);
        }
        Some(code) => {
            // 500 of the built-in table stands for every code that it does not name.
            let says = answered.row.is_some() || answer.status != 500;
            let by_status = Blame::of_status(answer.status).filter(|_| says);
            let blame = by_status.unwrap_or_else(|| Blame::of_code(code));
            record.answered_error(answer.status, code, blame);
        }
    }
    let mut headers = headers::brought_back(reply.headers);
    if let Some(kind) = answer
        .content_type
        .and_then(|kind| HeaderValue::try_from(kind).ok())
    {
        headers.insert(CONTENT_TYPE, kind);
    }
    headers::set(&mut headers, answer.headers);
    Ok(Answer::Whole(placed(|| Whole {
        status: status(answer.status),
        headers,
        body: answer.body,
    })))
}

/// What an RPC call is answered with.
pub(super) struct Answered {
    pub(super) answer: RpcAnswer,
    /// What the server's HTTP answer brings back.
    pub(super) headers: HeaderMap,
    /// The HTTP status where the call is alone in a request of HTTP.
    pub(super) status: StatusCode,
}

/// An RPC call, answered by the REST upstream.
pub(super) async fn rpc_call(
    record: &mut Record,
    index: usize,
    said: &Call,
    (head, arrival): (&request::Parts, &Arrival),
) -> Result<Answered, Failure> {
    let installed = record.installed().clone();
    let routes = &installed.plan.routes;
    let route = routes.route(index);
    if route.is_frame() {
        let answer = framed::rpc_call(record, route, said, arrival).await?;
        return Ok(Answered {
            answer,
            headers: HeaderMap::new(),
            status: StatusCode::OK,
        });
    }
    let limits = &installed.plan.limits;
    let of = RouteOf {
        plan: &installed.plan,
        index,
    };
    let call = long_texts::to_rest(record.worker(), of, said).await?;
    record.dropped(call.dropped);
    if call.target.len() > limits.target {
        return Err(refusal::long_url(limits.target));
    }
    let upstream = upstream(record, Side::Rest)?;
    let upstream = upstream.http();
    let upstream = upstream.ok_or_else(|| refusal::no_upstream(Side::Rest))?;
    let credentials = match upstream.plan().credentials {
        Credentials::Forward => {
            headers::said_credentials(&installed.plan.face.envelope, said, limits.depth)?
        }
        Credentials::Drop => HeaderMap::new(),
    };
    let has_body = HasBody::of(&call.body);
    let mut headers = headers::translated(record, (head, arrival), upstream.plan(), has_body);
    headers.extend(credentials);
    headers::set(&mut headers, call.headers);
    headers::withhold_credentials(&mut headers, upstream.plan());
    if let Some(known) = Known::of(record, (&head.headers, arrival)) {
        known.write(&mut headers);
    }
    let (method, target) = (route.method.clone(), installed.target(index, call.target)?);
    let body = call.body.map_or_else(Body::empty, Body::from);
    let outgoing = Outgoing::new(method, target, headers, body);
    let reply = ask(record, upstream, route, outgoing).await?;
    rpc_answer(record, (of, &call.call), reply).await
}

/// Makes the RPC answer of a REST answer.
async fn rpc_answer(
    record: &mut Record,
    (of, call): (RouteOf<'_>, &Bindings),
    reply: Reply,
) -> Result<Answered, Failure> {
    let reply = RestReply {
        status: reply.status.as_u16(),
        headers: reply.headers,
        body: reply.body,
    };
    let (answered, fits) = long_texts::rpc_answer(record.worker(), of, call, &reply).await?;
    record.dropped(answered.dropped);
    fits?;
    let answer = answered.answer;
    match &answer {
        RpcAnswer::Result(result) if answered.tool_error && reply.status >= 400 => {
            record.answered_tool_failure(200, &Json::sent(result.clone()));
            record.served_with(reply.status);
        }
        RpcAnswer::Result(_) if answered.tool_error => record.answered_tool_error(200),
        RpcAnswer::Result(_) => record.answered(200),
        RpcAnswer::Error(error) => {
            let blame = blame(&reply, error.code, answered.row);
            record.answered_error(200, error.code, blame);
        }
    }
    let errors = of.plan.face.error_status;
    let kept = of.route().outcomes.rpc_status(&reply, &answer, errors);
    Ok(Answered {
        answer,
        headers: headers::brought_back(reply.headers),
        status: status(kept),
    })
}

/// Returns whom an error for an RPC client blames. An error of a row that blames the client by its code does so where an RPC
/// server says the same, so it does here as well.
fn blame(reply: &RestReply, code: i64, row: Option<usize>) -> Blame {
    let by_code = Blame::of_code(code);
    match Blame::of_status(reply.status) {
        Some(by_status) if row.is_none() || by_code != Blame::Client => by_status,
        Some(_) | None => by_code,
    }
}

fn upstream(record: &Record, side: Side) -> Result<Upstream, Failure> {
    let upstream = record.upstream(side).cloned();
    upstream.ok_or_else(|| refusal::no_upstream(side))
}

async fn ask(
    record: &mut Record,
    upstream: &Rc<HttpUpstream>,
    route: &Route,
    outgoing: Outgoing,
) -> Result<Reply, Failure> {
    let limit: Duration = route.timeout.unwrap_or(upstream.plan().timeout);
    let repeat = if route.effect.may_repeat() {
        Repeat::Allowed
    } else {
        Repeat::Unsent
    };
    let mut reply = ask::whole(record, upstream, outgoing, repeat, limit).await?;
    if !reply.headers.contains_key(CONTENT_ENCODING) {
        return Ok(reply);
    }
    let decoded = decoded(record, &reply);
    reply.headers.remove(CONTENT_ENCODING);
    let status = reply.status.as_u16();
    reply.body = match decoded {
        Ok(body) => body,
        // Such a status says all by itself.
        Err(_) if refuses(status) => Bytes::new(),
        Err(failure) => return Err(failure.upstream_status(status)),
    };
    Ok(reply)
}

/// The body of an answer without its content coding: a server may use one that it was not asked for (RFC 9110 §12.5.3).
fn decoded(record: &Record, reply: &Reply) -> Result<Bytes, Failure> {
    let coding = Coding::of(&reply.headers).map_err(|name| {
        let message = "the server's answer has a content coding that is not read; gzip and br are";
        Failure::new(Reason::UpstreamNotProtocol, message).because(name)
    })?;
    let most = record.installed().plan.limits.answer;
    let room = (record.worker().memory(), record.purse());
    let decoded = coding.decode_within(reply.body.clone(), most, room);
    decoded.map_err(|error| match (&error, room.1) {
        (CodingError::Malformed(_), _) => {
            let message = "the server's answer is not what its content coding says";
            Failure::new(Reason::UpstreamNotProtocol, message).because(error)
        }
        (CodingError::NoRoom, None) => intake::no_room(Full),
        (CodingError::TooLarge(_), _) | (CodingError::NoRoom, Some(_)) => {
            let message = format!("the server's answer, decoded, is longer than {most} bytes");
            Failure::new(Reason::UpstreamTooLarge, message)
        }
    })
}

pub(super) fn terms(limits: &Limits) -> Terms {
    Terms {
        depth: limits.depth,
        now: clock::rfc3339,
    }
}

/// Checks that a response answers the one question of its exchange.
pub(super) fn belongs(response: &Response, id: u64) -> Result<(), Failure> {
    let own = response
        .id
        .as_ref()
        .is_some_and(|answered| answered.as_bytes() == itoa::Buffer::new().format(id).as_bytes());
    // An error whose sender could not read the id has null there, or nothing; an exchange has one call only.
    let unread = response
        .id
        .as_ref()
        .is_none_or(|answered| answered.as_bytes() == b"null");
    if own || (unread && matches!(response.reply, jsonrpc::Reply::Error(_))) {
        return Ok(());
    }
    let found = response
        .id
        .as_ref()
        .map_or("no id".into(), |id| String::from_utf8_lossy(id.as_bytes()));
    let shown: String = found.chars().take(64).collect();
    let message = "the server answered a call with another id than this one";
    Err(Failure::new(Reason::UpstreamWrongId, message).because(format!("sent {id}, got {shown}")))
}

/// What an RPC upstream answered in place of a response.
pub(super) fn no_response(reply: &Reply, fault: ResponseFault, error_text: usize) -> Failure {
    refusal::no_response(&rest_reply(reply), fault, error_text)
}

fn rest_reply(reply: &Reply) -> RestReply {
    RestReply {
        status: reply.status.as_u16(),
        headers: reply.headers.clone(),
        body: reply.body.clone(),
    }
}
