//! Correlation of frames with calls: which call a frame answers, and with which content.
//!
//! A frame protocol does not mark which frames are replies. A frame is the reply to a call if a row reads it and every
//! hole that it shares with the call has the same value in both: holes that the row borrows by `{>x}`, and holes with
//! the name of one of the call's.
//!
//! Used by `frame`.

use http::HeaderMap;

use super::response::{RestReply, RpcAnswer, TranslatedReply};
use super::row::{BodyPattern, OutcomeRow, ReplyContent, ReplyReader};
use super::table::Outcomes;
use crate::translate::TranslateContext;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::{
    Bindings, BoundValue, HoleSource, Pattern, PatternReader, Role, Slot,
};
use dualgauge_patterns::side::Side;

/// The certainty with which a frame identifies its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Correlation {
    /// The frame contains the id of the call, so it is for its caller only.
    ToCaller,
    /// The frame may concern other clients as well.
    ToAll,
}

impl Outcomes {
    /// Returns the reply of a frame to a call; `None` if it is not a reply to it. `id` is the hole with the call's id.
    #[must_use]
    pub fn correlate(
        &self,
        frame: &Json,
        call: &Bindings,
        id: Option<usize>,
        context: TranslateContext,
    ) -> Option<(TranslatedReply<RpcAnswer>, Correlation)> {
        let order = self.order(Side::Rest).iter();
        order.copied().find_map(|index| {
            let row = &self.rows()[index];
            let (pattern, reading) = row.read_frame(frame, context.depth)?;
            let agrees = row.shares_holes(&reading, call) && echoes(pattern, Some(frame), call);
            let written = row.write_rpc(&reading, call, context).ok();
            let written = written.filter(|_| agrees)?;
            let has_id = id.is_some_and(|id| borrowed_value(pattern, Some(frame), id).is_some());
            Some((
                self.answered_rpc(written, index),
                if has_id {
                    Correlation::ToCaller
                } else {
                    Correlation::ToAll
                },
            ))
        })
    }

    /// Returns the reply of silence to a call; `None` if no row has one.
    #[must_use]
    pub fn correlate_silence(
        &self,
        call: &Bindings,
        context: TranslateContext,
    ) -> Option<TranslatedReply<RpcAnswer>> {
        let order = self.order(Side::Rest).iter();
        order.copied().find_map(|index| {
            let row = &self.rows()[index];
            let silent = matches!(row.rest.body, BodyPattern::Nothing);
            let reading =
                silent.then(|| PatternReader::new(row.facts.holes.len(), OPEN, context.depth))?;
            let written = row.write_rpc(&reading, call, context).ok()?;
            Some(self.answered_rpc(written, index))
        })
    }

    /// Returns the values at the places where replies of this route have the id; the frame need not be a reply.
    pub fn ids_in_frame(&self, frame: &Json, id: usize) -> impl Iterator<Item = Json> {
        self.rows().iter().filter_map(move |row| {
            let BodyPattern::Json(pattern) = &row.rest.body else {
                return None;
            };
            borrowed_value(pattern, Some(frame), id)
        })
    }

    /// Returns the id in a frame, if the frame is the reply to some call of this route.
    #[must_use]
    pub fn reply_id(&self, frame: &Json, id: usize, depth: u16) -> Option<Json> {
        self.rows().iter().find_map(|row| {
            let (pattern, _) = row.read_frame(frame, depth)?;
            borrowed_value(pattern, Some(frame), id)
        })
    }
}

const OPEN: dualgauge_patterns::pattern::UnknownMembers =
    dualgauge_patterns::pattern::UnknownMembers::Open;

impl OutcomeRow {
    /// Reads a frame; returns `None` if the row does not match it.
    fn read_frame(&self, frame: &Json, depth: u16) -> Option<(&Pattern, PatternReader)> {
        let BodyPattern::Json(pattern) = &self.rest.body else {
            return None;
        };
        let reply = RestReply {
            status: 200,
            headers: HeaderMap::new(),
            ..RestReply::default()
        };
        let seen = ReplyReader {
            reply: &reply,
            content: ReplyContent::Json(frame.clone()),
        };
        Some((pattern, self.read_rest(&seen, depth).ok()?))
    }

    /// Returns true when the values that a response repeats from its call are those of the call.
    pub(super) fn repeats_call(&self, seen: &ReplyReader<'_>, call: &Bindings) -> bool {
        match (&self.rest.body, &seen.content) {
            (BodyPattern::Json(pattern), ReplyContent::Json(json)) => {
                echoes(pattern, Some(json), call)
            }
            (
                BodyPattern::Json(_)
                | BodyPattern::Nothing
                | BodyPattern::Anything
                | BodyPattern::Text(_),
                _,
            ) => true,
        }
    }

    /// Returns whether holes with the names of the call's holes have their values.
    fn shares_holes(&self, reading: &PatternReader, call: &Bindings) -> bool {
        let mut holes = self.facts.holes.iter().enumerate();
        holes.all(|(hole, fact)| {
            let twin = self.facts.of_call(&fact.name);
            twin.is_none_or(|twin| agree(reading.bindings.get(hole), call.get(twin)))
        })
    }
}

fn agree(one: &BoundValue, other: &BoundValue) -> bool {
    let nothing = |bound: &BoundValue| matches!(bound, BoundValue::Unbound | BoundValue::Absent);
    one.same(other) || (nothing(one) && nothing(other))
}

/// Returns the hole of the call that a slot borrows.
fn borrowed(slot: &Slot) -> Option<usize> {
    match slot.role {
        Role::WriteOnly(HoleSource::Call(hole)) => Some(hole),
        Role::WriteOnly(HoleSource::Hole(_) | HoleSource::Now)
        | Role::Shared(_)
        | Role::ReadOnly(_)
        | Role::Equal(_)
        | Role::Ignored(_) => None,
    }
}

/// Returns whether a value has the call's values wherever the pattern borrows them.
fn echoes(pattern: &Pattern, value: Option<&Json>, call: &Bindings) -> bool {
    match pattern {
        Pattern::Hole(slot) => borrowed(slot).is_none_or(|hole| {
            let bound = value.map_or(BoundValue::Absent, |value| BoundValue::Value(value.clone()));
            agree(&bound, call.get(hole))
        }),
        Pattern::Object(object) => object.members.iter().all(|(name, member)| {
            let value = value.and_then(|value| value.member(name));
            echoes(member, value.as_ref(), call)
        }),
        Pattern::Literal(_)
        | Pattern::Text(_)
        | Pattern::List(_)
        | Pattern::Each(_)
        | Pattern::Either(_) => true,
    }
}

/// Returns the value at the place where the pattern borrows this hole.
fn borrowed_value(pattern: &Pattern, value: Option<&Json>, hole: usize) -> Option<Json> {
    match pattern {
        Pattern::Hole(slot) => value.filter(|_| borrowed(slot) == Some(hole)).cloned(),
        Pattern::Object(object) => object.members.iter().find_map(|(name, member)| {
            let value = value.and_then(|value| value.member(name));
            borrowed_value(member, value.as_ref(), hole)
        }),
        Pattern::Literal(_)
        | Pattern::Text(_)
        | Pattern::List(_)
        | Pattern::Each(_)
        | Pattern::Either(_) => None,
    }
}
