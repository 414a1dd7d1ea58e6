//! Recipients of a server's notifications on a link that several callers share.
//!
//! Law: a notification that belongs to the call of one client reaches only that client. It belongs to a call if the
//! server sends it in the response stream of that call (MCP, "Sending Messages to the Server").
//!
//! Used by `pending` and `upstream`.

use super::{LogMessages, Ticket};
use crate::jsonrpc::PROGRESS;

/// The stream in which a message from the server arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageOrigin {
    /// The link itself, outside any response stream.
    Link,
    /// The response stream of the call with this ticket.
    Call(Ticket),
    /// The response stream of the subscription with this id.
    Subscription(u64),
    /// The response stream of a call whose caller has given up.
    Abandoned,
}

/// The recipients of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipients {
    /// The caller whose progress token the notification carries.
    Token,
    /// The caller with this ticket.
    Caller(Ticket),
    /// The client whose call with this ticket opened the subscription.
    Subscriber(Ticket),
    /// Every client that subscribes to the link.
    All,
    /// No client.
    NoClient,
}

/// Returns the recipients of a notification with this method.
pub(super) fn recipients(
    method: &str,
    origin: MessageOrigin,
    log_messages: LogMessages,
) -> Recipients {
    let of_mcp = method.strip_prefix("notifications/").unwrap_or_default();
    match (of_mcp, origin) {
        _ if method == PROGRESS => Recipients::Token,
        // It names a request of the server, and no client has received one.
        ("cancelled", _) => Recipients::NoClient,
        // It is about no particular client.
        (list, _) if list.ends_with("/list_changed") => Recipients::All,
        (_, MessageOrigin::Call(ticket)) => Recipients::Caller(ticket),
        ("message", MessageOrigin::Link) => match log_messages {
            LogMessages::AllSubscribers => Recipients::All,
            LogMessages::Drop | LogMessages::OnlyCaller => Recipients::NoClient,
        },
        (_, MessageOrigin::Link | MessageOrigin::Subscription(_) | MessageOrigin::Abandoned) => {
            Recipients::NoClient
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGGED: &str = "notifications/message";
    const CALL: MessageOrigin = MessageOrigin::Call(Ticket(7));
    const LOGS: [LogMessages; 3] = [
        LogMessages::Drop,
        LogMessages::OnlyCaller,
        LogMessages::AllSubscribers,
    ];

    #[test]
    fn a_message_of_a_call_reaches_only_its_caller() {
        for logs in LOGS {
            for method in [LOGGED, "notifications/resources/updated", "event/x"] {
                assert_eq!(
                    recipients(method, CALL, logs),
                    Recipients::Caller(Ticket(7))
                );
                let abandoned = recipients(method, MessageOrigin::Abandoned, logs);
                assert_eq!(abandoned, Recipients::NoClient, "{method}");
            }
        }
    }

    #[test]
    fn log_messages_of_no_call_reach_all_where_that_is_configured() {
        let recipients_of = |method, logs| recipients(method, MessageOrigin::Link, logs);
        for logs in [LogMessages::Drop, LogMessages::OnlyCaller] {
            assert_eq!(recipients_of(LOGGED, logs), Recipients::NoClient);
        }
        assert_eq!(
            recipients_of(LOGGED, LogMessages::AllSubscribers),
            Recipients::All
        );
        for other in ["notifications/resources/updated", "event/message"] {
            assert_eq!(
                recipients_of(other, LogMessages::AllSubscribers),
                Recipients::NoClient
            );
        }
    }

    #[test]
    fn progress_follows_its_token_and_changed_lists_reach_all() {
        for origin in [MessageOrigin::Link, CALL, MessageOrigin::Abandoned] {
            for logs in LOGS {
                let recipients_of = |method| recipients(method, origin, logs);
                assert_eq!(recipients_of("notifications/progress"), Recipients::Token);
                assert_eq!(
                    recipients_of("notifications/tools/list_changed"),
                    Recipients::All
                );
                assert_eq!(
                    recipients_of("notifications/cancelled"),
                    Recipients::NoClient
                );
            }
        }
    }
}
