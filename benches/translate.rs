//! `translate`: a body read, checked and written into its envelope, beside `serde_json` only checking the
//! same bytes. What is compared is one side's work for one call, without any I/O.
//!
//! `cargo bench --bench translate`

#![expect(clippy::expect_used, reason = "fixed values")]

use std::hint::black_box;

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dualgauge::domain::json::Json;
use dualgauge::domain::jsonrpc::{self, Incoming, Item, MessageLimits};
use dualgauge::domain::route::{Route, RouteSource, Segments, parse_route};
use dualgauge::domain::translate::{RestHead, Terms, read_rest, rest_to_rpc, rpc_to_rest};
use http::HeaderMap;

const LIMITS: MessageLimits = MessageLimits {
    depth: 128,
    batch: 100,
};

const TERMS: Terms = Terms {
    depth: 128,
    now: String::new,
};

fn route(rest: &str) -> Route {
    let source = RouteSource {
        name: "r".into(),
        rest: rest.into(),
        rpc: "tools/call".into(),
        ..RouteSource::default()
    };
    parse_route(source).expect("the pattern is well-formed")
}

/// A call of about `size` bytes, as tools are called.
fn body(size: usize) -> String {
    let mut rows = String::new();
    while rows.len() + 90 < size {
        rows.push_str(
            r#"{"name":"O'Brien","age":30,"tags":["a","b"],"note":"caf\u00e9 \"quoted\""},"#,
        );
    }
    format!(
        r#"{{"name":"insert_record","arguments":{{"table_name":"users","rows":[{rows}null]}}}}"#
    )
}

fn translate(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("translate");
    for size in [200, 16 * 1024, 1024 * 1024] {
        let text = Bytes::from(body(size));
        let message = Bytes::from(format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}}"#,
            body(size)
        ));
        group.throughput(Throughput::Bytes(text.len() as u64));
        let carried = route("POST /mcp/v1/tools/call");
        let opened = route("POST /mcp/v1/tools/{tool}");
        group.bench_with_input(
            BenchmarkId::new("serde_json checks", size),
            &text,
            |bencher, text| {
                bencher.iter(|| serde_json::from_slice::<serde::de::IgnoredAny>(black_box(text)));
            },
        );
        group.bench_with_input(
            BenchmarkId::new("rest to rpc, carried", size),
            &text,
            |bencher, text| {
                bencher.iter(|| to_rpc(&carried, "/mcp/v1/tools/call", black_box(text)));
            },
        );
        group.bench_with_input(
            BenchmarkId::new("rest to rpc, one hole", size),
            &text,
            |bencher, text| {
                bencher.iter(|| to_rpc(&opened, "/mcp/v1/tools/seven", black_box(text)));
            },
        );
        group.bench_with_input(
            BenchmarkId::new("rpc to rest, carried", size),
            &message,
            |bencher, message| {
                bencher.iter(|| to_rest(&carried, black_box(message)));
            },
        );
    }
    group.finish();
}

fn to_rpc(route: &Route, path: &str, text: &Bytes) -> usize {
    let body = Json::parse(text.clone(), 128).expect("the body is JSON");
    let head = RestHead {
        segments: &Segments::split(path),
        query: None,
        headers: &HeaderMap::new(),
    };
    let reading = read_rest(route, head, TERMS).expect("the URL fits");
    let call = rest_to_rpc(route, reading, Some(body), TERMS).expect("the call fits");
    jsonrpc::request(7, &call.method, call.params, &[]).len()
}

fn to_rest(route: &Route, message: &Bytes) -> usize {
    let Ok(Incoming::Single(Item::Call(call))) = jsonrpc::parse(message, LIMITS) else {
        return 0;
    };
    let said = (call.method.as_str(), call.params.as_ref());
    let call = rpc_to_rest(route, said, TERMS).expect("the call fits");
    call.body.map_or(0, |body| body.len())
}

criterion_group!(benches, translate);
criterion_main!(benches);
