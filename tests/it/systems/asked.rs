//! A request as the servers of this folder read it: the target taken apart, the body as JSON.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::Message;

/// A REST call.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: BTreeMap<String, String>,
    pub(super) body: Result<Value, String>,
}

impl Asked {
    pub(super) fn of(request: &Message) -> Asked {
        let mut words = request.head.start.split(' ');
        let method = words.next().unwrap().to_owned();
        let target = words.next().unwrap();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        Asked {
            method,
            path: decoded(path),
            query: pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(name, value)| (decoded(name), decoded(value)))
                .collect(),
            body: serde_json::from_slice(&request.body).map_err(|error| error.to_string()),
        }
    }

    /// A value of the query; empty where there is none, as these servers take it.
    pub(super) fn query(&self, name: &str) -> &str {
        self.query.get(name).map_or("", String::as_str)
    }

    /// A member of the body that is text; empty where there is none.
    pub(super) fn text(&self, name: &str) -> &str {
        let member = self.body.as_ref().ok().and_then(|body| body.get(name));
        member.and_then(Value::as_str).unwrap_or_default()
    }
}

fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'%' {
            out.push(u8::from_str_radix(&text[at + 1..at + 3], 16).unwrap());
            at += 3;
        } else {
            out.push(if bytes[at] == b'+' { b' ' } else { bytes[at] });
            at += 1;
        }
    }
    String::from_utf8(out).unwrap()
}
