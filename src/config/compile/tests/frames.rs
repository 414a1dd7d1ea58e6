//! Routes with `frame`, alone and with HTTP routes.

use std::time::Duration;

use super::{BOTH, Fixture, plan, problems};
use dualgauge_model::compare::Skip;
use dualgauge_model::frame::FrameReply;
use dualgauge_model::plan::{SocketProtocol, Transport};
use dualgauge_model::shadow_limits;
use dualgauge_model::translate::TranslateContext;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::side::Side;

const STOP: &str = "[[route]]\nname = 'stop'\nframe = { command = 'stop', request_id = '{id?}' }\nrpc = 'agent/stop'\n";
const SILENT: &str = "[[route.outcome]]\nrpc = { result = { status = 'stopped' } }\n";

#[test]
fn a_frame_and_a_request_of_http_may_have_one_method() {
    let http = "[[route]]\nname = 'http'\nrest = 'POST /stop'\nrpc = 'agent/stop'\n";
    let plan = plan(&format!(
        "{BOTH}{STOP}silence = '1s'\nfrom = 'frame'\n{SILENT}{http}"
    ));
    let [stop, other] = plan.routes.routes() else {
        panic!("two routes");
    };
    assert!(stop.is_frame() && !other.is_frame());
    assert_eq!(stop.silence, Some(Duration::from_secs(1)));
    assert_eq!(stop.rest, "frame command=stop");
    assert_eq!(plan.routes.select_rpc("agent/stop", None), Some(1));
}

#[test]
fn problems_of_a_frame_have_its_key() {
    let cases = [
        (
            format!("{STOP}from = 'rest'\n"),
            "route[0].from: the route has no `rest`",
        ),
        (
            format!("{STOP}silence = '1s'\n"),
            "route[0].silence: no outcome covers silence",
        ),
        (
            STOP.replace("'{id?}'", "'{other}'"),
            "route[0].frame: the hole `other` is on the rest side only",
        ),
        (
            STOP.replace("frame = {", "body = 1\nframe = {"),
            "route[0].body: `body` and `frame` exclude each other",
        ),
        (
            format!(
                "{STOP}[[route.outcome]]\nframe = {{ event = '{{x}}' }}\nrpc = {{ result = 1 }}\n"
            ),
            "route[0].outcome[0].frame: the hole `x`",
        ),
        (
            format!("{STOP}[[route.outcome]]\nrest = {{ status = 200 }}\nrpc = {{ result = 1 }}\n"),
            "route[0].outcome[0]: the route has `frame`",
        ),
        (
            "[[route]]\nname = 'a'\nrest = 'GET /a'\nrpc = 'a'\nsilence = '1s'\n".to_owned(),
            "route[0].silence: an HTTP request always gets a response",
        ),
        (
            format!("[[route]]\nname = 'a'\nrest = 'GET /a'\nrpc = 'a'\n{SILENT}"),
            "route[0].outcome[0]: `rest` is missing",
        ),
    ];
    for (more, wanted) in cases {
        let found = problems(&format!("{BOTH}{more}"));
        assert!(found.contains(wanted), "{found}\n{wanted}");
    }
}

const FRAMES: &str = "[upstream.frames]\nside = 'rest'\nurl = 'ws://h:8765/'\n";
const HTTP: &str = "[[route]]\nname = 'http'\nrest = 'POST /stop'\nrpc = 'agent/stop'\n";

#[test]
fn a_frame_server_and_an_http_server_each_receive_their_own_calls() {
    let plan = plan(&format!("{BOTH}{FRAMES}{STOP}{HTTP}"));
    let name = |route| {
        let upstream = plan.upstream_for(route, Side::Rest);
        upstream.map(|upstream| upstream.name.as_str())
    };
    assert_eq!(name(Some(0)), Some("frames"));
    assert_eq!(name(Some(1)), Some("old"));
    assert_eq!(name(None), Some("old"));
    assert_eq!(plan.select_rpc("agent/stop", None), Some(1));
    let frames = plan.upstream_for(Some(0), Side::Rest).unwrap();
    assert!(matches!(&frames.transport, Transport::Frames(own) if own.in_flight == 256));
    assert_eq!(plan.face.sockets.unwrap().protocol, SocketProtocol::Both);
}

#[test]
fn alone_it_takes_no_call_of_http() {
    let new = "[upstream.new]\nside = 'rpc'\nurl = 'http://127.0.0.1:9002/rpc'\n";
    let plan = plan(&format!("{new}{FRAMES}{STOP}{HTTP}"));
    assert_eq!(plan.upstream(Side::Rest), None);
    assert_eq!(plan.upstream_for(Some(1), Side::Rest), None);
    assert_eq!(plan.select_rpc("agent/stop", None), Some(0));
}

#[test]
fn a_socket_of_clients_is_served_where_there_are_frames() {
    assert!(plan(BOTH).face.sockets.is_none());
    assert!(plan(&format!("{BOTH}{STOP}")).face.sockets.is_some());
    let event = "[[event]]\nframe = { event = 'x' }\n";
    assert!(plan(&format!("{BOTH}{event}")).face.sockets.is_some());
    let passed = format!("rpc.websocket = false\n{BOTH}{STOP}");
    assert!(plan(&passed).face.sockets.is_none());
}

#[test]
fn keys_that_a_frame_server_does_not_have_are_refused() {
    let wanted = "`sharing` needs a JSON-RPC server";
    let found = problems(&format!("{FRAMES}sharing = 'shared'\n"));
    assert!(found.contains(wanted), "{found}");
    for key in [
        "queue = 1",
        "handshake = 'mcp'",
        "withhold = []",
        "keep_alive = '1s'",
    ] {
        problems(&format!("{FRAMES}{key}\n"));
    }
    let http = HTTP.replace("rpc =", "upstream = 'frames'\nrpc =");
    let found = problems(&format!("{BOTH}{FRAMES}{http}"));
    assert!(
        found.contains("the upstream `frames` uses frames over a WebSocket"),
        "{found}"
    );
    let stop = STOP.replace("rpc =", "upstream = 'old'\nrpc =");
    let found = problems(&format!("{BOTH}{FRAMES}{stop}"));
    assert!(
        found.contains("the upstream `old` accepts only HTTP calls, not frames"),
        "{found}"
    );
    let other = FRAMES.replace("frames", "other");
    let found = problems(&format!("{BOTH}{FRAMES}{other}{STOP}"));
    assert!(
        found.contains("the `rest` side for frames has several upstreams"),
        "{found}"
    );
}

#[test]
fn a_flag_may_compare_frames_and_has_no_effect_on_unsafe_ones() {
    let main = format!("rollout.flags = 'flags.toml'\n{BOTH}{FRAMES}{STOP}");
    for stage in ["shadow", "verify"] {
        let flag = format!("[[flag]]\nname = 'f'\nroute = 'stop'\nstage = '{stage}'\n");
        let fixture = Fixture::new(&main).file("flags.toml", flag);
        let plan = super::read(&fixture).unwrap().plan;
        let never = shadow_limits::never(plan.routes.route(0));
        assert_eq!(never, Some(Skip::Unsafe));
    }
}

const PING: &str = "[[local]]\nframe = { command = 'ping', request_id = '{id?}' }\n";

#[test]
fn the_proxy_itself_answers_frames_by_patterns() {
    let pong = "answer = { frame = { event = 'pong', request_id = '{>id}' } }\n";
    let quiet = "[[local]]\nframe = { command = 'quiet' }\nanswer = 'none'\n";
    let plan = plan(&format!("{BOTH}{PING}{pong}{quiet}"));
    assert_eq!(plan.face.sockets.unwrap().protocol, SocketProtocol::Both);
    let reply_to = |frame: &'static str| {
        let frame = Json::parse(frame.into(), 8).unwrap();
        let context = TranslateContext {
            depth: 8,
            now: String::new,
        };
        plan.locals.frame(&frame, context).map(|reply| match reply {
            FrameReply::Frame(frame) => String::from_utf8(frame.into_bytes().to_vec()).unwrap(),
            FrameReply::Silence => "silence".to_owned(),
            FrameReply::NoRow => "unsaid".to_owned(),
        })
    };
    let answered = [
        (
            r#"{"command":"ping","request_id":7,"more":1}"#,
            Some(r#"{"event":"pong","request_id":7}"#),
        ),
        (r#"{"command":"ping"}"#, Some(r#"{"event":"pong"}"#)),
        (r#"{"command":"quiet"}"#, Some("silence")),
        (r#"{"command":"other"}"#, None),
    ];
    for (frame, answer) in answered {
        assert_eq!(reply_to(frame).as_deref(), answer, "{frame}");
    }
}

#[test]
fn problems_of_a_local_answer_to_a_frame_have_its_key() {
    let cases = [
        (
            format!("{PING}answer = {{ result = 1 }}\n"),
            "local[0].answer: the answer to a frame is",
        ),
        (
            format!("{PING}answer = 'none'\n{PING}answer = 'none'\n"),
            "local[1].frame: ",
        ),
        (
            format!("{PING}answer = {{ frame = {{ a = '{{>b}}' }} }}\n"),
            "local[0].answer.frame: `{>b}` has no value to write",
        ),
        (
            "[[local]]\nframe = 7\nanswer = 'none'\n".to_owned(),
            "local[0].frame: a message must be an object",
        ),
        (
            "[[local]]\nrpc = 'a'\nanswer = { frame = { a = 1 } }\n".to_owned(),
            "local[0].answer: `frame` answers frames",
        ),
        (
            format!("{PING}rpc = 'a'\nanswer = 'none'\n"),
            "local[0]: `frame` excludes `rest` and `rpc`",
        ),
    ];
    for (text, problem) in cases {
        let problems = problems(&format!("{BOTH}{text}"));
        assert!(problems.contains(problem), "{problem}: {problems}");
    }
}
