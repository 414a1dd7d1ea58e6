//! Lenient reading of messages that are not valid JSON-RPC 2.0: another version, a member of another type, a repeated
//! name.
//!
//! The caller decides the treatment of the message. Laws: a method is returned only if every parser reads the same one;
//! a message that the strict reader accepts as a call is read as the same call.
//!
//! Used by `batch` and `posted`.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use dualgauge_patterns::json::{
    Json, JsonKind, MemberSpan, decode, same_ignoring_case, scan_object, text_of,
};

use super::RequestId;
use super::message::{Call, ID, JSONRPC, METHOD, NAMES, PARAMS};

/// The call that a message makes.
#[derive(Debug, Clone)]
pub enum LooseCall {
    /// One method. Invalid params or ids are left out; a call without an id gets a null one.
    Call(Box<Call>),
    /// Two parsers may read two calls: the method or the params are repeated, or an envelope name is written in another
    /// letter case.
    Ambiguous,
    /// No call.
    Unreadable,
}

/// The readable content of one message.
#[derive(Debug, Clone)]
pub struct Loose {
    /// The call.
    pub reading: LooseCall,
    /// True if it has any JSON-RPC version.
    pub has_version: bool,
    /// Each method that a parser may read.
    pub methods: Vec<String>,
}

/// The maximum number of `method` members that are read.
const MOST_METHODS: usize = 8;

/// Reads a message as far as possible; a truncated one up to its end.
#[must_use]
pub fn read_loosely(text: &Bytes, depth: u16) -> Loose {
    let mut members = LooseMembers::default();
    let scanned = scan_object(text, depth, |member| members.note(text, member));
    let has_version = members.has_version;
    let methods = std::mem::take(&mut members.methods);
    let reading = match scanned {
        Err(_) => LooseCall::Unreadable,
        Ok(_) if members.is_ambiguous => LooseCall::Ambiguous,
        Ok(whole) => match methods.first() {
            Some(method) => LooseCall::Call(Box::new(members.into_call(text, whole, method))),
            None => LooseCall::Unreadable,
        },
    };
    Loose {
        reading,
        has_version,
        methods,
    }
}

/// The envelope members that were found.
#[derive(Default)]
struct LooseMembers {
    has_version: bool,
    is_ambiguous: bool,
    methods: Vec<String>,
    has_method: bool,
    params: Option<Range<usize>>,
    id: Option<Range<usize>>,
}

impl LooseMembers {
    fn note(&mut self, text: &[u8], member: MemberSpan) {
        let Ok(name) = decode(&text[member.name]) else {
            return;
        };
        let known = NAMES
            .iter()
            .position(|known| same_ignoring_case(known, &name));
        let Some(index) = known else { return };
        if NAMES[index] != name {
            self.is_ambiguous = true;
        }
        match index {
            JSONRPC => self.has_version = true,
            METHOD => {
                self.is_ambiguous |= std::mem::replace(&mut self.has_method, true);
                let method = text_of(&text[member.value]).and_then(Result::ok);
                if self.methods.len() < MOST_METHODS {
                    self.methods.extend(method.map(Cow::into_owned));
                }
            }
            PARAMS => self.is_ambiguous |= self.params.replace(member.value).is_some(),
            ID => self.id = Some(member.value),
            _ => {}
        }
    }

    fn into_call(self, text: &Bytes, whole: Range<usize>, method: &str) -> Call {
        let params = self.params.map(|range| Json::scanned(text, range));
        let params =
            params.filter(|params| matches!(params.kind(), JsonKind::Object | JsonKind::Array));
        let id = self
            .id
            .and_then(|range| RequestId::new(Json::scanned(text, range)));
        Call {
            text: Json::scanned(text, whole),
            method: Arc::from(method),
            params,
            id: Some(id.unwrap_or(RequestId::null())),
            id_range: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Loose {
        read_loosely(&Bytes::copy_from_slice(text.as_bytes()), 16)
    }

    fn called(text: &str) -> Option<(String, Option<String>, String)> {
        let LooseCall::Call(call) = read(text).reading else {
            return None;
        };
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let params = call.params.as_ref().map(|params| shown(params.as_bytes()));
        Some((call.method.to_string(), params, shown(call.id?.as_bytes())))
    }

    #[test]
    fn a_method_is_read_despite_other_faults() {
        let call = |method: &str, params: Option<&str>, id: &str| {
            Some((method.to_owned(), params.map(str::to_owned), id.to_owned()))
        };
        for (text, expected) in [
            (
                r#"{"jsonrpc":"1.0","id":"c","method":"m","params":[]}"#,
                call("m", Some("[]"), "\"c\""),
            ),
            (r#"{"id":7,"method":"m\u002fn"}"#, call("m/n", None, "7")),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#,
                call("m", None, "1"),
            ),
            (
                r#"{"jsonrpc":"2.0","id":[],"method":"m","params":1}"#,
                call("m", None, "null"),
            ),
            (
                r#"{"method":"m","result":null,"error":null,"id":1}"#,
                call("m", None, "1"),
            ),
            (
                r#"{"id":1,"id":2,"jsonrpc":"2.0","jsonrpc":"2.0","method":"m"}"#,
                call("m", None, "2"),
            ),
        ] {
            assert_eq!(called(text), expected, "{text}");
        }
    }

    #[test]
    fn two_parsers_never_read_two_calls() {
        for text in [
            r#"{"jsonrpc":"2.0","method":"a","method":"b"}"#,
            r#"{"jsonrpc":"2.0","method":"a","Method":"b"}"#,
            r#"{"jsonrpc":"2.0","METHOD":"a"}"#,
            r#"{"jsonrpc":"2.0","method":"a","m\u0065thod":"b"}"#,
            r#"{"jsonrpc":"2.0","method":"a","params":{},"params":[]}"#,
            r#"{"Jsonrpc":"2.0","method":"a"}"#,
            r#"{"jsonrpc":"2.0","method":"a","ID":1}"#,
        ] {
            assert!(matches!(read(text).reading, LooseCall::Ambiguous), "{text}");
        }
        assert_eq!(read(r#"{"method":"a","Method":"b"}"#).methods, ["a", "b"]);
    }

    #[test]
    fn a_message_without_a_method_may_still_be_json_rpc() {
        for (text, has_version) in [
            ("", false),
            ("{}", false),
            (r#"{"a":1}"#, false),
            (r#"{"method":7}"#, false),
            (r#"{"jsonrpc":"2.0","id":1}"#, true),
            (
                r#"{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]"#,
                true,
            ),
            ("[]", false),
        ] {
            let read = read(text);
            assert!(matches!(read.reading, LooseCall::Unreadable), "{text}");
            assert_eq!(read.has_version, has_version, "{text}");
        }
    }
}
