//! The locations of holes and objects in a whole call or reply, with their names for people. Used by `check`.

use crate::form::BodyFormat;
use crate::outcome::{BodyPattern, NumberPattern, OutcomeRow, RpcReplyPattern};
use crate::route::Route;
use dualgauge_patterns::pattern::{EitherPattern, ObjectPattern, Pattern, Slot, TextPatterns};
use dualgauge_patterns::side::Side;

/// A hole at a location.
#[derive(Debug, Clone)]
pub(super) struct LocatedHole<'p> {
    pub(super) slot: &'p Slot,
    /// The name of the location: `query limit`, `params/arguments/id`.
    pub(super) at: String,
    pub(super) kind: LocationKind,
}

/// The kind of a hole's location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LocationKind {
    /// A JSON value inside another one.
    Json,
    /// The whole of a body, a result, a message or `data`.
    Whole,
    /// The unnamed members or elements.
    Rest,
    /// All query names, or headers with a prefix, that the route does not name.
    Captured,
    /// A text outside of JSON, or part of one; a field of a form.
    Words,
    /// Part of a text in JSON.
    Text,
    /// A path.
    Path,
    /// A status or a code.
    Number,
}

/// All locations of one side.
#[derive(Debug, Default)]
pub(super) struct Locations<'p> {
    pub(super) holes: Vec<LocatedHole<'p>>,
    pub(super) objects: Vec<(&'p ObjectPattern, String)>,
    pub(super) forms: Vec<(&'p EitherPattern, String)>,
}

impl<'p> Locations<'p> {
    /// Returns the locations of a call.
    pub(super) fn for_call(route: &'p Route, side: Side) -> Locations<'p> {
        let mut locations = Locations::default();
        match side {
            Side::Rest => {
                let call = &route.rest_call;
                for placed in &call.path.holes {
                    let at = format!("path {}", placed.slot.name);
                    locations.add(&placed.slot, at, LocationKind::Path);
                }
                for item in &call.query {
                    locations.words(&item.words, &format!("query {}", item.key));
                }
                if let Some(slot) = &call.other_query {
                    locations.add(slot, "query ...".to_owned(), LocationKind::Captured);
                }
                for item in &call.headers {
                    locations.words(&item.words, &format!("header {}", item.name));
                }
                for prefix in &call.header_prefixes {
                    let at = format!("header {}...", prefix.prefix);
                    locations.add(&prefix.slot, at, LocationKind::Captured);
                }
                if let Some(body) = &call.body {
                    locations.body(body, call.format);
                }
            }
            Side::Rpc => {
                locations.words(&route.rpc_call.method, "method");
                for item in &route.rpc_call.headers {
                    locations.words(&item.words, &format!("header {}", item.name));
                }
                locations.pattern(&route.rpc_call.params, "params", LocationKind::Whole);
            }
        }
        locations
    }

    /// Returns the locations of a reply.
    pub(super) fn for_reply(row: &'p OutcomeRow, side: Side) -> Locations<'p> {
        let mut locations = Locations::default();
        match side {
            Side::Rest => {
                locations.number(&row.rest.status, "status");
                for item in &row.rest.headers {
                    locations.words(&item.words, &format!("header {}", item.name));
                }
                match &row.rest.body {
                    BodyPattern::Nothing | BodyPattern::Anything => {}
                    BodyPattern::Json(pattern) => {
                        locations.pattern(pattern, "body", LocationKind::Whole)
                    }
                    BodyPattern::Text(words) => locations.words(words, "text"),
                }
            }
            Side::Rpc => match &row.rpc {
                RpcReplyPattern::Result(pattern) => {
                    locations.pattern(pattern, "result", LocationKind::Whole);
                }
                RpcReplyPattern::Error {
                    code,
                    message,
                    data,
                } => {
                    locations.number(code, "code");
                    for (pattern, at) in [(message, "message"), (data, "data")] {
                        if let Some(pattern) = pattern {
                            locations.pattern(pattern, at, LocationKind::Whole);
                        }
                    }
                }
            },
        }
        locations
    }

    fn add(&mut self, slot: &'p Slot, at: String, kind: LocationKind) {
        self.holes.push(LocatedHole { slot, at, kind });
    }

    fn number(&mut self, number: &'p NumberPattern, at: &str) {
        if let NumberPattern::Hole(slot) = number {
            self.add(slot, at.to_owned(), LocationKind::Number);
        }
    }

    fn words(&mut self, words: &'p TextPatterns, at: &str) {
        for slot in words.slots() {
            self.add(slot, at.to_owned(), LocationKind::Words);
        }
    }

    /// Adds the locations of a body. A field of a form is a text, as in a query.
    fn body(&mut self, body: &'p Pattern, format: BodyFormat) {
        let Pattern::Object(object) = body else {
            return self.pattern(body, "body", LocationKind::Whole);
        };
        if !format.is_form() {
            return self.pattern(body, "body", LocationKind::Whole);
        }
        self.objects.push((object, "body".to_owned()));
        for (name, member) in &object.members {
            self.pattern(member, &format!("body/{name}"), LocationKind::Words);
        }
        if let Some(rest) = &object.rest {
            self.add(rest, "body/...".to_owned(), LocationKind::Rest);
        }
    }

    fn pattern(&mut self, pattern: &'p Pattern, at: &str, kind: LocationKind) {
        match pattern {
            Pattern::Literal(_) => {}
            Pattern::Hole(slot) => self.add(slot, at.to_owned(), kind),
            Pattern::Text(text) => {
                for slot in text.slots() {
                    self.add(slot, at.to_owned(), LocationKind::Text);
                }
            }
            Pattern::Object(object) => {
                self.objects.push((object, at.to_owned()));
                for (name, member) in &object.members {
                    self.pattern(member, &format!("{at}/{name}"), LocationKind::Json);
                }
                if let Some(rest) = &object.rest {
                    self.add(rest, format!("{at}/..."), LocationKind::Rest);
                }
            }
            Pattern::List(list) => {
                for (index, item) in list.items.iter().enumerate() {
                    self.pattern(item, &format!("{at}/{index}"), LocationKind::Json);
                }
                if let Some(rest) = &list.rest {
                    self.add(rest, format!("{at}/..."), LocationKind::Rest);
                }
            }
            Pattern::Each(each) => self.pattern(&each.item, &format!("{at}/*"), LocationKind::Json),
            Pattern::Either(either) => {
                if either.choice.is_none() {
                    self.forms.push((either, at.to_owned()));
                }
                for (index, alternative) in either.alternatives.iter().enumerate() {
                    // The first form is named like a pattern without forms.
                    let at = match (index, &either.choice) {
                        (0, None) => at.to_owned(),
                        (_, _) => format!("{at}[{}]", index + 1),
                    };
                    self.pattern(alternative, &at, kind);
                }
            }
        }
    }
}
