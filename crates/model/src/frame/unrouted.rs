//! Pending frames of a client that no route reads. The next frame with the same id counts as the answer.
//!
//! Used by `frame::correlator`.

use std::collections::VecDeque;
use std::time::Duration;

use crate::pending::Ticket;
use crate::route::RouteTable;
use dualgauge_patterns::json::{Json, JsonKind};
use dualgauge_patterns::pattern::BoundValue;

use super::correlator::spelled;

/// The frames without an answer so far, oldest first.
#[derive(Debug, Default)]
pub(super) struct UnroutedRequests(VecDeque<UnroutedRequest>);

#[derive(Debug)]
struct UnroutedRequest {
    ticket: Ticket,
    id: String,
    deadline: Duration,
}

/// Returns the id of a frame, at the place where any command of the table has one.
pub(super) fn id_of(table: &RouteTable, frame: &Json) -> Option<String> {
    let mut routes = table.routes().iter();
    let id = routes.find_map(
        |route| match route.bindings_with_id_only(frame).get(route.id?) {
            BoundValue::Value(id) => Some(id.clone()),
            BoundValue::Unbound
            | BoundValue::Absent
            | BoundValue::Members(_)
            | BoundValue::Each(_) => None,
        },
    )?;
    matches!(id.kind(), JsonKind::String | JsonKind::Number).then(|| spelled(&id))
}

impl UnroutedRequests {
    pub(super) fn add(&mut self, ticket: Ticket, id: String, deadline: Duration) {
        self.0.push_back(UnroutedRequest {
            ticket,
            id,
            deadline,
        });
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn has(&self, ticket: Ticket) -> bool {
        self.0.iter().any(|own| own.ticket == ticket)
    }

    pub(super) fn carries_id(&self, id: &str) -> bool {
        self.0.iter().any(|own| own.id == id)
    }

    pub(super) fn cancel(&mut self, ticket: Ticket) {
        self.0.retain(|own| own.ticket != ticket);
    }

    pub(super) fn alarm(&self) -> Option<Duration> {
        self.0.iter().map(|own| own.deadline).min()
    }

    /// Removes and returns the request that a frame answers: their ids are equal, at the place where any answer of the
    /// table has one.
    pub(super) fn answered(&mut self, table: &RouteTable, frame: &Json) -> Option<Ticket> {
        let requests = &self.0;
        let routes = table.routes().iter();
        let ids = routes.filter_map(|route| Some(route.outcomes.ids_in_frame(frame, route.id?)));
        let mut indexes = ids.flatten().filter_map(|id| {
            let id = spelled(&id);
            requests.iter().position(|own| own.id == id)
        });
        let index = (!requests.is_empty()).then(|| indexes.next()).flatten()?;
        self.0.remove(index).map(|own| own.ticket)
    }

    /// Removes and returns the requests whose deadline has passed.
    pub(super) fn expired(&mut self, now: Duration) -> Vec<Ticket> {
        let over = self.0.iter().filter(|own| own.deadline <= now);
        let over: Vec<Ticket> = over.map(|own| own.ticket).collect();
        self.0.retain(|own| own.deadline > now);
        over
    }

    /// Removes and returns all requests.
    pub(super) fn take(&mut self) -> Vec<Ticket> {
        let all = std::mem::take(&mut self.0);
        all.into_iter().map(|own| own.ticket).collect()
    }
}
