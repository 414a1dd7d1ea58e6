//! Local replies: each matches the side of its call, and no two match the same calls.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use crate::config::compile::{docs_page, local_frames, mcp_server_info};
use crate::config::problem::{Problem, Spanned};
use crate::config::raw::{LocalWord, RawAnswer, RawConfig, RawLocal, RawLocalCall, RawReply};
use crate::config::value::header_named;
use dualgauge_model::document::{ApiInfo, openapi, openrpc, rendered, tools};
use dualgauge_model::local_reply::{
    HANDSHAKES, LocalAnswer, LocalReplies, LocalReply, RestLocalReply, RpcLocalReply, STATELESS,
    ToolList,
};
use dualgauge_model::outcome::EMPTY_TOOL_RESULT;
use dualgauge_model::plan::RpcFace;
use dualgauge_model::rollout::Rollout;
use dualgauge_model::route::{RouteTable, Segments, TOOL_CALL};
use dualgauge_patterns::json::Json;

/// Headers that HTTP itself sets, or that would change the framing.
const NOT_ALLOWED: [HeaderName; 8] = [
    http::header::CONNECTION,
    CONTENT_LENGTH,
    http::header::DATE,
    HeaderName::from_static("keep-alive"),
    http::header::TE,
    http::header::TRAILER,
    http::header::TRANSFER_ENCODING,
    http::header::UPGRADE,
];

/// The most tools of one page, unless `page` is set.
const TOOLS_OF_A_PAGE: usize = 500;

/// The properties of the plan that local replies publish.
pub(super) struct Published<'p> {
    routes: &'p RouteTable,
    api: ApiInfo,
}

impl<'p> Published<'p> {
    pub(super) fn new(routes: &'p RouteTable, rollout: &Rollout) -> Published<'p> {
        let api = ApiInfo::of_clients(&rollout.clients);
        Published { routes, api }
    }

    /// Returns the properties of the API, with the title of a local reply.
    fn api(&self, local: &RawLocal) -> ApiInfo {
        let api = self.api.clone();
        match &local.title {
            Some(title) => api.titled(title.value.as_str()),
            None => api,
        }
    }

    fn openapi(&self, local: &RawLocal) -> Json {
        rendered(&openapi(self.routes.routes(), &self.api(local)))
    }

    fn openrpc(&self, local: &RawLocal) -> Json {
        rendered(&openrpc(self.routes.routes(), &self.api(local)))
    }
}

/// Compiles the local replies, including documents generated from the routes.
pub(super) fn compile(
    raw: &RawConfig,
    published: &Published<'_>,
    face: &RpcFace,
    problems: &mut Vec<Problem>,
) -> LocalReplies {
    let mut sources: Vec<&RawLocal> = Vec::new();
    let mut locals = Vec::new();
    for local in &raw.locals {
        let compiled = match &local.call {
            RawLocalCall::Rest(call) => {
                check_path(call, face, problems);
                mcp_server_info::check_keys(local, problems);
                if local.answer.value == RawAnswer::Word(LocalWord::Docs) {
                    let files = docs_page::files(call, raw, problems);
                    sources.extend(files.iter().map(|_| local));
                    locals.extend(files.into_iter().map(LocalReply::Rest));
                    continue;
                }
                rest(call, local, published, problems).map(LocalReply::Rest)
            }
            RawLocalCall::Rpc(method) => {
                let answer = rpc(raw, local, published, problems);
                let method = method.value.clone();
                answer.map(|answer| LocalReply::Rpc(RpcLocalReply { method, answer }))
            }
            // Replies to frames are in a table of their own.
            RawLocalCall::Frame(_) => None,
        };
        if let Some(compiled) = compiled {
            sources.push(local);
            locals.push(compiled);
        }
    }
    let locals = LocalReplies::build(locals).unwrap_or_else(|overlaps| {
        problems.extend(overlaps.into_iter().map(|overlap| {
            let (local, with) = (sources[overlap.local], sources[overlap.with]);
            clash(local, with)
        }));
        LocalReplies::default()
    });
    locals.with_frames(local_frames::compile(raw, problems))
}

fn clash(local: &RawLocal, with: &RawLocal) -> Problem {
    let (line, first) = (local.call.line(), with.call.line());
    let is_path = matches!(local.call, RawLocalCall::Rest(_));
    if is_path || line.value == first.value {
        let message = format!(
            "`{}` is already answered by {} at {}",
            line.value, first.key, first.place
        );
        return line.problem(message);
    }
    let message = format!(
        "some methods match both `{}` and `{}` of {} at {}, and neither is more specific",
        line.value, first.value, first.key, first.place
    );
    line.problem(message).hint("make one of them more specific")
}

/// Rejects a path that no request can have.
fn check_path(call: &Spanned<(Method, String)>, face: &RpcFace, problems: &mut Vec<Problem>) {
    let (method, path) = &call.value;
    if let Some(why) = Segments::split(path).irregular() {
        let message = format!("the path `{path}` has {why}; write it in its normal form");
        problems.push(call.problem(message));
    } else if *method == Method::POST && face.find(path).is_some() {
        let message = format!("`{path}` is one of `rpc.paths`: a POST to it is JSON-RPC");
        problems.push(
            call.problem(message)
                .hint("answer RPC calls with `rpc = \"METHOD\"`"),
        );
    }
}

fn rest(
    call: &Spanned<(Method, String)>,
    local: &RawLocal,
    published: &Published<'_>,
    problems: &mut Vec<Problem>,
) -> Option<RestLocalReply> {
    let (method, path) = &call.value;
    let answer = &local.answer;
    let (status, headers, body) = match &answer.value {
        RawAnswer::Word(LocalWord::OpenApi) => document(published.openapi(local)),
        RawAnswer::Word(LocalWord::OpenRpc) => document(published.openrpc(local)),
        RawAnswer::Reply(reply) => reply_of(reply, answer, problems)?,
        // Its page and files are compiled separately.
        RawAnswer::Word(LocalWord::Docs) => return None,
        RawAnswer::Word(LocalWord::Nothing) => {
            let message = "`none` answers RPC calls; write `{ status = 204 }`";
            problems.push(answer.problem(message));
            return None;
        }
        RawAnswer::Word(LocalWord::Tools) => {
            let message = "`tools` answers RPC calls; write `rpc = \"tools/list\"`";
            problems.push(answer.problem(message));
            return None;
        }
        RawAnswer::Word(LocalWord::Initialize | LocalWord::Discover) => {
            let message = "`initialize` and `discover` answer RPC calls; write `rpc = \"initialize\"` or `rpc = \"server/discover\"`";
            problems.push(answer.problem(message));
            return None;
        }
        RawAnswer::Frame(_) => {
            problems.push(answer.problem(local_frames::MISPLACED));
            return None;
        }
        RawAnswer::Result(_) | RawAnswer::Error(_) => {
            let message =
                "`result` and `error` answer RPC calls; write `{ status = 200, body = ... }`";
            problems.push(answer.problem(message));
            return None;
        }
    };
    Some(RestLocalReply {
        method: method.clone(),
        path: Segments::split(path).normal(),
        status,
        headers,
        body,
    })
}

fn document(made: Json) -> (StatusCode, HeaderMap, Bytes) {
    let json = HeaderValue::from_static("application/json");
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, json)]);
    (StatusCode::OK, headers, made.into_bytes())
}

fn reply_of(
    reply: &RawReply,
    answer: &Spanned<RawAnswer>,
    problems: &mut Vec<Problem>,
) -> Option<(StatusCode, HeaderMap, Bytes)> {
    let mut headers = HeaderMap::new();
    let (kind, body) = match (&reply.body, &reply.text) {
        (Some(body), _) => (Some("application/json"), body.clone().into_bytes()),
        (None, Some(text)) => (Some("text/plain; charset=utf-8"), Bytes::from(text.clone())),
        (None, None) => (None, Bytes::new()),
    };
    if let Some(kind) = kind {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    let status = StatusCode::from_u16(reply.status.value).ok();
    let Some(status) = status.filter(|status| !status.is_informational()) else {
        let message = format!("`{}` is not a response status", reply.status.value);
        problems.push(reply.status.problem(message));
        return None;
    };
    // No content by definition (RFC 9110 §15.3.5, §15.3.6, §15.4.5).
    if matches!(reply.status.value, 204 | 205 | 304) && kind.is_some() {
        let message = format!(
            "a response with status {} has no content",
            reply.status.value
        );
        problems.push(answer.problem(message).hint("remove `body` and `text`"));
        return None;
    }
    for (name, value) in &reply.headers {
        match header(name, value) {
            Ok((name, value)) => {
                headers.insert(name, value);
            }
            Err(problem) => {
                problems.push(problem);
                return None;
            }
        }
    }
    Some((status, headers, body))
}

fn header(
    name: &Spanned<String>,
    value: &Spanned<String>,
) -> Result<(HeaderName, HeaderValue), Problem> {
    let header = header_named(&name.value).map_err(|wrong| name.problem(wrong.message))?;
    if NOT_ALLOWED.contains(&header) {
        let message = format!("`{header}` is set by the proxy in each response; remove it");
        return Err(name.problem(message));
    }
    match HeaderValue::from_str(&value.value) {
        Ok(value) => Ok((header, value)),
        Err(_) => Err(value.problem(format!("`{header}` cannot have this value in HTTP"))),
    }
}

fn rpc(
    raw: &RawConfig,
    local: &RawLocal,
    published: &Published<'_>,
    problems: &mut Vec<Problem>,
) -> Option<LocalAnswer> {
    let routes = published.routes;
    mcp_server_info::check_keys(local, problems);
    let answer = &local.answer;
    match &answer.value {
        RawAnswer::Word(LocalWord::Initialize) => {
            let info = mcp_server_info::info(raw, local, routes, &HANDSHAKES);
            Some(LocalAnswer::Initialize(Box::new(info)))
        }
        RawAnswer::Word(LocalWord::Discover) => {
            let all = [&HANDSHAKES[..], &STATELESS].concat();
            let info = mcp_server_info::info(raw, local, routes, &all);
            Some(LocalAnswer::Discover(Box::new(info)))
        }
        RawAnswer::Word(LocalWord::OpenApi) => Some(LocalAnswer::Result(published.openapi(local))),
        RawAnswer::Word(LocalWord::OpenRpc) => Some(LocalAnswer::Result(published.openrpc(local))),
        RawAnswer::Word(LocalWord::Tools) => {
            let page = local
                .page
                .as_ref()
                .map_or(TOOLS_OF_A_PAGE, |page| page.value);
            let list = ToolList::new(&tools(routes.routes()), page);
            Some(LocalAnswer::Tools(Box::new(list)))
        }
        RawAnswer::Word(LocalWord::Docs) => {
            let message = "`docs` is a page for browsers; write `rest = \"GET /docs\"`";
            problems.push(answer.problem(message));
            None
        }
        RawAnswer::Word(LocalWord::Nothing) => {
            Some(LocalAnswer::Result(Json::literal(nothing(&local.call))))
        }
        RawAnswer::Result(result) => Some(LocalAnswer::Result(result.clone())),
        RawAnswer::Error(error) => Some(LocalAnswer::Error(error.clone())),
        RawAnswer::Frame(_) => {
            problems.push(answer.problem(local_frames::MISPLACED));
            None
        }
        RawAnswer::Reply(_) => {
            let message = "`status` answers a REST call; write `{ result = ... }` or `{ error = { code, message } }`";
            problems.push(answer.problem(message));
            None
        }
    }
}

/// Returns the empty result: `null` is not a valid result of a tool.
fn nothing(call: &RawLocalCall) -> &'static str {
    match call {
        RawLocalCall::Rpc(method) if method.value.as_str() == TOOL_CALL => EMPTY_TOOL_RESULT,
        RawLocalCall::Rest(_) | RawLocalCall::Rpc(_) | RawLocalCall::Frame(_) => "null",
    }
}
