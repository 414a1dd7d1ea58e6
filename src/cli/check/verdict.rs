//! The result of a check: unaccepted losses, and `lossy` keys that accept nothing.
//!
//! Used by `check`, `check::json` and `check::text`.

use std::collections::{BTreeMap, BTreeSet};

use super::upgrade;
use crate::config::configuration::Configuration;
use crate::config::problem::{Problem, Problems, SourceLocation, Spanned, nearest};
use crate::config::raw::RawServer;
use crate::telemetry::metrics::estimate;
use dualgauge_model::check::{
    CheckRule, Direction, EventReport, Finding, FindingKind, LossVerdict, MissingEffect,
    RouteReport, bypasses, exposed_unsubscribe, idle, lacks_tool_failures, undeclared_stream,
};
use dualgauge_model::event::EventDefinition;
use dualgauge_model::failure::Reason;
use dualgauge_model::hosts::Reach;
use dualgauge_model::outcome::{RpcReplyPattern, ToolValue};
use dualgauge_model::route::Route;
use dualgauge_patterns::side::Side;

/// A checked configuration.
pub(super) struct Checked<'c> {
    pub(super) configuration: &'c Configuration,
    pub(super) reports: Vec<RouteReport>,
    pub(super) events: Vec<EventReport>,
    /// Problems that fail the check.
    pub(super) problems: Option<Problems>,
    /// Notes that do not fail the check.
    pub(super) notes: Option<Problems>,
    /// Notes on routes that changed defaults affect. They matter only after an upgrade.
    pub(super) upgrades: Option<Problems>,
}

/// The methods of RFC 9110 and RFC 5789, in the form that [`nearest`] compares.
const METHODS: [&str; 9] = [
    "get", "head", "post", "put", "patch", "delete", "options", "trace", "connect",
];

/// A row, which several routes may share: its loss, and the acceptance of it.
struct RowWord {
    lossy: Option<String>,
    accepted: Option<()>,
}

impl<'c> Checked<'c> {
    pub(super) fn new(
        configuration: &'c Configuration,
        reports: Vec<RouteReport>,
        events: Vec<EventReport>,
        has_upgrade_notes: bool,
    ) -> Checked<'c> {
        let (mut problems, mut notes, mut upgrades) = (Vec::new(), Vec::new(), Vec::new());
        let mut rows: BTreeMap<&str, RowWord> = BTreeMap::new();
        let places = &configuration.raw.places;
        for (report, raw) in reports.iter().zip(&configuration.raw.routes) {
            let route = configuration.plan.routes.route(report.route);
            for direction in &report.directions {
                for what in faults(direction) {
                    problems.push(places.problem(&raw.key, what));
                }
            }
            let is_whole = route.outcomes.tool_value() == ToolValue::Whole;
            if is_whole && route.enters_from(Side::Rest) && lacks_tool_failures(route) {
                notes.push(tool_failures(configuration, &raw.key));
            }
            notes.extend(streams(configuration, route, &raw.key));
            notes.extend(unsubscribing(configuration, report.route, &raw.key));
            if has_upgrade_notes {
                upgrades.extend(upgrade::note(configuration, report.route, raw));
            }
            calls(configuration, route, &raw.key, report, &mut problems);
            note_rows(route, report, &mut rows);
            if let Some(word) = &raw.lossy
                && !report.directions.iter().any(needs_word)
            {
                notes.push(word.problem("the route loses nothing; remove the word"));
            }
            for failed in &report.examples.failed {
                problems.push(places.problem(&failed.key, &failed.what));
            }
        }
        notes.extend(untried(configuration, &reports));
        for (key, word) in rows {
            match (word.lossy, word.accepted) {
                (Some(what), None) => problems.push(unaccepted(configuration, key, &what)),
                (None, Some(())) => {
                    let what = "the row loses nothing; remove the word";
                    notes.push(places.problem(format!("{key}.lossy"), what));
                }
                (Some(_), Some(())) | (None, None) => {}
            }
        }
        note_events(configuration, &events, &mut problems, &mut notes);
        if has_upgrade_notes {
            upgrades.extend(upgrade::general(configuration));
            notes.extend(upgrade::clients(configuration));
        }
        notes.extend(upgrade::declared_names(configuration));
        notes.extend(unnamed_resources(configuration));
        notes.extend(flags(configuration).chain(methods(configuration)));
        notes.extend(own_codes(configuration));
        let single = [hosts, series, irregular].map(|note| note(configuration));
        notes.extend(single.into_iter().flatten());
        Checked {
            configuration,
            reports,
            events,
            problems: some(problems),
            notes: some(notes),
            upgrades: some(upgrades),
        }
    }

    /// Returns all notes, in the order of the files.
    pub(super) fn all_notes(&self) -> Option<Problems> {
        let all = self.notes.iter().chain(&self.upgrades);
        some(all.flatten().cloned().collect())
    }

    /// Returns the number of routes that changed defaults affect.
    pub(super) fn affected_routes(&self) -> usize {
        let mut upgrades = self.upgrades.iter().flatten();
        let affects_all = |note: &Problem| note.key == upgrade::ALL_ROUTES;
        match upgrades.any(affects_all) {
            true => self.reports.len(),
            false => self.upgrades.iter().flatten().count(),
        }
    }

    /// Iterates over the events with each of their reports, in the order of the files.
    pub(super) fn events(&self) -> impl Iterator<Item = (&EventDefinition, &EventReport)> {
        let all = self.configuration.plan.events.all();
        let reports = self.events.iter();
        reports.filter_map(|report| Some((all.get(report.event)?, report)))
    }

    /// Iterates over the routes with their reports, in the order of the files.
    pub(super) fn routes(&self) -> impl Iterator<Item = (&Route, &RouteReport)> {
        let table = &self.configuration.plan.routes;
        let reports = self.reports.iter();
        reports.map(|report| (table.route(report.route), report))
    }
}

/// Returns flags that never have an effect as configured.
fn flags(configuration: &Configuration) -> impl Iterator<Item = Problem> {
    idle(&configuration.plan).into_iter().filter_map(|idle| {
        let raw = configuration.flags.get(idle.flag)?;
        let what = idle.what.to_string();
        Some(match idle.what {
            MissingEffect::Comparison { .. } | MissingEffect::Judgement { .. } => {
                raw.stage.problem(what)
            }
            MissingEffect::Decision { .. } | MissingEffect::Movement { .. } => {
                raw.name.problem(what)
            }
        })
    })
}

/// Returns a note for each route with an HTTP method that is probably a misspelled standard one.
fn methods(configuration: &Configuration) -> impl Iterator<Item = Problem> {
    let routes = configuration.plan.routes.routes().iter();
    let routes = routes.zip(&configuration.raw.routes);
    routes.filter_map(|(route, raw)| method(route, &raw.rest))
}

fn method(route: &Route, rest: &Spanned<String>) -> Option<Problem> {
    let own = route.method.as_str();
    let known = METHODS.iter().copied();
    let meant = nearest(own, known).filter(|_| !METHODS.contains(&&*own.to_lowercase()))?;
    let note = rest.problem(format!("`{own}` is no standard HTTP method"));
    Some(note.hint(format!("did you mean `{}`?", meant.to_uppercase())))
}

/// Returns a note for each row with a code that the proxy uses for a failure of its own. Rows of frames are left out:
/// they define how a frame client learns of such a failure.
fn own_codes(configuration: &Configuration) -> Vec<Problem> {
    let plan = &configuration.plan;
    let codes = &plan.face.failure_codes;
    let mut found = BTreeMap::new();
    let routes = plan.routes.routes().iter();
    for row in routes
        .filter(|route| !route.is_frame())
        .flat_map(|route| route.outcomes.rows())
    {
        let RpcReplyPattern::Error { code, .. } = &row.rpc else {
            continue;
        };
        let own = code
            .numbers()
            .find_map(|code| Some((code, codes.reason_of(code)?)));
        if let Some(own) = own {
            found.insert(row.key.as_str(), own);
        }
    }
    let note = |(key, (code, reason)): (&str, (i64, Reason))| {
        let label = reason.row().label;
        let what = format!(
            "the proxy itself answers {code} for `{label}`, so a client cannot tell the two apart"
        );
        let places = &configuration.raw.places;
        let problem = places.problem(format!("{key}.rpc.error.code"), what);
        problem.hint("write another code, or set that of the proxy with `rpc.failure_codes`")
    };
    found.into_iter().map(note).collect()
}

/// Returns a note on a loopback listener with a configured address. A proxy may stand before it, whose `Host` would be
/// rejected.
fn hosts(configuration: &Configuration) -> Option<Problem> {
    let (plan, listen) = (&configuration.plan, &configuration.raw.listen);
    let mut upstreams = plan.upstreams.all.iter();
    let has_links = upstreams.any(|upstream| upstream.transport.link().is_some());
    let passes_all = plan.routes.routes().is_empty() && !has_links;
    let is_open = plan.reach == Reach::Network || !plan.hosts.is_empty();
    let knows_hops = !listen.trusted.is_empty() || listen.proxy_protocol.is_some();
    if listen.address.place == SourceLocation::Default || passes_all || is_open || knows_hops {
        return None;
    }
    let what = "without `listen.hosts`, this listener refuses calls that are not passed through, unless their `Host` is loopback";
    let hint = "add the names by which clients reach the proxy to `hosts` of `[listen]`, or the proxies before it to `trusted`";
    Some(listen.address.problem(what).hint(hint))
}

/// Returns a note on each MCP server whose protected resource metadata name the server, not the proxy.
fn unnamed_resources(configuration: &Configuration) -> Vec<Problem> {
    if configuration.plan.public_url.is_some() {
        return Vec::new();
    }
    let servers = configuration.raw.upstreams.iter();
    let servers = servers.filter_map(|upstream| match &upstream.server {
        RawServer::Mcp(server) => Some(&server.url),
        RawServer::Url(_) | RawServer::Socket(_) | RawServer::Command(_) => None,
    });
    let what = "if this server requires authorization: `resource` of its protected resource metadata, and `resource_metadata` of its challenges, pass unchanged; clients refuse them unless they name the URL that the client uses";
    let hint = "set `public_url` of `[listen]` to the URL at which clients reach the proxy";
    let notes = servers.map(|url| url.problem(what).hint(hint));
    notes.collect()
}

/// Returns a note on retired routes that a lenient server may still serve, at irregular paths that pass.
fn irregular(configuration: &Configuration) -> Option<Problem> {
    let found = bypasses(&configuration.plan);
    let first = found.first()?;
    let name = &configuration.plan.routes.route(first.route).name;
    let more = match found.len() - 1 {
        0 => String::new(),
        1 => "; the same holds for 1 more route".to_owned(),
        more => format!("; the same holds for {more} more routes"),
    };
    let what = format!(
        "`{}` passes as a call of no route, and a lenient server may read it as a call of the retired route `{name}`{more}",
        first.call
    );
    let hint = "`unrouted_irregular = \"reject\"` refuses calls with such paths";
    let said = &configuration.raw.rejects_irregular;
    Some(said.problem(what).hint(hint))
}

/// Returns a problem if the metrics could exceed their series limit once each client has called each route.
fn series(configuration: &Configuration) -> Option<Problem> {
    let estimate = estimate(&configuration.plan);
    if estimate.usual <= estimate.limit {
        return None;
    }
    let what = format!(
        "the routes and clients make {} series of metrics as soon as each client has called each route; the limit is {}, and \
         further series are counted under the name `overflow`",
        estimate.usual, estimate.limit
    );
    let hint = "leave out labels of histograms by `metrics.labels`, or raise `metrics.series`";
    let places = &configuration.raw.places;
    Some(places.problem("metrics.series", what).hint(hint))
}

fn some(problems: Vec<Problem>) -> Option<Problems> {
    (!problems.is_empty()).then(|| Problems::new(problems))
}

fn needs_word(direction: &Direction) -> bool {
    direction.kind != FindingKind::BuiltIn && direction.verdict() == LossVerdict::Lossy
}

/// Returns differences without a rule that explains them; these cannot be accepted.
fn faults(direction: &Direction) -> impl Iterator<Item = String> {
    let unexplained = |finding: &&Finding| finding.rule == CheckRule::Unexplained;
    let found = direction.losses.iter().filter(unexplained);
    found.map(|finding| {
        let sent = &finding.witness.sent;
        format!(
            "`{sent}` does not come back as it was, and {}",
            finding.rule.describe(&finding.at)
        )
    })
}

/// Returns a note on tool failures: a tool fails with a result, which the rows of other results do not match.
fn tool_failures(configuration: &Configuration, key: &str) -> Problem {
    let status = configuration.raw.rpc.tool_error_status.value;
    let what = format!(
        "no row takes the result of a tool that failed (`isError = true`), so that REST clients get {status}"
    );
    let problem = configuration.raw.places.problem(key, what);
    problem.hint(
        "add a row with `rpc = { result = { isError = true, content = [{ type = \"text\", text = \"{message}\" }] } }`",
    )
}

/// Returns a note on a route that shows a response that streams but does not say so.
fn streams(configuration: &Configuration, route: &Route, key: &str) -> Option<Problem> {
    let format = undeclared_stream(route)?;
    let what = format!(
        "an outcome or an example has the content type of a stream (`{}`), but the route does not say that its responses stream",
        format.content_type()
    );
    let hint = format!(
        "write `stream = \"{}\"`, so that each event is translated as it arrives, or `stream = false`",
        format.as_str()
    );
    let places = &configuration.raw.places;
    Some(places.problem(key, what).hint(hint))
}

/// Returns a note on a route whose subscriptions JSON-RPC clients can end for others.
fn unsubscribing(configuration: &Configuration, route: usize, key: &str) -> Option<Problem> {
    let plan = &configuration.plan;
    let upstream = exposed_unsubscribe(plan, route)?;
    let rule = plan.routes.route(route).subscription.as_ref()?;
    let what = format!(
        "JSON-RPC clients can send `{}` over the link of the upstream `{upstream}`, and so end subscriptions of other clients",
        rule.unsubscribe
    );
    let hint = format!(
        "add `{}` to `withhold` of the upstream, or use an upstream of its own for the route",
        rule.unsubscribe
    );
    Some(configuration.raw.places.problem(key, what).hint(hint))
}

/// Returns a note for each row and each route's calls of which no message passes. A row that routes share has one note.
fn untried(configuration: &Configuration, reports: &[RouteReport]) -> Vec<Problem> {
    let raw = &configuration.raw;
    let mut found: BTreeSet<(&str, String)> = BTreeSet::new();
    for (report, raw) in reports.iter().zip(&raw.routes) {
        let route = configuration.plan.routes.route(report.route);
        for direction in report.directions.iter().filter(|one| one.is_untried()) {
            let key = match direction.kind {
                FindingKind::Outcome(row) => &route.outcomes.rows()[row].key,
                FindingKind::Request | FindingKind::BuiltIn => &raw.key,
            };
            found.insert((key, untried_text(direction)));
        }
    }
    let found = found.into_iter();
    found
        .map(|(key, what)| raw.places.problem(key, what))
        .collect()
}

/// Returns the text for a direction that no message passes; it may reject everything on purpose.
fn untried_text(direction: &Direction) -> String {
    let what = match direction.kind {
        FindingKind::Request => "call",
        FindingKind::Outcome(_) | FindingKind::BuiltIn => "answer",
    };
    let from = direction.from;
    format!(
        "no {what} from {from} was found that passes, so nothing was seen to survive; write an example"
    )
}

/// Adds the losses of calls, unless `lossy` of the route accepts them.
fn calls(
    configuration: &Configuration,
    route: &Route,
    key: &str,
    report: &RouteReport,
    problems: &mut Vec<Problem>,
) {
    if route.lossy.is_some() {
        return;
    }
    for direction in report.losses(FindingKind::Request) {
        let what = format!(
            "calls from {} lose something: {}",
            direction.from,
            first(direction)
        );
        problems.push(unaccepted(configuration, key, &what));
    }
}

/// Records the losses of rows, and their acceptance by the row or the route.
fn note_rows<'r>(route: &'r Route, report: &RouteReport, rows: &mut BTreeMap<&'r str, RowWord>) {
    for (place, row) in route.outcomes.rows().iter().enumerate() {
        let mut lossy = report.losses(FindingKind::Outcome(place)).map(|direction| {
            let from = direction.from;
            format!(
                "answers of {from} servers lose something: {}",
                first(direction)
            )
        });
        let word = rows.entry(&row.key).or_insert(RowWord {
            lossy: None,
            accepted: row.lossy.as_ref().map(|_| ()),
        });
        if row.lossy.is_some() || route.lossy.is_none() {
            word.lossy = word.lossy.take().or(lossy.next());
        }
    }
}

/// Adds the losses of events, unless `lossy` of the event accepts them.
fn note_events(
    configuration: &Configuration,
    reports: &[EventReport],
    problems: &mut Vec<Problem>,
    notes: &mut Vec<Problem>,
) {
    for (place, event) in configuration.plan.events.all().iter().enumerate() {
        let own = reports.iter().filter(|report| report.event == place);
        let mut lossy = own.filter(|report| report.verdict == LossVerdict::Lossy);
        match (lossy.next(), &event.lossy) {
            (Some(report), None) => {
                let says = report.losses.first().map_or("", |loss| &loss.text);
                let from = report.from.as_str();
                let what = format!("events in the form `{from}` lose something: {says}");
                problems.push(unaccepted(configuration, &event.key, &what));
            }
            (None, Some(_)) => {
                let what = "the event loses nothing; remove the word";
                let key = format!("{}.lossy", event.key);
                notes.push(configuration.raw.places.problem(key, what));
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
    }
}

fn first(direction: &Direction) -> String {
    let first = direction.losses.first();
    first.map_or_else(String::new, |finding| finding.rule.describe(&finding.at))
}

fn unaccepted(configuration: &Configuration, key: &str, what: &str) -> Problem {
    let problem = configuration.raw.places.problem(key, what);
    problem.hint("change the patterns, or accept it with `lossy = \"why\"`")
}
