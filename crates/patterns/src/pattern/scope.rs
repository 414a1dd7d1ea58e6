//! Scopes of holes: a hole inside of an alternative is local to it.
//!
//! The scope of a hole identifies the alternatives around it by the names of their holes. So both sides of a pair get
//! the same scopes independently.

use std::collections::HashMap;

use super::hole_syntax::{HoleRef, HoleUse};
use super::slot::{Scalar, Shape};
use super::{EitherPattern, Pattern, TextPart};

/// The number of alternatives with the same holes in one scope, so far.
type Counts = HashMap<String, usize>;

/// Sets the scopes of all holes of a whole pattern.
pub(super) fn assign(pattern: &mut Pattern<HoleRef>) {
    within(pattern, "", &mut Counts::new());
}

fn within(pattern: &mut Pattern<HoleRef>, scope: &str, counts: &mut Counts) {
    let set = |mention: &mut HoleRef| scope.clone_into(&mut mention.scope);
    match pattern {
        Pattern::Literal(_) => {}
        Pattern::Hole(mention) => set(mention),
        Pattern::Text(text) => {
            for part in &mut text.parts {
                if let TextPart::Hole(mention) = part {
                    set(mention);
                }
            }
        }
        Pattern::Object(object) => {
            for (_, member) in &mut object.members {
                within(member, scope, counts);
            }
            object.rest.iter_mut().for_each(set);
        }
        Pattern::List(list) => {
            for item in &mut list.items {
                within(item, scope, counts);
            }
            list.rest.iter_mut().for_each(set);
        }
        Pattern::Each(each) => within(&mut each.item, scope, counts),
        Pattern::Either(either) => alternatives(either, scope, counts),
    }
}

fn alternatives(either: &mut EitherPattern<HoleRef>, scope: &str, counts: &mut Counts) {
    let signature = signature(&either.alternatives);
    let Some(choice) = &mut either.choice else {
        // Each form spells the same values, so each counts from the same number.
        let before = counts.clone();
        for form in &mut either.alternatives {
            counts.clone_from(&before);
            within(form, scope, counts);
        }
        return;
    };
    let scope = format!("{scope}/{signature}");
    let count = counts.entry(scope.clone()).or_default();
    let scope = format!("{scope}#{count}");
    *count += 1;
    choice.scope.clone_from(&scope);
    let numbers = (1..=either.alternatives.len()).map(|number| number.to_string());
    choice.shape = Some(Shape::One(Scalar::Enum(numbers.collect())));
    for (index, alternative) in either.alternatives.iter_mut().enumerate() {
        within(alternative, &format!("{scope}.{index}"), counts);
    }
}

/// Returns the names of the holes of each alternative.
fn signature(alternatives: &[Pattern<HoleRef>]) -> String {
    let alternatives = alternatives.iter().map(|alternative| {
        let mut names = Vec::new();
        collect(alternative, &mut names);
        names.sort();
        names.dedup();
        names.join(",")
    });
    alternatives.collect::<Vec<_>>().join("|")
}

fn collect(pattern: &Pattern<HoleRef>, names: &mut Vec<String>) {
    let mut add = |mention: &HoleRef| {
        if mention.used == HoleUse::Both && mention.name != "_" {
            names.push(mention.name.clone());
        }
    };
    match pattern {
        Pattern::Literal(_) => {}
        Pattern::Hole(_) | Pattern::Text(_) => pattern.slots(&mut add),
        Pattern::Object(object) => {
            object.rest.iter().for_each(&mut add);
            for (_, member) in &object.members {
                collect(member, names);
            }
        }
        Pattern::List(list) => {
            list.rest.iter().for_each(&mut add);
            for item in &list.items {
                collect(item, names);
            }
        }
        Pattern::Each(each) => collect(&each.item, names),
        Pattern::Either(either) if either.choice.is_some() => {
            names.push(format!("({})", signature(&either.alternatives)));
        }
        Pattern::Either(either) => {
            for form in &either.alternatives {
                collect(form, names);
            }
        }
    }
}

/// Returns the scope itself and those around it, from the inside to the outside.
pub(super) fn enclosing(scope: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(scope), |inner| inner.rfind('/').map(|at| &inner[..at]))
}

/// Returns the scope of the choice that a hole in this scope belongs to, and the alternative.
pub(super) fn choice(scope: &str) -> Option<(&str, usize)> {
    let (choice, index) = scope.rsplit_once('.')?;
    Some((choice, index.parse().ok()?))
}
