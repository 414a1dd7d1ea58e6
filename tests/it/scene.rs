//! What the tests of calls have in common: answers to script, upstreams that speak JSON-RPC, and failures as a
//! caller reads them.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::support::{Message, Proxy, Upstream};

/// A JSON-RPC call as it came, its values in the bytes they were.
#[derive(Debug, Deserialize)]
pub(crate) struct Called<'a> {
    #[serde(borrow)]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) method: &'a RawValue,
    #[serde(borrow)]
    pub(crate) params: Option<&'a RawValue>,
}

impl<'a> Called<'a> {
    pub(crate) fn of(request: &'a Message) -> Called<'a> {
        serde_json::from_slice(&request.body)
            .unwrap_or_else(|error| panic!("{error} in {request:?}"))
    }

    pub(crate) fn method(&self) -> &str {
        self.method.get().trim_matches('"')
    }

    /// The id, which must be there.
    pub(crate) fn id(&self) -> &str {
        self.id.unwrap().get()
    }

    /// The params, which must be there.
    pub(crate) fn params(&self) -> &str {
        self.params.unwrap().get()
    }

    /// The id as one of the proxy's own.
    pub(crate) fn own_id(&self) -> u32 {
        let id = self.id();
        id.parse()
            .unwrap_or_else(|_| panic!("no small integer: {id}"))
    }
}

/// An answer with a body and its length.
pub(crate) fn answer(status: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut head = format!("HTTP/1.1 {status}\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    [head.as_bytes(), body].concat()
}

/// An answer with JSON.
pub(crate) fn json(body: impl AsRef<[u8]>) -> Vec<u8> {
    answer("200 OK", &[("Content-Type", "application/json")], body)
}

/// An answer with JSON and this status.
pub(crate) fn json_with(status: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    answer(status, &[("Content-Type", "application/json")], body)
}

/// An RPC upstream that says `reply`, such as `"result":7`, to each call, alone or in a batch, and nothing to notifications.
pub(crate) fn saying(reply: &'static str) -> Upstream {
    let said = move |called: &Called<'_>| {
        let id = called.id?;
        Some(format!(r#"{{"jsonrpc":"2.0","id":{id},{reply}}}"#))
    };
    Upstream::serving(move |request| {
        if request.text().trim_start().starts_with('[') {
            let calls: Vec<Called<'_>> = serde_json::from_slice(&request.body).unwrap();
            let said: Vec<String> = calls.iter().filter_map(said).collect();
            return json(format!("[{}]", said.join(",")));
        }
        match said(&Called::of(request)) {
            Some(said) => json(said),
            None => answer("204 No Content", &[], ""),
        }
    })
}

/// A method that the proxy answers itself, so that a batch with [`HERE`] is split.
pub(crate) const ANSWERED_HERE: &str = "[[local]]\nrpc = 'here'\nanswer = { result = {} }\n";

/// A notification of that method, to which nothing is said.
pub(crate) const HERE: &str = r#"{"jsonrpc":"2.0","method":"here"}"#;

/// A proxy before a REST upstream alone, with these routes.
pub(crate) fn before_rest(rest: &Upstream, more: &str) -> Proxy {
    Proxy::start(&format!("{}{more}", crate::support::rest_only(rest)))
}

/// A proxy before an RPC upstream alone, with these routes.
pub(crate) fn before_rpc(rpc: &Upstream, more: &str) -> Proxy {
    Proxy::start(&format!("{}{more}", crate::support::rpc_only(rpc)))
}

/// A call with these params, `1` for its id.
pub(crate) fn call(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
}

/// The error of a JSON-RPC answer, as a caller reads it: the code and `data.reason`.
pub(crate) fn rpc_failure(answer: &serde_json::Value) -> (i64, &str) {
    let error = &answer["error"];
    let reason = error["data"]["reason"].as_str();
    match (error["code"].as_i64(), reason) {
        (Some(code), Some(reason)) => (code, reason),
        _ => panic!("no failure of the proxy: {answer}"),
    }
}

/// The code of a reason, by its label.
pub(crate) fn code_of(reason: &str) -> i64 {
    let mut all = dualgauge_model::failure::Reason::ALL.into_iter();
    let found = all.find(|one| one.row().label == reason);
    found.unwrap().row().code.into()
}

/// Checks a problem document and gives its `reason` and `detail`.
pub(crate) fn problem(answer: &Message) -> (String, String) {
    assert_eq!(
        answer.head.one("content-type"),
        Some("application/problem+json"),
        "{answer:?}"
    );
    let document = answer.json();
    assert_eq!(document["status"], answer.status(), "{answer:?}");
    let text = |member: &str| document[member].as_str().unwrap_or_default().to_owned();
    (text("reason"), text("detail"))
}

/// The body of an answer that has this status.
pub(crate) fn body_of(answer: &Message, status: u16) -> &str {
    assert_eq!(answer.status(), status, "{answer:?}");
    answer.text()
}

/// The fields of a head by their names in lower case; fields of one name keep their order.
pub(crate) fn lower_sorted(sent: &Message) -> Vec<(String, String)> {
    let mut fields: Vec<(String, String)> = sent
        .head
        .fields
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
        .collect();
    fields.sort_by(|one, other| one.0.cmp(&other.0));
    fields
}
