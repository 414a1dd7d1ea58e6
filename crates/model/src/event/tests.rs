use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::route::test_syntax::tree;
use crate::translate::TranslateContext;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::SourceTree;

const TERMS: TranslateContext = TranslateContext {
    depth: 32,
    now: || "2026-01-01T12:00:00Z".to_owned(),
};

fn source(index: usize, spelled: &str) -> EventSource {
    let mut source = EventSource {
        key: format!("event[{index}]"),
        rpc: None,
        shown: None,
        lossy: None,
    };
    let SourceTree::Table(sides) = tree(spelled) else {
        panic!("{spelled}")
    };
    for (side, said) in sides {
        match (side.as_str(), said) {
            ("rpc", SourceTree::Table(members)) => {
                let mut method = String::new();
                let mut params = None;
                for (name, member) in members {
                    match (name.as_str(), member) {
                        ("method", SourceTree::Text(text)) => method = text,
                        (_, member) => params = Some(member),
                    }
                }
                source.rpc = Some(RpcEventSource { method, params });
            }
            ("sse", SourceTree::Table(members)) => {
                let mut sse = SseSource::default();
                for (name, member) in members {
                    match (name.as_str(), member) {
                        ("event", SourceTree::Text(text)) => sse.event = Some(text),
                        ("id", SourceTree::Text(text)) => sse.id = Some(text),
                        ("text", SourceTree::Text(text)) => sse.text = Some(text),
                        (_, member) => sse.data = Some(member),
                    }
                }
                source.shown = Some(OtherSide::Sse(sse));
            }
            (_, frame) => source.shown = Some(OtherSide::Frame(frame)),
        }
    }
    source
}

fn build(spelled: &[&str]) -> Result<Events, Vec<String>> {
    let sources = spelled.iter().enumerate();
    let sources = sources.map(|(index, spelled)| source(index, spelled));
    let built = Events::build(sources.collect());
    built.map_err(|errors| {
        let errors = errors.into_iter();
        errors
            .map(|error| format!("{}: {}", error.key, error.what))
            .collect()
    })
}

fn events(spelled: &[&str]) -> Events {
    build(spelled).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

fn rpc(text: &str) -> EventValue {
    EventValue::rpc(&Bytes::copy_from_slice(text.as_bytes()), 32).unwrap()
}

fn sse(event: &str, data: &str) -> EventValue {
    EventValue::sse(event, None, data, 32)
}

fn frame(text: &str) -> EventValue {
    EventValue::frame(Json::parse(Bytes::copy_from_slice(text.as_bytes()), 32).unwrap())
}

/// Renders the result of rewriting an event.
fn becomes(events: &Events, event: &EventValue, to: EventForm) -> String {
    match events.rewrite(event, to, TERMS) {
        EventAction::Untouched => "untouched".into(),
        EventAction::Swallowed => "swallowed".into(),
        EventAction::Failed { key, why } => format!("failed {key}: {why}"),
        EventAction::Rewritten { event, dropped } => {
            let text = match (event.message(), event.fields()) {
                (Some(message), _) => String::from_utf8(message.as_bytes().to_vec()).unwrap(),
                (None, Some(said)) => format!("{} {:?} {}", said.event, said.id, said.data),
                (None, None) => panic!("{event:?}"),
            };
            if dropped > 0 {
                format!("{text} dropped {dropped}")
            } else {
                text
            }
        }
    }
}

const OAUTH: &str = r#"{
    "rpc": {"method": "notifications/oauth_completed", "params": {"provider": "{provider}", "success": "{success:boolean}"}},
    "sse": {"event": "notification", "text": "data: {note:json}\n\n"}
}"#;

#[test]
fn stream_events_and_notifications_become_each_other() {
    let events = events(&[r#"{
        "rpc": {"method": "notifications/connected", "params": {"message": "{message}"}},
        "sse": {"data": {"type": "notification", "message": "{message}"}}
    }"#]);
    let data = r#"{"type": "notification", "message": "Connected"}"#;
    let note =
        r#"{"jsonrpc":"2.0","method":"notifications/connected","params":{"message":"Connected"}}"#;
    assert_eq!(
        becomes(&events, &sse("message", data), EventForm::Rpc),
        note
    );
    let back = r#"message None {"type":"notification","message":"Connected"}"#;
    assert_eq!(becomes(&events, &rpc(note), EventForm::Sse), back);
    for other in [
        sse("other", data),
        sse("message", "connected"),
        sse("message", "{}"),
    ] {
        assert_eq!(becomes(&events, &other, EventForm::Rpc), "untouched");
    }
    assert_eq!(becomes(&events, &rpc(note), EventForm::Frame), "untouched");
}

#[test]
fn a_double_framed_payload_is_a_text_with_json_inside() {
    let events = events(&[&OAUTH.replace(
        r#"{"provider": "{provider}", "success": "{success:boolean}"}"#,
        r#""{note:object}""#,
    )]);
    let framed = sse("notification", "data: {\"provider\":\"strava\"}\n\n");
    let note = r#"{"jsonrpc":"2.0","method":"notifications/oauth_completed","params":{"provider":"strava"}}"#;
    assert_eq!(becomes(&events, &framed, EventForm::Rpc), note);
    assert_eq!(
        becomes(&events, &rpc(note), EventForm::Sse),
        "notification None data: {\"provider\":\"strava\"}\n\n"
    );
    assert_eq!(
        becomes(&events, &sse("connection", "connected"), EventForm::Rpc),
        "untouched"
    );
}

#[test]
fn frames_have_their_pairs_as_well() {
    let events = events(&[
        r#"{"rpc": {"method": "event/{type}", "params": "{payload?}"}, "frame": {"event": "{type}", "payload": "{payload?}"}}"#,
        r#"{"frame": {"event": "warning"}}"#,
        r#"{"rpc": {"method": "event/heartbeat"}, "frame": {"event": "heartbeat"}}"#,
    ]);
    let log = frame(r#"{"event":"log","timestamp":"t","payload":{"line":1.10}}"#);
    let note = r#"{"jsonrpc":"2.0","method":"event/log","params":{"line":1.10}}"#;
    assert_eq!(
        becomes(&events, &log, EventForm::Rpc),
        format!("{note} dropped 1")
    );
    assert_eq!(
        becomes(&events, &rpc(note), EventForm::Frame),
        r#"{"event":"log","payload":{"line":1.10}}"#
    );
    let warning = frame(r#"{"event":"warning","payload":{}}"#);
    for to in EventForm::ALL {
        assert_eq!(becomes(&events, &warning, to), "swallowed");
    }
    let beat = frame(r#"{"event":"heartbeat"}"#);
    let note = r#"{"jsonrpc":"2.0","method":"event/heartbeat"}"#;
    assert_eq!(becomes(&events, &beat, EventForm::Rpc), note);
    let scalar = frame(r#"{"event":"x","payload":7}"#);
    let failed = becomes(&events, &scalar, EventForm::Rpc);
    assert!(
        failed.starts_with("failed event[0]: rpc/params"),
        "{failed}"
    );
}

#[test]
fn the_id_of_a_streams_event_is_text_and_may_be_named() {
    let events = events(&[r#"{
        "rpc": {"method": "tick", "params": {"seq": "{seq:integer}"}},
        "sse": {"event": "tick", "id": "{seq}"}
    }"#]);
    let note = r#"{"jsonrpc":"2.0","method":"tick","params":{"seq":7}}"#;
    let tick = EventValue::sse("tick", Some("7"), "", 32);
    assert_eq!(becomes(&events, &tick, EventForm::Rpc), note);
    assert_eq!(
        becomes(&events, &rpc(note), EventForm::Sse),
        "tick Some(\"7\") "
    );
    let tick = EventValue::sse("tick", Some("x"), "", 32);
    assert_eq!(becomes(&events, &tick, EventForm::Rpc), "untouched");
}

#[test]
fn an_id_that_is_not_named_is_not_dropped() {
    let events = events(&[r#"{"rpc": {"method": "a"}, "sse": {"event": "a"}}"#]);
    let event = EventValue::sse("a", Some("1"), "", 32);
    assert_eq!(
        becomes(&events, &event, EventForm::Rpc),
        r#"{"jsonrpc":"2.0","method":"a"}"#
    );
}

#[test]
fn a_text_that_would_be_read_as_json_is_not_written() {
    let events = events(&[
        r#"{"rpc": {"method": "a", "params": {"t": "{t}"}}, "sse": {"event": "a", "text": "{t}"}}"#,
    ]);
    let note = |t: &str| {
        rpc(&format!(
            r#"{{"jsonrpc":"2.0","method":"a","params":{{"t":"{t}"}}}}"#
        ))
    };
    assert_eq!(
        becomes(&events, &note("connected"), EventForm::Sse),
        "a None connected"
    );
    let failed = becomes(&events, &note("7"), EventForm::Sse);
    assert_eq!(
        failed,
        "failed event[0]: sse/text: it would be read as JSON"
    );
}

#[test]
fn the_most_specific_event_is_chosen_in_any_order() {
    let wide = r#"{"rpc": {"method": "a", "params": {"x": "{x}"}}, "sse": {"event": "a", "data": {"x": "{x}"}}}"#;
    let narrow = r#"{"rpc": {"method": "b", "params": {"y": "{y}"}}, "sse": {"event": "a", "data": {"x": 1, "y": "{y}"}}}"#;
    let event = sse("a", r#"{"x":1,"y":2}"#);
    for order in [[wide, narrow], [narrow, wide]] {
        let becomes = becomes(&events(&order), &event, EventForm::Rpc);
        assert_eq!(
            becomes,
            r#"{"jsonrpc":"2.0","method":"b","params":{"y":2}}"#
        );
    }
}

#[test]
fn ambiguous_and_unusable_events_are_refused() {
    let refused = build(&[
        r#"{"rpc": {"method": "a"}, "sse": {"event": "a", "data": {"x": 1}}}"#,
        r#"{"rpc": {"method": "b"}, "sse": {"event": "a", "data": {"y": 1}}}"#,
    ]);
    let refused = refused.unwrap_err();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(
        refused[0].starts_with("event[1]: it matches events in the form `sse` that event[0] also")
    );
    let refused = build(&[
        r#"{"sse": {"event": "{_}", "data": "{_}"}}"#,
        r#"{"sse": {"event": "{_}", "data": "{_}"}}"#,
    ]);
    let refused = refused.unwrap_err();
    assert!(
        refused[0].starts_with("event[1]: the event can never be used: event[0]"),
        "{refused:?}"
    );
    // The other sides differ, so no event matches both.
    events(&[
        r#"{"rpc": {"method": "a"}, "sse": {"event": "a", "data": "{_}"}}"#,
        r#"{"rpc": {"method": "a"}, "frame": {"event": "a"}}"#,
    ]);
}

#[test]
fn every_fault_of_an_event_has_its_key() {
    let faults = [
        (
            r#"{"rpc": {"method": "a", "params": {"x": "{x}"}}, "sse": {"event": "a"}}"#,
            "event[0].rpc: the hole `x` is on the rpc side only",
        ),
        (
            r#"{"rpc": {"method": "a", "params": 7}}"#,
            "event[0].rpc.params: params must be",
        ),
        (
            r#"{"rpc": {"method": ""}}"#,
            "event[0].rpc.method: the RPC method is empty",
        ),
        (
            r#"{"sse": {"event": ""}}"#,
            "event[0].sse.event: an event without a type",
        ),
        (
            r#"{"sse": {"data": {}, "text": ""}}"#,
            "event[0].sse: `data` is JSON",
        ),
        (
            r#"{"sse": {"text": "{a}{b}"}}"#,
            "event[0].sse.text: the holes `a` and `b` touch",
        ),
        ("{}", "event[0]: it has no side"),
    ];
    for (spelled, wanted) in faults {
        let errors = build(&[spelled]).unwrap_err();
        assert!(errors[0].starts_with(wanted), "{errors:?}");
    }
}

proptest! {
    #[test]
    fn an_event_comes_back_as_it_was(
        message in "[a-zA-Z \"\\\\é\n]{0,12}",
        number in any::<i64>(),
    ) {
        let events = events(&[r#"{
            "rpc": {"method": "n", "params": {"m": "{m}", "i": "{i:integer}"}},
            "sse": {"event": "e", "id": "{i}", "data": {"n": [{"m": "{m}"}]}}
        }"#]);
        let message = serde_json::to_string(&message).unwrap();
        let sent = format!(r#"{{"jsonrpc":"2.0","method":"n","params":{{"m":{message},"i":{number}}}}}"#);
        let EventAction::Rewritten { event, dropped: 0 } = events.rewrite(&rpc(&sent), EventForm::Sse, TERMS) else {
            return Err(TestCaseError::fail("not rewritten"));
        };
        prop_assert_eq!(becomes(&events, &event, EventForm::Rpc), sent);
    }
}
