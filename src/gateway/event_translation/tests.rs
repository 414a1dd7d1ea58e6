//! Long events are translated off the worker, with the same results as short ones, and incomplete ones are charged.

use std::fs;
use std::future::poll_fn;

use futures_util::FutureExt;

use super::*;
use crate::config::compile::compile;
use crate::config::load::{Sources, load};
use dualgauge_model::failure::Reason;
use dualgauge_model::response_stream::{StreamClient, StreamEnd, StreamedCall};
use dualgauge_model::stream_format::{StreamFormat, StreamFormats};
use dualgauge_net::MemoryBudget;
use dualgauge_patterns::pattern::Bindings;

/// The length of a result that makes an event long enough to be translated off the worker.
const LONG: usize = 100_000;
const SHORT: usize = 100;

fn plan() -> Arc<Plan> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dualgauge.toml");
    let text = "[upstream.old]\nside = 'rest'\nurl = 'http://127.0.0.1:1'\n\
                [upstream.new]\nside = 'rpc'\nurl = 'http://127.0.0.1:1/rpc'\n\
                [[route]]\nname = 'put'\nrest = 'POST /things'\nrpc = 'things.put'\nstream = 'sse'\n";
    fs::write(&file, text).unwrap();
    let sources = Sources {
        file: Some(file),
        ..Sources::default()
    };
    Arc::new(compile(&load(&sources).unwrap(), &[]).unwrap())
}

/// The events of an RPC server for a REST client.
fn events(memory: &MemoryBudget) -> EventTranslation {
    let call = StreamedCall {
        bindings: Bindings::default(),
        client: StreamClient::Rest { upstream_id: 7 },
    };
    let formats = StreamFormats {
        upstream: StreamFormat::EventStream,
        client: StreamFormat::EventStream,
    };
    let stream = ResponseStream::new(call, formats, 2 * LONG);
    EventTranslation::new(stream, 0, EventMemory::Calls(memory.new_reservation()))
}

/// An event whose result is a text of this length.
fn event(length: usize) -> String {
    let text = "x".repeat(length);
    format!("data: {{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"{text}\"}}\n\n")
}

/// The same event for the client.
fn translated(length: usize) -> String {
    format!("data: \"{}\"\n\n", "x".repeat(length))
}

/// Takes all steps that need no more input.
async fn output(events: &mut EventTranslation, plan: &Arc<Plan>, offload: &Offload) -> String {
    let mut output = Vec::new();
    while let Some(step) = poll_fn(|cx| events.poll_step(cx, plan, offload)).await {
        output.extend_from_slice(&step.unwrap().out);
    }
    String::from_utf8(output).unwrap()
}

#[tokio::test]
async fn long_events_are_translated_like_short_ones_and_in_order() {
    let (plan, memory) = (plan(), MemoryBudget::new(usize::MAX));
    let mut events = events(&memory);
    let input = [event(SHORT), event(LONG), event(SHORT + 1)].concat();
    events.feed(input.as_bytes()).unwrap();
    let output = output(&mut events, &plan, &Offload::for_workers(1)).await;
    assert_eq!(
        output,
        [translated(SHORT), translated(LONG), translated(SHORT + 1)].concat()
    );
    assert!(!events.is_over() && !events.is_busy());
}

#[test]
fn long_events_are_not_translated_on_the_worker() {
    let (plan, memory) = (plan(), MemoryBudget::new(usize::MAX));
    let stopped = Offload::stopped();
    let mut events = events(&memory);
    events.feed(event(SHORT).as_bytes()).unwrap();
    let short = output(&mut events, &plan, &stopped).now_or_never().unwrap();
    assert_eq!(short, translated(SHORT));
    events.feed(event(LONG).as_bytes()).unwrap();
    let long = output(&mut events, &plan, &stopped).now_or_never();
    assert!(long.is_none() && events.is_busy());
    let failure = Failure::new(Reason::UpstreamTimeout, "too late");
    let last = events.fail(failure, &plan);
    assert!(matches!(last.end, Some(StreamEnd::Failed(_))));
    assert!(events.is_over() && !events.is_busy());
    assert_eq!(memory.reserved(), 0);
}

#[test]
fn incomplete_events_are_charged_to_the_memory_of_calls() {
    let (plan, memory) = (plan(), MemoryBudget::new(SHORT + 50));
    let offload = Offload::for_workers(1);
    let mut events = events(&memory);
    let whole = event(SHORT / 2);
    let (begin, rest) = whole.split_at(60);
    events.feed(begin.as_bytes()).unwrap();
    let begun = output(&mut events, &plan, &offload).now_or_never().unwrap();
    assert_eq!((begun.as_str(), memory.reserved()), ("", begin.len()));
    let failure = events.feed(event(SHORT).as_bytes()).unwrap_err();
    assert_eq!(failure.reason, Reason::MemoryFull);
    events.feed(rest.as_bytes()).unwrap();
    let ended = output(&mut events, &plan, &offload).now_or_never().unwrap();
    assert_eq!(
        (ended, memory.reserved()),
        (translated(SHORT / 2), 0),
        "the event is complete"
    );
}
