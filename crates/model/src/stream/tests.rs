use http::Method;
use proptest::prelude::*;

use super::*;
use crate::event::{EventSource, Events, OtherSide, RpcEventSource, SseSource};
use crate::route::test_syntax::tree;
use crate::translate::TranslateContext;

const TERMS: TranslateContext = TranslateContext {
    depth: 32,
    now: String::new,
};

fn sse(event: Option<&str>, data: Option<&str>, text: Option<&str>) -> Option<OtherSide> {
    Some(OtherSide::Sse(SseSource {
        event: event.map(str::to_owned),
        id: None,
        data: data.map(tree),
        text: text.map(str::to_owned),
    }))
}

fn rpc(method: &str, params: &str) -> Option<RpcEventSource> {
    Some(RpcEventSource {
        method: method.to_owned(),
        params: Some(tree(params)),
    })
}

/// The events of the systems that this is made for.
fn events() -> Events {
    let pairs = [
        (
            rpc("notifications/connected", r#"{"message": "{message}"}"#),
            sse(
                None,
                Some(r#"{"type": "notification", "message": "{message}"}"#),
                None,
            ),
        ),
        (
            rpc("notifications/oauth", "\"{note:object}\""),
            sse(Some("notification"), None, Some("data: {note:json}\n\n")),
        ),
        (
            rpc("notifications/said", r#"{"text": "{text}"}"#),
            sse(Some("said"), None, Some("{text}")),
        ),
        (
            None,
            sse(
                None,
                Some(r#"{"type": "connection", "message": "{_}"}"#),
                None,
            ),
        ),
        (None, sse(Some("connection"), None, Some("connected"))),
    ];
    let sources = pairs
        .into_iter()
        .enumerate()
        .map(|(index, (rpc, shown))| EventSource {
            key: format!("event[{index}]"),
            rpc,
            shown,
            lossy: None,
        });
    Events::build(sources.collect()).unwrap()
}

/// What leaves of a stream that comes in pieces of a size, and what became of its events.
fn leaves(from: Side, stream: &[u8], size: usize) -> (String, Vec<&'static str>) {
    let events = events();
    let mut rewriter = Rewriter::new(from, 1000);
    let (mut out, mut kinds) = (Vec::new(), Vec::new());
    let mut note = |step: RewriteStep| {
        out.extend_from_slice(&step.out);
        kinds.extend(step.result.map(|became| became.kind.as_str()));
    };
    for chunk in stream.chunks(size) {
        rewriter.feed(chunk);
        while let Some(step) = rewriter.step(&events, TERMS) {
            note(step);
        }
    }
    if let Some(step) = rewriter.finish(&events, TERMS) {
        note(step);
    }
    (String::from_utf8_lossy(&out).into_owned(), kinds)
}

fn whole(from: Side, stream: &str) -> (String, Vec<&'static str>) {
    let whole = leaves(from, stream.as_bytes(), usize::MAX);
    for size in 1..stream.len() {
        assert_eq!(
            leaves(from, stream.as_bytes(), size),
            whole,
            "pieces of {size}"
        );
    }
    whole
}

#[test]
fn a_one_shot_stream_is_rewritten_with_its_line_ends() {
    let rest =
        "event: message\r\ndata: {\"type\": \"notification\", \"message\": \"Connected\"}\r\n\r\n";
    let note = "event: message\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/connected\",\"params\":{\"message\":\"Connected\"}}\r\n\r\n";
    assert_eq!(whole(Side::Rest, rest), (note.into(), vec!["rewritten"]));
    let compact = rest.replace(": \"", ":\"").replace(", ", ",");
    assert_eq!(whole(Side::Rpc, note), (compact, vec!["rewritten"]));
}

#[test]
fn a_session_stream_keeps_ids_and_comments() {
    let stream = "id: 1\r\nevent: message\r\ndata: {\"type\": \"connection\", \"message\": \"up\"}\r\n\r\n\
        : ping - now\r\n\r\nid: 2\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"other\",\"params\":{ }}\r\n\r\n: keepalive\r\n\r\n";
    let left = "id: 1\r\n\r\n: ping - now\r\n\r\nid: 2\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"other\",\"params\":{ }}\r\n\r\n: keepalive\r\n\r\n";
    let kinds = vec!["swallowed", "untouched"];
    assert_eq!(whole(Side::Rpc, stream), (left.into(), kinds));
}

#[test]
fn a_double_framed_event_goes_there_and_back() {
    let opening = "id: 1\ndata: connected\nevent: connection\n\n";
    let framed = "id: 2\ndata: data: {\"id\":\"n1\"}\ndata: \ndata: \nevent: notification\n\n";
    let note = "id: 2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/oauth\",\"params\":{\"id\":\"n1\"}}\n\n";
    let stream = format!("{opening}{framed}");
    let kinds = vec!["swallowed", "rewritten"];
    assert_eq!(
        whole(Side::Rest, &stream),
        (format!("id: 1\n\n{note}"), kinds)
    );
    let framed = "id: 2\nevent: notification\ndata: data: {\"id\":\"n1\"}\ndata: \ndata: \n\n";
    assert_eq!(whole(Side::Rpc, note), (framed.into(), vec!["rewritten"]));
}

#[test]
fn an_event_that_cannot_be_written_is_left_out_and_the_next_one_is_not() {
    let said = |text: &str| {
        format!(
            "id: 5\rdata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/said\",\"params\":{{\"text\":\"{text}\"}}}}\r\r"
        )
    };
    let stream = format!("{}{}{}", said("7"), said("a\\rb"), said("a\\nb"));
    let left = "id: 5\r\rid: 5\r\rid: 5\revent: said\rdata: a\rdata: b\r\r";
    let kinds = vec!["failed", "failed", "rewritten"];
    assert_eq!(whole(Side::Rpc, &stream), (left.into(), kinds));
}

#[test]
fn an_event_beyond_the_limit_is_left_out() {
    let stream = format!("data: {}\r\n\r\ndata: x\r\n\r\n", "x".repeat(2000));
    let kinds = vec!["failed", "untouched"];
    assert_eq!(
        leaves(Side::Rpc, stream.as_bytes(), 7),
        ("data: x\r\n\r\n".into(), kinds)
    );
}

#[test]
fn what_is_unfinished_is_rewritten_as_well() {
    let (left, kinds) = whole(Side::Rest, "data: x\n\nevent: said\ndata: hello");
    assert!(
        left.ends_with("\"params\":{\"text\":\"hello\"}}\n"),
        "{left}"
    );
    assert_eq!(kinds, ["untouched"]);
}

#[test]
fn a_stream_is_found_at_its_path_on_each_side() {
    let path = |text: &str| StreamPath::parse(text).unwrap();
    let stream = |rest: &str, rpc: &str| Stream {
        name: "events".into(),
        rest: path(rest),
        rpc: path(rpc),
        max_age: None,
    };
    let session = stream("/old/by/{session}", "/{session}/events");
    let other = |asked: &str| session.other_path(Side::Rest, asked);
    assert_eq!(other("/old/by/a%2Fb%63").unwrap(), "/a%2Fbc/events");
    assert_eq!(other("/old/by"), None);
    assert_eq!(
        session.other_path(Side::Rpc, "/7/events").unwrap(),
        "/old/by/7"
    );
    assert!(path("/a/{x}").meets(&path("/{y}/b")));
    assert!(!path("/a/{x}").meets(&path("/b/{x}")));
    for wrong in ["/a{x}", "/{1}", "/{x}/{x}", "/a//b", "/{x=*}"] {
        assert!(StreamPath::parse(wrong).is_err(), "{wrong}");
    }
    let streams = Streams::new(vec![stream("/old/sse", "/sse"), session]);
    let find = |path| streams.find(&Method::GET, path).map(|found| found.side);
    assert_eq!(find("/old/sse"), Some(Side::Rest));
    assert_eq!(find("/old/%73se"), Some(Side::Rest));
    assert_eq!(find("/sse"), Some(Side::Rpc));
    assert_eq!(find("/old/by/1"), Some(Side::Rest));
    for none in ["//sse", "/sse/", "/sse/1", "/old/by/x/../1", "/old/by/"] {
        assert_eq!(find(none), None, "{none}");
    }
    assert_eq!(streams.find(&Method::POST, "/sse"), None);
    let near = |path| {
        let near = streams.near(&Method::GET, path).into_iter();
        near.map(|near| near.stream).collect::<Vec<_>>()
    };
    assert_eq!(near("//sse"), [0]);
    assert_eq!(near("/sse/"), [0]);
    assert_eq!(near("/old/by/x/../1"), [1]);
    assert_eq!(near("/old/by/"), [1]);
    assert_eq!(near("//events"), [1]);
    for none in ["/sse/1", "/old/by", "/old/x"] {
        assert_eq!(near(none), [0; 0], "{none}");
    }
    assert!(streams.near(&Method::POST, "//sse").is_empty());
    let slashed = Streams::new(vec![stream("/a/", "/b")]);
    assert_eq!(slashed.near(&Method::GET, "/a").len(), 1);
    assert!(slashed.find(&Method::GET, "/a/").is_some());
}

proptest! {
    #[test]
    fn a_stream_that_no_pair_matches_is_unchanged(
        stream in "((event: (x|message)|data: [a-z{}\"]{0,5}|id: [0-9]|: c|retry: 5|)(\r|\n|\r\n)){0,12}",
        size in 1_usize..20,
    ) {
        for from in Side::ALL {
            let (left, _) = leaves(from, stream.as_bytes(), size);
            prop_assert_eq!(left, stream.clone());
        }
    }
}
