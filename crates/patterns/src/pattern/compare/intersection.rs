//! Intersection: builds a value from the constraints of two patterns, and checks that both read it.
//!
//! Used by `pattern::compare::words`.

use std::cell::Cell;

use super::acceptance::{
    DEPTH, MemberPolicy, array, element, is_nullable, is_unopened, matches_all,
    member_matches_null, named, object, reads, texts_of, values_of,
};
use super::grammar::Fit;
use super::repeated_holes::{Split, pins};
use crate::json::Json;
use crate::pattern::{
    Absence, Codec, EachPattern, EitherPattern, ListPattern, Null, ObjectPattern, Pattern, Role,
    Shape, Slot,
};

/// The maximum number of pairs of patterns that a search tries: with values for repeated holes, or with single
/// alternatives.
const TRIES: usize = 256;
/// The maximum number of pairs of positions that a search compares.
const STEPS: usize = 1 << 18;

/// The values that two patterns have in common.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::pattern) enum Intersection {
    /// Both patterns read this value.
    Value(Json),
    /// There is no such value.
    Empty,
    /// No value was found, and there may be one.
    Unknown,
}

/// Returns a value that matches both patterns, if one is found.
#[must_use]
pub fn intersection(one: &Pattern, other: &Pattern, policy: MemberPolicy) -> Option<Json> {
    match search(one, other, policy) {
        Intersection::Value(value) => Some(value),
        Intersection::Empty | Intersection::Unknown => None,
    }
}

/// Returns true if some value may match both patterns: one is found, or the search ends at its limit.
#[must_use]
pub fn may_intersect(one: &Pattern, other: &Pattern, policy: MemberPolicy) -> bool {
    search(one, other, policy) != Intersection::Empty
}

/// Searches for a value that matches both patterns.
pub(in crate::pattern) fn search(
    one: &Pattern,
    other: &Pattern,
    policy: MemberPolicy,
) -> Intersection {
    let mut search = IntersectionSearch {
        one,
        other,
        policy,
        tries: TRIES,
        steps: Cell::new(STEPS),
    };
    match search.find_any(one, other) {
        Some(value) => Intersection::Value(value),
        None if search.is_exhausted() => Intersection::Unknown,
        None => Intersection::Empty,
    }
}

/// Does the same where the value may be absent: `Some(None)` means that absence matches both. `None` is a position that
/// a pattern does not name.
#[must_use]
pub fn optional_intersection(
    one: Option<&Pattern>,
    other: Option<&Pattern>,
    policy: MemberPolicy,
) -> Option<Option<Json>> {
    let absent = |pattern: Option<&Pattern>| pattern.is_none_or(Pattern::may_be_absent);
    if absent(one) && absent(other) {
        return Some(None);
    }
    match (one, other) {
        (Some(one), Some(other)) => intersection(one, other, policy).map(Some),
        (Some(one), None) | (None, Some(one)) if policy == MemberPolicy::Open => {
            Some(Some(sample(one)))
        }
        (_, _) => None,
    }
}

/// Returns a value that matches a pattern, or the nearest one found.
#[must_use]
pub fn sample(pattern: &Pattern) -> Json {
    let found = intersection(pattern, &anything(), MemberPolicy::Closed);
    let steps = Cell::new(STEPS);
    let building = Building {
        lists: ListLength::Filled,
        policy: MemberPolicy::Closed,
        steps: &steps,
    };
    let nearest = found.or_else(|| building.some(pattern));
    nearest.unwrap_or(Json::literal("null"))
}

/// Returns a pattern that every value matches.
fn anything() -> Pattern {
    Pattern::Hole(Slot {
        name: "_".to_owned(),
        role: Role::Ignored(None),
        shape: Shape::Any,
        absence: Absence::Optional,
        codec: Codec::Plain,
        null: Null::Value,
    })
}

/// A search for a value that both patterns read. It replaces the repeated holes of either pattern by values, one hole
/// at a time.
struct IntersectionSearch<'p> {
    one: &'p Pattern,
    other: &'p Pattern,
    policy: MemberPolicy,
    tries: usize,
    steps: Cell<usize>,
}

impl Intersection {
    fn is_value(&self) -> bool {
        matches!(self, Intersection::Value(_))
    }
}

impl IntersectionSearch<'_> {
    /// Searches in all alternatives at once, then in each on its own.
    fn find_any(&mut self, one: &Pattern, other: &Pattern) -> Option<Json> {
        match self.find(one, other) {
            Intersection::Value(value) => return Some(value),
            Intersection::Empty => return None,
            Intersection::Unknown if self.is_exhausted() => return None,
            Intersection::Unknown => {}
        }
        if let Some(chosen) = chosen(one) {
            return chosen.iter().find_map(|one| self.find_any(one, other));
        }
        let chosen = chosen(other)?;
        chosen.iter().find_map(|other| self.find_any(one, other))
    }

    fn find(&mut self, one: &Pattern, other: &Pattern) -> Intersection {
        let Some(tries) = self.tries.checked_sub(1) else {
            self.steps.set(0);
            return Intersection::Unknown;
        };
        self.tries = tries;
        let (first, second) = (Split::new(one), Split::new(other));
        let mut nearest = None;
        for lists in [ListLength::Filled, ListLength::Empty] {
            let Some(found) = self.building(lists).both(&first.pattern, &second.pattern) else {
                return match self.is_exhausted() {
                    true => Intersection::Unknown,
                    false => Intersection::Empty,
                };
            };
            if reads(self.one, &found, self.policy) && reads(self.other, &found, self.policy) {
                return Intersection::Value(found);
            }
            nearest = nearest.or(Some(found));
        }
        let Some(nearest) = nearest else {
            return Intersection::Unknown;
        };
        let facing =
            |one: &Pattern, other: &Pattern| self.building(ListLength::Filled).both(one, other);
        if let Some((hole, values)) = pins(&first, &second, &nearest, &facing) {
            let pinned = values.iter().map(|value| hole.pinned(one, value));
            return pinned
                .map(|one| self.find(&one, other))
                .find(Intersection::is_value)
                .unwrap_or(Intersection::Unknown);
        }
        if let Some((hole, values)) = pins(&second, &first, &nearest, &facing) {
            let pinned = values.iter().map(|value| hole.pinned(other, value));
            return pinned
                .map(|other| self.find(one, &other))
                .find(Intersection::is_value)
                .unwrap_or(Intersection::Unknown);
        }
        Intersection::Unknown
    }

    /// Returns true if the search has reached its limit.
    fn is_exhausted(&self) -> bool {
        self.steps.get() == 0
    }

    fn building(&self, lists: ListLength) -> Building<'_> {
        Building {
            lists,
            policy: self.policy,
            steps: &self.steps,
        }
    }
}

/// Returns the pattern with each alternative in place of the first set of alternatives, if it has one.
fn chosen(pattern: &Pattern) -> Option<Vec<Pattern>> {
    match pattern {
        Pattern::Literal(_) | Pattern::Hole(_) | Pattern::Text(_) => None,
        Pattern::Object(object) => {
            let (at, chosen) = first_chosen(object.members.iter().map(|(_, member)| member))?;
            let objects = chosen.into_iter().map(|member| {
                let mut object = object.clone();
                object.change(|members, _| {
                    if let Some(place) = members.nth(at) {
                        *place = member;
                    }
                });
                Pattern::Object(object)
            });
            Some(objects.collect())
        }
        Pattern::List(list) => {
            let (at, chosen) = first_chosen(list.items.iter())?;
            let lists = chosen.into_iter().map(|item| {
                let mut list = list.clone();
                list.items[at] = item;
                Pattern::List(list)
            });
            Some(lists.collect())
        }
        Pattern::Each(each) => {
            let items = chosen(&each.item)?.into_iter().map(|item| {
                Pattern::Each(EachPattern {
                    item: Box::new(item),
                    holes: each.holes.clone(),
                })
            });
            Some(items.collect())
        }
        Pattern::Either(either) => Some(either.alternatives.clone()),
    }
}

fn first_chosen<'p>(patterns: impl Iterator<Item = &'p Pattern>) -> Option<(usize, Vec<Pattern>)> {
    let mut patterns = patterns.enumerate();
    patterns.find_map(|(at, pattern)| Some((at, chosen(pattern)?)))
}

/// The number of elements to write where any number is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListLength {
    Filled,
    Empty,
}

/// A builder for values of two patterns without repeated holes.
#[derive(Debug, Clone, Copy)]
struct Building<'s> {
    lists: ListLength,
    policy: MemberPolicy,
    /// The number of positions that may still be compared.
    steps: &'s Cell<usize>,
}

impl Building<'_> {
    /// Returns a value that has the literals and types of both patterns, or `None` if there is none or the steps are
    /// used up.
    fn both(self, one: &Pattern, other: &Pattern) -> Option<Json> {
        self.steps.set(self.steps.get().checked_sub(1)?);
        match (one, other) {
            (Pattern::Either(either), pattern) | (pattern, Pattern::Either(either)) => {
                self.either(either, pattern)
            }
            (Pattern::Hole(slot), pattern) | (pattern, Pattern::Hole(slot))
                if matches_all(slot) =>
            {
                self.some(pattern)
            }
            (Pattern::Literal(value), pattern) | (pattern, Pattern::Literal(value)) => {
                reads(pattern, value, self.policy).then(|| value.clone())
            }
            (Pattern::Hole(one), Pattern::Hole(other)) => hole_values(one, other),
            (Pattern::Hole(slot), pattern) | (pattern, Pattern::Hole(slot))
                if matches!(slot.codec, Codec::Keys(_)) =>
            {
                // If the keys of one alternative do not come back, those of another may.
                let is_one_of_several = chosen(pattern).is_some();
                self.some(pattern)
                    .filter(|found| is_one_of_several || slot.read_json(Some(found), DEPTH).is_ok())
            }
            (Pattern::Text(_), Pattern::Text(_) | Pattern::Hole(_))
            | (Pattern::Hole(_), Pattern::Text(_)) => text(one, other),
            (Pattern::Hole(slot), Pattern::Object(_)) => self
                .some(other)
                .filter(|found| slot.read_json(Some(found), DEPTH).is_ok()),
            (Pattern::Object(_), Pattern::Hole(slot)) => self
                .some(one)
                .filter(|found| slot.read_json(Some(found), DEPTH).is_ok()),
            (Pattern::Hole(slot), array @ (Pattern::List(_) | Pattern::Each(_)))
            | (array @ (Pattern::List(_) | Pattern::Each(_)), Pattern::Hole(slot)) => {
                let item = Box::new(element(slot, &slot.shape)?);
                let holes = Vec::new();
                self.both(&Pattern::Each(EachPattern { item, holes }), array)
            }
            (Pattern::Object(one), Pattern::Object(other)) => self.objects(one, other),
            (Pattern::List(one), Pattern::List(other)) => self.lists(one, other),
            (Pattern::List(list), Pattern::Each(each))
            | (Pattern::Each(each), Pattern::List(list)) => {
                let items = list.items.iter().take(list.least());
                let items = items.map(|item| self.both(item, &each.item));
                Some(array(&items.collect::<Option<Vec<_>>>()?))
            }
            (Pattern::Each(one), Pattern::Each(other)) => Some(match self.lists {
                ListLength::Filled => array(&Vec::from_iter(self.both(&one.item, &other.item))),
                ListLength::Empty => array(&[]),
            }),
            (Pattern::Text(_) | Pattern::Object(_) | Pattern::List(_) | Pattern::Each(_), _) => {
                None
            }
        }
    }

    /// Returns a value of one alternative and a pattern, if possible one that both read.
    fn either(self, either: &EitherPattern, other: &Pattern) -> Option<Json> {
        let mut nearest = None;
        for alternative in &either.alternatives {
            let Some(found) = self.both(alternative, other) else {
                continue;
            };
            if reads(alternative, &found, self.policy) && reads(other, &found, self.policy) {
                return Some(found);
            }
            nearest = nearest.or(Some(found));
        }
        nearest
    }

    /// Returns a value of a pattern, if it has any.
    fn some(self, pattern: &Pattern) -> Option<Json> {
        match pattern {
            Pattern::Literal(value) => Some(value.clone()),
            Pattern::Hole(slot) => values_of(slot).into_iter().next(),
            Pattern::Text(_) => text(pattern, &anything()),
            Pattern::Object(object) => {
                let members = object.members.iter();
                let required = members.filter(|(_, member)| !member.may_be_absent());
                let filled =
                    required.map(|(name, member)| Some((name.as_str(), self.some(member)?)));
                Some(self::object(&filled.collect::<Option<Vec<_>>>()?))
            }
            Pattern::List(list) => {
                let items = list.items.iter().take(list.least());
                Some(array(
                    &items
                        .map(|item| self.some(item))
                        .collect::<Option<Vec<_>>>()?,
                ))
            }
            Pattern::Each(each) => Some(match self.lists {
                ListLength::Filled => array(&Vec::from_iter(self.some(&each.item))),
                ListLength::Empty => array(&[]),
            }),
            Pattern::Either(either) => {
                let mut alternatives = either.alternatives.iter();
                alternatives.find_map(|alternative| self.some(alternative))
            }
        }
    }

    fn objects(self, one: &ObjectPattern, other: &ObjectPattern) -> Option<Json> {
        let mut members = Vec::new();
        let more = other
            .members
            .iter()
            .filter(|(name, _)| named(one, name).is_none());
        for (name, _) in one.members.iter().chain(more) {
            let rules = (self.at(one, name), self.at(other, name));
            let value = match rules {
                (MemberRule::Named(one), MemberRule::Named(other)) => {
                    if one.may_be_absent() && other.may_be_absent() {
                        continue;
                    }
                    self.members(one, other)?
                }
                (MemberRule::Named(pattern), rule) | (rule, MemberRule::Named(pattern)) => {
                    match (pattern.may_be_absent(), rule) {
                        (true, _) => continue,
                        (false, MemberRule::Anything) => self.some(pattern)?,
                        (false, MemberRule::Nothing | MemberRule::Named(_)) => return None,
                    }
                }
                (MemberRule::Anything | MemberRule::Nothing, _) => continue,
            };
            members.push((name.as_str(), value));
        }
        Some(object(&members))
    }

    /// Returns a value of a member that both name.
    fn members(self, one: &Pattern, other: &Pattern) -> Option<Json> {
        let either = is_nullable(one, self.policy) || is_nullable(other, self.policy);
        let null = || {
            let mut both = [one, other].into_iter();
            both.all(|member| member_matches_null(member, self.policy))
                .then(|| Json::literal("null"))
        };
        let common = self.both(one, other);
        if either { common.or_else(null) } else { common }
    }

    /// Returns the rule of an object for a member.
    fn at<'o>(self, object: &'o ObjectPattern, name: &str) -> MemberRule<'o> {
        match named(object, name) {
            Some(pattern) => MemberRule::Named(pattern),
            None if is_unopened(object) => MemberRule::Anything,
            None if self.policy.is_loose(object) && self.policy.allows(object, name) => {
                MemberRule::Anything
            }
            None => MemberRule::Nothing,
        }
    }

    fn lists(self, one: &ListPattern, other: &ListPattern) -> Option<Json> {
        let length = one.least().max(other.least());
        let any = anything();
        let at = |list: &'_ ListPattern, index: usize| match list.items.get(index) {
            Some(item) => Some(item.clone()),
            None => list.rest.as_ref().map(|_| any.clone()),
        };
        let items = (0..length).map(|index| self.both(&at(one, index)?, &at(other, index)?));
        Some(array(&items.collect::<Option<Vec<_>>>()?))
    }
}

/// The rule of an object for a member.
enum MemberRule<'o> {
    Named(&'o Pattern),
    Anything,
    Nothing,
}

/// Returns a string that matches both patterns.
fn text(one: &Pattern, other: &Pattern) -> Option<Json> {
    let common = |fit: Fit| {
        let found = texts_of(one, fit)?.common_text(&texts_of(other, fit)?);
        found.map(|text| Json::string(&text))
    };
    common(Fit::Below).or_else(|| common(Fit::Above))
}

/// Returns a value that both holes accept.
fn hole_values(one: &Slot, other: &Slot) -> Option<Json> {
    let mut values = values_of(one).into_iter().chain(values_of(other));
    values.find(|value| {
        [one, other]
            .iter()
            .all(|slot| slot.read_json(Some(value), DEPTH).is_ok())
    })
}
