//! Subscription ids, which every message of a subscription contains (MCP 2026-07-28, "Subscriptions").
//!
//! The id is that of the request that opened the subscription. On a link that is an id of the proxy, and the client's
//! id is restored. Law: every other byte is unchanged.
//!
//! Used by `pending` and `gateway`.

use bytes::Bytes;

use super::RequestId;
use super::progress::find;

/// The method that opens a subscription. Its response ends it.
pub const LISTEN: &str = "subscriptions/listen";

/// The notification that acknowledges a subscription.
pub const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// The member of `_meta` with the id of a subscription.
pub(crate) const KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// Returns the subscription that a notification names, if any.
#[must_use]
pub fn subscription_of(notification: &Bytes, depth: u16) -> Option<u64> {
    // Fast path: most notifications name none.
    memchr::memmem::find(notification, KEY.as_bytes())?;
    let range = find(notification, &["params", "_meta", KEY], depth)?;
    std::str::from_utf8(&notification[range]).ok()?.parse().ok()
}

/// Returns a subscription's message, a notification or its result, with the client's id. A message without a
/// subscription id stays unchanged.
#[must_use]
pub fn with_client_id(message: &Bytes, id: &RequestId, depth: u16) -> Bytes {
    let paths = [["params", "_meta", KEY], ["result", "_meta", KEY]];
    let mut ranges = paths.iter().filter_map(|path| find(message, path, depth));
    match ranges.next() {
        Some(range) => {
            let (before, after) = (&message[..range.start], &message[range.end..]);
            [before, id.as_bytes(), after].concat().into()
        }
        None => message.clone(),
    }
}

/// Returns the response that ends a subscription normally.
#[must_use]
pub fn ended_subscription(id: u64, client: &RequestId) -> Bytes {
    let client = String::from_utf8_lossy(client.as_bytes());
    let result = format!("{{\"resultType\":\"complete\",\"_meta\":{{\"{KEY}\":{client}}}}}");
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dualgauge_patterns::json::Json;

    fn id(text: &'static str) -> RequestId {
        RequestId::new(Json::literal(text)).unwrap()
    }

    #[test]
    fn a_notification_of_a_subscription_has_the_id_of_the_client() {
        let notification: Bytes = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7 ,"a":1.0}}}"#.into();
        assert_eq!(subscription_of(&notification, 8), Some(7));
        let restored = with_client_id(&notification, &id("\"x\""), 8);
        let wanted = String::from_utf8(notification.to_vec()).unwrap();
        assert_eq!(restored, wanted.replace(":7 ,", ":\"x\" ,"));
        assert_eq!(subscription_of(&restored, 8), None);
    }

    #[test]
    fn so_does_its_result_and_other_messages_are_unchanged() {
        let ended = ended_subscription(3, &id("1.50"));
        assert_eq!(
            ended,
            r#"{"jsonrpc":"2.0","id":3,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":1.50}}}"#
        );
        assert_eq!(
            with_client_id(&ended, &id("4"), 8),
            ended_subscription(3, &id("4"))
        );
        for text in [
            r#"{"id":1,"error":{"code":-32601,"message":"no"}}"#,
            r#"{"method":"notifications/message","params":{"data":"io.modelcontextprotocol/subscriptionId"}}"#,
            r#"{"params":[]}"#,
            "x",
        ] {
            let text = Bytes::from(text);
            assert_eq!(with_client_id(&text, &id("4"), 8), text);
            assert_eq!(subscription_of(&text, 8), None);
        }
    }
}
