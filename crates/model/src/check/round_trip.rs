//! Round trips: messages of a subject, sent through the code that serves calls.
//!
//! Used by `check::examples` and `check::verify`.

use super::message::{Message, header_map};
use super::subject::{CheckSubject, LIMITS, TERMS, json};
use crate::form::{self, FormType};
use crate::route::{RestSelection, Route, RouteTable, Segments, Wire};
use crate::translate::{MethodCall, RestHead, read_rest_call, rest_to_rpc};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::{Bindings, BoundValue, TextPatterns};

/// The result of a round trip.
#[derive(Debug)]
pub(super) struct RoundTrip {
    /// The message that the other side gets.
    pub(super) there: Message,
    /// The message that comes back, or the reason why none does.
    pub(super) back: Result<Message, String>,
    /// The route or row that read the way back; `None` for the built-in table.
    pub(super) by: Option<usize>,
}

impl RoundTrip {
    fn new(there: Message, back: Result<Hop, String>) -> RoundTrip {
        RoundTrip {
            there,
            by: back.as_ref().ok().and_then(|hop| hop.by),
            back: back.map(|hop| hop.message),
        }
    }
}

/// One translation, with the route or row that did it.
struct Hop {
    message: Message,
    by: Option<usize>,
    /// The values of the call's holes.
    call: Bindings,
}

impl CheckSubject<'_> {
    /// Sends a message there and back. Returns `None` if it is refused, or belongs to another route or row.
    pub(super) fn round_trip(&self, sent: &Message) -> Option<RoundTrip> {
        let enters = self.route.enters_from(self.from.other());
        let own = self.own();
        let there = self.hop(sent, None, None).ok()?;
        if there.by != Some(own) {
            return None;
        }
        // Other calls use the other side of a one-way route, so the way back is forced to this route.
        let forced_route = (self.row.is_none() && !enters).then_some(self.index);
        // The id of a call is passed outside the patterns of the RPC side.
        let id = self.route.id.map(|hole| there.call.get(hole).clone());
        let back = self.hop(&there.message, forced_route, id);
        Some(RoundTrip::new(there.message, back))
    }

    /// Returns the error of an RPC call that belongs to this route, but cannot be written.
    pub(super) fn refused_call(&self, sent: &Message) -> Option<String> {
        let call = sent.method_call()?;
        let by = self.table.select_rpc_to(self.route.rest_protocol, call)?;
        (by == self.index).then(|| self.hop(sent, None, None).err())?
    }

    /// Returns the reason why a message is refused, if it is.
    pub(super) fn refusal(&self, sent: &Message) -> Option<String> {
        self.hop(sent, None, None).err()
    }

    /// Returns the index of the row, or else of the route.
    pub(super) fn own(&self) -> usize {
        self.row.unwrap_or(self.index)
    }

    /// Returns the message that the other side gets, by any route.
    pub(super) fn there(&self, sent: &Message) -> Option<Message> {
        Some(self.hop(sent, None, None).ok()?.message)
    }

    /// Sends an answer that matches no row there and back. Also returns the key of the row that read the way back.
    pub(super) fn built_in_round_trip(
        &self,
        sent: &Message,
    ) -> Option<(RoundTrip, Option<String>)> {
        let there = self.hop(sent, None, None).ok()?;
        if there.by.is_some() {
            return None;
        }
        let back = self.hop(&there.message, None, None);
        let rows = self.route.outcomes.rows();
        let trip = RoundTrip::new(there.message, back);
        let row_key = trip.by.and_then(|row| Some(rows.get(row)?.key.clone()));
        Some((trip, row_key))
    }

    /// Translates one message by the given route, or else by the one that the table selects.
    fn hop(
        &self,
        message: &Message,
        forced_route: Option<usize>,
        id: Option<BoundValue>,
    ) -> Result<Hop, String> {
        if let Some(call) = message.method_call() {
            return self.rpc_hop(call, forced_route, id);
        }
        match message {
            Message::RestCall { .. } => self.rest_hop(message, forced_route),
            Message::RpcCall { .. } | Message::RestReply(_) | Message::RpcReply(_) => {
                self.reply_hop(message, &self.call)
            }
        }
    }

    fn rpc_hop(
        &self,
        call: MethodCall<'_>,
        forced_route: Option<usize>,
        id: Option<BoundValue>,
    ) -> Result<Hop, String> {
        let selected = || self.table.select_rpc_to(self.route.rest_protocol, call);
        let by = forced_route
            .or_else(selected)
            .ok_or("no route has this method")?;
        let route = self.table.route(by);
        let id = id.unwrap_or_else(|| route.id_for(1));
        let call = self.table.write_rest_of(by, call, id, TERMS);
        let call = call.map_err(|misfit| misfit.to_string())?;
        let body = as_sent(route, call.body.map(json))?;
        Ok(Hop {
            message: Message::RestCall {
                method: route.method.clone(),
                target: call.target,
                headers: header_map(call.headers),
                body,
            },
            by: Some(by),
            call: call.bindings,
        })
    }

    fn reply_hop(&self, message: &Message, call: &Bindings) -> Result<Hop, String> {
        let outcomes = &self.route.outcomes;
        let (message, by) = match message {
            Message::RestReply(reply) => {
                let answered = outcomes.rest_to_rpc(reply, call, LIMITS, TERMS);
                let answered = answered.map_err(|failure| failure.to_string())?;
                (Message::from_rpc_answer(answered.answer), answered.row)
            }
            Message::RpcReply(reply) => {
                let answered = outcomes.answer_rest(reply.clone(), call, TERMS);
                let answered = answered.map_err(|failure| failure.to_string())?;
                (Message::from_rest_answer(answered.answer), answered.row)
            }
            Message::RestCall { .. } | Message::RpcCall { .. } => {
                return Err("no reply".to_owned());
            }
        };
        Ok(Hop {
            message,
            by,
            call: Bindings::default(),
        })
    }

    /// Translates a call by this route, and returns the values of its holes. `id` is the id of an old message.
    pub(super) fn translate_call(
        &self,
        sent: &Message,
        id: Option<BoundValue>,
    ) -> Result<(Message, Bindings), String> {
        let hop = self.hop(sent, Some(self.index), id)?;
        Ok((hop.message, hop.call))
    }

    /// Translates an answer to a call by the rows.
    pub(super) fn translate_reply(
        &self,
        sent: &Message,
        call: &Bindings,
    ) -> Result<Message, String> {
        self.reply_hop(sent, call).map(|hop| hop.message)
    }

    fn rest_hop(&self, message: &Message, forced_route: Option<usize>) -> Result<Hop, String> {
        let Message::RestCall {
            target,
            headers,
            body,
            ..
        } = message
        else {
            return Err("no REST call".to_owned());
        };
        let by = match forced_route {
            Some(by) => by,
            None => select_rest(self.table, self.route.rest_protocol, message)
                .ok_or("no route has this path")?,
        };
        let route = self.table.route(by);
        let (path, query) = cut(target);
        let segments = Segments::split(path);
        let head = RestHead {
            segments: &segments,
            query,
            headers,
        };
        let body = as_sent(route, body.clone())?;
        let call = read_rest_call(route, head, TERMS)
            .and_then(|reading| rest_to_rpc(route, reading, body, TERMS))
            .map_err(|misfit| misfit.to_string())?;
        Ok(Hop {
            message: Message::RpcCall {
                method: call.method.into_owned(),
                params: Some(json(call.params)),
                headers: header_map(call.headers),
            },
            by: Some(by),
            call: call.bindings,
        })
    }

    /// Returns the message of this side that becomes `there`, if this route or row reads it.
    pub(super) fn source_of(&self, there: &Message) -> Option<Message> {
        match (self.pair(), there) {
            (None, Message::RestCall { .. }) => {
                fits_path(self.route, there).then_some(())?;
                Some(self.rest_hop(there, Some(self.index)).ok()?.message)
            }
            (None, Message::RpcCall { method, .. }) => {
                if let TextPatterns::Literal(own) = &self.route.rpc_call.method
                    && own != method
                {
                    return None;
                }
                Some(self.hop(there, Some(self.index), None).ok()?.message)
            }
            (Some(row), Message::RestReply(reply)) => {
                let reading = row.read_rest_whole(reply, TERMS.depth).ok()?;
                let written = row.write_rpc(&reading, &self.call, TERMS).ok()?;
                Some(Message::from_rpc_answer(written.answer))
            }
            (Some(row), Message::RpcReply(reply)) => {
                let reading = row.read_rpc(reply, TERMS.depth).ok()?;
                let written = row.write_rest(&reading, &self.call, TERMS).ok()?;
                Some(Message::from_rest_answer(written.answer))
            }
            (
                None | Some(_),
                Message::RestCall { .. }
                | Message::RpcCall { .. }
                | Message::RestReply(_)
                | Message::RpcReply(_),
            ) => None,
        }
    }
}

/// Returns a body as its receiver reads it: a form is written and read.
fn as_sent(route: &Route, body: Option<Json>) -> Result<Option<Json>, String> {
    let call = &route.rest_call;
    let body = match body {
        Some(body) if call.format.is_form() => body,
        body => return Ok(body),
    };
    let sent = form::encode(call.format, &body, &call.json_fields);
    let sent = sent.map_err(|misfit| misfit.to_string())?;
    if sent.body.is_empty() {
        return Ok(None);
    }
    let form_type = FormType::of(&sent.content_type).map_err(|fault| fault.to_string())?;
    let read = form::decode(&form_type, &sent.body);
    read.map(Some).map_err(|fault| fault.to_string())
}

/// Returns the route that the table selects for a REST call.
pub(super) fn select_rest(
    table: &RouteTable,
    rest_protocol: Wire,
    message: &Message,
) -> Option<usize> {
    let Message::RestCall {
        method,
        target,
        headers,
        body,
    } = message
    else {
        return None;
    };
    if rest_protocol == Wire::Frame {
        return table.select_frame(body.as_ref()?);
    }
    let (path, query) = cut(target);
    let segments = Segments::split(path);
    let head = RestHead {
        segments: &segments,
        query,
        headers,
    };
    match table.select_rest(method, &segments, query, headers) {
        RestSelection::Route(route) => Some(route),
        RestSelection::ByBody(group) => table.select_by_body(group, head, body.as_ref()),
        RestSelection::OtherMethods(_)
        | RestSelection::OtherLiterals
        | RestSelection::Unrouted
        | RestSelection::Near(_) => None,
    }
}

fn cut(target: &str) -> (&str, Option<&str>) {
    match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    }
}

/// Returns true when a REST call has the method and a path of a route.
fn fits_path(route: &Route, message: &Message) -> bool {
    let Message::RestCall { method, target, .. } = message else {
        return false;
    };
    let segments = Segments::split(cut(target).0);
    *method == route.method && route.rest_call.path.fits(&segments)
}
