//! The `Location` of a created resource (RFC 9110 §15.3.2), made of what both documents say.
//!
//! The address is the path of the operation that gets the resource, with a member of the result. Law: without such an
//! operation, or without such a member in the result of the tool, there is no address.
//!
//! Used by `import::table` and `import::tool_rows`.

use std::collections::BTreeMap;

use crate::import::drafted::Pattern;
use crate::import::model::{RestOperation, RpcOperation, Segment, SegmentPart};
use crate::import::name_words;
use crate::import::shape::{Shape, ShapeMember};
use crate::import::values::{Bindings, RestLocation};

/// The operations that get one resource, by the collection that it is in.
#[derive(Debug, Default)]
pub(in crate::import) struct ItemPaths<'o> {
    /// `None` for a collection with several such operations.
    by_collection: BTreeMap<Collection<'o>, Option<&'o RestOperation>>,
}

/// A document, and the segments of a collection without the names of their parameters.
type Collection<'o> = (usize, Vec<CollectionSegment<'o>>);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CollectionSegment<'o> {
    Literal(&'o str),
    Hole { verb: Option<&'o str> },
    Mixed(Vec<Option<&'o str>>),
}

/// The operation that gets a created resource: that of the collection, with one parameter at its end.
#[derive(Debug, Clone, Copy)]
pub(in crate::import) struct ItemPath<'o> {
    /// `GET /orders/{orderId}`
    get: &'o RestOperation,
    /// The segments of the operation that creates it. Their parameters are those of the call.
    collection: &'o [Segment],
}

/// The address of a created resource.
#[derive(Debug, Clone, Copy)]
pub(super) struct Address<'a> {
    item: ItemPath<'a>,
    /// The member of the body with the value of the parameter.
    member: &'a str,
}

impl<'o> ItemPaths<'o> {
    pub(in crate::import) fn new(all: &'o [RestOperation]) -> ItemPaths<'o> {
        let mut found = ItemPaths::default();
        for get in all.iter().filter(|one| one.method == "GET") {
            let last = trimmed(&get.segments).split_last();
            if let Some((Segment::Hole { verb: None, .. }, before)) = last {
                let known = found.by_collection.entry(collection(get.document, before));
                known.and_modify(|one| *one = None).or_insert(Some(get));
            }
        }
        found
    }

    /// Finds the operation that gets what `create` makes; `None` if there is none, or more than one.
    pub(in crate::import) fn of(&self, create: &'o RestOperation) -> Option<ItemPath<'o>> {
        let own = trimmed(&create.segments);
        let get = self.by_collection.get(&collection(create.document, own))?;
        Some(ItemPath {
            get: (*get)?,
            collection: own,
        })
    }
}

impl<'o> ItemPath<'o> {
    /// Returns the name of the parameter at the end.
    fn parameter(self) -> Option<&'o str> {
        match trimmed(&self.get.segments).last()? {
            Segment::Hole { name, verb: None } => Some(name),
            Segment::Hole { .. } | Segment::Literal(_) | Segment::Mixed(_) => None,
        }
    }

    /// Finds the member of the body with the value of the parameter, which the tool's result must have, too.
    pub(super) fn address<'a>(self, body: &'a Shape, rpc: &RpcOperation) -> Option<Address<'a>>
    where
        'o: 'a,
    {
        let member = named(body, self.parameter()?)?;
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
            self.item.get.title(),
            self.member
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
        let segments = &self.item.get.segments;
        // A path that ends in a slash is a resource of its own.
        let end = if trimmed(segments).len() < segments.len() {
            "/"
        } else {
            ""
        };
        let header = self.path(bindings)? + &format!("/{{>{name}}}{end}");
        is_plain.then_some((rest, rpc, Pattern::Text(header)))
    }

    /// Renders the path of the collection.
    fn path(&self, bindings: &Bindings) -> Option<String> {
        let mut path = String::new();
        for segment in self.item.collection {
            path.push('/');
            path.push_str(&segment.render(escaped, |name| of_call(name, bindings))?);
        }
        Some(path)
    }
}

/// Returns the pattern that writes a parameter of the path of the call.
fn of_call(name: &str, bindings: &Bindings) -> Option<String> {
    let mut bounds = bindings.bounds.iter();
    let bound = bounds.find(|bound| match &bound.rest {
        RestLocation::Path(own) => own == name,
        RestLocation::Query(_)
        | RestLocation::Header(_)
        | RestLocation::Member(_)
        | RestLocation::Body => false,
    });
    Some(format!("{{>{}}}", bound?.hole))
}

fn escaped(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

/// Returns the segments without the empty one after a slash at the end.
fn trimmed(segments: &[Segment]) -> &[Segment] {
    match segments.split_last() {
        Some((Segment::Literal(text), before)) if text.is_empty() => before,
        Some(_) | None => segments,
    }
}

/// Returns the key of a collection. Its parameters may have another name in each operation.
fn collection(document: usize, segments: &[Segment]) -> Collection<'_> {
    let segments = segments.iter().map(|segment| match segment {
        Segment::Literal(text) => CollectionSegment::Literal(text),
        Segment::Hole { verb, .. } => CollectionSegment::Hole {
            verb: verb.as_deref(),
        },
        Segment::Mixed(parts) => {
            let parts = parts.iter().map(|part| match part {
                SegmentPart::Text(text) => Some(text.as_str()),
                SegmentPart::Hole(_) => None,
            });
            CollectionSegment::Mixed(parts.collect())
        }
    });
    (document, segments.collect())
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
