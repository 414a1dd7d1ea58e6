//! Scopes of holes: a hole inside of an alternative is local to it.
//!
//! The scope of a hole identifies the alternatives around it by the names of their holes. So both sides of a pair get
//! the same scopes independently.

use std::collections::HashSet;

use super::hole_syntax::{HoleRef, HoleUse, PatternError};
use super::slot::{Scalar, Shape};
use super::{EitherPattern, Pattern, TextPart};

/// The scopes of the alternatives so far.
type Known = HashSet<String>;

/// Sets the scopes of all holes of a whole pattern.
///
/// # Errors
///
/// Fails if two sets of alternatives have the same holes, since only their order would pair them with the other side.
pub(super) fn assign(pattern: &mut Pattern<HoleRef>) -> Result<(), PatternError> {
    within(pattern, "", &mut Known::new())
}

fn within(
    pattern: &mut Pattern<HoleRef>,
    scope: &str,
    known: &mut Known,
) -> Result<(), PatternError> {
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
            for (name, member) in &mut object.members {
                within(member, scope, known).map_err(|error| error.under_member(name))?;
            }
            object.rest.iter_mut().for_each(set);
        }
        Pattern::List(list) => {
            for (index, item) in list.items.iter_mut().enumerate() {
                let assigned = within(item, scope, known);
                assigned.map_err(|error| error.under(&format!("[{index}]")))?;
            }
            list.rest.iter_mut().for_each(set);
        }
        Pattern::Each(each) => {
            within(&mut each.item, scope, known).map_err(|error| error.under("[1]"))?;
        }
        Pattern::Either(either) => alternatives(either, scope, known)?,
    }
    Ok(())
}

fn alternatives(
    either: &mut EitherPattern<HoleRef>,
    scope: &str,
    known: &mut Known,
) -> Result<(), PatternError> {
    let signature = signature(&either.alternatives);
    let under = |index: usize| move |error: PatternError| error.under(&format!("[{}]", index + 1));
    let Some(choice) = &mut either.choice else {
        // Each form spells the same values, so it may have the same alternatives as another form.
        let before = known.clone();
        for (index, form) in either.alternatives.iter_mut().enumerate() {
            let mut inside = before.clone();
            within(form, scope, &mut inside).map_err(under(index))?;
            known.extend(inside);
        }
        return Ok(());
    };
    let scope = format!("{scope}/{signature}");
    if !known.insert(scope.clone()) {
        let what = match signature.trim_matches('|') {
            "" => "two sets of alternatives have no holes, so only their order would pair them; write a value map, `{x:map(a=b)}`, in place of each".to_owned(),
            _ => format!(
                "two sets of alternatives have the holes `{signature}`; give them different names"
            ),
        };
        return Err(PatternError::new(what));
    }
    choice.scope.clone_from(&scope);
    let numbers = (1..=either.alternatives.len()).map(|number| number.to_string());
    choice.shape = Some(Shape::One(Scalar::Enum(numbers.collect())));
    for (index, alternative) in either.alternatives.iter_mut().enumerate() {
        within(alternative, &format!("{scope}.{index}"), known).map_err(under(index))?;
    }
    Ok(())
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
