//! Routes with `frame`, and what they have to do with those of HTTP.

use std::time::Duration;

use super::{BOTH, plan, problems};

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
fn what_is_wrong_with_a_frame_has_its_key() {
    let cases = [
        (
            format!("{STOP}from = 'rest'\n"),
            "route[0].from: the route has no `rest`",
        ),
        (
            format!("{STOP}silence = '1s'\n"),
            "route[0].silence: no outcome says what a silence means",
        ),
        (
            STOP.replace("'{id?}'", "'{other}'"),
            "route[0].frame: the hole `other` stands on the rest side only",
        ),
        (
            STOP.replace("frame = {", "body = 1\nframe = {"),
            "route[0].body: `body` has no place beside `frame`",
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
            "route[0].silence: a request of HTTP has an answer",
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
