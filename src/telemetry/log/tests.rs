use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;
use serde_json::Value;

use std::io::Write;

use super::*;
use crate::telemetry::metrics::Outcome;
use dualgauge_model::failure::{Blame, Reason};
use dualgauge_model::mcp::BridgeActions;
use dualgauge_model::rollout::{Proof, Stage};
use dualgauge_patterns::side::Side;

fn noon() -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(1_770_120_000_042)
}

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the lines that are logged while a function runs.
fn logged(format: LogFormat, level: &str, action: impl FnOnce()) -> String {
    let captured = Captured::default();
    let (queue, flush) = Queue::new(captured.clone(), QUEUE_SIZE).unwrap();
    let subscriber = subscriber(format, filter(level).unwrap(), queue, noon);
    tracing::subscriber::with_default(subscriber, action);
    drop(flush);
    let bytes = captured.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

fn success() -> CallLine<'static> {
    CallLine {
        side: Side::Rest,
        method: "POST",
        path: "/face/v1/tools/call",
        rpc_method: None,
        route: Some("tools.call"),
        client: "ios-app",
        proof: Proof::Declared,
        stage: Some(Stage::Translate),
        decision: "flag ios-first bucket 17342",
        outcome: Outcome::Success,
        blame: None,
        status: Some(200),
        code: None,
        reason: None,
        upstream_status: None,
        cause: None,
        duration: Duration::from_nanos(12_345_678),
        upstream: Some(Duration::from_micros(12_000)),
        trace: Some(0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736),
        dropped: Some(2),
        events: None,
        message: None,
        old: None,
        conversions: BridgeActions::default(),
    }
}

fn failure() -> CallLine<'static> {
    CallLine {
        side: Side::Rpc,
        path: "/rpc",
        rpc_method: Some("tools/call"),
        route: None,
        client: "other",
        proof: Proof::None,
        stage: Some(Stage::Passthrough),
        decision: "default",
        outcome: Outcome::Failed,
        blame: Some(Blame::Upstream),
        code: Some(-31021),
        reason: Some(Reason::UpstreamUnreachable),
        upstream_status: None,
        cause: Some("connect to \"new\": connection refused (os error 111)"),
        duration: Duration::from_micros(80),
        upstream: None,
        trace: None,
        dropped: None,
        message: None,
        conversions: BridgeActions::default(),
        ..success()
    }
}

#[test]
fn a_call_is_one_line_of_text() {
    let lines = logged(LogFormat::Text, "info", || {
        success().emit();
        failure().emit();
    });
    insta::assert_snapshot!(lines, @r#"
    2026-02-03T12:00:00.042Z INFO dualgauge::call side=rest method=POST path=/face/v1/tools/call route=tools.call client=ios-app proof=declared stage=translate decision="flag ios-first bucket 17342" outcome=success status=200 duration_ms=12.345 upstream_ms=12 trace_id=4bf92f3577b34da6a3ce929d0e0e4736 dropped=2
    2026-02-03T12:00:00.042Z INFO dualgauge::call side=rpc method=POST path=/rpc rpc_method=tools/call client=other stage=passthrough decision=default outcome=failed blame=upstream status=200 code=-31021 reason=upstream_unreachable cause="connect to \"new\": connection refused (os error 111)" duration_ms=0.08
    "#);
}

#[test]
fn a_call_is_one_object_of_json() {
    let lines = logged(LogFormat::Json, "info", || {
        success().emit();
        failure().emit();
    });
    insta::assert_snapshot!(lines, @r#"
    {"time":"2026-02-03T12:00:00.042Z","level":"INFO","target":"dualgauge::call","side":"rest","method":"POST","path":"/face/v1/tools/call","route":"tools.call","client":"ios-app","proof":"declared","stage":"translate","decision":"flag ios-first bucket 17342","outcome":"success","status":200,"duration_ms":12.345,"upstream_ms":12,"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","dropped":2}
    {"time":"2026-02-03T12:00:00.042Z","level":"INFO","target":"dualgauge::call","side":"rpc","method":"POST","path":"/rpc","rpc_method":"tools/call","client":"other","stage":"passthrough","decision":"default","outcome":"failed","blame":"upstream","status":200,"code":-31021,"reason":"upstream_unreachable","cause":"connect to \"new\": connection refused (os error 111)","duration_ms":0.08}
    "#);
}

#[test]
fn other_events_have_the_same_format() {
    let event = || {
        let address = "127.0.0.1:8080";
        tracing::warn!(target: "dualgauge::app", %address, left = 3, ratio = f64::NAN, ok = true, "drain\nends");
    };
    let lines = [LogFormat::Text, LogFormat::Json].map(|format| logged(format, "info", event));
    insta::assert_snapshot!(lines.concat(), @r#"
    2026-02-03T12:00:00.042Z WARN dualgauge::app drain\nends address=127.0.0.1:8080 left=3 ratio=NaN ok=true
    {"time":"2026-02-03T12:00:00.042Z","level":"WARN","target":"dualgauge::app","message":"drain\nends","address":"127.0.0.1:8080","left":3,"ratio":"NaN","ok":true}
    "#);
}

#[test]
fn nothing_is_written_below_the_level() {
    let lines = logged(LogFormat::Text, "warn", || {
        assert!(!CallLine::is_wanted());
        success().emit();
    });
    assert_eq!(lines, "");
    let lines = logged(LogFormat::Text, "warn,dualgauge::call=info", || {
        assert!(CallLine::is_wanted());
        success().emit();
    });
    assert_eq!(lines.lines().count(), 1);
}

/// A peer must not be able to fill the log with invalid frames.
#[test]
fn warnings_of_http_libraries_are_logged_only_on_request() {
    let count = |level| {
        let warn = || {
            tracing::warn!(target: "h2::proto::ping_pong", "recv PING ack that we never sent");
            tracing::warn!(target: "hyper::proto::h1", "unexpected content-length found");
            tracing::warn!(target: "hyper_util::client", "one more");
        };
        logged(LogFormat::Text, level, warn).lines().count()
    };
    assert_eq!((count("info"), count("warn"), count("error")), (0, 0, 0));
    assert_eq!((count("info,h2=warn"), count("h2=warn,info")), (1, 1));
    assert_eq!((count("debug"), count("trace"), count("off")), (3, 3, 0));
    let faults = || tracing::error!(target: "hyper::proto", "a fault of its own");
    assert_eq!(logged(LogFormat::Text, "info", faults).lines().count(), 1);
}

#[test]
fn an_unknown_level_is_refused() {
    let error = filter("dualgauge=loud").unwrap_err();
    assert_eq!(error.to_string(), "`dualgauge=loud` is not a log level");
}

/// Line breaks, terminal commands, quotes, look-alike fields, text direction, and invisible characters.
const ATTACKS: [&str; 8] = [
    "a\nb 2026-01-01T00:00:00.000Z INFO dualgauge::call outcome=success",
    "a\r\n{\"level\":\"INFO\"}",
    "\u{1b}[2J\u{1b}]0;title\u{7}",
    "x outcome=success blame=none",
    "\" outcome=\"success\\",
    "\u{202e}drowssap\u{2066}\u{200f}\u{61c}",
    "\u{0}\u{7f}\u{85}\u{9b}31m\u{2028}\u{2029}\u{feff}\u{200b}\u{ad}",
    "日本 \u{e0041}\u{10ffff} cafe\u{301}",
];

#[test]
fn text_from_callers_cannot_leave_its_field() {
    let attack = || {
        for text in ATTACKS {
            let line = CallLine {
                rpc_method: Some(text),
                ..failure()
            };
            line.emit();
        }
    };
    let fields = [LogFormat::Text, LogFormat::Json].map(|format| {
        let lines = logged(format, "info", attack);
        assert_eq!(lines.lines().count(), ATTACKS.len());
        let field = |line: &str| {
            let start = line.find("rpc_method").unwrap();
            let end = line.find("client").unwrap();
            line[start..end]
                .trim_end_matches([' ', ',', '"'])
                .to_owned()
        };
        lines.lines().map(field).collect::<Vec<_>>().join("\n")
    });
    insta::assert_snapshot!(fields.join("\n\n"), @r#"
    rpc_method="a\nb 2026-01-01T00:00:00.000Z INFO dualgauge::call outcome=success
    rpc_method="a\r\n{\"level\":\"INFO\"}
    rpc_method="\u{1b}[2J\u{1b}]0;title\u{7}
    rpc_method="x outcome=success blame=none
    rpc_method="\" outcome=\"success\\
    rpc_method="\u{202e}drowssap\u{2066}\u{200f}\u{61c}
    rpc_method="\u{0}\u{7f}\u{85}\u{9b}31m\u{2028}\u{2029}\u{feff}\u{200b}\u{ad}
    rpc_method="日本 \u{e0041}\u{10ffff} cafe\u{301}

    rpc_method":"a\nb 2026-01-01T00:00:00.000Z INFO dualgauge::call outcome=success
    rpc_method":"a\r\n{\"level\":\"INFO\"}
    rpc_method":"\u001b[2J\u001b]0;title\u0007
    rpc_method":"x outcome=success blame=none
    rpc_method":"\" outcome=\"success\\
    rpc_method":"\u202edrowssap\u2066\u200f\u061c
    rpc_method":"\u0000\u007f\u0085\u009b31m\u2028\u2029\ufeff\u200b\u00ad
    rpc_method":"日本 \udb40\udc41\udbff\udfff cafe\u0301
    "#);
}

#[test]
fn long_texts_are_cut() {
    let (long, cause) = ("é".repeat(300), "e".repeat(3000));
    let line = CallLine {
        path: &long,
        rpc_method: Some(&long[..400]),
        method: &long,
        cause: Some(&cause),
        ..failure()
    };
    let line = logged(LogFormat::Json, "info", || line.emit());
    let line: Value = serde_json::from_str(&line).unwrap();
    let shown = format!("{}…", "é".repeat(200));
    assert_eq!(line["path"], shown);
    assert_eq!(line["method"], shown);
    assert_eq!(line["rpc_method"], "é".repeat(200));
    assert_eq!(line["cause"], format!("{}…", "e".repeat(1000)));
}

#[test]
fn queries_are_not_logged() {
    let line = CallLine {
        path: "/tools?token=secret#secret",
        ..success()
    };
    for format in [LogFormat::Text, LogFormat::Json] {
        let line = logged(format, "info", || line.emit());
        assert!(line.contains("/tools"), "{line}");
        assert!(!line.contains("secret"), "{line}");
    }
}

proptest! {
    #[test]
    fn escaped_text_is_visible_and_json_can_be_parsed_back(text in any::<String>()) {
        let (mut word, mut json) = (String::new(), String::new());
        escape::word(&mut word, &text).unwrap();
        escape::json(&mut json, &text).unwrap();
        for written in [&word, &json] {
            prop_assert!(!written.chars().any(char::is_control), "{}", written);
        }
        prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        prop_assert!(word.starts_with('"') && word.ends_with('"') || !word.contains(' '));
    }
}

/// A writer that blocks until the sender of its channel sends or is dropped.
struct BlockedWriter(mpsc::Receiver<()>, Captured);

impl Write for BlockedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Fails at once after the sender was dropped.
        let _ = self.0.recv();
        self.1.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_queue_drops_lines_and_counts_them_and_the_rest_is_flushed() {
    let (release, held) = mpsc::channel();
    let captured = Captured::default();
    let (queue, flush) = Queue::new(BlockedWriter(held, captured.clone()), 4 * 5).unwrap();
    let lines = queue.clone();
    for _ in 0..10 {
        queue.queue_line("line\n");
    }
    // The writer thread may already have taken up to four.
    assert!((2..=6).contains(&lines.dropped()), "{}", lines.dropped());
    drop(release);
    drop(flush);
    let written = captured.0.lock().unwrap().len() / 5;
    assert_eq!(u64::try_from(written).unwrap() + lines.dropped(), 10);
}

#[test]
fn a_buffering_thread_transfers_lines_on_request_and_at_its_end() {
    let captured = Captured::default();
    let (queue, flush) = Queue::new(captured.clone(), 1 << 20).unwrap();
    let (threads, own) = (queue.clone(), queue);
    let thread = std::thread::spawn(move || {
        let queue = threads;
        buffer_lines();
        queue.queue_line("one\n");
        queue.queue_line("two\n");
        assert_eq!(queue.pending(), 0);
        flush_lines();
        queue.queue_line("three\n");
    });
    // `join` also waits for the thread-local buffer to be dropped, which the end of a scope does not.
    thread.join().unwrap();
    drop(own);
    drop(flush);
    let written = captured.0.lock().unwrap().clone();
    assert_eq!(String::from_utf8(written).unwrap(), "one\ntwo\nthree\n");
}

#[test]
fn held_lines_are_written_on_release_and_discarded_at_the_end() {
    let lines_of = |is_released: bool| {
        let captured = Captured::default();
        let (queue, flush) = Queue::new(captured.clone(), 1 << 20).unwrap();
        queue.hold();
        queue.queue_line("one\n");
        if is_released {
            queue.release();
            queue.queue_line("two\n");
        }
        drop(flush);
        let written = captured.0.lock().unwrap().clone();
        String::from_utf8(written).unwrap()
    };
    assert_eq!(lines_of(true), "one\ntwo\n");
    assert_eq!(lines_of(false), "");
}

/// A writer that sends each line to a channel.
struct ChannelWriter(mpsc::Sender<Vec<u8>>);

impl Write for ChannelWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.send(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_thread_that_never_waits_transfers_its_lines_within_a_second() {
    let (sender, receiver) = mpsc::channel();
    let (queue, flush) = Queue::new(ChannelWriter(sender), 1 << 20).unwrap();
    buffer_lines();
    let serving = async {
        queue.queue_line("line\n");
        tokio::time::advance(Duration::from_secs(1)).await;
        tokio::task::yield_now().await;
        receiver.recv_timeout(Duration::from_secs(10))
    };
    assert_eq!(flushing_lines(serving).await.unwrap(), b"line\n");
    drop(flush);
}

#[test]
fn a_blocked_writer_delays_the_end_only_briefly() {
    let (release, held) = mpsc::channel();
    let (queue, flush) = Queue::new(BlockedWriter(held, Captured::default()), 1 << 20).unwrap();
    queue.queue_line("line\n");
    drop(flush);
    drop(release);
}
