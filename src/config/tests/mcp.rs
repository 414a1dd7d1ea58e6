//! The keys of an MCP upstream over Streamable HTTP.

use std::time::Duration;

use super::Fixture;
use crate::config::compile::compile;
use dualgauge_model::mcp::Revision;
use dualgauge_model::pending::{AnswerOrder, LogMessages};
use dualgauge_model::plan::{McpPlan, Transport, UpstreamPlan};
use dualgauge_patterns::side::Side;

fn server(keys: &str) -> (UpstreamPlan, McpPlan) {
    let text =
        format!("[upstream.m]\nside = 'rpc'\nurl = 'http://h:81/mcp'\nprotocol = 'mcp'\n{keys}");
    let plan = compile(&Fixture::new(&text).config(), &[]).unwrap();
    let upstream = plan.upstream(Side::Rpc).unwrap().clone();
    match upstream.transport.clone() {
        Transport::Mcp(server) => (upstream, *server),
        other @ (Transport::Http
        | Transport::Stdio(_)
        | Transport::WebSocket(_)
        | Transport::Frames(_)) => panic!("{other:?}"),
    }
}

#[test]
fn a_server_needs_an_address_and_no_more() {
    let (upstream, server) = server("");
    assert_eq!(
        (upstream.authority.as_str(), upstream.path.as_str()),
        ("h:81", "/mcp")
    );
    assert_eq!(
        (server.revision, server.message_limit),
        (Revision::Auto, 16 << 20)
    );
    let settings = server.link.settings;
    assert_eq!(
        (settings.order, settings.queue),
        (AnswerOrder::Pipelined(64), 256)
    );
    let initialize_params = settings.initialize_params.unwrap().into_bytes();
    assert!(initialize_params.starts_with(b"{\"protocolVersion\":\"2025-11-25\""));
}

#[test]
fn a_server_is_what_its_keys_say() {
    let (upstream, server) = server(
        "idle_timeout = '7s'\nrevision = '2025-03-26'\nin_flight = 3\nqueue = 4\nstart_timeout = '1s'\nmessage_limit = '2KiB'\n\
         log_messages = 'broadcast'\n",
    );
    assert_eq!(upstream.idle_timeout, Duration::from_secs(7));
    assert_eq!(server.revision, Revision::Sessions("2025-03-26"));
    assert_eq!(server.message_limit, 2048);
    let settings = server.link.settings;
    assert_eq!(
        (settings.order, settings.queue),
        (AnswerOrder::Pipelined(3), 4)
    );
    assert_eq!(settings.start_timeout, Duration::from_secs(1));
    assert_eq!(settings.log_messages, LogMessages::AllSubscribers);
    let initialize_params = settings.initialize_params.unwrap().into_bytes();
    assert!(initialize_params.starts_with(b"{\"protocolVersion\":\"2025-03-26\""));
}

#[test]
fn values_that_exclude_each_other_are_reported() {
    let text = "[upstream.a]\nside = 'rpc'\nurl = 'http://h/mcp'\nprotocol = 'mcp'\nconnections = 3\nmode = 'serial'\n\
        revision = '2025'\n[upstream.b]\nside = 'rpc'\nurl = 'http://h'\nrevision = 'auto'\n\
        [upstream.c]\nside = 'rpc'\ncommand = ['x']\nprotocol = 'mcp'\n\
        [upstream.d]\nside = 'rpc'\nurl = 'http://h'\nprotocol = 'soap'\n";
    let problems = Fixture::new(text).problems();
    for wanted in [
        "toml:5: upstream.a.connections: `connections` is not allowed with `protocol = \"mcp\"`; remove it",
        "toml:6: upstream.a.mode: `mode` belongs to an upstream with `command`; remove it",
        "toml:7: upstream.a.revision: this is not a known MCP revision",
        "write `auto`, or one of 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28",
        "toml:11: upstream.b.revision: `revision` belongs to an upstream with `protocol = \"mcp\"`; remove it",
        "toml:15: upstream.c.protocol: `protocol` belongs to an upstream with `url`; remove it",
        "toml:19: upstream.d.protocol:",
    ] {
        assert!(problems.contains(wanted), "{wanted}\n{problems}");
    }
}

#[test]
fn a_rest_upstream_speaks_no_mcp() {
    let text = "[upstream.m]\nside = 'rest'\nurl = 'http://h/'\nprotocol = 'mcp'\n";
    let problems = compile(&Fixture::new(text).config(), &[]).unwrap_err();
    assert!(
        problems.to_string().contains("MCP is JSON-RPC"),
        "{problems}"
    );
}
