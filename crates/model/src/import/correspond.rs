//! The correspondence of two bodies: the one that REST clients expect, and the value of a tool.
//!
//! Members correspond if their names are equal, differ in signs and case only, or as `petId` and `id` do; a single list
//! or object without a twin corresponds to that of the other side. A value that is wrapped in an object of the tool is
//! unwrapped. Laws: bodies of equal shape are the same; the patterns of both sides have the same holes.
//!
//! Used by `import::tool_rows`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::drafted::Pattern;
use super::hole::{self, HoleNames};
use super::name_words;
use super::refs::shown;
use super::shape::{Shape, ShapeMember};

/// The most members of one object that are compared.
const MOST_MEMBERS: usize = 200;

/// The relation of two bodies.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Correspondence {
    /// The same JSON.
    Same,
    /// Two patterns with the same holes.
    Mapped { rest: Pattern, rpc: Pattern },
    /// Nothing in common.
    None,
}

/// The form of objects and lists that may be absent: a pattern cannot say that one with named parts is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AbsentParts {
    /// Their parts are named, as if they were always there.
    Named,
    /// They are copied as they are.
    Copied,
}

/// The comparison of two bodies.
pub(super) struct Comparison<'c> {
    /// The names of holes that are in use.
    pub(super) names: HoleNames,
    /// Returns the hole of the call with a value of this name.
    pub(super) in_call: &'c dyn Fn(&str) -> Option<String>,
    /// The form of objects and lists that may be absent.
    pub(super) absent: AbsentParts,
    /// The differences that a person should know.
    pub(super) notes: Vec<String>,
}

impl Comparison<'_> {
    /// Compares the body of the REST side with the value of a tool.
    pub(super) fn bodies(&mut self, rest: &Shape, rpc: &Shape) -> Correspondence {
        let direct = score(rest, rpc);
        let wrapped = wrapped(rest, rpc, direct);
        let Some(wrapper) = wrapped else {
            return self.values(rest, rpc, "");
        };
        let inner = self.values(rest, &wrapper.shape, "");
        let (body, value) = match inner {
            Correspondence::Same | Correspondence::None => {
                let hole = self.names.unique(&wrapper.name);
                let hole = Pattern::Text(format!("{{{hole}}}"));
                (hole.clone(), hole)
            }
            Correspondence::Mapped { rest, rpc } => (rest, rpc),
        };
        let mut members = vec![(wrapper.name.clone(), value)];
        if let Shape::Object(all) = rpc {
            let others = all.iter().filter(|member| member.name != wrapper.name);
            self.fill(others, &mut members);
        }
        Correspondence::Mapped {
            rest: body,
            rpc: Pattern::Object(members),
        }
    }

    fn values(&mut self, rest: &Shape, rpc: &Shape, place: &str) -> Correspondence {
        match (rest, rpc) {
            (Shape::Any, _) | (_, Shape::Any) => Correspondence::Same,
            (Shape::Scalar(one), Shape::Scalar(other)) => {
                let are_numbers = [one, other]
                    .iter()
                    .all(|kind| matches!(**kind, "integer" | "number"));
                if one != other && !are_numbers {
                    self.note(place, &format!("is {one} for REST and {other} for RPC"));
                }
                Correspondence::Same
            }
            (Shape::List(one), Shape::List(other)) => {
                let each = |element| Pattern::List(vec![Pattern::Text("*".to_owned()), element]);
                match self.values(one, other, place) {
                    Correspondence::Mapped { rest, rpc } => Correspondence::Mapped {
                        rest: each(rest),
                        rpc: each(rpc),
                    },
                    Correspondence::Same | Correspondence::None => Correspondence::Same,
                }
            }
            (Shape::Object(one), Shape::Object(other)) => self.objects(one, other, place),
            (Shape::Scalar(_) | Shape::List(_) | Shape::Object(_), _) => {
                self.note(place, "has another type for REST than for RPC");
                Correspondence::None
            }
        }
    }

    fn note(&mut self, place: &str, what: &str) {
        let subject = match place.is_empty() {
            true => "the body of the response".to_owned(),
            false => format!("`{}` of the response", shown(place)),
        };
        self.notes.push(format!("look: {subject} {what}"));
    }

    fn objects(
        &mut self,
        rest: &[ShapeMember],
        rpc: &[ShapeMember],
        place: &str,
    ) -> Correspondence {
        let twins = twins(rest, rpc);
        if twins.iter().all(Option::is_none) {
            self.note(place, "has no member of the tool's result");
            return Correspondence::None;
        }
        let mut is_same = true;
        let (mut body, mut value) = (Vec::new(), Vec::new());
        for (member, twin) in rest.iter().zip(&twins) {
            let Some(twin) = twin.map(|at| &rpc[at]) else {
                is_same &= !self.lacking(member, place, &mut body);
                continue;
            };
            let inside = match place.is_empty() {
                true => member.name.clone(),
                false => format!("{place}.{}", member.name),
            };
            if twin.is_nullable && !member.is_nullable && member.shape != Shape::Any {
                self.note(
                    &inside,
                    "may be `null` for RPC, which the REST document does not allow; REST clients get the `null`",
                );
            }
            let is_optional = !member.is_required || !twin.is_required;
            let (one, other) = match self.values(&member.shape, &twin.shape, &inside) {
                Correspondence::Mapped { .. }
                    if is_optional && self.absent == AbsentParts::Copied =>
                {
                    self.note(
                        &inside,
                        "may be absent; where a part is, it is copied as it is",
                    );
                    self.hole(member, is_optional)
                }
                Correspondence::Mapped { rest, rpc } => {
                    is_same = false;
                    (rest, rpc)
                }
                Correspondence::Same | Correspondence::None => self.hole(member, is_optional),
            };
            is_same &= member.name == twin.name;
            body.push((member.name.clone(), one));
            value.push((twin.name.clone(), other));
        }
        let paired: BTreeSet<usize> = twins.iter().flatten().copied().collect();
        let others = rpc.iter().enumerate();
        let others: Vec<&ShapeMember> = others
            .filter(|(at, _)| !paired.contains(at))
            .map(|(_, member)| member)
            .collect();
        if is_same && others.is_empty() {
            return Correspondence::Same;
        }
        self.fill(others.into_iter(), &mut value);
        Correspondence::Mapped {
            rest: Pattern::Object(body),
            rpc: Pattern::Object(value),
        }
    }

    fn hole(&mut self, member: &ShapeMember, is_optional: bool) -> (Pattern, Pattern) {
        let hole = self.names.unique(&member.name);
        let mark = if is_optional { "?" } else { "" };
        let hole = Pattern::Text(format!("{{{hole}{mark}}}"));
        (hole.clone(), hole)
    }

    /// Adds a member that the tool does not send, if its value is known. Returns true when it was added.
    fn lacking(
        &mut self,
        member: &ShapeMember,
        place: &str,
        body: &mut Vec<(String, Pattern)>,
    ) -> bool {
        let known = fixed(member).or_else(|| {
            let hole = (self.in_call)(&member.name);
            hole.map(|hole| format!("{{>{hole}}}"))
        });
        match known {
            Some(pattern) => {
                body.push((member.name.clone(), Pattern::Text(pattern)));
                true
            }
            None if member.is_required => {
                let name = shown(&member.name);
                self.note(
                    place,
                    &format!("has the member `{name}` for REST; the tool does not send it"),
                );
                false
            }
            None => false,
        }
    }

    /// Adds the members that only the tool has, if their values are known.
    fn fill<'m>(
        &mut self,
        members: impl Iterator<Item = &'m ShapeMember>,
        value: &mut Vec<(String, Pattern)>,
    ) {
        let mut unknown = Vec::new();
        for member in members {
            match fixed(member) {
                Some(pattern) => value.push((member.name.clone(), Pattern::Text(pattern))),
                None => unknown.push(format!("`{}`", shown(&member.name))),
            }
        }
        if !unknown.is_empty() {
            self.notes.push(format!(
                "look: only the tool's result has {}; REST clients do not get it, and RPC clients get none from the REST server",
                unknown.join(", ")
            ));
        }
    }
}

/// Returns the pattern that writes the only value of a member.
fn fixed(member: &ShapeMember) -> Option<String> {
    let spelled = match member.fixed.as_ref()? {
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => value.to_string(),
        Value::String(text) if hole::is_plain(text) => text.clone(),
        Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    Some(format!("{{_={spelled}}}"))
}

/// Returns the member of the tool's value that corresponds better to the body than the value itself.
fn wrapped<'s>(rest: &Shape, rpc: &'s Shape, direct: usize) -> Option<&'s ShapeMember> {
    let Shape::Object(members) = rpc else {
        return None;
    };
    let fits = |shape: &Shape| match (rest, shape) {
        (Shape::List(_), Shape::List(_)) | (Shape::Object(_), Shape::Object(_)) => true,
        (Shape::Scalar(one), Shape::Scalar(other)) => one == other,
        (Shape::Any, _) | (Shape::Scalar(_) | Shape::List(_) | Shape::Object(_), _) => false,
    };
    let fitting: Vec<&ShapeMember> = members
        .iter()
        .take(MOST_MEMBERS)
        .filter(|member| fits(&member.shape))
        .collect();
    let needs_one = matches!(rest, Shape::List(_) | Shape::Scalar(_));
    if let ([only], true) = (&fitting[..], needs_one) {
        return Some(only);
    }
    let scored = fitting
        .into_iter()
        .map(|member| (score(rest, &member.shape), member));
    let best = scored.reduce(|best, next| if next.0 > best.0 { next } else { best })?;
    (best.0 > direct).then_some(best.1)
}

/// Returns the number of corresponding members.
fn score(rest: &Shape, rpc: &Shape) -> usize {
    match (rest, rpc) {
        (Shape::Object(one), Shape::Object(other)) => twins(one, other).iter().flatten().count(),
        (Shape::List(one), Shape::List(other)) => 1 + score(one, other),
        (Shape::Any | Shape::Scalar(_) | Shape::List(_) | Shape::Object(_), _) => 0,
    }
}

/// Returns the member of the other side for each member.
fn twins(rest: &[ShapeMember], rpc: &[ShapeMember]) -> Vec<Option<usize>> {
    let (rest, rpc) = (
        &rest[..rest.len().min(MOST_MEMBERS)],
        &rpc[..rpc.len().min(MOST_MEMBERS)],
    );
    let mut found: Vec<Option<usize>> = vec![None; rest.len()];
    let rules: [fn(&str, &str) -> bool; 3] = [
        |one, other| one == other,
        name_words::same_name,
        name_words::same_end,
    ];
    for is_same in rules {
        pair(&mut found, rpc.len(), |one, other| {
            is_same(&rest[one].name, &rpc[other].name)
        });
    }
    // A single list or object on each side.
    let kinds: [fn(&Shape) -> bool; 2] = [
        |shape| matches!(shape, Shape::List(_)),
        |shape| matches!(shape, Shape::Object(_)),
    ];
    for is_kind in kinds {
        let free = |found: &[Option<usize>], at: usize| !found.contains(&Some(at));
        let mut ones =
            (0..rest.len()).filter(|at| found[*at].is_none() && is_kind(&rest[*at].shape));
        let mut others = (0..rpc.len()).filter(|at| free(&found, *at) && is_kind(&rpc[*at].shape));
        if let (Some(one), None, Some(other), None) =
            (ones.next(), ones.next(), others.next(), others.next())
        {
            found[one] = Some(other);
        }
    }
    found
}

/// Pairs the members without a twin under a rule, in their order.
fn pair(found: &mut [Option<usize>], count: usize, is_same: impl Fn(usize, usize) -> bool) {
    let mut free: BTreeSet<usize> = (0..count).collect();
    for at in found.iter().flatten() {
        free.remove(at);
    }
    for (one, twin) in found.iter_mut().enumerate() {
        if twin.is_none() {
            *twin = free.iter().copied().find(|other| is_same(one, *other));
            if let Some(at) = twin {
                free.remove(at);
            }
        }
    }
}
