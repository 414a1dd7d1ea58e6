//! A thousand streams that are cut: by the upstream at any byte of an event, or by the client.

use super::{HEAD, ROUTES, Streamed, before_rest, chunk, expect, rpc_call};
use crate::support::{Upstream, Wire, becomes};

const STREAMS: usize = 1_000;

/// The event that is cut. A byte of it is missing at least.
const EVENT: &str = "id: 9\ndata: {\"text\":\"half\",\"list\":[1,2]}\n\n";

const FIRST: &str = "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":1}\n\n";

/// Reads whole events to the end of the response.
fn rest_of(client: &mut Wire) -> Vec<String> {
    let mut came = Vec::new();
    while let Some(chunk) = client.read_chunk() {
        came.extend(chunk);
    }
    let text = String::from_utf8(came).unwrap();
    assert!(text.ends_with("\n\n"), "half an event came: {text:?}");
    let events = text.split_terminator("\n\n");
    events.map(|event| format!("{event}\n\n")).collect()
}

#[test]
fn a_thousand_cut_streams_leave_no_half_event_and_no_call() {
    let upstream = Upstream::start();
    let proxy = before_rest(&upstream, ROUTES);
    for number in 0..STREAMS {
        let ask = rpc_call("SendStreamingMessage", "{}", "7");
        let mut call = Streamed::open(&proxy, &upstream, &ask);
        let (half, _) = EVENT.split_at(number / 2 % EVENT.len());
        call.server.send(HEAD);
        call.server.send(chunk(&format!("data: 1\n\n{half}")));
        call.client.read_head();
        if number % 2 == 0 {
            drop(call.server);
            let events = rest_of(&mut call.client);
            let [first, last] = &events[..] else {
                panic!("{number}: {events:?}");
            };
            assert_eq!(first, FIRST);
            assert!(
                last.starts_with("event: error\n") && last.contains("-31023"),
                "{last}"
            );
        } else {
            expect(&mut call.client, FIRST);
            drop(call.client);
            call.server.expect_gone();
        }
    }
    for gauge in [
        "dualgauge_response_streams_open",
        "dualgauge_calls_in_flight",
        "dualgauge_buffered_bytes",
    ] {
        becomes(|| proxy.metrics().value(gauge), &0.0);
    }
}
