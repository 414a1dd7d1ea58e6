//! Progress tokens, which link progress notifications to calls (MCP, "Progress").
//!
//! Clients choose them, so two clients may choose the same one. On a shared link each call gets a unique token, and
//! progress notifications get the client's token back. Law: every other byte is unchanged.
//!
//! Used by `jsonrpc`, `pending` and `upstream`.

use std::ops::Range;

use bytes::Bytes;

use super::RequestTemplate;
use dualgauge_patterns::json::{Json, JsonKind};

/// The method of progress notifications.
pub const PROGRESS: &str = "notifications/progress";

const TOKEN: &str = "progressToken";

impl RequestTemplate {
    /// Returns the call with another token, and the original token; `None` if it has none.
    #[must_use]
    pub fn with_token(&self, token: &str, depth: u16) -> Option<(RequestTemplate, Json)> {
        // Fast path: most calls have no token.
        let has_token = |part: &Bytes| memchr::memmem::find(part, TOKEN.as_bytes()).is_some();
        if !has_token(&self.before) && !has_token(&self.after) {
            return None;
        }
        let whole = self.with_id(0);
        let range = find(&whole, &["params", "_meta", TOKEN], depth)?;
        let old = token_at(&whole, range.clone())?;
        let split = self.before.len();
        let token = Json::string(token);
        let mut changed = self.clone();
        if range.end <= split {
            changed.before = spliced(&self.before, range, &token);
        } else {
            // After the digit of the id.
            let offset = split + 1;
            let range = range.start.checked_sub(offset)?..range.end - offset;
            changed.after = spliced(&self.after, range, &token);
        }
        Some((changed, old))
    }
}

/// Returns the token of a progress notification.
#[must_use]
pub fn progress_token(notification: &Bytes, depth: u16) -> Option<String> {
    let range = find(notification, &["params", TOKEN], depth)?;
    Json::parse(notification.slice(range), depth)
        .ok()?
        .text()?
        .ok()
}

/// Returns a progress notification with another token.
#[must_use]
pub fn with_progress_token(notification: &Bytes, token: &Json, depth: u16) -> Option<Bytes> {
    let range = find(notification, &["params", TOKEN], depth)?;
    Some(spliced(notification, range, token))
}

fn token_at(whole: &Bytes, range: Range<usize>) -> Option<Json> {
    let token = Json::parse(whole.slice(range), 1).ok()?;
    matches!(token.kind(), JsonKind::String | JsonKind::Number).then_some(token)
}

/// Returns the range of a nested member.
pub(super) fn find(text: &Bytes, path: &[&str], depth: u16) -> Option<Range<usize>> {
    let mut value = Json::parse(text.clone(), depth).ok()?;
    if value.as_bytes().len() != text.len() {
        return None;
    }
    let mut range = 0..text.len();
    for name in path {
        if value.kind() != JsonKind::Object {
            return None;
        }
        let inner = {
            let members = value.open().ok()?;
            let member = members.into_iter().find(|member| member.name == *name)?;
            member.value
        };
        range = range.start + inner.start..range.start + inner.end;
        value = value.piece(inner);
    }
    Some(range)
}

pub(super) fn spliced(text: &Bytes, range: Range<usize>, value: &Json) -> Bytes {
    [&text[..range.start], value.as_bytes(), &text[range.end..]]
        .concat()
        .into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::jsonrpc::{Call, Incoming, MessageItem, MessageLimits, parse};

    fn called(text: &str) -> Call {
        let limits = MessageLimits {
            depth: 16,
            batch: 1,
        };
        let text = Bytes::copy_from_slice(text.as_bytes());
        let Ok(Incoming::Single(MessageItem::Call(call))) = parse(&text, limits) else {
            panic!("no call: {text:?}");
        };
        call
    }

    fn changed(text: &str) -> Option<(String, String)> {
        let (call, old) = called(text).template()?.with_token("T", 16)?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Some((text(&call.with_id(5)), text(old.as_bytes())))
    }

    #[test]
    fn a_token_is_exchanged_and_nothing_else() {
        for (before, after, old) in [
            (
                r#"{"jsonrpc":"2.0","id":"x","method":"m","params":{"a":1.0,"_meta":{"progressToken":7 ,"b":2}}}"#,
                r#"{"jsonrpc":"2.0","id":5,"method":"m","params":{"a":1.0,"_meta":{"progressToken":"T" ,"b":2}}}"#,
                "7",
            ),
            (
                r#"{"params":{"_meta":{"progressToken":"abc"}},"method":"m","jsonrpc":"2.0","id":12}"#,
                r#"{"params":{"_meta":{"progressToken":"T"}},"method":"m","jsonrpc":"2.0","id":5}"#,
                "\"abc\"",
            ),
        ] {
            assert_eq!(changed(before), Some((after.to_owned(), old.to_owned())));
        }
        for none in [
            r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":["progressToken"]}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"progressToken":1}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":{}}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":1,"progressToken":2}}}"#,
        ] {
            assert_eq!(changed(none), None, "{none}");
        }
    }

    #[test]
    fn a_notification_gets_the_callers_token_back() {
        let notification: Bytes = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":0.50,"progressToken":"T"}}"#.into();
        assert_eq!(progress_token(&notification, 8).as_deref(), Some("T"));
        let restored = with_progress_token(&notification, &Json::literal("7"), 8).unwrap();
        assert_eq!(
            restored,
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":0.50,"progressToken":7}}"#
        );
        assert_eq!(progress_token(&restored, 8), None);
        assert_eq!(progress_token(&Bytes::from_static(b"{}"), 8), None);
    }

    proptest! {
        #[test]
        fn there_and_back_is_the_same(token in "[a-z0-9]{0,8}", first in any::<bool>()) {
            let (id, meta) = ("\"id\":5", format!("\"params\":{{\"_meta\":{{\"progressToken\":\"{token}\"}}}}"));
            let parts = if first { format!("{id},{meta}") } else { format!("{meta},{id}") };
            let text = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"m\",{parts}}}");
            let (there, old) = called(&text).template().unwrap().with_token("own", 16).unwrap();
            let back = there.with_token(&old.text().unwrap().unwrap(), 16).unwrap();
            prop_assert_eq!(back.0.with_id(5), text);
            prop_assert_eq!(back.1.as_bytes(), b"\"own\"");
        }
    }
}
