//! `translate`: a body read, checked and written into its envelope, beside `serde_json` only checking the
//! same bytes. What is compared is one side's work for one call, without any I/O.
//!
//! `cargo bench --bench translate`; the figures that repeat are those of `benches/instructions.sh`.

#![expect(clippy::expect_used, reason = "fixed values")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

mod cases;

const NAMES: [&str; 14] = [
    "serde_json body",
    "carried to rpc",
    "one hole to rpc",
    "serde_json message",
    "carried to rest",
    "one hole to rest",
    "serde_json twelve body",
    "twelve holes to rpc",
    "serde_json twelve message",
    "twelve holes to rest",
    "serde_json twelve answer",
    "twelve holes answer to rpc",
    "serde_json twelve response",
    "twelve holes answer to rest",
];

fn translate(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("translate");
    for size in [200, 16 * 1024, 1024 * 1024] {
        group.throughput(Throughput::Bytes(size as u64));
        for name in NAMES {
            let run = cases::case(name, size).expect("the case is known");
            group.bench_function(BenchmarkId::new(name, size), |bencher| bencher.iter(&run));
        }
    }
    group.finish();
}

criterion_group!(benches, translate);
criterion_main!(benches);
