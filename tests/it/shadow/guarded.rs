//! What a guard with a limit on mismatches makes of answers that differ by themselves, and of others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::owned;
use crate::scene::{Called, json};
use crate::support::{Proxy, Upstream, both, eventually};

const CONFIG: &str = r#"
[[route]]
name = "a"
rest = "GET /a"
rpc = "a"
[[route]]
name = "b"
rest = "GET /b"
rpc = "b"
"#;

const FLAGS: &str = r#"
[[flag]]
name = "compare"
stage = "shadow"
guard = { window = "10s", min_calls = 10, mismatch = 0.001 }
"#;

/// Calls of each route in a round.
const CALLS: usize = 40;

/// Both servers tell what time it is, which is never the same; the new one may be wrong in `ok`.
struct Clocks {
    proxy: Proxy,
    wrong: Arc<AtomicBool>,
    _servers: [Upstream; 2],
}

impl Clocks {
    fn start() -> Clocks {
        let (ticks, wrong) = (
            Arc::new(AtomicUsize::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let (old_ticks, is_wrong) = (ticks.clone(), wrong.clone());
        let old = Upstream::serving(move |_| {
            let at = old_ticks.fetch_add(1, Ordering::Relaxed);
            json(format!(r#"{{"ok":true,"at":{at}}}"#))
        });
        let new = Upstream::serving(move |request| {
            let (id, at) = (
                Called::of(request).id().to_owned(),
                ticks.fetch_add(1, Ordering::Relaxed),
            );
            let ok = !is_wrong.load(Ordering::Relaxed);
            json(format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"ok":{ok},"at":{at}}}}}"#
            ))
        });
        let config = format!("{}{CONFIG}", both(&old, &new));
        Clocks {
            proxy: Proxy::start_with_flags(&config, FLAGS),
            wrong,
            _servers: [old, new],
        }
    }

    /// Calls a route so often, each time when the last comparison is over, or until the guard takes the flag back: what is
    /// called then is compared no more.
    fn call(&self, route: &str, verdict: &str) {
        for place in 1..=CALLS {
            let answer = self.proxy.rest("GET", &format!("/{route}"), &[], "");
            assert_eq!(answer.status(), 200, "{answer:?}");
            let wanted = owned(&[(verdict, float(place))]);
            eventually("a verdict", || {
                let is_over = self.verdicts(route, verdict) == wanted || self.tripped().is_some();
                is_over.then_some(())
            });
        }
    }

    /// How often a verdict on a route was given.
    fn verdicts(&self, route: &str, verdict: &str) -> BTreeMap<String, f64> {
        let labels = ["route", "client", "side", "stage", "verdict"];
        let table = self
            .proxy
            .metrics()
            .table("dualgauge_verdicts_total", &labels);
        let own = table.into_iter().filter_map(|(row, count)| {
            let words: Vec<_> = row.split(' ').collect();
            let found = words.first() == Some(&route) && words.last() == Some(&verdict);
            found.then(|| (verdict.to_owned(), count))
        });
        own.collect()
    }

    fn tripped(&self) -> Option<String> {
        let flag = self.proxy.ask("GET", "/api/v1/flags/compare", "").json();
        flag["tripped"]["reason"].as_str().map(str::to_owned)
    }
}

fn float(count: usize) -> f64 {
    u32::try_from(count).unwrap().into()
}

#[test]
fn a_time_stamp_on_every_route_of_a_flag_trips_no_guard_and_a_real_difference_does() {
    let clocks = Clocks::start();
    for route in ["a", "b"] {
        clocks.call(route, "match");
    }
    assert_eq!(clocks.tripped(), None);
    clocks.wrong.store(true, Ordering::Relaxed);
    clocks.call("b", "mismatch");
    // The guard looks each second, and rules on what the second route has shown alone.
    let reason = eventually("the guard takes the flag back", || {
        clocks.proxy.rest("GET", "/b", &[], "");
        clocks.tripped()
    });
    assert!(reason.contains("mismatches"), "{reason}");
}
