//! Subscriptions of stateless clients before a server with sessions.

use serde_json::{Value, json};

use super::*;
use crate::jsonrpc::RequestId;
use crate::mcp::ServerEra;

const GREETING: &str = r#"{"id":1,"result":{"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":false}}}}"#;
const KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// A link to a server with sessions, which uses the ids 1 and 2 for its handshake.
fn greeted() -> Driven {
    let mut link = Driven::open(LinkSettings {
        initialize_params: initialize_params(),
        ..settings(AnswerOrder::Pipelined(4))
    });
    link.pending.set_era(ServerEra::Sessions);
    link.take(LinkInput::Opened);
    link.take(LinkInput::Written);
    link.reply(GREETING);
    link.take(LinkInput::Written);
    link
}

fn listen(ticket: u64, uris: &[&str]) -> LinkInput {
    let filter = json!({ "toolsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": uris });
    let params = Rope::from(Bytes::from(json!({ "notifications": filter }).to_string()));
    let call = RequestTemplate::new("subscriptions/listen", params, &[]);
    let client = RequestId::new(Json::written(format!("\"c{ticket}\""))).unwrap();
    LinkInput::Ask(request(ticket, Outbound::Subscription(call, client)))
}

/// What the outputs write, as method and URI, and whom they notify, as method and subscription.
fn shown(output: &[LinkOutput]) -> Vec<String> {
    let read = |message: &Bytes| serde_json::from_slice::<Value>(message).unwrap();
    let line = |output: &LinkOutput| {
        if let LinkOutput::Write(message) = output {
            let message = read(message);
            return format!("{} {}", message["method"], message["params"]["uri"]);
        }
        if let LinkOutput::Notified {
            method,
            message,
            recipients,
        } = output
        {
            let of = read(message)["params"]["_meta"][KEY].clone();
            return format!("{method} to {recipients:?} {of}");
        }
        format!("{output:?}")
    };
    output.iter().map(line).collect()
}

/// Completes all writes and returns what they were.
fn written(link: &mut Driven, first: Vec<LinkOutput>) -> Vec<String> {
    let mut all = first;
    while matches!(all.last(), Some(LinkOutput::Write(_))) {
        let more = link.take(LinkInput::Written);
        if more.is_empty() {
            break;
        }
        all.extend(more);
    }
    shown(&all)
}

const UPDATED: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b"}}"#;
const TOOLS: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

#[test]
fn the_link_acknowledges_and_subscribes_for_the_first_and_until_the_last() {
    let mut link = greeted();
    let first = link.take(listen(1, &["a:b"]));
    let LinkOutput::Notified { message, .. } = &first[0] else {
        panic!("{first:?}");
    };
    let message: Value = serde_json::from_slice(message).unwrap();
    let honoured = json!({ "toolsListChanged": true, "resourceSubscriptions": ["a:b"] });
    assert_eq!(message["params"]["notifications"], honoured);
    assert_eq!(message["params"]["_meta"][KEY], "c1");
    assert_eq!(
        written(&mut link, first)[1..],
        ["\"resources/subscribe\" \"a:b\""]
    );
    let second = link.take(listen(2, &["a:b"]));
    assert_eq!(second.len(), 1, "{second:?}");
    let own = r#"{"id":3,"result":{}}"#;
    assert_eq!(link.reply(own), []);
    let counts = link.pending.counts();
    assert_eq!((counts.late, counts.foreign), (0, 0));
    assert_eq!(link.take(LinkInput::Cancel(Ticket(1))), []);
    let last = link.take(LinkInput::Cancel(Ticket(2)));
    assert_eq!(shown(&last), ["\"resources/unsubscribe\" \"a:b\""]);
}

#[test]
fn notifications_reach_the_listeners_that_asked_for_them() {
    let mut link = greeted();
    for (ticket, uris) in [(1, &["a:b"][..]), (2, &["c:d"])] {
        let output = link.take(listen(ticket, uris));
        written(&mut link, output);
    }
    let updated = "notifications/resources/updated to Caller(Ticket(1)) \"c1\"";
    assert_eq!(shown(&link.reply(UPDATED)), [updated]);
    let changed = shown(&link.reply(TOOLS));
    let wanted = [
        "notifications/tools/list_changed to Caller(Ticket(1)) \"c1\"",
        "notifications/tools/list_changed to Caller(Ticket(2)) \"c2\"",
        "notifications/tools/list_changed to All null",
    ];
    assert_eq!(changed, wanted);
    // The server did not declare it.
    let other = r#"{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}"#;
    let wanted = ["notifications/resources/list_changed to All null"];
    assert_eq!(shown(&link.reply(other)), wanted);
}

#[test]
fn listeners_end_with_their_link() {
    let mut link = greeted();
    let output = link.take(listen(1, &["a:b"]));
    written(&mut link, output);
    assert!(!link.pending.is_idle());
    let lost = link.take(LinkInput::Lost { jitter: 0 });
    assert_eq!(lost, [LinkOutput::Failed(Ticket(1), RequestError::Cut)]);
    let mut link = greeted();
    let output = link.take(listen(1, &[]));
    written(&mut link, output);
    let ended = link.take(LinkInput::Unsubscribe);
    assert_eq!(ended, [LinkOutput::Ended(Ticket(1))]);
    assert!(link.pending.is_idle());
}

#[test]
fn a_stateless_server_gets_the_request_itself() {
    let mut link = greeted();
    link.pending.set_era(ServerEra::Stateless);
    let output = link.take(listen(1, &["a:b"]));
    assert_eq!(shown(&output), ["\"subscriptions/listen\" null"]);
}
