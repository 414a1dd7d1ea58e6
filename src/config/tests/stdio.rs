//! The keys of a child-process upstream.

use std::time::Duration;

use super::Fixture;
use crate::config::compile::compile;
use dualgauge_model::mcp::Revision;
use dualgauge_model::pending::AnswerOrder;
use dualgauge_model::plan::{StdioPlan, Transport};
use dualgauge_patterns::side::Side;

fn child(text: &str) -> StdioPlan {
    let mut fixture = Fixture::new(&format!("[upstream.c]\nside = 'rpc'\n{text}"));
    let variables = [("PATH", "/bin"), ("HOME", "/root"), ("OTHER", "x")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    fixture.sources.environment = variables.to_vec();
    let plan = compile(&fixture.config(), &[]).unwrap();
    match &plan.upstream(Side::Rpc).unwrap().transport {
        Transport::Stdio(child) => {
            let mut child = (**child).clone();
            let folder = format!("{}/", fixture.folder.path().display());
            child.command[0] = child.command[0].replace(&folder, "");
            child
        }
        Transport::Http | Transport::WebSocket(_) | Transport::Mcp(_) | Transport::Frames(_) => {
            panic!("no child")
        }
    }
}

#[test]
fn a_child_needs_a_command_and_no_more() {
    let child = child("command = ['bin/server', '--stdio', '']");
    assert_eq!(child.command, ["bin/server", "--stdio", ""]);
    let env: Vec<_> = child.env.iter().collect();
    assert_eq!(env, [("HOME", "/root"), ("PATH", "/bin")]);
    assert_eq!((child.directory, child.line_limit), (None, 16 << 20));
    let settings = &child.link.settings;
    assert_eq!((settings.order, settings.queue), (AnswerOrder::Serial, 256));
    assert_eq!(settings.start_timeout, Duration::from_secs(30));
    let initialize_params = settings.initialize_params.clone().unwrap().into_bytes();
    assert!(initialize_params.starts_with(b"{\"protocolVersion\":\"2025-11-25\""));
    assert_eq!(child.link.blocked_methods, ["shutdown", "exit"]);
}

#[test]
fn a_child_is_what_its_keys_say() {
    let child = child(
        "command = ['server']\nenv = { HOME = '/h', TOKEN = 'hunter2' }\nmode = 'pipelined'\nin_flight = 3\n\
         handshake = 'none'\nwithhold = []\nunanswered = 0\nline_limit = '2KiB'\n",
    );
    let home = child.env.iter().find(|(name, _)| *name == "HOME");
    assert_eq!(home, Some(("HOME", "/h")));
    let shown = format!("{child:?}");
    assert!(
        shown.contains("TOKEN") && !shown.contains("hunter2"),
        "{shown}"
    );
    let settings = &child.link.settings;
    assert_eq!(settings.order, AnswerOrder::Pipelined(3));
    assert_eq!(
        (
            &settings.initialize_params,
            settings.max_consecutive_timeouts
        ),
        (&None, 0)
    );
    assert_eq!(
        (child.line_limit, child.link.blocked_methods.len()),
        (2048, 0)
    );
}

#[test]
fn the_revision_of_a_child_is_detected_unless_configured() {
    let asked = child("command = ['s']");
    assert_eq!(asked.revision, Some(Revision::Auto));
    let configured = child("command = ['s']\nrevision = '2025-03-26'");
    assert_eq!(configured.revision, Some(Revision::Sessions("2025-03-26")));
    let initialize_params = configured
        .link
        .settings
        .initialize_params
        .unwrap()
        .into_bytes();
    assert!(initialize_params.starts_with(b"{\"protocolVersion\":\"2025-03-26\""));
    for keys in ["handshake = 'none'", "initialize = { a = 1 }"] {
        assert_eq!(child(&format!("command = ['s']\n{keys}")).revision, None);
        let both =
            format!("[upstream.c]\nside = 'rpc'\ncommand = ['s']\nrevision = 'auto'\n{keys}\n");
        let problems = Fixture::new(&both).problems();
        let wanted = "toml:4: upstream.c.revision: ";
        assert!(problems.contains(wanted), "{problems}");
        assert!(
            problems.contains("hint: remove one of the two"),
            "{problems}"
        );
    }
    let unknown = "[upstream.c]\nside = 'rpc'\ncommand = ['s']\nrevision = '2024'\n";
    let problems = Fixture::new(unknown).problems();
    let wanted = "toml:4: upstream.c.revision: this is not a known MCP revision";
    assert!(problems.contains(wanted), "{problems}");
}

#[test]
fn values_that_exclude_each_other_are_reported() {
    let text = "[upstream.a]\nside = 'rpc'\nurl = 'http://h'\ncommand = []\nconnections = 3\n\
        in_flight = 2\nhandshake = 'none'\ninitialize = { a = 1 }\nenv = { 'A=B' = 'x', C = 3 }\n\
        [upstream.b]\nside = 'rpc'\nurl = 'http://h'\nmode = 'serial'\n";
    let wanted = "\
dualgauge.toml:4: upstream.a.command: `url` and `command` exclude each other
  hint: keep `url` for a server with an address, `command` for a child process
dualgauge.toml:4: upstream.a.command: the list is empty; write the program and its arguments
dualgauge.toml:5: upstream.a.connections: `connections` belongs to an upstream with `url`; remove it
dualgauge.toml:6: upstream.a.in_flight: a serial child has one call in flight
  hint: write `mode = \"pipelined\"`, or remove it
dualgauge.toml:8: upstream.a.initialize: a link without a handshake sends no `initialize`
  hint: write `handshake = \"mcp\"`, or remove it
dualgauge.toml:9: upstream.a.env.C: the value of a variable must be a string; write it in quotes
dualgauge.toml:13: upstream.b.mode: `mode` belongs to an upstream with `command`; remove it";
    let mut lines: Vec<_> = Fixture::new(text)
        .problems()
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    let mut known: Vec<_> = wanted.lines().map(str::to_owned).collect();
    known.sort();
    assert_eq!(lines, known);
}

#[test]
fn a_rest_upstream_is_no_child() {
    let config = Fixture::new("[upstream.c]\nside = 'rest'\ncommand = [' ']\n").config();
    let problems = compile(&config, &[]).unwrap_err().to_string();
    assert!(
        problems.contains("a child process uses JSON-RPC"),
        "{problems}"
    );
    assert!(problems.contains("the program name is empty"), "{problems}");
}
