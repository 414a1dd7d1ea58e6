//! Routes whose calls another route may take: routes of one side that differ only by the value of a hole.
//!
//! The cost is bounded: calls are generated at most once for each route, and only routes that no literal of path or params
//! distinguishes are compared. A check of one route generates the calls of its rivals only.
//!
//! Used by `check::verify`.

use std::cell::OnceCell;
use std::collections::HashMap;

use http::Method;

use super::message::Message;
use super::overlap;
use super::subject::CheckSubject;
use crate::route::{Route, RouteTable, SegmentPattern, Template};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::{Pattern, TextPatterns};
use dualgauge_patterns::side::Side;

/// The most neighbours of one route that are examined.
const MAX_RIVALS: usize = 64;

/// A plain call of each route, on both sides.
pub(super) struct RivalCalls {
    rest: HashMap<Method, Vec<usize>>,
    rpc: HashMap<String, Vec<usize>>,
    /// Generated when they are first needed.
    calls: [Vec<OnceCell<Option<Message>>>; 2],
    /// The literals that params must have, by location.
    param_literals: Vec<HashMap<String, Json>>,
}

impl RivalCalls {
    pub(super) fn new(table: &RouteTable) -> RivalCalls {
        let mut rest: HashMap<_, Vec<usize>> = HashMap::new();
        let mut rpc: HashMap<_, Vec<usize>> = HashMap::new();
        let mut param_literals = Vec::new();
        for (index, route) in table.routes().iter().enumerate() {
            rest.entry(route.method.clone()).or_default().push(index);
            if let TextPatterns::Literal(method) = &route.rpc_call.method {
                rpc.entry(method.clone()).or_default().push(index);
            }
            let mut texts = HashMap::new();
            literals(&route.rpc_call.params, "", &mut texts);
            param_literals.push(texts);
        }
        let calls = Side::ALL.map(|_| vec![OnceCell::new(); table.routes().len()]);
        RivalCalls {
            rest,
            rpc,
            calls,
            param_literals,
        }
    }

    /// Returns a plain call of a route, on one side.
    pub(super) fn call(&self, table: &RouteTable, route: usize, side: Side) -> Option<&Message> {
        let call = self.calls[usize::from(side == Side::Rpc)].get(route)?;
        let generate = || {
            let enters = table.route(route).enters_from(side);
            let subject = enters.then(|| CheckSubject::calls(table, route, side));
            subject.and_then(|subject| subject.message(None, &[]))
        };
        call.get_or_init(generate).as_ref()
    }

    /// Returns plain calls of other routes, on one side, that this route may write.
    pub(super) fn for_route(&self, table: &RouteTable, index: usize, side: Side) -> Vec<Message> {
        let route = table.route(index);
        let others: Vec<usize> = match side {
            Side::Rest => self.rest.get(&route.method).cloned().unwrap_or_default(),
            Side::Rpc => match &route.rpc_call.method {
                TextPatterns::Literal(method) => self.rpc.get(method).cloned().unwrap_or_default(),
                TextPatterns::Hole(_) | TextPatterns::Mixed(_) => {
                    let mut all: Vec<usize> = self.rpc.values().flatten().copied().collect();
                    all.sort_unstable();
                    all
                }
            },
        };
        let is_distinct = |other: &usize| match side {
            Side::Rest => paths_differ(route, table.route(*other)),
            Side::Rpc => self.param_literals[index].iter().any(|(at, text)| {
                let counterpart = self.param_literals[*other].get(at);
                counterpart.is_some_and(|counterpart| !counterpart.same(text))
            }),
        };
        let rivals = others
            .into_iter()
            .filter(|other| *other != index && !is_distinct(other))
            .filter(|other| table.route(*other).is_frame() == route.is_frame());
        let both = rivals.take(MAX_RIVALS).flat_map(|other| {
            let call = self.call(table, other, side).cloned();
            let common = call.as_ref().and_then(|call| {
                let Message::RpcCall {
                    method, headers, ..
                } = call
                else {
                    return None;
                };
                Some(Message::RpcCall {
                    method: method.clone(),
                    params: Some(overlap::params(route, table.route(other))?),
                    headers: headers.clone(),
                })
            });
            call.into_iter().chain(common)
        });
        both.collect()
    }
}

fn paths_differ(one: &Route, other: &Route) -> bool {
    let (one, other) = (&one.rest_call.path, &other.rest_call.path);
    let differ = |(one, other): (&SegmentPattern, &SegmentPattern)| !one.meets(other);
    let is_open = |path: &Template| path.segments.last() == Some(&SegmentPattern::Rest);
    let lengths = one.segments.len() != other.segments.len() && !is_open(one) && !is_open(other);
    lengths || one.verb != other.verb || one.segments.iter().zip(&other.segments).any(differ)
}

fn literals(pattern: &Pattern, at: &str, found: &mut HashMap<String, Json>) {
    match pattern {
        Pattern::Literal(json) => {
            found.insert(at.to_owned(), json.clone());
        }
        Pattern::Object(object) => {
            for (name, member) in &object.members {
                literals(member, &format!("{at}/{name}"), found);
            }
        }
        Pattern::Hole(_)
        | Pattern::Text(_)
        | Pattern::List(_)
        | Pattern::Each(_)
        | Pattern::Either(_) => {}
    }
}
