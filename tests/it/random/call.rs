//! Calls and replies as both ends see them, apart from any pattern.

use std::collections::BTreeMap;

use super::json::Json;
use crate::support::{Message, Proxy};

/// A REST call: what is decoded is compared, not how it is spelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RestCall {
    pub(crate) method: String,
    pub(crate) path: Vec<String>,
    /// Ordered by name; values of one name keep their order.
    pub(crate) query: Vec<(String, String)>,
    /// Those that the route names.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Option<Json>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RpcCall {
    pub(crate) method: String,
    pub(crate) params: Option<Json>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    Rest(RestCall),
    Rpc(RpcCall),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    None,
    Json(Json),
    Text(String),
}

/// What a server answers, or a client gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    Rest {
        status: u16,
        /// Those that the row names.
        headers: BTreeMap<String, String>,
        content: Content,
    },
    /// An object with `result` or `error`.
    Rpc(Json),
}

pub(crate) fn encoded(text: &str) -> String {
    let byte = |byte: &u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(*byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.as_bytes().iter().map(byte).collect()
}

/// `+` as it is: the proxy writes a space as `%20`, and so do these tests.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut pieces = text.split('%');
    bytes.extend_from_slice(pieces.next().unwrap_or_default().as_bytes());
    for piece in pieces {
        bytes.push(u8::from_str_radix(&piece[..2], 16).unwrap());
        bytes.extend_from_slice(&piece.as_bytes()[2..]);
    }
    String::from_utf8(bytes).unwrap()
}

impl RestCall {
    pub(crate) fn target(&self, verb: &str) -> String {
        let mut target = String::new();
        for segment in &self.path {
            target.push('/');
            target.push_str(&encoded(segment));
        }
        // The colon of a verb is none of a value.
        if !verb.is_empty() {
            let behind = format!("%3A{}", encoded(verb));
            target.truncate(target.len() - behind.len());
            target.push_str(&format!(":{}", encoded(verb)));
        }
        let pairs = self.query.iter();
        let pairs: Vec<String> = pairs
            .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)))
            .collect();
        match pairs.is_empty() {
            true => target,
            false => format!("{target}?{}", pairs.join("&")),
        }
    }

    fn of(message: &Message, named: &[String]) -> RestCall {
        let mut words = message.head.start.split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        });
        let mut query: Vec<(String, String)> = pairs.collect();
        query.sort_by(|one, other| one.0.cmp(&other.0));
        RestCall {
            method: method.to_owned(),
            path: path[1..].split('/').map(decoded).collect(),
            query,
            headers: named_headers(message, named),
            body: (!message.body.is_empty()).then(|| Json::parse(message.text())),
        }
    }
}

fn named_headers(message: &Message, named: &[String]) -> BTreeMap<String, String> {
    let found = named.iter().filter_map(|name| {
        let value = message.head.one(name)?;
        Some((name.clone(), value.to_owned()))
    });
    found.collect()
}

impl Call {
    /// The call in a request that a server got; headers are those that the route names.
    pub(crate) fn of(message: &Message, named: &[String]) -> Call {
        if !message.head.start.starts_with("POST /rpc ") {
            return Call::Rest(RestCall::of(message, named));
        }
        let body = Json::parse(message.text());
        Call::Rpc(RpcCall {
            method: body.at("method").as_text().to_owned(),
            params: body.get("params").cloned(),
        })
    }

    /// Method, target, headers and body of the HTTP request.
    pub(crate) fn request(&self, verb: &str) -> (String, String, Vec<(String, String)>, String) {
        let json = ("Content-Type".to_owned(), "application/json".to_owned());
        match self {
            Call::Rest(call) => {
                let mut headers: Vec<_> = call.headers.clone().into_iter().collect();
                headers.extend(call.body.iter().map(|_| json.clone()));
                let body = call.body.as_ref().map_or(String::new(), Json::to_string);
                (call.method.clone(), call.target(verb), headers, body)
            }
            Call::Rpc(call) => {
                let mut message = BTreeMap::from([
                    ("jsonrpc".to_owned(), Json::text("2.0")),
                    ("id".to_owned(), Json::number(7)),
                    ("method".to_owned(), Json::text(&call.method)),
                ]);
                message.extend(
                    call.params
                        .iter()
                        .map(|params| ("params".to_owned(), params.clone())),
                );
                let body = Json::Object(message).to_string();
                ("POST".to_owned(), "/rpc".to_owned(), vec![json], body)
            }
        }
    }

    /// Makes the call.
    pub(crate) fn make(&self, proxy: &Proxy, verb: &str) -> Message {
        let (method, target, headers, body) = self.request(verb);
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        proxy.rest(&method, &target, &headers, body)
    }

    /// The request as an HTTP file has it.
    pub(crate) fn http_file(&self, verb: &str) -> String {
        let (method, target, headers, body) = self.request(verb);
        let headers: String = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\n"))
            .collect();
        format!("###\n{method} {target}\n{headers}\n{body}\n")
    }
}

impl Reply {
    /// The answer of a client's call.
    pub(crate) fn of(message: &Message, call: &Call, named: &[String]) -> Reply {
        if matches!(call, Call::Rpc(_)) {
            let Json::Object(mut members) = Json::parse(message.text()) else {
                panic!("no object: {message:?}");
            };
            assert_eq!(members.remove("id"), Some(Json::number(7)), "{message:?}");
            members.remove("jsonrpc");
            return Reply::Rpc(Json::Object(members));
        }
        let kind = message.head.one("content-type").unwrap_or_default();
        let content = match (message.body.is_empty(), kind.starts_with("text/")) {
            (true, _) => Content::None,
            (false, true) => Content::Text(message.text().to_owned()),
            (false, false) => Content::Json(Json::parse(message.text())),
        };
        Reply::Rest {
            status: message.status(),
            headers: named_headers(message, named),
            content,
        }
    }

    /// The bytes of it; an RPC reply bears the id of its call.
    pub(crate) fn bytes(&self, id: Option<&Json>) -> Vec<u8> {
        match self {
            Reply::Rest {
                status,
                headers,
                content,
            } => {
                let mut fields: Vec<(&str, &str)> = headers
                    .iter()
                    .map(|(name, value)| (name.as_str(), value.as_str()))
                    .collect();
                let body = match content {
                    Content::None => String::new(),
                    Content::Json(json) => {
                        fields.push(("Content-Type", "application/json"));
                        json.to_string()
                    }
                    Content::Text(text) => {
                        fields.push(("Content-Type", "text/plain; charset=utf-8"));
                        text.clone()
                    }
                };
                match status {
                    204 => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
                    _ => crate::scene::answer(&format!("{status} So"), &fields, body),
                }
            }
            Reply::Rpc(reply) => {
                let id = id.unwrap_or_else(|| panic!("a call without an id"));
                let members = reply.to_string();
                let members = &members[1..];
                crate::scene::json(format!(r#"{{"jsonrpc":"2.0","id":{id},{members}"#))
            }
        }
    }
}
