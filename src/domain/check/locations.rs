//! The locations of holes and objects in a whole call or reply, with their names for people.

use crate::domain::outcome::{BodyPattern, NumberPattern, OutcomeRow, RpcReplyPattern};
use crate::domain::pattern::{ObjectPattern, Pattern, Slot, TextPatterns};
use crate::domain::route::Route;
use crate::domain::side::Side;

/// A hole at a location.
#[derive(Debug, Clone)]
pub(super) struct LocatedHole<'p> {
    pub(super) slot: &'p Slot,
    /// The name of the location: `query limit`, `params/arguments/id`.
    pub(super) at: String,
    pub(super) stand: LocationKind,
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
    /// A text outside of JSON, or part of one.
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
    pub(super) held: Vec<LocatedHole<'p>>,
    pub(super) objects: Vec<(&'p ObjectPattern, String)>,
}

impl<'p> Locations<'p> {
    /// Returns the locations of a call.
    pub(super) fn of_call(route: &'p Route, side: Side) -> Locations<'p> {
        let mut places = Locations::default();
        match side {
            Side::Rest => {
                let call = &route.rest_call;
                for placed in &call.path.holes {
                    let at = format!("path {}", placed.slot.name);
                    places.hold(&placed.slot, at, LocationKind::Path);
                }
                for item in &call.query {
                    places.words(&item.words, &format!("query {}", item.key));
                }
                for item in &call.headers {
                    places.words(&item.words, &format!("header {}", item.name));
                }
                if let Some(body) = &call.body {
                    places.pattern(body, "body", LocationKind::Whole);
                }
            }
            Side::Rpc => {
                places.words(&route.rpc_call.method, "method");
                places.pattern(&route.rpc_call.params, "params", LocationKind::Whole);
            }
        }
        places
    }

    /// Returns the locations of a reply.
    pub(super) fn of_reply(row: &'p OutcomeRow, side: Side) -> Locations<'p> {
        let mut places = Locations::default();
        match side {
            Side::Rest => {
                places.number(&row.rest.status, "status");
                for item in &row.rest.headers {
                    places.words(&item.words, &format!("header {}", item.name));
                }
                match &row.rest.body {
                    BodyPattern::Nothing | BodyPattern::Anything => {}
                    BodyPattern::Json(pattern) => {
                        places.pattern(pattern, "body", LocationKind::Whole)
                    }
                    BodyPattern::Text(words) => places.words(words, "text"),
                }
            }
            Side::Rpc => match &row.rpc {
                RpcReplyPattern::Result(pattern) => {
                    places.pattern(pattern, "result", LocationKind::Whole);
                }
                RpcReplyPattern::Error {
                    code,
                    message,
                    data,
                } => {
                    places.number(code, "code");
                    for (pattern, at) in [(message, "message"), (data, "data")] {
                        if let Some(pattern) = pattern {
                            places.pattern(pattern, at, LocationKind::Whole);
                        }
                    }
                }
            },
        }
        places
    }

    fn hold(&mut self, slot: &'p Slot, at: String, stand: LocationKind) {
        self.held.push(LocatedHole { slot, at, stand });
    }

    fn number(&mut self, number: &'p NumberPattern, at: &str) {
        if let NumberPattern::Hole(slot) = number {
            self.hold(slot, at.to_owned(), LocationKind::Number);
        }
    }

    fn words(&mut self, words: &'p TextPatterns, at: &str) {
        for slot in words.slots() {
            self.hold(slot, at.to_owned(), LocationKind::Words);
        }
    }

    fn pattern(&mut self, pattern: &'p Pattern, at: &str, stand: LocationKind) {
        match pattern {
            Pattern::Literal(_) => {}
            Pattern::Hole(slot) => self.hold(slot, at.to_owned(), stand),
            Pattern::Text(text) => {
                for slot in text.slots() {
                    self.hold(slot, at.to_owned(), LocationKind::Text);
                }
            }
            Pattern::Object(object) => {
                self.objects.push((object, at.to_owned()));
                for (name, member) in &object.members {
                    self.pattern(member, &format!("{at}/{name}"), LocationKind::Json);
                }
                if let Some(rest) = &object.rest {
                    self.hold(rest, format!("{at}/..."), LocationKind::Rest);
                }
            }
            Pattern::List(list) => {
                for (index, item) in list.items.iter().enumerate() {
                    self.pattern(item, &format!("{at}/{index}"), LocationKind::Json);
                }
                if let Some(rest) = &list.rest {
                    self.hold(rest, format!("{at}/..."), LocationKind::Rest);
                }
            }
            Pattern::Each(each) => self.pattern(&each.item, &format!("{at}/*"), LocationKind::Json),
        }
    }
}
