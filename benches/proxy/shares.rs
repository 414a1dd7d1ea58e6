//! Where the instructions of a call go. Valgrind tells them of each function, and what a function is for is told by its name.
//!
//! The program of `cargo build --profile dist` bears the names of its sources. Where functions are one in the other, as with
//! `deploy/optimize`, what is inlined counts as what it is inlined into.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::counted;
use crate::production::Extent;
use crate::work::HOT;

/// Each name stands in full.
const NAMES: [&str; 2] = ["--compress-strings=no", "--compress-pos=no"];

/// What functions are for, and parts of their names, with `^` for their beginning. The first that fits counts.
const PURPOSES: [(&str, &[&str]); 13] = [
    (
        "memory is had and given back",
        &["^malloc", "^free", "^realloc", "^calloc", "mi_", "__rust_"],
    ),
    (
        "memory is copied and compared",
        &["^__mem", "^mem", "memchr"],
    ),
    (
        "heads are read",
        &[
            "httparse",
            "Http1Transaction>::parse",
            "HeaderName",
            "StandardHeader",
            "header::name",
            "http::uri",
            "hyper::headers",
            "http::method",
            "version::",
            "status::",
        ],
    ),
    (
        "what comes in is inspected",
        &[
            "dualgauge_transport::wire",
            "dualgauge_net::inspected_socket",
            "server::http2_delivery",
            "dualgauge_net::write_timeout",
        ],
    ),
    (
        "JSON is checked and taken apart",
        &["dualgauge_patterns::json", "simdutf8", "from_utf8"],
    ),
    (
        "metrics, log, what is known of a call",
        &[
            "dualgauge::telemetry",
            "gateway::access_record",
            "gateway::call_context",
            "gateway::guard_recorder",
            "itoa",
            "dualgauge_model::time",
        ],
    ),
    (
        "who calls, which route, which way",
        &[
            "dualgauge_model::rollout",
            "dualgauge_model::routing",
            "dualgauge_model::plan",
            "dualgauge_model::trace",
            "dualgauge_model::client_ip",
            "dualgauge_model::forwarding",
            "dualgauge_model::local_reply",
            "dualgauge_model::cors",
            "dualgauge_transport::load_balancing",
            "route::table",
            "route::name_map",
            "gateway::sessions",
            "gateway::identity",
            "ipnet",
        ],
    ),
    (
        "patterns are read and written",
        &[
            "dualgauge_model::translate",
            "dualgauge_patterns::pattern",
            "dualgauge_patterns::rope",
            "dualgauge_model::route",
            "dualgauge_model::outcome",
            "dualgauge_model::rejections",
            "dualgauge_patterns::percent",
            "dualgauge_patterns::schema",
            "dualgauge_model::compare",
            "dualgauge_model::envelope",
        ],
    ),
    (
        "headers are chosen and written",
        &[
            "http::header",
            "dualgauge_model::headers",
            "gateway::headers",
            "HeaderMap",
            "HeaderValue",
        ],
    ),
    ("heads are written, bodies kept in step", &["hyper"]),
    (
        "connections to servers, what waits",
        &["dualgauge::upstream"],
    ),
    (
        "the call: steps, limits, answer",
        &["dualgauge::gateway", "dualgauge::server", "dualgauge::app"],
    ),
    (
        "tasks, timers, sockets, clocks",
        &[
            "tokio",
            "mio::",
            "socket2",
            "std::sys",
            "std::time",
            "std::thread",
            "Timespec",
            "Waker",
            "futures_util",
            "want::",
            "sync::",
            "syscall",
            "pthread",
            "clock_",
            "^send",
            "^recv",
            "^writev",
            "^readv",
            "^epoll",
            "^__libc",
            "^__errno",
        ],
    ),
];

/// What no purpose is known of.
const ELSE: &str = "else";

/// Prints them, of each of the hot ones.
pub(crate) fn print(program: &Path) -> io::Result<()> {
    let of_works = HOT.iter().map(|work| {
        let [few, many] = counted::runs(work);
        let of = |calls| -> io::Result<_> {
            let served = (work, &Extent::PRODUCTION);
            Ok(purposes(&counted::of_calls(
                &NAMES, program, served, calls,
            )?))
        };
        let (before, after) = (of(few)?, of(many)?);
        let each = after.into_iter().map(|(purpose, after)| {
            let before = before.get(purpose).copied().unwrap_or_default();
            (
                purpose,
                after.saturating_sub(before) / u64::from(many - few),
            )
        });
        Ok(each.collect::<BTreeMap<_, _>>())
    });
    let of_works = of_works.collect::<io::Result<Vec<_>>>()?;
    let row = |title: &str, columns: &mut dyn Iterator<Item = String>| {
        let columns: String = columns.map(|column| format!(" {column:>13}")).collect();
        println!("{title:<40}{columns}");
    };
    row(
        "instructions of a call",
        &mut HOT.iter().map(|work| work.name.to_owned()),
    );
    for (purpose, _) in PURPOSES.iter().chain(&[(ELSE, &[] as &[_])]) {
        let of = |shares: &BTreeMap<_, u64>| shares.get(purpose).copied().unwrap_or_default();
        row(
            purpose,
            &mut of_works.iter().map(|shares| of(shares).to_string()),
        );
    }
    row(
        "in all",
        &mut of_works
            .iter()
            .map(|shares| shares.values().sum::<u64>().to_string()),
    );
    Ok(())
}

/// The instructions of profiles by what they are for.
fn purposes(profiles: &[String]) -> BTreeMap<&'static str, u64> {
    let mut purposes = BTreeMap::new();
    for profile in profiles {
        for (function, count) in functions(profile) {
            *purposes.entry(purpose(function)).or_default() += count;
        }
    }
    purposes
}

fn purpose(function: &str) -> &'static str {
    let fits = |part: &&str| match part.strip_prefix('^') {
        Some(beginning) => function.starts_with(beginning),
        None => function.contains(*part),
    };
    let mut purposes = PURPOSES.iter();
    let found = purposes.find(|(_, parts)| parts.iter().any(fits));
    found.map_or(ELSE, |(purpose, _)| purpose)
}

/// The functions of a profile and what each executes by itself: lines of a place and a count, but for the one behind
/// `calls=`, which is of what is called.
fn functions(profile: &str) -> impl Iterator<Item = (&str, u64)> {
    let mut function = "";
    let mut is_of_called = false;
    profile.lines().filter_map(move |line| {
        if let Some(name) = line.strip_prefix("fn=") {
            function = name;
            return None;
        }
        if line.starts_with("calls=") {
            is_of_called = true;
            return None;
        }
        let (place, count) = line.split_once(' ')?;
        let _: u64 = place.parse().ok()?;
        let count = count.parse().ok()?;
        (!std::mem::take(&mut is_of_called)).then_some((function, count))
    })
}
