//! Clients and routes with their calls, and previews of flags, for the console.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::overview::add;
use super::route_patterns::patterns;
use super::state::Control;
use crate::config::problem::nearest;
use crate::server::admin::{
    CallerRow, ClientRow, ExampleReplyView, ExampleView, LatencyView, ListOrder, ListQuery, Page,
    PerformanceView, PreviewView, Refusal, RouteDetail, RoutePerformance, RouteRow, ServedByStage,
    ServedCalls,
};
use crate::telemetry::clock::Rfc3339;
use crate::telemetry::metrics::{CallTable, Performance, StageCalls};
use dualgauge_model::flag_preview::{FlagValues, PreviewInput, preview};
use dualgauge_model::lifecycle::{
    CallerReport, DEFAULT_IDLE, EraClientReport, ReportQuery, RouteReport, Usage, UsageTotals,
    report,
};
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::{Glob, OTHER};
use dualgauge_model::route::{Example, Route};
use dualgauge_model::time::Timestamp;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::side::Side;

/// The maximum number of callers, and of reasons for the verdict, in the detail of a route.
const MAX_CALLERS: usize = 100;

impl Control {
    /// Returns a page of clients, with those that match none as `other` if they have called.
    pub(super) fn clients(
        &self,
        query: &ListQuery,
        table: &CallTable,
        at: Timestamp,
    ) -> Page<ClientRow> {
        let (totals, served) = (self.totals(Usage::add_by_client), table.by_client());
        let total = |name: &str| totals.get(name).copied().unwrap_or_default();
        let clients = self.plan.rollout.clients.all().iter();
        let clients = clients.map(|client| {
            let source = client.matcher.source();
            (client.name.as_str(), Some(source))
        });
        let other = (total(OTHER).calls() > 0).then_some((OTHER, None));
        let found = clients
            .chain(other)
            .filter(|(name, _)| query.finds(&[name]));
        let mut found: Vec<_> = found
            .map(|(name, source)| (name, source, total(name)))
            .collect();
        if query.order == ListOrder::Calls {
            found.sort_by_key(|(_, _, totals)| std::cmp::Reverse(totals.calls()));
        }
        let page = query.cut(found);
        let mut eras = self.eras(at);
        let rows = page
            .items
            .into_iter()
            .map(|(name, source, totals)| ClientRow {
                name: name.to_owned(),
                source: source.map(|source| source.as_str()),
                proof: source.map(|source| source.proof().as_str()),
                calls: calls(&totals),
                last: totals.last.map(|last| last.to_string()),
                served: of(&served, name),
                eras: eras.remove(name).unwrap_or_default(),
            });
        Page {
            total: page.total,
            offset: page.offset,
            items: rows.collect(),
        }
    }

    /// Returns the eras of MCP clients, by client.
    fn eras(&self, at: Timestamp) -> BTreeMap<String, Vec<EraClientReport>> {
        let query = ReportQuery {
            route: Glob::new(""),
            idle: DEFAULT_IDLE,
            at,
        };
        let mut usage = Usage::default();
        for part in self.usages() {
            usage.eras_mut().merge(part.eras());
        }
        let eras = report(&self.plan, &usage, &query).eras;
        let mut by_client: BTreeMap<String, Vec<EraClientReport>> = BTreeMap::new();
        for client in eras.into_iter().flat_map(|eras| eras.clients) {
            let known = by_client.entry(client.client.clone()).or_default();
            known.push(client);
        }
        by_client
    }

    /// Returns a page of routes.
    pub(super) fn routes(&self, query: &ListQuery, table: &CallTable) -> Page<RouteRow> {
        let page = self.route_page(query);
        let served = table.by_route();
        let rows = page
            .items
            .into_iter()
            .map(|(index, route, totals)| RouteRow {
                name: route.name.clone(),
                rest: route.rest.clone(),
                rpc: route.rpc.clone(),
                effect: route.effect.as_str(),
                calls: calls(&totals),
                last: totals.last.map(|last| last.to_string()),
                served: of(&served, &route.name),
                deprecated: self.deprecated(index),
            });
        Page {
            total: page.total,
            offset: page.offset,
            items: rows.collect(),
        }
    }

    /// Returns a page of routes with their indices and their calls on all replicas.
    fn route_page(&self, query: &ListQuery) -> Page<(usize, &Route, UsageTotals)> {
        let totals = self.totals(Usage::add_by_route);
        let total = |name: &str| totals.get(name).copied().unwrap_or_default();
        let routes = self.plan.routes.routes().iter().enumerate();
        let found =
            routes.filter(|(_, route)| query.finds(&[&route.name, &route.rest, &route.rpc]));
        let mut found: Vec<_> = found
            .map(|(index, route)| (index, route, total(&route.name)))
            .collect();
        if query.order == ListOrder::Calls {
            found.sort_by_key(|(_, _, totals)| std::cmp::Reverse(totals.calls()));
        }
        query.cut(found)
    }

    /// Returns errors, latency and verdicts, in total and of a page of routes.
    pub(super) fn performance(&self, query: &ListQuery, table: &CallTable) -> PerformanceView {
        let page = self.route_page(query);
        let names = page.items.iter().map(|(_, route, _)| route.name.as_str());
        let found = table.performance_of(&names.clone().collect());
        let none = Performance::default();
        let rows = names.map(|name| RoutePerformance {
            route: name.to_owned(),
            performance: found.get(name).unwrap_or(&none).into(),
        });
        PerformanceView {
            replica: self.replica().to_owned(),
            since: Rfc3339(table.began()).to_string(),
            all: (&table.performance()).into(),
            routes: Page {
                total: page.total,
                offset: page.offset,
                items: rows.collect(),
            },
        }
    }

    fn deprecated(&self, index: usize) -> Option<String> {
        let deprecated = self.plan.lifecycle.routes.get(index)?.as_ref()?;
        Some(deprecated.side().as_str().to_owned())
    }

    /// Returns the plan in force, and the index of a route in it.
    pub(super) fn find_route(&self, name: &str) -> Result<(Arc<Plan>, usize), Refusal> {
        let routes = self.plan.routes.routes();
        let index = routes.iter().position(|route| route.name == name);
        let index = index.ok_or_else(|| Refusal::UnknownRoute {
            nearest: nearest(name, routes.iter().map(|route| route.name.as_str()))
                .map(str::to_owned),
        })?;
        Ok((self.plan(), index))
    }

    /// Returns one route in detail.
    pub(super) fn route(
        &self,
        name: &str,
        table: &CallTable,
        at: Timestamp,
    ) -> Result<RouteDetail, Refusal> {
        let (plan, index) = self.find_route(name)?;
        let route = plan.routes.route(index);
        let found = table.of_route(name);
        let query = ReportQuery {
            route: Glob::new(name),
            idle: DEFAULT_IDLE,
            at,
        };
        let mut usage = self.usage();
        usage.keep(&plan);
        let usage = report(&plan, &usage, &query).routes;
        let mut usage = usage.into_iter().find(|usage| usage.route == name);
        let callers = found.callers.iter();
        let callers = callers.map(|((client, side), calls)| CallerRow {
            client: client.to_string(),
            side: side.as_str(),
            served: (*calls).into(),
        });
        let mut callers = callers.collect();
        let more_callers = keep_busiest(usage.as_mut(), &mut callers);
        Ok(RouteDetail {
            name: route.name.clone(),
            rest: route.rest.clone(),
            rpc: route.rpc.clone(),
            effect: route.effect.as_str(),
            from: route.from.map(Side::as_str),
            lossy: route.lossy.clone(),
            about: about(route),
            patterns: patterns(&plan, route),
            examples: route.examples.iter().map(example).collect(),
            callers,
            more_callers,
            latency: LatencyView {
                old: found.old.into(),
                new: found.new.into(),
                candidates: found.candidates.into(),
            },
            usage,
        })
    }

    /// Returns the effect that new values of a flag would have.
    pub(super) fn preview(&self, name: &str, values: FlagValues) -> Result<PreviewView, Refusal> {
        let rollout = &self.plan.rollout;
        let index = rollout.flags.iter().position(|flag| flag.name == name);
        let usage = self.usage();
        let upstreams = self.plan.upstreams.all.iter();
        let upstreams: Vec<Side> = upstreams.map(|upstream| upstream.side).collect();
        let input = PreviewInput {
            rollout,
            routes: self.plan.routes.routes(),
            usage: &usage,
            upstreams: &upstreams,
        };
        let found = index.and_then(|index| preview(input, index, values));
        let found = found.ok_or_else(|| self.unknown(name))?;
        Ok(PreviewView {
            tag: self.flag_tag(name),
            effect: found.effect.as_str(),
            text: found.text,
            routes: found.routes,
            clients: found.clients,
            calls: found.calls[0],
            all_calls: found.calls[1],
            earlier: found.earlier,
            faults: found.faults.iter().map(ToString::to_string).collect(),
        })
    }
}

/// Keeps the busiest callers of a route and, of this process, first the calls of these. Returns the number of callers
/// that are left out.
fn keep_busiest(usage: Option<&mut RouteReport>, callers: &mut Vec<CallerRow>) -> usize {
    let (mut kept, mut more) = (BTreeSet::new(), 0);
    if let Some(usage) = usage {
        let calls = |caller: &CallerReport| {
            let counts = [&caller.old, &caller.new, &caller.refused];
            counts
                .iter()
                .fold(0, |sum, count| count.calls.saturating_add(sum))
        };
        usage.callers.sort_by_key(|caller| Reverse(calls(caller)));
        more = usage.callers.len().saturating_sub(MAX_CALLERS);
        usage.callers.truncate(MAX_CALLERS);
        let left_out = usage.reasons.len().saturating_sub(MAX_CALLERS);
        usage.reasons.truncate(MAX_CALLERS);
        if left_out > 0 {
            let text = format!("further reasons: {left_out}; `GET /api/v1/usage` lists all");
            usage.reasons.push(text);
        }
        let names = usage.callers.iter();
        kept = names
            .map(|caller| (caller.client.as_str(), caller.side.as_str()))
            .collect();
    }
    callers.sort_by_key(|caller| {
        let calls: u64 = caller.served.stages.values().sum();
        (
            !kept.contains(&(caller.client.as_str(), caller.side)),
            Reverse(calls),
        )
    });
    callers.truncate(MAX_CALLERS);
    more
}

fn calls(totals: &UsageTotals) -> ServedCalls {
    let mut calls = ServedCalls::default();
    add(&mut calls, totals);
    calls
}

fn of(served: &BTreeMap<Arc<str>, StageCalls>, name: &str) -> ServedByStage {
    served.get(name).copied().unwrap_or_default().into()
}

/// Returns the title, summary or description of a route.
fn about(route: &Route) -> Option<String> {
    let docs = &route.docs;
    let texts = [&docs.title, &docs.summary, &docs.description];
    texts.into_iter().find_map(Clone::clone)
}

fn example(example: &Example) -> ExampleView {
    let params = example.params.as_ref();
    let reply = example.reply.as_ref().map(|reply| {
        let body = reply.body.as_ref().map(text);
        let body = body.or_else(|| reply.text.clone()).unwrap_or_default();
        ExampleReplyView {
            rest: format!("{} {body}", reply.status).trim_end().to_owned(),
            rpc: match &reply.rpc {
                Ok(result) => format!("result {}", text(result)),
                Err(error) => format!("error {}", text(error)),
            },
        }
    });
    ExampleView {
        rest: example.call.clone(),
        body: example.body.as_ref().map(text),
        rpc: match params {
            Some(params) => format!("{} {}", example.method, text(params)),
            None => example.method.clone(),
        },
        reply,
    }
}

fn text(json: &Json) -> String {
    String::from_utf8_lossy(json.as_bytes()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dualgauge_model::lifecycle::{CountReport, DeletionVerdict, UsageEvidence};

    fn counted(client: String, calls: u64) -> CallerReport {
        CallerReport {
            client,
            side: "rest".to_owned(),
            old: CountReport { calls, last: None },
            new: CountReport::default(),
            refused: CountReport::default(),
            tool_errors: CountReport::default(),
        }
    }

    fn usage(callers: Vec<CallerReport>, reasons: usize) -> RouteReport {
        RouteReport {
            route: "r".to_owned(),
            rest: "GET /r".to_owned(),
            rpc: "r".to_owned(),
            deprecated: None,
            verdict: DeletionVerdict::NotDeprecated,
            reasons: (0..reasons).map(|number| number.to_string()).collect(),
            callers,
            evidence: UsageEvidence {
                watched_since: None,
                watched_seconds: 0,
                replicas: 1,
                gaps: Vec::new(),
                unrouted: None,
            },
        }
    }

    fn row(client: String, calls: u64) -> CallerRow {
        let mut served = ServedByStage::default();
        served.stages.insert("shadow", calls);
        CallerRow {
            client,
            side: "rest",
            served,
        }
    }

    #[test]
    fn a_route_lists_its_busiest_callers_and_counts_the_others() {
        let named = |number: u64| format!("client-{number:04}");
        let callers = (0..1000).map(|number| counted(named(number), number));
        let mut usage = usage(callers.collect(), 130);
        // The busiest on all replicas are others than those of this process.
        let mut rows = (0..1000)
            .map(|number| row(named(number), 1000 - number))
            .collect();
        assert_eq!(keep_busiest(Some(&mut usage), &mut rows), 900);
        let listed: Vec<&str> = usage
            .callers
            .iter()
            .map(|one| one.client.as_str())
            .collect();
        let wanted: Vec<String> = (900..1000).rev().map(named).collect();
        assert_eq!(listed, wanted);
        let rows: BTreeSet<String> = rows.into_iter().map(|row| row.client).collect();
        assert_eq!(rows, wanted.into_iter().collect());
        assert_eq!(usage.reasons.len(), 101);
        assert!(
            usage.reasons[100].starts_with("further reasons: 30;"),
            "{:?}",
            usage.reasons[100]
        );
    }

    #[test]
    fn a_route_without_usage_lists_the_busiest_callers_of_this_process() {
        let mut rows = (0..150)
            .map(|number| row(number.to_string(), number))
            .collect();
        assert_eq!(keep_busiest(None, &mut rows), 0);
        assert_eq!((rows.len(), rows[0].client.as_str()), (100, "149"));
    }
}
