//! Observed calls as values: what a draft is made of. Used throughout `learn`.
//!
//! All numbers are bounded; calls beyond a limit are counted and left out.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use dualgauge_model::proposal::MismatchReport;
use dualgauge_model::unrouted::UnroutedPath;
use dualgauge_patterns::percent::{Plus, decode};
use dualgauge_recording::access_log::LoggedCall;
use dualgauge_recording::recording::{RecordedBody, RecordedCall, Responder};

/// The most calls that a draft is made of.
pub(super) const MAX_CALLS: usize = 200_000;

/// The reason why messages of old dialects are left out.
const OLD_MESSAGE: &str =
    "a message of an old RPC dialect; `old` and `frame` of a route are written by hand";

/// A body.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    /// The source does not say.
    Unknown,
    /// There was none.
    Empty,
    /// A JSON value.
    Json(Value),
    /// Another content.
    Other,
}

impl Content {
    fn new(body: &RecordedBody) -> Content {
        match body {
            RecordedBody::Empty => Content::Empty,
            RecordedBody::Omitted(_) => Content::Unknown,
            RecordedBody::Json(json) => match serde_json::from_slice(json.as_bytes()) {
                Ok(value) => Content::Json(value),
                Err(_) => Content::Other,
            },
            RecordedBody::Text(_) | RecordedBody::Bytes(_) => Content::Other,
        }
    }
}

/// A REST call.
#[derive(Debug, Clone)]
pub(super) struct RestCall {
    pub(super) method: String,
    /// The decoded segments of the path; the last one is empty if the path ends in a slash.
    pub(super) segments: Vec<String>,
    /// The decoded names and values of the query.
    pub(super) query: Vec<(String, String)>,
    pub(super) body: Content,
    pub(super) status: Option<u16>,
    pub(super) response: Content,
    /// The number of calls that look like this.
    pub(super) times: u64,
    /// True if a proxy has counted the calls: values of segments and of the query are not known.
    pub(super) is_counted: bool,
}

/// A JSON-RPC call.
#[derive(Debug, Clone)]
pub(super) struct RpcCall {
    pub(super) method: String,
    pub(super) params: Option<Value>,
    /// The result, if it is known.
    pub(super) result: Option<Value>,
}

/// All observed calls.
#[derive(Debug, Default)]
pub(super) struct Observed {
    pub(super) rest: Vec<RestCall>,
    pub(super) rpc: Vec<RpcCall>,
    /// The paths of JSON-RPC messages.
    rpc_paths: BTreeSet<Vec<String>>,
    /// The mismatches of reports.
    pub(super) mismatches: MismatchReport,
    /// The calls that were left out, by the reason.
    pub(super) left_out: BTreeMap<&'static str, u64>,
}

impl Observed {
    /// Counts a call that is left out.
    pub(super) fn leave_out(&mut self, why: &'static str) {
        *self.left_out.entry(why).or_default() += 1;
    }

    /// Adds a call of an access log.
    pub(super) fn add_logged(&mut self, call: &LoggedCall) {
        self.add_rest(
            (&call.method, &call.target),
            (Content::Unknown, call.status, Content::Unknown),
        );
    }

    /// Adds a call of a recording or of a HAR file.
    pub(super) fn add_recorded(&mut self, call: &RecordedCall) {
        let request = Content::new(&call.request.body);
        // A failure of the proxy says nothing about the server.
        let response = call.response.as_ref();
        let response = response.filter(|response| response.from != Responder::Proxy);
        let status = response.map(|response| response.status);
        let response = response.map_or(Content::Unknown, |it| Content::new(&it.body));
        if let Content::Json(body) = &request {
            if is_rpc(body) {
                if self.rpc_paths.len() < MAX_CALLS
                    && let Some((path, _)) = split(&call.request.target)
                {
                    self.rpc_paths.insert(path);
                }
                return self.add_rpc(body, &response);
            }
            if is_old_message(body) {
                return self.leave_out(OLD_MESSAGE);
            }
        }
        let target = (call.request.method.as_str(), call.request.target.as_str());
        self.add_rest(target, (request, status, response));
    }

    fn add_rest(&mut self, called: (&str, &str), found: (Content, Option<u16>, Content)) {
        const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
        let (method, target) = called;
        let (body, status, response) = found;
        if !METHODS.contains(&method) {
            return self.leave_out("the method is none of GET, POST, PUT, PATCH and DELETE");
        }
        if status.is_some_and(|status| status == 404 || status == 405) {
            return self.leave_out("the server does not know the path (404 or 405)");
        }
        if self.rest.len() + self.rpc.len() >= MAX_CALLS {
            return self.leave_out("beyond the maximum number of calls");
        }
        let Some((segments, query)) = split(target) else {
            return self.leave_out("the path is irregular");
        };
        self.rest.push(RestCall {
            method: method.to_owned(),
            segments,
            query,
            body,
            status,
            response,
            times: 1,
            is_counted: false,
        });
    }

    /// Adds the calls without a route that a proxy has counted. Calls with fewer names in the query count as calls with
    /// the most frequent ones.
    pub(super) fn add_counted(&mut self, counted: &UnroutedPath) {
        let path = counted.path.strip_prefix('/').unwrap_or_default();
        let segments = path.split('/').map(|segment| match segment {
            UnroutedPath::INTEGER => "1",
            UnroutedPath::STRING => "a1b2c3",
            word => word,
        });
        let segments: Vec<String> = segments.map(str::to_owned).collect();
        let mut names: Vec<(&String, u64)> = counted
            .query
            .iter()
            .map(|(name, calls)| (name, (*calls).min(counted.calls)))
            .collect();
        names.sort_by_key(|(_, calls)| std::cmp::Reverse(*calls));
        for at in 0..=names.len() {
            let has = at
                .checked_sub(1)
                .map_or(counted.calls, |last| names[last].1);
            let times = has - names.get(at).map_or(0, |(_, calls)| *calls);
            if times == 0 {
                continue;
            }
            let query = names[..at]
                .iter()
                .map(|(name, _)| ((*name).clone(), String::new()));
            self.rest.push(RestCall {
                method: counted.method.clone(),
                segments: segments.clone(),
                query: query.collect(),
                body: Content::Unknown,
                status: None,
                response: Content::Unknown,
                times,
                is_counted: true,
            });
        }
    }

    /// Leaves out the REST calls that were posted to a path of JSON-RPC messages: frames and other messages of old
    /// dialects.
    pub(super) fn leave_out_old_messages(&mut self) {
        let paths = std::mem::take(&mut self.rpc_paths);
        let is_message = |call: &RestCall| call.method == "POST" && paths.contains(&call.segments);
        let (messages, rest) = std::mem::take(&mut self.rest)
            .into_iter()
            .partition::<Vec<_>, _>(is_message);
        self.rest = rest;
        for _ in messages {
            self.leave_out(OLD_MESSAGE);
        }
    }

    /// Returns the number of REST calls.
    pub(super) fn rest_calls(&self) -> u64 {
        self.rest.iter().map(|call| call.times).sum()
    }

    fn add_rpc(&mut self, body: &Value, response: &Content) {
        let batch = body.as_array().map(Vec::as_slice);
        let messages = batch.unwrap_or(std::slice::from_ref(body));
        for message in messages {
            if self.rest.len() + self.rpc.len() >= MAX_CALLS {
                self.leave_out("beyond the maximum number of calls");
                continue;
            }
            let Some(method) = message["method"].as_str() else {
                self.leave_out("a response of a client");
                continue;
            };
            // Responses of a batch may have any order, and ids may repeat: they are not matched.
            let result = match response {
                Content::Json(response) if messages.len() == 1 => response.get("result").cloned(),
                Content::Json(_) | Content::Unknown | Content::Empty | Content::Other => None,
            };
            self.rpc.push(RpcCall {
                method: method.to_owned(),
                params: message.get("params").cloned(),
                result,
            });
        }
    }
}

/// Returns true for a JSON-RPC 2.0 message or a batch of them.
fn is_rpc(body: &Value) -> bool {
    are_messages(body, |message| message["jsonrpc"] == "2.0")
}

/// Returns true for a message of an old RPC dialect that names its method, or a batch of them.
fn is_old_message(body: &Value) -> bool {
    are_messages(body, |message| {
        let has = |name: &str| message.get(name).is_some();
        message["method"].is_string() && ["id", "params", "arguments"].into_iter().any(has)
    })
}

fn are_messages(body: &Value, is_message: impl Fn(&Value) -> bool) -> bool {
    match body.as_array() {
        Some(messages) => !messages.is_empty() && messages.iter().all(is_message),
        None => is_message(body),
    }
}

type Target = (Vec<String>, Vec<(String, String)>);

/// Splits and decodes a target; `None` if the path is irregular.
fn split(target: &str) -> Option<Target> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = path.strip_prefix('/')?;
    let mut segments = Vec::new();
    let raw: Vec<&str> = path.split('/').collect();
    for (at, segment) in raw.iter().enumerate() {
        let text = decode(segment, Plus::Literal).ok()?.into_owned();
        let is_last = at + 1 == raw.len();
        let is_odd = text == "." || text == ".." || text.contains(['/', '\\', '\0']);
        if is_odd || (text.is_empty() && !is_last) {
            return None;
        }
        segments.push(text);
    }
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decoded = |text| decode(text, Plus::Space).ok().map(|text| text.into_owned());
        Some((decoded(name)?, decoded(value)?))
    });
    Some((segments, pairs.collect::<Option<Vec<_>>>()?))
}
