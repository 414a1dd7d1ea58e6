//! Streams when the proxy drains: they end where an event ends, and at its limit wherever they are.

use super::{HEAD, PASSED, ask, chunk, expect, open, scene};

#[test]
fn the_drain_cuts_an_unfinished_event_at_its_limit() {
    let scene = scene("[limits]\ndrain = \"200ms\"");
    // It passes through, so that its bytes leave as they come.
    let mut open = open(&scene, &scene.rpc, PASSED);
    open.server.send(HEAD);
    open.client.read_head();
    scene.proxy.signal("TERM");
    open.server.send(chunk("data: x\n"));
    expect(&mut open.client, "data: x\n");
    open.client.expect_gone();
    let stopped = scene.proxy.wait();
    assert!(stopped.log.contains("blame=proxy"), "{stopped:?}");
}

#[test]
fn the_drain_ends_streams_where_an_event_ends() {
    for request in [PASSED, &ask("/mcp/v1/sse", "")] {
        let scene = scene("[limits]\ndrain = \"600ms\"");
        let mut open = open(&scene, &scene.rpc, request);
        open.server.send(HEAD);
        open.client.read_head();
        scene.proxy.signal("TERM");
        // While the drain is young streams go on.
        open.server.send(chunk("data: x\n\n"));
        expect(&mut open.client, "data: x\n\n");
        open.server.send(chunk(": between\n\n"));
        expect(&mut open.client, ": between\n\n");
        assert_eq!(open.client.read_chunk(), None, "{request}");
        open.server.expect_gone();
        let stopped = scene.proxy.wait();
        assert!(
            stopped.log.contains("outcome=success"),
            "{request} {stopped:?}"
        );
        assert!(stopped.log.contains("drained"), "{request} {stopped:?}");
    }
}

#[test]
fn the_drain_lets_an_answer_of_events_be_told_to_its_end() {
    let scene = scene("[limits]\ndrain = \"400ms\"");
    let body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}";
    let ask = format!(
        "POST /rpc HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut open = open(&scene, &scene.rpc, &ask);
    open.server.send(HEAD);
    open.client.read_head();
    open.server.send(chunk("data: 1\n\n"));
    expect(&mut open.client, "data: 1\n\n");
    scene.proxy.signal("TERM");
    // It stands where an event ends, and nobody could ask for the rest of it.
    open.client.expect_gone();
    let stopped = scene.proxy.wait();
    assert!(stopped.log.contains("blame=proxy"), "{stopped:?}");
}
