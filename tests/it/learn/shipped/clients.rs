//! Clients that send the calls of all routes through a proxy that records them, and the server behind it.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::traffic::{RouteCall, value};
use crate::support::{Proxy, Upstream, Wire, both};
use dualgauge_model::check::Message;
use dualgauge_model::jsonrpc::ResponseReply;
use dualgauge_model::plan::Plan;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::side::Side;

const RECORD: &str =
    "[record]\ndirectory = \"recordings\"\nsample = 100\nbodies = true\n[log]\nlevel = \"error\"\n";

/// A recording that has ended, and its proxy.
pub(super) struct Recorded {
    pub(super) files: Vec<PathBuf>,
    /// The number of recorded REST calls that the server knows.
    pub(super) rest: usize,
    /// The number of recorded JSON-RPC calls.
    pub(super) rpc: usize,
    _proxy: Proxy,
}

impl Recorded {
    /// Sends the calls of each route of a table through a proxy without routes.
    pub(super) fn new(shipped: &Plan, calls: &[Vec<RouteCall>]) -> Recorded {
        let next = Arc::<Mutex<Vec<u8>>>::default();
        let reply = next.clone();
        let server = Upstream::serving(move |_| reply.lock().unwrap().clone());
        let proxy = Proxy::start(&format!("{}{RECORD}", both(&server, &server)));
        let mut wire = proxy.connect();
        let (mut all, mut rest, mut rpc) = (0, 0, 0);
        for (index, calls) in calls.iter().enumerate() {
            let route = shipped.routes.route(index);
            for call in calls {
                // RPC clients of a route that only REST clients enter are those of the RPC server itself.
                for from in Side::ALL {
                    if !route.enters_from(from) && from == Side::Rest {
                        continue;
                    }
                    *next.lock().unwrap() = response(call.reply(from), from);
                    let status = send(&mut wire, call.call(from));
                    all += 1;
                    match from {
                        Side::Rest => rest += usize::from(!matches!(status, 404 | 405)),
                        Side::Rpc => rpc += 1,
                    }
                }
            }
        }
        let stopped = proxy.ask("DELETE", "/api/v1/recording", "{}").json();
        assert_eq!(stopped["recording"]["calls"], all, "{stopped}");
        let folder = fs::read_dir(proxy.folder().join("recordings")).unwrap();
        Recorded {
            files: folder.map(|file| file.unwrap().path()).collect(),
            rest,
            rpc,
            _proxy: proxy,
        }
    }
}

/// Sends a call, and returns the status of the response.
fn send(wire: &mut Wire, call: &Message) -> u16 {
    let rpc;
    let (method, target, body) = match call {
        Message::RestCall {
            method,
            target,
            body,
            ..
        } => (method.as_str(), target.as_str(), body.as_ref()),
        Message::RpcCall { method, params, .. } => {
            let params = params.as_ref().map_or(json!({}), value);
            rpc =
                written(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }));
            ("POST", "/rpc", Some(&rpc))
        }
        Message::RestReply(_) | Message::RpcReply(_) => unreachable!(),
    };
    let mut request = format!("{method} {target} HTTP/1.1\r\nHost: proxy.example\r\n");
    let body = body.map(Json::as_bytes).unwrap_or_default();
    if !body.is_empty() || method != "GET" {
        let length = body.len();
        request.push_str(&format!(
            "Content-Type: application/json\r\nContent-Length: {length}\r\n"
        ));
    }
    wire.send([request.as_bytes(), b"\r\n", body].concat());
    wire.read_answer_to(method).status()
}

/// Returns the response of the server of a side; an empty one if the example has none.
fn response(reply: Option<&Message>, side: Side) -> Vec<u8> {
    let rpc = |member: &str, value: Value| {
        let body = json!({ "jsonrpc": "2.0", "id": 1, member: value }).to_string();
        let headers = "Content-Type: application/json\r\n".to_owned();
        (200, headers, body.into_bytes())
    };
    let (status, headers, body) = match (reply, side) {
        (None, Side::Rest) => (204, String::new(), Vec::new()),
        (None, Side::Rpc) => rpc("result", Value::Null),
        (Some(Message::RestReply(reply)), _) => {
            let headers = reply.headers.iter();
            let headers =
                headers.map(|(name, value)| format!("{name}: {}\r\n", value.to_str().unwrap()));
            (reply.status, headers.collect(), reply.body.to_vec())
        }
        (Some(Message::RpcReply(ResponseReply::Result(result))), _) => rpc("result", value(result)),
        (Some(Message::RpcReply(ResponseReply::Error(error))), _) => {
            let mut object = json!({ "code": error.code, "message": value(&error.message) });
            if let Some(data) = &error.data {
                object["data"] = value(data);
            }
            rpc("error", object)
        }
        (Some(Message::RestCall { .. } | Message::RpcCall { .. }), _) => unreachable!(),
    };
    let framing = match status {
        204 => String::new(),
        _ => format!("Content-Length: {}\r\n", body.len()),
    };
    let head = format!("HTTP/1.1 {status} Status\r\n{headers}{framing}\r\n");
    [head.as_bytes(), &body].concat()
}

fn written(value: &Value) -> Json {
    Json::parse(value.to_string().into(), 128).unwrap()
}
