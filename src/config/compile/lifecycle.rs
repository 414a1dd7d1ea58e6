//! The lifecycle of routes: announcements of their retirement, and brownouts.

use crate::config::problem::{Problem, Spanned};
use crate::config::raw::{RawConfig, RawDeprecated, RawEnd, RawRoute, RawWindow};
use dualgauge_model::lifecycle::{Announcement, Deprecated, Lifecycle, Prefixes, Window};
use dualgauge_model::plan::RpcFace;
use dualgauge_model::rejections::successor_link;
use dualgauge_model::route::RouteTable;
use dualgauge_model::time::Timestamp;
use dualgauge_patterns::side::Side;

/// Maximum number of brownout windows.
const MOST_WINDOWS: usize = 100;

/// Compiles the announcements of each route.
pub(super) fn compile(
    raw: &RawConfig,
    table: &RouteTable,
    face: &RpcFace,
    problems: &mut Vec<Problem>,
) -> Lifecycle {
    if let Some(usual) = &raw.deprecated {
        check(usual, problems);
    }
    let mut routes = Vec::with_capacity(raw.routes.len());
    for (index, route) in raw.routes.iter().enumerate() {
        let announced = match &route.deprecated {
            Some(RawEnd::Never) => None,
            Some(RawEnd::Table(own)) => {
                check(own, problems);
                check_side(route, own, problems);
                Some(&**own)
            }
            None => raw
                .deprecated
                .as_ref()
                .filter(|usual| enters(route, usual.side.value)),
        };
        // If the table could not be built, its problems are reported, and this plan is never used.
        let compiled = table.routes().get(index);
        routes.push(announced.zip(compiled).map(|(announced, route)| {
            let successor = successor_link(route, announced.side.value, &face.paths);
            Deprecated::new(announcement(announced, successor))
        }));
    }
    Lifecycle {
        routes,
        prefixes: Prefixes::new(table.routes()),
    }
}

fn announcement(raw: &RawDeprecated, successor: Option<String>) -> Announcement {
    let windows = raw.brownouts.iter();
    Announcement {
        side: raw.side.value,
        since: raw.since.value,
        sunset: raw.sunset.as_ref().map(|sunset| sunset.value),
        link: raw.link.as_ref().map(|link| link.value.clone()),
        successor,
        brownouts: windows
            .map(|window| Window {
                from: window.from.value,
                until: window.until.value,
            })
            .collect(),
    }
}

fn enters(route: &RawRoute, side: Side) -> bool {
    route.from.as_ref().is_none_or(|from| from.value == side)
}

/// Reports an announcement that no client would ever receive.
fn check_side(route: &RawRoute, announced: &RawDeprecated, problems: &mut Vec<Problem>) {
    let side = announced.side.value;
    if !enters(route, side) {
        let message =
            format!("no {side} client calls this route, so no client would receive the notice");
        let hint = format!("write `side = \"{}\"`", side.other());
        // A default has no line in a file.
        let problem = Problem {
            place: announced.here.place.clone(),
            ..announced.side.problem(message)
        };
        problems.push(problem.hint(hint));
    }
}

fn check(announced: &RawDeprecated, problems: &mut Vec<Problem>) {
    if let Some(sunset) = &announced.sunset
        && sunset.value < announced.since.value
    {
        let message = format!(
            "`{}` is before `since`, which is {}; a sunset cannot precede its deprecation (RFC 9745 §4)",
            sunset.value, announced.since.value
        );
        problems.push(sunset.problem(message));
    }
    if announced.brownouts.len() > MOST_WINDOWS {
        let message = format!(
            "{} brownouts are too many; at most {MOST_WINDOWS} are allowed",
            announced.brownouts.len()
        );
        problems.push(announced.here.problem(message));
    }
    let mut before: Option<&Spanned<Timestamp>> = None;
    for window in &announced.brownouts {
        check_window(window, before, problems);
        before = before
            .into_iter()
            .chain([&window.until])
            .max_by_key(|end| end.value);
    }
}

fn check_window(
    RawWindow { from, until }: &RawWindow,
    before: Option<&Spanned<Timestamp>>,
    problems: &mut Vec<Problem>,
) {
    if until.value <= from.value {
        let message = format!(
            "`{}` is not after `from`, which is {}",
            until.value, from.value
        );
        problems.push(until.problem(message));
    }
    if let Some(before) = before
        && from.value < before.value
    {
        let message = format!(
            "`{}` is before {}, the end of the previous brownout; write brownouts in order, without overlaps",
            from.value, before.value
        );
        problems.push(from.problem(message));
    }
}
