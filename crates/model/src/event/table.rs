//! The table of declared events, and the rewriting of an event by the definition that matches it.
//!
//! Used by `config`, `model` and `gateway`.

use std::cmp::Reverse;

use super::definition::{EventDefinition, EventForm};
use super::draft::EventSource;
use super::value::{EventValue, ID};
use crate::translate::TranslateContext;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::{
    MatchError, MemberPolicy, Pattern, PatternError, PatternReader, PatternWriter, Slot,
    UnknownMembers, WriteScope, may_intersect, within,
};

/// The action for an event.
#[derive(Debug)]
pub enum EventAction {
    /// No definition matches: the event stays unchanged.
    Untouched,
    /// The definition has no other side: the event is dropped.
    Swallowed,
    /// The event is rewritten for the other side.
    Rewritten {
        /// The rewritten event.
        event: EventValue,
        /// Members that no pattern named.
        dropped: usize,
    },
    /// A definition matches but cannot write the event.
    Failed {
        /// The key of the definition.
        key: String,
        /// The reason.
        why: MatchError,
    },
}

/// The declared events.
#[derive(Debug, Clone, Default)]
pub struct Events {
    events: Vec<EventDefinition>,
    /// The order of trial for events of each form: the most specific first.
    orders: [Vec<usize>; EventForm::ALL.len()],
}

impl Events {
    /// Compiles the declared events.
    ///
    /// # Errors
    /// Every invalid event, by its key.
    pub fn build(sources: Vec<EventSource>) -> Result<Events, Vec<PatternError>> {
        let mut errors = Vec::new();
        let mut events = Vec::with_capacity(sources.len());
        for source in sources {
            match EventDefinition::build(source) {
                Ok(event) => events.push(event),
                Err(error) => errors.push(error),
            }
        }
        let orders = EventForm::ALL.map(|form| order(&events, form, &mut errors));
        let events = Events { events, orders };
        for (index, event) in events.events.iter().enumerate() {
            let mut forms = EventForm::ALL.into_iter();
            let used = forms.any(|from| {
                event.pattern_for(from).is_some() && events.hides(index, from).is_none()
            });
            let by = EventForm::ALL
                .into_iter()
                .find_map(|from| events.hides(index, from));
            if let (false, Some(by)) = (used, by) {
                let by = &events.events[by].key;
                let what =
                    format!("the event can never be used: {by} matches everything that it matches");
                errors.push(PatternError::new(what).under(&event.key));
            }
        }
        if errors.is_empty() {
            Ok(events)
        } else {
            Err(errors)
        }
    }

    /// Returns the events in their declared order.
    #[must_use]
    pub fn all(&self) -> &[EventDefinition] {
        &self.events
    }

    /// Returns an event that matches everything of a form that this one matches.
    #[must_use]
    pub fn hides(&self, event: usize, from: EventForm) -> Option<usize> {
        let own = self.events.get(event)?.pattern_for(from)?;
        let order = self.orders[from as usize].iter().copied();
        let mut earlier = order.take_while(|index| *index != event);
        earlier.find(|index| {
            let other = &self.events[*index];
            share(&self.events[event], other, from)
                && other
                    .pattern_for(from)
                    .is_some_and(|pattern| within(own, pattern, MemberPolicy::Open))
        })
    }

    /// Returns the action for an event on its way to clients that expect the form `to`.
    #[must_use]
    pub fn rewrite(
        &self,
        value: &EventValue,
        to: EventForm,
        context: TranslateContext,
    ) -> EventAction {
        let from = value.form();
        let mut failed = None;
        for index in &self.orders[from as usize] {
            let event = &self.events[*index];
            if !event.applies_to(from, to) {
                continue;
            }
            let Some(reading) = event.read(value, context.depth) else {
                continue;
            };
            let Some(other) = event.other(from) else {
                return EventAction::Swallowed;
            };
            match event.write(&reading, other, context) {
                Ok(event) => {
                    let dropped = reading.dropped;
                    return EventAction::Rewritten { event, dropped };
                }
                Err(why) => {
                    failed.get_or_insert_with(|| (event.key.clone(), why));
                }
            }
        }
        match failed {
            Some((key, why)) => EventAction::Failed { key, why },
            None => EventAction::Untouched,
        }
    }
}

impl EventDefinition {
    /// Reads an event; returns `None` if it does not match.
    fn read(&self, value: &EventValue, depth: u16) -> Option<PatternReader> {
        let pattern = self.pattern_for(value.form())?;
        let mut reading = PatternReader::new(self.facts.holes.len(), UnknownMembers::Open, depth);
        pattern.read(Some(&value.view), &mut reading).ok()?;
        reading.settle().ok()?;
        // The id of a stream event stays in its own line.
        if !names_id(pattern) {
            reading.dropped = reading.dropped.saturating_sub(value.unnamed);
        }
        Some(reading)
    }

    fn write(
        &self,
        reading: &PatternReader,
        to: EventForm,
        context: TranslateContext,
    ) -> Result<EventValue, MatchError> {
        let missing = || MatchError::here("there is nothing to write");
        let pattern = self.pattern_for(to).ok_or_else(missing)?;
        let writing = PatternWriter::new(WriteScope {
            bindings: &reading.bindings,
            call: None,
            now: context.now,
        });
        let written = pattern.pieces(&writing, 256);
        let written = written.map_err(|misfit| misfit.within(to.as_str()))?;
        EventValue::written(to, Json::sent(written.ok_or_else(missing)?))
    }

    /// Counts the holes that a form binds.
    fn binds(&self, form: EventForm) -> usize {
        let mut count = 0;
        if let Some(pattern) = self.pattern_for(form) {
            pattern.slots(&mut |slot: &Slot| count += usize::from(slot.binds().is_some()));
        }
        count
    }
}

fn names_id(pattern: &Pattern) -> bool {
    matches!(pattern, Pattern::Object(object)
        if object.members.iter().any(|(name, _)| name == ID))
}

/// Returns whether two events apply to the same direction.
fn share(one: &EventDefinition, other: &EventDefinition, from: EventForm) -> bool {
    let mut all = EventForm::ALL.into_iter();
    all.any(|to| one.applies_to(from, to) && other.applies_to(from, to))
}

/// Sorts events by specificity, then by their place in the table.
fn order(
    events: &[EventDefinition],
    from: EventForm,
    errors: &mut Vec<PatternError>,
) -> Vec<usize> {
    let mut refined = vec![0_usize; events.len()];
    for (index, one) in events.iter().enumerate() {
        for (other_index, other) in events.iter().enumerate().skip(index + 1) {
            let (Some(pattern), Some(other_pattern)) =
                (one.pattern_for(from), other.pattern_for(from))
            else {
                continue;
            };
            let down = within(pattern, other_pattern, MemberPolicy::Open);
            let up = within(other_pattern, pattern, MemberPolicy::Open);
            match (down, up) {
                (true, false) => refined[index] += 1,
                (false, true) => refined[other_index] += 1,
                (true, true) => {}
                (false, false) => {
                    if share(one, other, from)
                        && may_intersect(pattern, other_pattern, MemberPolicy::Open)
                    {
                        let what = format!(
                            "it matches events in the form `{}` that {} also matches, and neither is more specific; name a member or a text that distinguishes them",
                            from.as_str(),
                            one.key
                        );
                        errors.push(PatternError::new(what).under(&other.key));
                    }
                }
            }
        }
    }
    let indexes = 0..events.len();
    let mut order: Vec<usize> = indexes
        .filter(|index| events[*index].pattern_for(from).is_some())
        .collect();
    // Of two events that match the same messages, the one that names more members loses less.
    let rank = |index: &usize| {
        (
            Reverse(refined[*index]),
            Reverse(events[*index].binds(from)),
            *index,
        )
    };
    order.sort_by_key(rank);
    order
}
