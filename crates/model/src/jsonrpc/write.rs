//! Writing of messages around existing values.
//!
//! Used by `jsonrpc::response`, `jsonrpc::template` and `gateway::translate`.

use dualgauge_patterns::json::Json;
use dualgauge_patterns::rope::{Rope, RopeWriter};

use super::{ErrorObject, RequestId};

/// Members in addition to those of JSON-RPC.
pub type ExtraMembers<'m> = &'m [(&'m str, Json)];

/// Writes a request with an id of the proxy.
#[must_use]
pub fn request(id: u64, method: &str, params: Rope, members: ExtraMembers<'_>) -> Rope {
    call(Some(id), method, params, members)
}

/// Writes a notification.
#[must_use]
pub fn notification(method: &str, params: Rope, members: ExtraMembers<'_>) -> Rope {
    call(None, method, params, members)
}

fn call(id: Option<u64>, method: &str, params: Rope, members: ExtraMembers<'_>) -> Rope {
    let around = br#"{"jsonrpc":"2.0","id":,"method":"","params":}"#.len();
    let digits = id.map_or(0, |id| id.checked_ilog10().unwrap_or_default() as usize + 1);
    let mut writer = RopeWriter::with_capacity(around + digits + method.len() + params.copied());
    match id {
        Some(id) => {
            writer.copy(b"{\"jsonrpc\":\"2.0\",\"id\":");
            writer.number(id);
        }
        None => writer.copy(b"{\"jsonrpc\":\"2.0\""),
    }
    for (member, value) in members {
        writer.copy(b",");
        writer.string(member);
        writer.copy(b":");
        writer.value(value);
    }
    writer.copy(b",\"method\":");
    writer.string(method);
    writer.copy(b",\"params\":");
    writer.append_all(params);
    writer.copy(b"}");
    writer.finish()
}

/// Writes a success response.
#[must_use]
pub fn result(id: &RequestId, result: Rope) -> Rope {
    let around = br#"{"jsonrpc":"2.0","id":,"result":}"#.len();
    let mut writer = RopeWriter::with_capacity(around + id.as_bytes().len() + result.copied());
    writer.copy(b"{\"jsonrpc\":\"2.0\",\"id\":");
    writer.copy(id.as_bytes());
    writer.copy(b",\"result\":");
    writer.append_all(result);
    writer.copy(b"}");
    writer.finish()
}

/// Writes an error response.
#[must_use]
pub fn error(id: &RequestId, error: &ErrorObject) -> Rope {
    let mut writer = RopeWriter::with_capacity(256);
    writer.copy(b"{\"jsonrpc\":\"2.0\",\"id\":");
    writer.copy(id.as_bytes());
    writer.copy(b",\"error\":{\"code\":");
    writer.copy(error.code.to_string().as_bytes());
    writer.copy(b",\"message\":");
    writer.value(&error.message);
    if let Some(data) = &error.data {
        writer.copy(b",\"data\":");
        writer.value(data);
    }
    writer.copy(b"}}");
    writer.finish()
}

/// Writes a batch of responses, in the given order.
#[must_use]
pub fn batch(responses: Vec<Rope>) -> Rope {
    let mut writer = RopeWriter::with_capacity(256);
    for (index, response) in responses.into_iter().enumerate() {
        writer.copy(if index == 0 { b"[" } else { b"," });
        writer.append_all(response);
    }
    writer.copy(b"]");
    writer.finish()
}
