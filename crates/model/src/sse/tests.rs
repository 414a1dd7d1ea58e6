use bytes::Bytes;
use proptest::prelude::*;

use super::law::{Traced, trace};
use super::*;

fn block(text: &str) -> RawEvent {
    RawEvent::read(&Bytes::copy_from_slice(text.as_bytes())).unwrap()
}

fn events(stream: &str) -> Vec<String> {
    let trace = trace(1000, stream.as_bytes(), &[1]);
    let events = trace.pieces.into_iter().filter_map(|piece| match piece {
        Traced::Event(event) => Some(String::from_utf8(event).unwrap()),
        Traced::Between(_) | Traced::Oversize | Traced::Unfinished(_) => None,
    });
    events.collect()
}

#[test]
fn an_event_ends_at_a_blank_line_whatever_ends_a_line() {
    for end in ["\n", "\r\n", "\r"] {
        let stream = format!("data: a{end}{end}: c{end}{end}data: b{end}data{end}{end}");
        let found = events(&stream);
        let wanted = [
            format!("data: a{end}{end}"),
            format!("data: b{end}data{end}{end}"),
        ];
        assert_eq!(found, wanted, "{end:?}");
    }
    assert_eq!(
        events("data: a\r\r\ndata: b\n\r\n"),
        ["data: a\r\r\n", "data: b\n\r\n"]
    );
}

#[test]
fn a_comment_between_events_goes_out_when_its_line_has_ended() {
    let mut reader = SseReader::new(100);
    reader.feed(b": ping\r");
    assert_eq!(reader.next(), Some(StreamPiece::Between(": ping\r".into())));
    assert_eq!(reader.next(), None);
    reader.feed(b"\n\r\nid: 1\r\n: within\r\ndata: x\r\n\r");
    assert_eq!(reader.next(), Some(StreamPiece::Between("\n".into())));
    assert_eq!(reader.next(), Some(StreamPiece::Between("\r\n".into())));
    let event = "id: 1\r\n: within\r\ndata: x\r\n\r";
    assert_eq!(reader.next(), Some(StreamPiece::Event(event.into())));
    assert_eq!(reader.next(), None);
    reader.feed(b"\n");
    assert_eq!(reader.next(), Some(StreamPiece::Feed("\n".into())));
    assert_eq!((reader.next(), reader.finish()), (None, None));
}

#[test]
fn a_mark_is_none_but_at_the_beginning() {
    let stream = "\u{feff}data: a\n\n\u{feff}data: b\n\n";
    assert_eq!(events(stream), ["data: a\n\n", "\u{feff}data: b\n\n"]);
    assert_eq!(block("\u{feff}data: b\n\n").data(), None);
    assert_eq!(events("\u{feff}"), Vec::<String>::new());
}

#[test]
fn what_has_no_blank_line_is_unfinished() {
    let trace = trace(1000, b"data: a\n\ndata: b\n", &[3]);
    assert_eq!(trace.pieces[1], Traced::Unfinished(b"data: b\n".to_vec()));
}

#[test]
fn an_event_beyond_the_limit_is_lost_and_the_next_one_is_not() {
    for end in ["\n", "\r\n", "\r"] {
        let long = "x".repeat(50);
        let stream = format!("data: {long}{end}data: y{end}{end}data: b{end}{end}");
        for size in 1..20 {
            let trace = trace(20, stream.as_bytes(), &[size]);
            let event = format!("data: b{end}{end}").into_bytes();
            assert_eq!(trace.pieces, [Traced::Oversize, Traced::Event(event)]);
        }
    }
}

#[test]
fn a_comment_beyond_the_limit_passes_in_parts() {
    let stream = format!(": {}\r\ndata: b\n\n", "x".repeat(50));
    for size in 1..60 {
        let trace = trace(20, stream.as_bytes(), &[size]);
        assert_eq!(trace.passed, stream.as_bytes());
        assert!(matches!(
            &trace.pieces[..],
            [Traced::Between(_), Traced::Event(_)]
        ));
    }
}

#[test]
fn the_fields_of_an_event_are_those_of_the_standard() {
    let event = block(
        "event: a\nevent:b\ndata:  x\ndata\ndata:y\nid: 1\nid: 2\nretry: 10\nother: z\n: c\n\n",
    );
    assert_eq!(event.event(), "b");
    assert_eq!(event.data().unwrap(), " x\n\ny");
    assert_eq!(event.id(), Some("2"));
    let event = block("event:\nid: a\0b\ndata:\n\n");
    assert_eq!((event.event(), event.id()), (MESSAGE, None));
    assert_eq!(event.data().unwrap(), "");
    let event = block("Data: x\nid\n\n");
    assert_eq!((event.data(), event.id()), (None, Some("")));
    assert!(RawEvent::read(&Bytes::from_static(b"data: \xff\n\n")).is_none());
}

#[test]
fn a_left_out_line_between_different_line_ends_leaves_whole_events() {
    let event = RawEvent::read(&Bytes::from_static(b"data: 1\rdata: 2\n\n")).unwrap();
    let content = EventContent {
        event: "message",
        id: None,
        data: "3",
    };
    assert_eq!(event.rewritten(content).unwrap(), b"data: 3\r\n\n");
    let event = RawEvent::read(&Bytes::from_static(b"id: 1\rdata: 2\n\n")).unwrap();
    assert_eq!(event.emptied(), b"id: 1\r\n\n");
}

#[test]
fn an_event_written_anew_keeps_its_other_lines_and_their_ends() {
    let event = block("id: 7\r\n: c\r\nevent: message\r\ndata: a\r\ndata: b\r\nretry: 5\r\n\r\n");
    let content = |event, data, id| EventContent { event, data, id };
    let written = |content| String::from_utf8(event.rewritten(content).unwrap()).unwrap();
    assert_eq!(
        written(content(MESSAGE, "x", None)),
        "id: 7\r\n: c\r\nevent: message\r\ndata: x\r\nretry: 5\r\n\r\n"
    );
    assert_eq!(
        written(content("b", "x\ny", Some("8"))),
        "id: 8\r\n: c\r\nevent: b\r\ndata: x\r\ndata: y\r\nretry: 5\r\n\r\n"
    );
    let event = block("event: b\ndata: a\n\n");
    let written = |content| String::from_utf8(event.rewritten(content).unwrap()).unwrap();
    assert_eq!(written(content(MESSAGE, "x", None)), "data: x\n\n");
    let event = block("data: a\n\n");
    let written = |content| String::from_utf8(event.rewritten(content).unwrap()).unwrap();
    assert_eq!(
        written(content("c", "x", Some("1"))),
        "event: c\nid: 1\ndata: x\n\n"
    );
}

#[test]
fn what_no_event_can_say_is_refused() {
    let event = block("data: a\n\n");
    let with = |event, data, id| EventContent { event, data, id };
    let refused = [
        (with("a\nb", "x", None), Unwritable::LineEnd("type")),
        (with("", "x", None), Unwritable::NoType),
        (with("a", "x\ry", None), Unwritable::Return),
        (with("a", "x", Some("1\r")), Unwritable::LineEnd("id")),
        (with("a", "x", Some("\0")), Unwritable::Nul),
    ];
    for (content, why) in refused {
        assert_eq!(event.rewritten(content), Err(why));
    }
}

#[test]
fn an_undelivered_event_still_sets_the_id() {
    let left = |text: &str| String::from_utf8(block(text).emptied()).unwrap();
    assert_eq!(
        left("id: 7\r\nevent: a\r\ndata: x\r\n\r\n"),
        "id: 7\r\n\r\n"
    );
    assert_eq!(left("event: a\ndata: x\nfoo: 1\n\n"), "");
    assert_eq!(left("data: x\nretry: 3\n: c\n\n"), "retry: 3\n: c\n\n");
}

fn stream() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        4 => Just(String::new()),
        2 => "(event|data|id|retry|x)(:| ?:  ?)?[a0é{}\"\u{feff}]{0,9}",
        1 => ":[a ]{0,30}",
        1 => "[a-z:\0 ]{0,5}",
    ];
    let end = prop_oneof![Just("\n"), Just("\r\n"), Just("\r")];
    let mark = prop_oneof![4 => Just(""), 1 => Just("\u{feff}")];
    (mark, prop::collection::vec((line, end), 0..20)).prop_map(|(mark, lines)| {
        let lines = lines.into_iter().map(|(line, end)| line + end);
        mark.to_owned() + &lines.collect::<String>()
    })
}

proptest! {
    #[test]
    fn what_is_read_depends_neither_on_the_cut_nor_on_luck(stream in stream(), tail in "[a:\r\n]{0,6}") {
        check_any_cut(format!("{stream}{tail}").as_bytes());
    }

    #[test]
    fn any_bytes_are_a_stream(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check_any_cut(&bytes);
    }

    #[test]
    fn what_is_written_is_what_is_read(
        stream in "(id: 1\n|: c\r|event: a\r\n|retry: 1\n){0,3}data: x\n(id: 2\n|data\r\n){0,2}\n",
        event in "[a-z:é ]{1,9}",
        data in "[a-z:é \n{}\"]{0,30}",
        id in prop::option::of("[a-z:é ]{0,9}"),
    ) {
        let block = block(&stream);
        let content = EventContent { event: &event, data: &data, id: id.as_deref() };
        let written = RawEvent::read(&block.rewritten(content).unwrap().into()).unwrap();
        prop_assert_eq!(written.event(), &event);
        prop_assert_eq!(written.data().unwrap(), data.as_str());
        prop_assert_eq!(written.id(), content.id.or(block.id()));
    }
}
