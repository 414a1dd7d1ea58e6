//! The recorded call, made on the thread of the recorder: redaction happens here. Used by `recording`.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, Method, StatusCode};

use super::kept::{EndedBody, RequestKind};
use crate::telemetry::clock::millis;
use dualgauge_model::plan::Plan;
use dualgauge_model::record::{RecordPlan, RecordedBodies};
use dualgauge_model::rollout::{DecisionReason, Stage, Way};
use dualgauge_model::route::{Route, Segments};
use dualgauge_net::ContentEncoding;
use dualgauge_patterns::json::{Json, JsonKind};
use dualgauge_patterns::side::Side;
use dualgauge_recording::recording::{
    Headers, MAX_DEPTH, RecordedBody, RecordedCall, RecordedRequest, RecordedResponse,
    RecordedTime, Responder,
};
use dualgauge_recording::redact::{Nameless, PLACEHOLDER, Redactor, Sensitive};

/// The largest body that is recorded, in bytes, after decoding.
const MAX_BODY: usize = 4 * 1024 * 1024;

/// A call up to its decision, without its bodies.
#[derive(Debug)]
pub(super) struct RecordedCaller {
    pub(super) plan: Arc<Plan>,
    pub(super) settings: Arc<RecordPlan>,
    pub(super) time: SystemTime,
    pub(super) side: Side,
    pub(super) kind: RequestKind,
    pub(super) route: Option<usize>,
    pub(super) client: Option<usize>,
    pub(super) stage: Option<Stage>,
    pub(super) why: DecisionReason,
    pub(super) bodies: RecordedBodies,
    /// The recording that the call was sampled for.
    pub(super) generation: u32,
    pub(super) method: Method,
    pub(super) target: Option<PathAndQuery>,
    /// The headers that are recorded.
    pub(super) headers: HeaderMap,
    /// The headers that describe the body.
    pub(super) coding: HeaderMap,
}

/// The response to an ended call.
#[derive(Debug)]
pub(super) struct EndedResponse {
    pub(super) status: StatusCode,
    /// The headers that are recorded.
    pub(super) headers: HeaderMap,
    /// The headers that describe the body.
    pub(super) coding: HeaderMap,
    pub(super) failure: Option<&'static str>,
    pub(super) body: EndedBody,
    pub(super) latency: Duration,
}

/// The rules of a plan: names that look like those of credentials, or that the configuration names.
struct Rules<'p> {
    plan: &'p Plan,
    settings: &'p RecordPlan,
    /// The query parameters that have whole messages of an old dialect.
    messages: Vec<&'p str>,
}

impl Sensitive for Rules<'_> {
    fn hides(&self, name: &str) -> bool {
        let is_header = |name: &HeaderName| self.plan.is_secret(name);
        // Recordings contain calls of other people, as reports do.
        self.settings.redaction.hides_in_reports(name)
            || self.messages.contains(&name)
            || name.parse().is_ok_and(|name| is_header(&name))
    }

    fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.settings.redaction.text(text)
    }

    fn path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        self.settings.redaction.path(path)
    }
}

/// One body with its headers, and its place in the call.
struct Content<'c> {
    place: &'static str,
    body: &'c EndedBody,
    coding: &'c HeaderMap,
}

impl RecordedCaller {
    /// Makes the recorded call. `is_whole` is true if the client received a whole response.
    pub(super) fn call(
        &self,
        request: &EndedBody,
        response: Option<&EndedResponse>,
        is_whole: bool,
    ) -> RecordedCall {
        let mut complete = is_whole && response.is_some();
        let rules = Rules {
            plan: &self.plan,
            settings: &self.settings,
            messages: self.message_parameters(),
        };
        let mut redactor = Redactor::new(&rules, self.nameless(&rules, request));
        // The routes of the messages are not known, so their secret holes are not either.
        let is_old_batch = self.may_be_old() && self.route.is_none() && is_array(request);
        let content = Content {
            place: "request.body",
            body: request,
            coding: &self.coding,
        };
        let body = match (self.side, self.bodies) {
            (Side::Rpc, RecordedBodies::Omitted) => envelope(&mut redactor, request),
            (Side::Rest, _) if is_old_batch => RecordedBody::Omitted(request.length()),
            (Side::Rest | Side::Rpc, _) => content.record(&mut redactor, &mut complete),
        };
        let path = self.target.as_ref().map_or("", PathAndQuery::path);
        let query = self.target.as_ref().and_then(PathAndQuery::query);
        let recorded = RecordedRequest {
            method: self.method.as_str().to_owned(),
            target: redactor.target(path, query),
            headers: headers(&mut redactor, "request.headers", &self.headers),
            body,
        };
        let from = self.responder();
        let response = response.map(|ended| {
            let content = Content {
                place: "response.body",
                body: &ended.body,
                coding: &ended.coding,
            };
            RecordedResponse {
                status: ended.status.as_u16(),
                from: match ended.failure {
                    Some(_) => Responder::Proxy,
                    None => from,
                },
                failure: ended.failure.map(str::to_owned),
                headers: headers(&mut redactor, "response.headers", &ended.headers),
                body: match is_old_batch {
                    true => RecordedBody::Omitted(ended.body.length()),
                    false => content.record(&mut redactor, &mut complete),
                },
                latency_us: u64::try_from(ended.latency.as_micros()).unwrap_or(u64::MAX),
            }
        });
        RecordedCall {
            response,
            redacted: redactor.into_places(),
            complete,
            ..self.bare(recorded)
        }
    }

    /// Returns the call with its decision, without a response.
    fn bare(&self, request: RecordedRequest) -> RecordedCall {
        let plan = &self.plan;
        let route = self.route.map(|route| plan.routes.route(route));
        let client = self.client.map(|_| plan.rollout.clients.name(self.client));
        let milliseconds = i64::try_from(millis(self.time)).unwrap_or(i64::MAX);
        RecordedCall {
            time: RecordedTime::from_unix_ms(milliseconds),
            side: self.side,
            route: route.map(|route| route.name.clone()),
            client: client.map(str::to_owned),
            stage: self.stage.map(|stage| stage.as_str().to_owned()),
            reason: plan.rollout.describe(self.why).into_owned(),
            request,
            response: None,
            redacted: Vec::new(),
            complete: false,
        }
    }

    /// Returns true if the call may be a message of an old dialect.
    fn may_be_old(&self) -> bool {
        match self.kind {
            RequestKind::Frame => true,
            RequestKind::Http => self.side == Side::Rest && self.plan.routes.old().any,
        }
    }

    /// Returns the query parameters with whole messages at the path of the call: their members have no names in a query.
    fn message_parameters(&self) -> Vec<&str> {
        let Some(target) = self.target.as_ref().filter(|_| self.may_be_old()) else {
            return Vec::new();
        };
        let routes = &self.plan.routes;
        let group = routes.old_at(&self.method, &Segments::split(target.path()));
        let indexes = group.into_iter().flat_map(|group| group.routes());
        let parameters = indexes.filter_map(|index| {
            let call = &routes.route(*index).rest_call;
            call.message_parameter.as_deref()
        });
        parameters.collect()
    }

    fn responder(&self) -> Responder {
        match self.stage.and_then(Stage::control) {
            Some(Way::Old) => Responder::Old,
            Some(Way::New) => Responder::New,
            None => Responder::Proxy,
        }
    }

    /// Returns the treatment of values without a name: they are replaced if the method or a segment of the path is
    /// sensitive, and all values if a hole of the route is. Each message of a batch counts.
    fn nameless(&self, rules: &Rules<'_>, request: &EndedBody) -> Nameless {
        let messages = match self.side == Side::Rpc || self.may_be_old() {
            true => messages(request),
            false => Vec::new(),
        };
        // The command of an old message is in any of its members, and its route has a method as well.
        let own = self
            .route
            .map(|route| self.plan.routes.route(route).rpc.as_str());
        let mut old = messages.iter().filter(|_| self.may_be_old());
        if old.any(|message| {
            own.is_some_and(|method| is_sensitive(method, rules))
                || has_sensitive_text(message, rules)
        }) {
            return Nameless::AllReplaced;
        }
        let calls: Vec<_> = messages.iter().filter_map(method).collect();
        let routes = calls
            .iter()
            .map(|(method, params)| self.plan.select_rpc(method, params.as_ref()));
        let mut routes = routes.chain([self.route]).flatten();
        if routes.any(|route| has_secret_hole(self.plan.routes.route(route), rules)) {
            return Nameless::AllReplaced;
        }
        let path = self.target.as_ref().map_or("", PathAndQuery::path);
        let mut words = path.split('/').chain(
            calls
                .iter()
                .flat_map(|(method, _)| method.split(['.', '/', ':'])),
        );
        match words.any(|word| rules.hides(word)) {
            // Values of an old message may be in any of its members.
            true if self.may_be_old() => Nameless::AllReplaced,
            true => Nameless::Replaced,
            false => Nameless::Kept,
        }
    }
}

/// Returns true if a hole of the route has a sensitive name.
fn has_secret_hole(route: &Route, rules: &Rules<'_>) -> bool {
    let mut holes = route.facts.holes.iter();
    holes.any(|hole| rules.hides(&hole.name))
}

/// Returns true if a part of a method has a sensitive name.
fn is_sensitive(method: &str, rules: &Rules<'_>) -> bool {
    let mut words = method.split(['.', '/', ':']);
    words.any(|word| rules.hides(word))
}

/// Returns true if a text among the members of an old message, such as its command, is sensitive. A message that two
/// parsers could read differently is.
fn has_sensitive_text(message: &Json, rules: &Rules<'_>) -> bool {
    let Ok(members) = message.open() else {
        return true;
    };
    members.into_iter().any(|member| {
        let text = message.piece(member.value).text();
        matches!(text, Some(Ok(text)) if is_sensitive(&text, rules))
    })
}

/// Returns the method and the params of a message.
fn method(message: &Json) -> Option<(String, Option<Json>)> {
    let method = message.member("method")?.text()?.ok()?;
    Some((method, message.member("params")))
}

/// Returns false if a body is certainly no JSON array. A coded body may be one.
fn is_array(request: &EndedBody) -> bool {
    let EndedBody::Whole(text) = request else {
        return false;
    };
    let start = text.trim_ascii_start().first();
    !start.is_some_and(|byte| matches!(byte, b'{' | b'"'))
}

/// Returns the messages of an RPC body.
fn messages(request: &EndedBody) -> Vec<Json> {
    let EndedBody::Whole(text) = request else {
        return Vec::new();
    };
    let Ok(json) = Json::read(text.clone(), MAX_DEPTH) else {
        return Vec::new();
    };
    match json.kind() {
        JsonKind::Array => json.elements().map(|range| json.piece(range)).collect(),
        JsonKind::Object => vec![json],
        JsonKind::String | JsonKind::Number | JsonKind::Boolean | JsonKind::Null => Vec::new(),
    }
}

/// Returns the envelope of a message, or of the messages of a batch: its version, id and method. Params become
/// placeholders.
fn envelope(redactor: &mut Redactor<'_>, request: &EndedBody) -> RecordedBody {
    let EndedBody::Whole(text) = request else {
        return RecordedBody::Omitted(0);
    };
    let envelopes = messages(request);
    let envelopes: Vec<_> = envelopes
        .iter()
        .filter_map(|message| envelope_of(redactor, message))
        .collect();
    let is_batch = text.trim_ascii_start().starts_with(b"[");
    match (is_batch, envelopes.as_slice()) {
        (_, []) => RecordedBody::Omitted(text.len() as u64),
        (true, _) => RecordedBody::new(&format!("[{}]", envelopes.join(",")).into()),
        (false, _) => RecordedBody::new(&Bytes::from(envelopes.concat())),
    }
}

fn envelope_of(redactor: &mut Redactor<'_>, message: &Json) -> Option<String> {
    let is_hidden = redactor.nameless() == Nameless::AllReplaced;
    let mut members = Vec::new();
    for name in ["jsonrpc", "id", "method", "params"] {
        let Some(value) = message.member(name) else {
            continue;
        };
        let value = match (name, value.kind()) {
            ("method", _) if is_hidden => format!("\"{PLACEHOLDER}\""),
            // An id is a number or a short text; anything else may have secrets.
            ("id", JsonKind::Object | JsonKind::Array | JsonKind::Boolean) => {
                format!("\"{PLACEHOLDER}\"")
            }
            ("id" | "jsonrpc", JsonKind::String) => redactor.redacted(&value),
            ("jsonrpc", _) => "null".into(),
            ("params", JsonKind::Array) => "[]".into(),
            ("params", _) => "{}".into(),
            _ => String::from_utf8_lossy(value.as_bytes()).into_owned(),
        };
        if name == "params" || (name == "method" && is_hidden) {
            redactor.note(&format!("request.body/{name}"));
        }
        members.push(format!("\"{name}\":{value}"));
    }
    (!members.is_empty()).then(|| format!("{{{}}}", members.join(",")))
}

impl Content<'_> {
    /// Returns the recorded body; `complete` becomes false if it is lost.
    fn record(&self, redactor: &mut Redactor<'_>, complete: &mut bool) -> RecordedBody {
        let whole = match self.body {
            EndedBody::Whole(whole) => whole,
            EndedBody::Omitted(length) => return RecordedBody::Omitted(*length),
            EndedBody::Lost => {
                *complete = false;
                return RecordedBody::Omitted(0);
            }
        };
        let length = whole.len() as u64;
        let content = ContentEncoding::from_headers(self.coding)
            .ok()
            .and_then(|coding| coding.decode(whole.clone(), MAX_BODY, |_| true).ok())
            .filter(|content| content.len() <= MAX_BODY);
        let Some(content) = content else {
            *complete = false;
            return RecordedBody::Omitted(length);
        };
        let kind = self.coding.get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok());
        redactor.body(self.place, kind, &content)
    }
}

/// Returns the headers, redacted.
fn headers(redactor: &mut Redactor<'_>, place: &str, headers: &HeaderMap) -> Headers {
    let pairs = headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes());
        // They repeat the method or the name of the tool.
        let is_repeated = matches!(name.as_str(), "mcp-method" | "mcp-name");
        let value = match is_repeated && redactor.nameless() == Nameless::AllReplaced {
            true => {
                redactor.note(&format!("{place}.{name}"));
                PLACEHOLDER.to_owned()
            }
            false => redactor.header(place, name.as_str(), &value),
        };
        (name.as_str().to_owned(), value)
    });
    pairs.collect()
}
