//! The `Location` of a created resource (RFC 9110 §15.3.2), made of what both documents say.
//!
//! The address is the path of the operation that gets the resource, with a member of the result. Law: without such an
//! operation, or without such a member in the result of the tool, there is no address.
//!
//! Used by `import::table` and `import::tool_rows`.

use crate::import::drafted::Pattern;
use crate::import::model::{RestOperation, RpcOperation, Segment};
use crate::import::name_words;
use crate::import::shape::{Shape, ShapeMember};
use crate::import::values::{Bindings, RestLocation};

/// The operation that gets a created resource: that of the collection, with one parameter at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::import) struct ItemPath {
    /// `GET /orders/{orderId}`
    title: String,
    /// The segments, without the parameter.
    collection: Vec<Segment>,
    parameter: String,
}

/// The address of a created resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address<'a> {
    item: &'a ItemPath,
    /// The member of the body with the value of the parameter.
    member: &'a str,
}

impl ItemPath {
    /// Finds the operation that gets what `create` makes; `None` if there is none, or more than one.
    pub(in crate::import) fn find(
        create: &RestOperation,
        all: &[RestOperation],
    ) -> Option<ItemPath> {
        let collection = trimmed(&create.segments);
        let items = all.iter().filter_map(|get| {
            let is_near = get.method == "GET" && get.document == create.document;
            let (last, before) = trimmed(&get.segments).split_last().filter(|_| is_near)?;
            let Segment::Hole { name, verb: None } = last else {
                return None;
            };
            let is_item = before.len() == collection.len()
                && before
                    .iter()
                    .zip(collection)
                    .all(|(one, other)| same(one, other));
            is_item.then(|| ItemPath {
                title: get.title(),
                collection: collection.to_vec(),
                parameter: name.clone(),
            })
        });
        let mut items = items.take(2);
        let item = items.next()?;
        items.next().is_none().then_some(item)
    }

    /// Finds the member of the body with the value of the parameter, which the tool's result must have, too.
    pub(super) fn address<'a>(
        &'a self,
        body: &'a Shape,
        rpc: &RpcOperation,
    ) -> Option<Address<'a>> {
        let member = named(body, &self.parameter)?;
        let result = rpc.result.as_ref()?;
        let inside = match result {
            Shape::Object(members) => members.iter().map(|member| &member.shape).collect(),
            Shape::Any | Shape::Scalar(_) | Shape::List(_) => Vec::new(),
        };
        let mut values = std::iter::once(result).chain(inside);
        values
            .any(|value| named(value, &member.name).is_some())
            .then_some(Address {
                item: self,
                member: &member.name,
            })
    }
}

impl Address<'_> {
    /// Returns the note for a reader of the route.
    pub(super) fn note(&self) -> String {
        format!(
            "`location` of the 201 is the path of `{}`, with `{}` of the result",
            self.item.title, self.member
        )
    }

    /// Returns the patterns of body and result with a hole for the member, and the pattern of the header.
    pub(super) fn write(
        &self,
        rest: Pattern,
        rpc: Pattern,
        bindings: &Bindings,
    ) -> Option<(Pattern, Pattern, Pattern)> {
        let (rest, rpc) = match rest {
            Pattern::Text(whole) => {
                let mut names = bindings.names.clone();
                names.unique(whole.trim_matches(['{', '}']));
                let hole = format!("{{{}}}", names.unique(self.member));
                let open = Pattern::Object(vec![
                    (self.member.to_owned(), Pattern::Text(hole)),
                    ("...".to_owned(), Pattern::Text(whole.clone())),
                ]);
                let rpc = replaced(rpc, &Pattern::Text(whole), &open);
                (open, rpc)
            }
            Pattern::Object(_) | Pattern::List(_) | Pattern::Literal(_) => (rest, rpc),
        };
        let Pattern::Object(members) = &rest else {
            return None;
        };
        let own = members.iter().find(|(name, _)| name == self.member);
        let Some((_, Pattern::Text(hole))) = own else {
            return None;
        };
        let hole = hole.strip_prefix('{')?.strip_suffix('}')?;
        let name = hole.strip_prefix('>').unwrap_or(hole);
        let is_plain = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let header = self.path(bindings)? + &format!("/{{>{name}}}");
        is_plain.then_some((rest, rpc, Pattern::Text(header)))
    }

    /// Renders the path of the collection. Its parameters are those of the call.
    fn path(&self, bindings: &Bindings) -> Option<String> {
        let mut path = String::new();
        for segment in &self.item.collection {
            path.push('/');
            match segment {
                Segment::Literal(text) => {
                    path.push_str(&text.replace('{', "{{").replace('}', "}}"));
                }
                Segment::Hole { name, verb } => {
                    let mut bounds = bindings.bounds.iter();
                    let bound = bounds.find(|bound| match &bound.rest {
                        RestLocation::Path(own) => own == name,
                        RestLocation::Query(_)
                        | RestLocation::Header(_)
                        | RestLocation::Member(_)
                        | RestLocation::Body => false,
                    });
                    path.push_str(&format!("{{>{}}}", bound?.hole));
                    if let Some(verb) = verb {
                        path.push_str(&format!(":{verb}"));
                    }
                }
            }
        }
        Some(path)
    }
}

/// Returns the segments without the empty one after a slash at the end.
fn trimmed(segments: &[Segment]) -> &[Segment] {
    match segments.split_last() {
        Some((Segment::Literal(text), before)) if text.is_empty() => before,
        Some(_) | None => segments,
    }
}

fn same(one: &Segment, other: &Segment) -> bool {
    match (one, other) {
        (Segment::Literal(one), Segment::Literal(other)) => one == other,
        (Segment::Hole { verb: one, .. }, Segment::Hole { verb: other, .. }) => one == other,
        (Segment::Literal(_) | Segment::Hole { .. }, _) => false,
    }
}

/// Returns the required member of this name: a text or a number.
fn named<'s>(shape: &'s Shape, name: &str) -> Option<&'s ShapeMember> {
    let Shape::Object(members) = shape else {
        return None;
    };
    let rules: [fn(&str, &str) -> bool; 3] = [
        |one, other| one == other,
        name_words::same_name,
        name_words::same_end,
    ];
    let found = rules
        .iter()
        .find_map(|rule| members.iter().find(|member| rule(&member.name, name)));
    found.filter(|member| {
        member.is_required && matches!(member.shape, Shape::Scalar("string" | "integer" | "number"))
    })
}

/// Replaces each occurrence of a pattern.
fn replaced(pattern: Pattern, old: &Pattern, new: &Pattern) -> Pattern {
    if pattern == *old {
        return new.clone();
    }
    match pattern {
        Pattern::Object(members) => Pattern::Object(
            members
                .into_iter()
                .map(|(name, value)| (name, replaced(value, old, new)))
                .collect(),
        ),
        Pattern::Text(_) | Pattern::Literal(_) | Pattern::List(_) => pattern,
    }
}
