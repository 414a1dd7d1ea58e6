//! `select`: which route a call belongs to, in tables of growing size.
//!
//! `cargo bench --bench select`. The figure that repeats is the number of instructions:
//! `valgrind --tool=callgrind target/release/deps/select-* --bench --profile-time 1`.

#![expect(clippy::expect_used, reason = "fixed values")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use dualgauge::domain::route::{RestSelection, RouteSource, RouteTable, Segments, parse_route};
use http::{HeaderMap, Method};

/// Routes as real APIs have them: a resource, one of its members, and an action on it.
fn table(size: usize) -> RouteTable {
    let routes = (0..size).map(|index| {
        let (resource, shape) = (index / 4, index % 4);
        let rest = match shape {
            0 => format!("GET /api/v1/resource{resource}?limit={{limit:integer=50}}"),
            1 => format!("POST /api/v1/resource{resource}"),
            2 => format!("GET /api/v1/resource{resource}/{{id}}"),
            _ => format!("POST /api/v1/resource{resource}/{{id}}:run"),
        };
        let source = RouteSource {
            name: format!("r{index}"),
            rest,
            rpc: format!("m/{index}"),
            ..RouteSource::default()
        };
        parse_route(source).expect("the pattern is well-formed")
    });
    RouteTable::build(routes.collect()).expect("the routes are told apart")
}

fn select(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("select");
    for size in [10, 100, 1_000, 10_000] {
        let table = table(size);
        let last = (size - 1) / 4;
        let headers = HeaderMap::new();
        let path = format!("/api/v1/resource{last}/7");
        let method = format!("m/{}", size - 1);
        group.bench_with_input(BenchmarkId::new("rest", size), &path, |bencher, path| {
            bencher.iter(|| {
                let segments = Segments::split(black_box(path));
                matches!(
                    table.select_rest(&Method::GET, &segments, None, &headers),
                    RestSelection::Route(_)
                )
            });
        });
        group.bench_with_input(BenchmarkId::new("rpc", size), &method, |bencher, method| {
            bencher.iter(|| table.select_rpc(black_box(method), None));
        });
    }
    group.finish();
}

criterion_group!(benches, select);
criterion_main!(benches);
