//! Rules about a single hole or a single object, at any location. Used by `check::rules` and `check::rules::replies`.

use std::borrow::Cow;

use super::rule::{CheckRule, Hypothesis, Rivals, Weight};
use crate::check::locations::{LocatedHole, LocationKind};
use crate::check::message::Message;
use crate::check::mutation::{Mutation, MutationTarget, RawMutation};
use crate::check::subject::{CheckSubject, Chosen};
use crate::route::EmptyBody;
use dualgauge_patterns::json::{Json, JsonKind, is_integer};
use dualgauge_patterns::pattern::{
    Absence, Codec, HoleSource, Null, ObjectPattern, Pattern, Role, Scalar, Shape, Slot,
};
use dualgauge_patterns::side::Side;

/// Values that no pattern writes on its own.
const ODD: [&str; 4] = ["\"zz\"", "987", "{\"zz\":1}", "[\"zz\"]"];

/// Returns messages with other values at a place.
fn others(subject: &CheckSubject<'_>, slot: &Slot) -> Vec<Message> {
    let odd = ODD
        .iter()
        .map(|text| RawMutation::Value(Json::literal(text)));
    let raws = odd.chain([RawMutation::Absent]);
    raws.filter_map(|raw| mutated(subject, slot, raw, &[]))
        .collect()
}

/// Returns a message with another value at a place.
pub(super) fn mutated(
    subject: &CheckSubject<'_>,
    slot: &Slot,
    raw: RawMutation,
    chosen: Chosen<'_>,
) -> Option<Message> {
    let mutation = Mutation {
        target: MutationTarget::Slot(slot),
        raw,
    };
    subject.message(Some(&mutation), chosen)
}

/// Returns the mutated message with a value for `hole`, and one with all other optional holes absent: a text or a list has no gaps.
fn mutated_alone(
    subject: &CheckSubject<'_>,
    slot: &Slot,
    raw: RawMutation,
    hole: usize,
    value: Option<Json>,
) -> Vec<Message> {
    let mut alone = vec![(hole, value)];
    let mut first = Vec::new();
    first.extend(mutated(subject, slot, raw.clone(), &alone));
    for located in subject.here.holes.iter().chain(&subject.there.holes) {
        let absent = located.slot.binds().filter(|_| !located.slot.is_required());
        if let Some(hole) = absent
            && alone.iter().all(|(known, _)| *known != hole)
        {
            alone.push((hole, located.slot.default().cloned()));
        }
    }
    first.extend(mutated(subject, slot, raw, &alone));
    first
}

fn hypothesis(rule: CheckRule, weight: Weight, at: &str, messages: Vec<Message>) -> Hypothesis {
    Hypothesis {
        rule,
        weight,
        at: at.to_owned(),
        messages,
    }
}

/// Calls `look` for each bound hole of this side, and collects the hypotheses.
fn shared<'s>(
    subject: &'s CheckSubject<'_>,
    look: impl Fn(&LocatedHole<'_>, usize) -> Option<Hypothesis> + 's,
) -> Vec<Hypothesis> {
    let located = subject.here.holes.iter();
    located
        .filter_map(|located| look(located, located.slot.binds()?))
        .collect()
}

/// `{_}` and `{_=v}` bind nothing, so only one of all possible values is written. Complete: the role of a hole shows
/// that it binds nothing, and every hole of this side is examined.
pub(in crate::check) fn forgotten(subject: &CheckSubject<'_>, _: Rivals<'_>) -> Vec<Hypothesis> {
    let located = subject.here.holes.iter();
    let forgets = |located: &&LocatedHole<'_>| matches!(located.slot.role, Role::Ignored(_));
    located
        .filter(forgets)
        .map(|located| {
            let messages = others(subject, located.slot);
            hypothesis(CheckRule::Forgotten, Weight::Loss, &located.at, messages)
        })
        .collect()
}

/// `{>x}` binds nothing either; its value is written from elsewhere, so any other value is lost. Complete for the same
/// reason.
pub(in crate::check) fn write_only(subject: &CheckSubject<'_>, _: Rivals<'_>) -> Vec<Hypothesis> {
    let located = subject.here.holes.iter();
    located
        .filter_map(|located| {
            let rule = match located.slot.role {
                // A response with another id is not that of the call.
                Role::WriteOnly(HoleSource::Call(hole)) if subject.route.checks_id(hole) => {
                    return None;
                }
                Role::WriteOnly(HoleSource::Now) => CheckRule::Time,
                Role::WriteOnly(HoleSource::Hole(_) | HoleSource::Call(_)) => CheckRule::WriteOnly,
                Role::Shared(_) | Role::ReadOnly(_) | Role::Equal(_) | Role::Ignored(_) => {
                    return None;
                }
            };
            Some(hypothesis(
                rule,
                Weight::Loss,
                &located.at,
                others(subject, located.slot),
            ))
        })
        .collect()
}

/// `{<x}` binds a value for the response on its side, and writes nothing or its default. Complete: the role of a hole
/// shows it.
pub(in crate::check) fn read_only(subject: &CheckSubject<'_>, _: Rivals<'_>) -> Vec<Hypothesis> {
    let located = subject.here.holes.iter();
    located
        .filter_map(|located| {
            let Role::ReadOnly(hole) = located.slot.role else {
                return None;
            };
            let mut messages = others(subject, located.slot);
            for value in subject.samples.get(hole)?.all().flatten() {
                let raw = RawMutation::Value(spelled(located, &value));
                messages.extend(mutated(subject, located.slot, raw, &[]));
            }
            Some(hypothesis(
                CheckRule::ReadOnly,
                Weight::Loss,
                &located.at,
                messages,
            ))
        })
        .collect()
}

/// `{x=50}` binds its default for an absent value, and writes it. Complete: `Absence::Default` is the only
/// absence that is written as a value.
pub(in crate::check) fn default_written(
    subject: &CheckSubject<'_>,
    _: Rivals<'_>,
) -> Vec<Hypothesis> {
    shared(subject, |located, hole| {
        let Absence::Default(default) = &located.slot.absence else {
            return None;
        };
        let value = Some(default.clone());
        let messages = mutated_alone(subject, located.slot, RawMutation::Absent, hole, value);
        Some(hypothesis(
            CheckRule::DefaultWritten,
            Weight::Norm,
            &located.at,
            messages,
        ))
    })
}

/// `{x?=50}` leaves out a value that equals its default. Complete: only `Absence::OmittedDefault` omits a value that is
/// present. In a text or a list, the value is written if others follow it. Next to an absent one the gap cannot be
/// written, and the message does not come back at all; this is observed and counts as a loss.
pub(in crate::check) fn default_left_out(
    subject: &CheckSubject<'_>,
    _: Rivals<'_>,
) -> Vec<Hypothesis> {
    shared(subject, |located, hole| {
        let Absence::OmittedDefault(default) = &located.slot.absence else {
            return None;
        };
        let value = Some(default.clone());
        let raw = RawMutation::Value(spelled(located, default));
        let messages = mutated_alone(subject, located.slot, raw, hole, value);
        Some(hypothesis(
            CheckRule::DefaultLeftOut,
            Weight::Norm,
            &located.at,
            messages,
        ))
    })
}

/// Returns a value in the spelling of its place. A list outside of JSON is spelled when it is written.
fn spelled(located: &LocatedHole<'_>, value: &Json) -> Json {
    let slot = located.slot;
    if located.kind == LocationKind::Words && value.kind() == JsonKind::Array {
        return value.clone();
    }
    let written = slot.as_json(Cow::Borrowed(value));
    written.map_or_else(|_| value.clone(), Cow::into_owned)
}

/// `null` binds nothing where the other side has a text. Complete: this is the meaning of `Null::Absent`, which every
/// place of such a hole has; a text has no `null`.
pub(in crate::check) fn null_absent(subject: &CheckSubject<'_>, _: Rivals<'_>) -> Vec<Hypothesis> {
    shared(subject, |located, hole| {
        let in_json = matches!(located.kind, LocationKind::Json | LocationKind::Whole);
        if located.slot.null != Null::Absent || !in_json {
            return None;
        }
        let value = located.slot.default().cloned();
        let raw = RawMutation::Value(Json::literal("null"));
        let messages = mutated_alone(subject, located.slot, raw, hole, value);
        Some(hypothesis(
            CheckRule::NullAbsent,
            Weight::Norm,
            &located.at,
            messages,
        ))
    })
}

/// An empty list in a query or a header has no text at all, which is read as absent or as the default. Complete: lists
/// have a text only as a whole query parameter, a header, or a path segment, which is never empty; all are on the REST
/// side.
pub(in crate::check) fn empty_list(subject: &CheckSubject<'_>, _: Rivals<'_>) -> Vec<Hypothesis> {
    let is_list = |located: &&LocatedHole<'_>| {
        let list = matches!(
            located.slot.shape,
            Shape::Repeated(_) | Shape::Separated(..)
        );
        list && located.kind == LocationKind::Words && located.slot.codec.keeps_elements()
    };
    let rest = match subject.from {
        Side::Rest => &subject.here,
        Side::Rpc => &subject.there,
    };
    let located = rest.holes.iter().filter(is_list);
    located
        .filter_map(|located| {
            let hole = located.slot.binds()?;
            let empty = Json::literal("[]");
            let weight = match located.slot.default() {
                Some(default) if *default != empty => Weight::Loss,
                Some(_) | None => Weight::Norm,
            };
            let chosen = [(hole, Some(empty))];
            let message = match subject.from {
                Side::Rest => {
                    let raw = RawMutation::Value(Json::literal("\"\""));
                    mutated(subject, located.slot, raw, &chosen)
                }
                Side::Rpc => subject.message(None, &chosen),
            };
            let messages = message.into_iter().collect();
            Some(hypothesis(
                CheckRule::EmptyList,
                weight,
                &located.at,
                messages,
            ))
        })
        .collect()
}

/// An object with optional members only binds nothing if it is absent, and is written as `{}`. A whole body without
/// members is not sent, or sent as `{}`. Complete: objects are the only optional patterns that are always written, and
/// every object of this side is examined.
pub(in crate::check) fn absent_object(
    subject: &CheckSubject<'_>,
    _: Rivals<'_>,
) -> Vec<Hypothesis> {
    let objects = subject.here.objects.iter();
    let objects = objects.filter_map(|(object, at)| {
        let raw = match at.as_str() {
            "result" => return None,
            "body" if subject.row.is_some() => return None,
            "body" if subject.route.rest_call.empty == EmptyBody::Sent => RawMutation::Absent,
            "body" => RawMutation::Value(Json::literal("{}")),
            "params" => RawMutation::Absent,
            _ if may_be_absent(object) => RawMutation::Absent,
            _ => return None,
        };
        let mutation = Mutation {
            target: MutationTarget::Object(object),
            raw,
        };
        let message = subject.message(Some(&mutation), &absent_in(object));
        let messages = message.into_iter().collect();
        Some(hypothesis(
            CheckRule::AbsentObject,
            Weight::Norm,
            at,
            messages,
        ))
    });
    objects.chain(absent_capture(subject)).collect()
}

/// An absent object of captured names has none, which is read as `{}`.
fn absent_capture(subject: &CheckSubject<'_>) -> Vec<Hypothesis> {
    let captured = subject.there.holes.iter();
    let captured = captured.filter(|located| located.kind == LocationKind::Captured);
    let hypotheses = captured.filter_map(|located| {
        let hole = located.slot.binds()?;
        let absent = subject.message(None, &[(hole, None)]);
        let messages = absent.into_iter().collect();
        let at = &located.at;
        Some(hypothesis(
            CheckRule::AbsentObject,
            Weight::Norm,
            at,
            messages,
        ))
    });
    hypotheses.collect()
}

fn may_be_absent(object: &ObjectPattern) -> bool {
    !object.is_empty()
        && object
            .members
            .iter()
            .all(|(_, member)| member.may_be_absent())
}

/// Returns the holes of an absent object, with their values.
fn absent_in(object: &ObjectPattern) -> Vec<(usize, Option<Json>)> {
    let mut chosen = Vec::new();
    let mut visit = |slot: &Slot| {
        if let Some(hole) = slot.binds() {
            chosen.push((hole, slot.default().cloned()));
        }
    };
    for (_, member) in &object.members {
        member.slots(&mut visit);
    }
    if let Some(rest) = &object.rest {
        chosen.extend(rest.binds().map(|hole| (hole, Some(Json::literal("{}")))));
    }
    chosen
}

/// `{=x}` binds nothing: the value of `x` is written in its place, or nothing with `?`, while an equal value may have
/// another spelling. Complete: the role of a hole shows it.
pub(in crate::check) fn equal_value(subject: &CheckSubject<'_>, _: Rivals<'_>) -> Vec<Hypothesis> {
    let located = subject.here.holes.iter();
    located
        .filter_map(|located| {
            let hole = located.slot.equals()?;
            let values = subject.samples.get(hole)?.all().flatten();
            let mut messages = Vec::new();
            for value in values {
                for form in forms(&value) {
                    let chosen = (hole, Some(value.clone()));
                    messages.extend(mutated(
                        subject,
                        located.slot,
                        RawMutation::Value(form),
                        &[chosen],
                    ));
                }
            }
            Some(hypothesis(
                CheckRule::EqualValue,
                Weight::Norm,
                &located.at,
                messages,
            ))
        })
        .collect()
}

/// Returns the forms that equal a value: itself, the number or boolean that it spells or its text, and an integer with
/// a fraction.
fn forms(value: &Json) -> Vec<Json> {
    let text = match value.text() {
        Some(text) => text.unwrap_or_default(),
        None => String::from_utf8_lossy(value.as_bytes()).into_owned(),
    };
    let spelled = Json::parse(text.clone().into(), 0).ok();
    let spelled =
        spelled.filter(|spelled| matches!(spelled.kind(), JsonKind::Number | JsonKind::Boolean));
    let mut forms = vec![value.clone()];
    if is_integer(text.as_bytes()) {
        forms.push(Json::written(format!("{text}.0")));
    }
    if let Some(spelled) = spelled {
        forms.extend([spelled, Json::string(&text)]);
    }
    forms
}

/// A hole of integers binds the digits of an integer that has a fraction or an exponent. Complete: in JSON such a hole
/// takes every spelling of an integer, and in a text digits only.
pub(in crate::check) fn integer_form(subject: &CheckSubject<'_>, _: Rivals<'_>) -> Vec<Hypothesis> {
    shared(subject, |located, hole| {
        let in_json = matches!(located.kind, LocationKind::Json | LocationKind::Whole);
        let is_text = located.slot.codec.is_json();
        if !(in_json || is_text) || located.slot.shape.scalar() != Some(&Scalar::Integer) {
            return None;
        }
        let (spelled, plain) = match located.slot.shape {
            Shape::Repeated(_) | Shape::Separated(..) => ("[3.0]", "[3]"),
            Shape::One(_) | Shape::Any | Shape::Object | Shape::Array | Shape::Null => ("3.0", "3"),
        };
        let raw = RawMutation::Value(self::spelled(located, &Json::literal(spelled)));
        let value = Some(Json::literal(plain));
        let messages = mutated_alone(subject, located.slot, raw, hole, value);
        Some(hypothesis(
            CheckRule::IntegerForm,
            Weight::Norm,
            &located.at,
            messages,
        ))
    })
}

/// `{x:json}` and `{x:base64}` bind the value inside a text, and write the value's compact text. Complete: the codec of
/// a hole shows it, and nothing else opens a text.
pub(in crate::check) fn compact_json(subject: &CheckSubject<'_>, _: Rivals<'_>) -> Vec<Hypothesis> {
    shared(subject, |located, hole| {
        let Codec::Json(encoding) = located.slot.codec else {
            return None;
        };
        let mut messages = Vec::new();
        let values = subject.samples.get(hole)?.all().flatten();
        let structured =
            values.filter(|value| matches!(value.kind(), JsonKind::Object | JsonKind::Array));
        let plain = subject.plain(hole);
        for value in structured.chain(plain) {
            let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
            let wide = text.replace(':', " : ").replace('[', "[ ");
            for spelling in [wide, format!(" {text}")] {
                let raw = RawMutation::Value(Json::string(&encoding.encode(spelling)));
                let chosen = [(hole, Some(value.clone()))];
                messages.extend(mutated(subject, located.slot, raw, &chosen));
            }
        }
        Some(hypothesis(
            CheckRule::CompactJson,
            Weight::Norm,
            &located.at,
            messages,
        ))
    })
}

/// Every form of a value but the first one comes back as the first. Complete: only alternatives without a hole for their
/// number are written as another one.
pub(in crate::check) fn other_form(subject: &CheckSubject<'_>, _: Rivals<'_>) -> Vec<Hypothesis> {
    let forms = subject.here.forms.iter();
    let found = forms.map(|(either, at)| {
        let messages = (1..either.alternatives.len()).flat_map(|form| {
            let mutation = Mutation {
                target: MutationTarget::Form(either, form),
                raw: RawMutation::Absent,
            };
            // A form that lacks a hole is refused if the hole has another value elsewhere.
            let chosen = [&[][..], &either.lacked(form)];
            let messages = chosen.map(|chosen| subject.message(Some(&mutation), chosen));
            messages.into_iter().flatten()
        });
        let messages = messages.collect();
        hypothesis(CheckRule::OtherForm, Weight::Norm, at, messages)
    });
    found.collect()
}

/// Returns the absent holes of a whole pattern that may be absent and is no object; `None` for any other pattern.
pub(super) fn leaves_whole(pattern: &Pattern) -> Option<Vec<(usize, Option<Json>)>> {
    let mut chosen = Vec::new();
    match pattern {
        Pattern::Hole(slot) => chosen.extend(absent(slot)),
        Pattern::Text(text) => chosen.extend(text.slots().filter_map(absent)),
        Pattern::Literal(_)
        | Pattern::Object(_)
        | Pattern::List(_)
        | Pattern::Each(_)
        | Pattern::Either(_) => {}
    }
    (pattern.may_be_absent() && !chosen.is_empty()).then_some(chosen)
}

/// Returns the hole of a slot with its value when nothing is written.
fn absent(slot: &Slot) -> Option<(usize, Option<Json>)> {
    let hole = slot.binds()?;
    match &slot.absence {
        Absence::Optional => Some((hole, None)),
        Absence::OmittedDefault(default) => Some((hole, Some(default.clone()))),
        Absence::Required | Absence::Default(_) => None,
    }
}
