//! What `check` and `explain` tell of streams and events.

use crate::support::{Ended, program, run_to_end};

const CONFIG: &str = r#"
[upstream.old]
side = "rest"
url = "http://127.0.0.1:9001"
[upstream.new]
side = "rpc"
url = "http://127.0.0.1:9002/rpc"
[rollout]
flags = "flags.toml"
[[client]]
name = "mover"
match = { header = { x-client = "mover" } }
[[stream]]
name = "events"
rest = "GET /mcp/v1/sse"
rpc = "GET /sse"
"#;

const FLAGS: &str = "[[flag]]\nname = 'f'\nclient = 'mover'\nroute = 'ev*'\nstage = 'translate'\n\
    [[flag]]\nname = 'old'\nroute = 'events'\nside = 'rpc'\nstage = 'retired'\n";

/// Runs a command on this configuration with further tables.
fn told(more: &str, arguments: &[&str]) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("dualgauge.toml");
    std::fs::write(&config, format!("{CONFIG}{more}")).unwrap();
    std::fs::write(folder.path().join("flags.toml"), FLAGS).unwrap();
    let mut command = program(&arguments[..1]);
    command.arg("--config").arg(config).args(&arguments[1..]);
    run_to_end(command)
}

#[test]
fn a_request_for_a_stream_is_explained() {
    let moved = told("", &["explain", "/mcp/v1/sse?a=1", "-H", "x-client: mover"]);
    assert_eq!(moved.code, Some(0), "{moved:?}");
    for line in [
        "translate, flag f",
        "GET /sse?a=1  to new at 127.0.0.1:9002",
        "each event is translated",
    ] {
        assert!(moved.output.contains(line), "{moved:?}");
    }
    let stays = told("", &["explain", "/mcp/v1/sse"]);
    let line = "GET /mcp/v1/sse  to old at 127.0.0.1:9001";
    assert!(stays.output.contains(line), "{stays:?}");
    let retired = told("", &["explain", "/sse"]);
    assert!(
        retired.output.contains("use `GET /mcp/v1/sse`"),
        "{retired:?}"
    );
}

#[test]
fn events_are_proven_both_ways() {
    let lossless = "[[event]]\nrpc = { method = 'a', params = { x = '{x}' } }\nsse = { event = 'a', data = ['{x}'] }\n";
    let fine = told(lossless, &["check"]);
    assert_eq!(fine.code, Some(0), "{fine:?}");
    for line in ["event[0] from sse: lossless", "event[0] from rpc: lossless"] {
        assert!(fine.output.contains(line), "{fine:?}");
    }
    let lossy = "[[event]]\nrpc = { method = 'a', params = { x = '{x}' } }\nsse = { event = 'a', data = { x = '{x}', t = '{_}' } }\n";
    let refused = told(lossy, &["check"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let problem =
        "event[0]: events in the form `sse` lose something: sse/data/t: read and forgotten";
    assert!(refused.errors.contains(problem), "{refused:?}");
    let accepted = told(&format!("{lossy}lossy = 'nobody reads it'\n"), &["check"]);
    assert_eq!(accepted.code, Some(0), "{accepted:?}");
    let line = "lossy: sse/data/t: read and forgotten (accepted: nobody reads it)";
    assert!(accepted.output.contains(line), "{accepted:?}");
    let json = told(lossless, &["check", "--format", "json"]);
    assert!(
        json.output
            .contains("\"events\":[{\"key\":\"event[0]\",\"from\":\"sse\""),
        "{json:?}"
    );
}
