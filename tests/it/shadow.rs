//! Calls that are made a second time only to compare: what their clients see of it, which is nothing, and what
//! operators see.

mod admin;
mod bounds;
mod guarded;
mod harmless;
mod rest;
mod rpc;

use std::collections::BTreeMap;

use crate::support::{Proxy, Upstream, becomes, both};

/// A route that is safe, one that is not, and one that says so.
const ROUTES: &str = r#"
[[route]]
name = "items.get"
rest = "GET /items/{id}"
rpc = "items/get"
[[route]]
name = "items.make"
rest = "POST /items"
rpc = "items/make"
[[route]]
name = "items.find"
rest = "POST /find"
rpc = "items/find"
effect = "safe"
"#;

/// Both servers, and the proxy between.
struct Scene {
    rest: Upstream,
    rpc: Upstream,
    proxy: Proxy,
}

impl Scene {
    /// All calls have this stage; `bounds` are keys of `[rollout.candidates]`.
    fn of(stage: &str, bounds: &str, servers: (Upstream, Upstream)) -> Scene {
        let (rest, rpc) = servers;
        let quiet = if bounds.contains("noise") {
            ""
        } else {
            "noise = 0\n"
        };
        let bounds = format!("[rollout.candidates]\n{quiet}{bounds}\n");
        let config = format!("{}{ROUTES}{bounds}", both(&rest, &rpc));
        let flags = format!("[[flag]]\nname = \"compare\"\nstage = \"{stage}\"\n");
        let proxy = Proxy::start_with_flags(&config, &flags);
        Scene { rest, rpc, proxy }
    }

    /// What became of the candidates so far, of all routes together.
    fn verdicts(&self) -> BTreeMap<String, f64> {
        let labels = ["route", "client", "side", "stage", "verdict"];
        self.sums("dualgauge_verdicts_total", &labels)
    }

    /// A metric by the last of its labels.
    fn sums(&self, name: &str, labels: &[&str]) -> BTreeMap<String, f64> {
        let mut sums = BTreeMap::new();
        for (row, count) in self.proxy.metrics().table(name, labels) {
            let word = row.split(' ').next_back().unwrap_or_default().to_owned();
            *sums.entry(word).or_default() += count;
        }
        sums
    }

    /// Waits until these are all that became of candidates.
    fn expect(&self, verdicts: &[(&str, f64)]) {
        becomes(|| self.verdicts(), &owned(verdicts));
        let running = || self.proxy.metrics().value("dualgauge_candidates_in_flight");
        becomes(running, &0.0);
    }

    /// Waits until candidates were skipped for these reasons, and for no other one.
    fn expect_skipped(&self, reasons: &[(&str, f64)]) {
        let found = || self.sums("dualgauge_candidates_skipped_total", &["route", "reason"]);
        becomes(found, &owned(reasons));
    }
}

fn owned(counts: &[(&str, f64)]) -> BTreeMap<String, f64> {
    let counts = counts.iter();
    counts
        .map(|(word, count)| ((*word).to_owned(), *count))
        .collect()
}
