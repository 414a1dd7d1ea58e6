//! The unit of the proof: the calls, or the replies of one row, that come from one side.
//!
//! A subject generates messages of its side, and sends them there and back through the code that serves calls. It draws
//! no conclusions.
//!
//! Used by `check`.

use http::HeaderMap;

use super::locations::Locations;
use super::message::{Message, header_map};
use super::mutation::Mutation;
use super::samples::{Samples, samples, spanned};
use crate::jsonrpc::ResponseReply;
use crate::outcome::{BodyPattern, OutcomeRow, ReplyLimits, RpcReplyPattern};
use crate::route::{
    HeaderItem, QueryItem, Route, RouteTable, is_file_content, write_headers, write_url,
};
use crate::translate::{TranslateContext, write_body};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::{
    Bindings, BoundValue, HoleFacts, MatchError, Pattern, PatternReader, PatternWriter,
    TextPatterns, UnknownMembers, ValuePresence, WriteScope,
};
use dualgauge_patterns::rope::{Rope, RopeWriter};
use dualgauge_patterns::side::Side;

/// The context of the proof: the default nesting limit and a fixed time.
pub(super) const TERMS: TranslateContext = TranslateContext {
    depth: 128,
    now: noon,
};

pub(super) const LIMITS: ReplyLimits = ReplyLimits {
    depth: 128,
    error_text: usize::MAX,
};

fn noon() -> String {
    "2026-01-01T12:00:00Z".to_owned()
}

/// The most generated messages of one subject.
const MAX_MESSAGES: usize = 160;

/// The calls, or the replies of one row, that come from one side.
#[derive(Debug)]
pub(super) struct CheckSubject<'t> {
    pub(super) table: &'t RouteTable,
    /// The index of the route in the table.
    pub(super) index: usize,
    pub(super) route: &'t Route,
    /// The index of the row in the outcomes; `None` for calls.
    pub(super) row: Option<usize>,
    pub(super) from: Side,
    /// The locations of the side that sends the messages, and of the other one.
    pub(super) here: Locations<'t>,
    pub(super) there: Locations<'t>,
    pub(super) samples: Vec<Samples>,
    /// The holes of the call that a reply answers.
    pub(super) call: Bindings,
    /// The route without its outcomes, which is cheap to clone.
    bare: Route,
    round: usize,
}

/// Values of holes that replace the plain ones; `None` stands for an absent value.
pub(super) type Chosen<'c> = &'c [(usize, Option<Json>)];

impl<'t> CheckSubject<'t> {
    /// Creates the subject for the calls of a route from one side.
    pub(super) fn calls(table: &'t RouteTable, index: usize, from: Side) -> CheckSubject<'t> {
        let route = table.route(index);
        let here = Locations::for_call(route, from);
        let there = Locations::for_call(route, from.other());
        let mut samples = samples(&route.facts, [&here, &there]);
        for (hole, samples) in samples.iter_mut().enumerate() {
            if let Some(path) = spanned(route, hole) {
                samples.plain = vec![path];
            }
            if is_file_content(&route.rest_call, hole) {
                samples.plain = vec![Json::literal("\"aGk=\"")];
            }
        }
        let bare = Route {
            outcomes: Default::default(),
            examples: Vec::new(),
            ..route.clone()
        };
        let mut subject = CheckSubject {
            table,
            index,
            route,
            row: None,
            from,
            here,
            there,
            samples,
            call: Bindings::default(),
            bare,
            round: 0,
        };
        subject.choose_plain_values();
        subject
    }

    /// Creates the subject for the replies of a row from one side's servers, to a call that `calls` generates.
    pub(super) fn replies(calls: &CheckSubject<'t>, row: usize, from: Side) -> CheckSubject<'t> {
        let route = calls.route;
        let pair = &route.outcomes.rows()[row];
        let here = Locations::for_reply(pair, from);
        let there = Locations::for_reply(pair, from.other());
        let mut subject = CheckSubject {
            row: Some(row),
            from,
            samples: samples(&pair.facts, [&here, &there]),
            here,
            there,
            call: calls.bindings(&[], 1),
            bare: calls.bare.clone(),
            table: calls.table,
            index: calls.index,
            route,
            round: 0,
        };
        subject.choose_plain_values();
        subject
    }

    /// Selects plain values that pass; keeps those of the first round if none do.
    fn choose_plain_values(&mut self) {
        let passes = |subject: &CheckSubject<'_>| {
            let message = subject.message(None, &[]);
            let trip = message.as_ref().and_then(|sent| subject.round_trip(sent));
            trip.is_some_and(|trip| trip.back.is_ok())
        };
        for round in 0..3 {
            self.round = round;
            if passes(self) {
                return;
            }
        }
        self.round = 0;
    }

    pub(super) fn pair(&self) -> Option<&'t OutcomeRow> {
        self.row.map(|row| &self.route.outcomes.rows()[row])
    }

    pub(super) fn facts(&self) -> &'t HoleFacts {
        self.pair().map_or(&self.route.facts, |row| &row.facts)
    }

    /// Returns the plain value of a hole.
    pub(super) fn plain(&self, hole: usize) -> Option<Json> {
        Some(self.samples.get(hole)?.plain(self.round))
    }

    /// Returns the plain values, apart from the chosen ones. Holes of lists have `elements` elements, the first one as
    /// chosen.
    fn bindings(&self, chosen: Chosen<'_>, elements: usize) -> Bindings {
        let facts = self.facts();
        let mut chosen = chosen.to_vec();
        for hole in 0..chosen.len() {
            // A value inside of an alternative is seen only if that one is chosen.
            for (choice, number) in facts.choices(chosen[hole].0) {
                if chosen.iter().all(|(known, _)| *known != choice) {
                    chosen.push((choice, Some(number)));
                }
            }
        }
        let mut bindings = Bindings::new(facts.holes.len());
        for (hole, fact) in facts.holes.iter().enumerate() {
            let plain = self.plain(hole);
            let own = chosen.iter().find(|(of, _)| *of == hole);
            let value = own.map_or_else(|| plain.clone(), |(_, value)| value.clone());
            let bound = |value: Option<Json>| value.map_or(BoundValue::Absent, BoundValue::Value);
            let (mut bound, mut others) = (bound(value), bound(plain));
            for _ in 0..fact.depth {
                let mut list = vec![others.clone(); elements];
                if let Some(first) = list.first_mut() {
                    *first = bound;
                }
                bound = BoundValue::Each(list);
                others = BoundValue::Each(vec![others; elements]);
            }
            bindings.set(hole, bound);
        }
        bindings
    }

    /// Writes a message with one place changed. Returns `None` if these values cannot be written.
    pub(super) fn message(
        &self,
        mutation: Option<&Mutation<'_>>,
        chosen: Chosen<'_>,
    ) -> Option<Message> {
        self.sized(mutation, chosen, 1)
    }

    /// Does the same with `elements` elements in lists.
    pub(super) fn sized(
        &self,
        mutation: Option<&Mutation<'_>>,
        chosen: Chosen<'_>,
        elements: usize,
    ) -> Option<Message> {
        let bindings = self.bindings(chosen, elements);
        let written = match self.pair() {
            None => self.call(mutation, &bindings),
            Some(row) => self.reply(row, mutation, bindings),
        };
        written.ok()
    }

    /// Generates messages: each hole with each of its values, the others plain; lists with no, one and two elements.
    pub(super) fn generated(&self) -> Vec<Message> {
        let mut messages = Vec::new();
        for elements in [1, 0, 2] {
            messages.extend(self.sized(None, &[], elements));
        }
        let mut all_absent = Vec::new();
        for (hole, samples) in self.samples.iter().enumerate() {
            for value in samples.all() {
                if messages.len() >= MAX_MESSAGES {
                    break;
                }
                if value.is_none() {
                    all_absent.push((hole, None));
                }
                messages.extend(self.sized(None, &[(hole, value)], 2));
            }
        }
        messages.extend(self.message(None, &all_absent));
        messages
    }

    fn call(
        &self,
        mutation: Option<&Mutation<'_>>,
        bindings: &Bindings,
    ) -> Result<Message, MatchError> {
        let writing = PatternWriter::new(WriteScope {
            bindings,
            call: None,
            now: TERMS.now,
        });
        match self.from {
            Side::Rest => {
                let route = self.mutated_route(mutation);
                let call = route
                    .as_ref()
                    .map_or(&self.route.rest_call, |route| &route.rest_call);
                let target = write_url(route.as_ref().unwrap_or(self.route), &writing)?;
                let headers = call.write_headers(&writing)?;
                let body = write_body(call, &writing, 64)?;
                Ok(Message::RestCall {
                    method: self.route.method.clone(),
                    target,
                    headers: header_map(headers),
                    body: body.map(json),
                })
            }
            Side::Rpc => {
                let call = &self.route.rpc_call;
                let method = words(mutation, &call.method);
                let method = method.write(&writing)?.last();
                let params = pattern(mutation, &call.params);
                let mut out = RopeWriter::with_capacity(64);
                let written = params.write(&writing, &mut out)?;
                let items = mutation.map_or_else(
                    || call.headers.clone(),
                    |mutation| headers(mutation, &call.headers),
                );
                Ok(Message::RpcCall {
                    headers: header_map(write_headers(&items, &writing)?),
                    method: method.unwrap_or_default().into_owned(),
                    params: (written == ValuePresence::Present).then(|| json(out.finish())),
                })
            }
        }
    }

    fn mutated_route(&self, mutation: Option<&Mutation<'_>>) -> Option<Route> {
        let mutation = mutation?;
        let own = &self.route.rest_call;
        let mut route = self.bare.clone();
        let query = own.query.iter().map(|item| QueryItem {
            key: item.key.clone(),
            words: mutation.words(&item.words),
        });
        route.rest_call.query = query.collect();
        route.rest_call.headers = headers(mutation, &own.headers);
        route.rest_call.body = own.body.as_ref().map(|body| mutation.pattern(body));
        Some(route)
    }

    fn reply(
        &self,
        row: &OutcomeRow,
        mutation: Option<&Mutation<'_>>,
        bindings: Bindings,
    ) -> Result<Message, MatchError> {
        let mut reading = PatternReader::new(0, UnknownMembers::Open, TERMS.depth);
        reading.bindings = bindings;
        let mut row = row.clone();
        if let (Some(mutation), Some(own)) = (mutation, self.pair()) {
            mutate_row(&mut row, own, mutation);
        }
        Ok(match self.from {
            Side::Rest => {
                Message::from_rest_answer(row.write_rest(&reading, &self.call, TERMS)?.answer)
            }
            Side::Rpc => {
                Message::from_rpc_answer(row.write_rpc(&reading, &self.call, TERMS)?.answer)
            }
        })
    }
}

pub(super) fn json(pieces: Rope) -> Json {
    Json::written(pieces.into_bytes().to_vec())
}

fn words(mutation: Option<&Mutation<'_>>, words: &TextPatterns) -> TextPatterns {
    mutation.map_or_else(|| words.clone(), |mutation| mutation.words(words))
}

fn pattern(mutation: Option<&Mutation<'_>>, pattern: &Pattern) -> Pattern {
    mutation.map_or_else(|| pattern.clone(), |mutation| mutation.pattern(pattern))
}

fn headers(mutation: &Mutation<'_>, items: &[HeaderItem]) -> Vec<HeaderItem> {
    let items = items.iter().map(|item| HeaderItem {
        name: item.name.clone(),
        words: mutation.words(&item.words),
    });
    items.collect()
}

fn mutate_row(row: &mut OutcomeRow, own: &OutcomeRow, mutation: &Mutation<'_>) {
    row.rest.headers = headers(mutation, &own.rest.headers);
    match &own.rest.body {
        BodyPattern::Nothing | BodyPattern::Anything => {}
        BodyPattern::Json(body) => row.rest.body = BodyPattern::Json(mutation.pattern(body)),
        BodyPattern::Text(text) => row.rest.body = BodyPattern::Text(mutation.words(text)),
    }
    match (&own.rpc, &mut row.rpc) {
        (RpcReplyPattern::Result(own), RpcReplyPattern::Result(result)) => {
            *result = mutation.pattern(own);
        }
        (
            RpcReplyPattern::Error {
                message: own_message,
                data: own_data,
                ..
            },
            RpcReplyPattern::Error { message, data, .. },
        ) => {
            *message = own_message.as_ref().map(|own| mutation.pattern(own));
            *data = own_data.as_ref().map(|own| mutation.pattern(own));
        }
        (RpcReplyPattern::Result(_) | RpcReplyPattern::Error { .. }, _) => {}
    }
}

/// Returns the headers of a message, for a change.
pub(super) fn headers_of(message: &mut Message) -> Option<&mut HeaderMap> {
    match message {
        Message::RestCall { headers, .. } | Message::RpcCall { headers, .. } => Some(headers),
        Message::RestReply(reply) => Some(&mut reply.headers),
        Message::RpcReply(ResponseReply::Result(_) | ResponseReply::Error(_)) => None,
    }
}
