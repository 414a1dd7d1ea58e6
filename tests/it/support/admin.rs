//! The admin listener, as an operator and as Prometheus see it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::thread;
use std::time::Instant;

use super::{Message, Proxy, WITHIN, Wire};

/// Looks again and again until something is there, for as long as anything may take.
pub(crate) fn eventually<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    look_until_there(look).unwrap_or_else(|| panic!("waited in vain: {what}"))
}

/// Looks again and again until what is found is what is wanted.
pub(crate) fn becomes<T: PartialEq + Debug>(mut look: impl FnMut() -> T, wanted: &T) {
    let mut last = None;
    let reached = look_until_there(|| {
        let found = look();
        let reached = found == *wanted;
        last = Some(found);
        reached.then_some(())
    });
    assert!(
        reached.is_some(),
        "waited in vain for {wanted:?}; last was {last:?}"
    );
}

/// Each look is a request or a pass over the log, so that the pace is that of the proxy.
fn look_until_there<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the bound of a wait for another process"
    )]
    let now = Instant::now;
    let end = now() + WITHIN;
    loop {
        let found = look();
        if found.is_some() || now() > end {
            return found;
        }
        thread::yield_now();
    }
}

/// A page of metrics.
#[derive(Debug)]
pub(crate) struct Metrics(String);

impl Proxy {
    /// One request to the admin listener, with a body of JSON if any.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> Message {
        let content = if body.is_empty() && matches!(method, "GET" | "HEAD") {
            String::new()
        } else {
            let length = body.len();
            format!("Content-Type: application/json\r\nContent-Length: {length}\r\n")
        };
        let admin = self.admin();
        self.ask_raw(&format!(
            "{method} {path} HTTP/1.1\r\nHost: {admin}\r\n{content}\r\n{body}"
        ))
    }

    /// One request to the admin listener, as it is on the wire.
    pub(crate) fn ask_raw(&self, request: &str) -> Message {
        let mut wire = Wire::connect(self.admin());
        wire.send(request);
        wire.read_answer()
    }

    /// The page of metrics.
    pub(crate) fn metrics(&self) -> Metrics {
        let answer = self.ask("GET", "/metrics", "");
        assert_eq!(answer.status(), 200, "{answer:?}");
        Metrics(answer.text().to_owned())
    }
}

impl Metrics {
    /// The page as it came.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Every series of a name: the values of these labels, with a blank between, and the number. A series that has
    /// other labels fails the test.
    pub(crate) fn table(&self, name: &str, labels: &[&str]) -> BTreeMap<String, f64> {
        let series = self.0.lines().filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            let (found, pairs) = series.split_once('{').unwrap_or((series, "}"));
            (found == name).then(|| (row(pairs.trim_end_matches('}'), labels), number(value)))
        });
        series.collect()
    }

    /// The one series of a name and of these labels, as `label="value"` with a comma between.
    pub(crate) fn value(&self, series: &str) -> f64 {
        let mut lines = self.0.lines();
        let value = lines.find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        number(value.unwrap_or_else(|| panic!("no {series} in:\n{}", self.0)))
    }

    /// Every series, without its number.
    pub(crate) fn series(&self) -> Vec<&str> {
        let lines = self.0.lines().filter(|line| !line.starts_with('#'));
        lines
            .filter_map(|line| Some(line.rsplit_once(' ')?.0))
            .collect()
    }
}

fn row(pairs: &str, labels: &[&str]) -> String {
    let mut found: BTreeMap<&str, &str> = pairs
        .split(',')
        .filter_map(|pair| {
            let (label, value) = pair.split_once('=')?;
            Some((label, value.trim_matches('"')))
        })
        .collect();
    let values: Vec<&str> = labels
        .iter()
        .map(|label| found.remove(label).unwrap_or("?"))
        .collect();
    assert!(found.is_empty(), "other labels than {labels:?}: {pairs}");
    values.join(" ")
}

fn number(text: &str) -> f64 {
    text.parse().unwrap()
}
