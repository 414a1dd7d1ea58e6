//! `select`: which route a call belongs to, in tables of growing size, beside `matchit` over the same paths.
//!
//! `cargo bench --bench select`; the figures that repeat are those of `benches/instructions.sh`.

#![expect(clippy::expect_used, reason = "fixed values")]

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

mod cases;

fn select(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("select");
    for size in [10, 100, 1_000] {
        for name in ["matchit", "select rest", "select rpc", "select tool"] {
            let run = cases::case(name, size).expect("the case is known");
            group.bench_function(BenchmarkId::new(name, size), |bencher| bencher.iter(&run));
        }
    }
    group.finish();
}

criterion_group!(benches, select);
criterion_main!(benches);
