//! Calls that are made a second time only to compare: what their clients see of it, which is nothing, and what
//! operators see.

mod admin;
mod bounds;
mod harmless;
mod rest;
mod rpc;

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
        let quiet = if bounds.contains("noise") { "" } else { "noise = 0\n" };
        let bounds = format!("[rollout.candidates]\n{quiet}{bounds}\n");
        let config = format!("{}{ROUTES}{bounds}", both(&rest, &rpc));
        let flags = format!("[[flag]]\nname = \"compare\"\nstage = \"{stage}\"\n");
        let proxy = Proxy::start_with_flags(&config, &flags);
        Scene { rest, rpc, proxy }
    }

    /// What became of the candidates so far.
    fn verdicts(&self) -> Vec<(String, f64)> {
        let labels = ["route", "client", "side", "stage", "verdict"];
        let table = self
            .proxy
            .metrics()
            .table("dualgauge_verdicts_total", &labels);
        let short = |row: String| row.split(' ').next_back().unwrap_or_default().to_owned();
        let mut rows: Vec<_> = table.into_iter().map(|(row, n)| (short(row), n)).collect();
        rows.sort_by(|one, two| one.0.cmp(&two.0));
        rows
    }

    /// Waits until these are all that became of candidates.
    fn expect(&self, verdicts: &[(&str, f64)]) {
        let wanted: Vec<_> = verdicts
            .iter()
            .map(|(word, n)| ((*word).to_owned(), *n))
            .collect();
        becomes(|| self.verdicts(), &wanted);
        becomes(
            || self.proxy.metrics().value("dualgauge_candidates_in_flight"),
            &0.0,
        );
    }

    /// Waits until candidates were skipped for these reasons, and for no other one.
    fn expect_skipped(&self, reasons: &[(&str, f64)]) {
        let wanted = reasons
            .iter()
            .map(|(word, n)| ((*word).to_owned(), *n))
            .collect();
        let found = || {
            let name = "dualgauge_candidates_skipped_total";
            let table = self.proxy.metrics().table(name, &["route", "reason"]);
            let short = |row: String| row.split(' ').next_back().unwrap_or_default().to_owned();
            table
                .into_iter()
                .map(|(row, n)| (short(row), n))
                .collect::<std::collections::BTreeMap<_, _>>()
        };
        becomes(found, &wanted);
    }
}
