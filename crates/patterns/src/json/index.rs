//! An index of a valid JSON text as a tree of ranges: built in one pass without recursion or copies.

use std::borrow::Cow;
use std::ops::Range;

use super::trusted_scan::{skip_scalar, skip_string, skip_white};
use super::{JsonKind, decode, kind_of};

/// A string in comparable form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spelled<'a> {
    /// Decoded Unicode text.
    Text(Cow<'a, str>),
    /// A string that is not Unicode text, in its raw spelling.
    Raw(&'a [u8]),
}

impl<'a> Spelled<'a> {
    /// Reads a string with its quotes.
    pub fn read(quoted: &'a [u8]) -> Spelled<'a> {
        let inner = quoted
            .get(1..quoted.len().saturating_sub(1))
            .unwrap_or_default();
        decode(inner).map_or(Spelled::Raw(inner), Spelled::Text)
    }

    /// Returns the text, or the raw spelling.
    pub fn shown(&self) -> Cow<'_, str> {
        match self {
            Spelled::Text(text) => Cow::Borrowed(text),
            Spelled::Raw(spelling) => String::from_utf8_lossy(spelling),
        }
    }
}

/// All values of a text, each before its children.
pub struct JsonIndex<'a> {
    text: &'a [u8],
    nodes: Vec<IndexNode>,
}

struct IndexNode {
    /// The quoted name of a member; empty for other values.
    name: Range<usize>,
    /// The value.
    value: Range<usize>,
    /// The first node after this one's descendants.
    next: usize,
}

impl<'a> JsonIndex<'a> {
    /// Indexes a text that is known to be valid.
    pub fn read(text: &'a [u8]) -> JsonIndex<'a> {
        let mut nodes: Vec<IndexNode> = Vec::new();
        let mut open = Vec::new();
        let mut name = 0..0;
        let mut at = 0;
        while let Some(byte) = text.get(at) {
            let start = at;
            at = match byte {
                b'{' | b'[' => {
                    open.push(nodes.len());
                    at + 1
                }
                b'}' | b']' => {
                    let next = nodes.len();
                    if let Some(node) = open.pop().and_then(|index| nodes.get_mut(index)) {
                        node.value.end = at + 1;
                        node.next = next;
                    }
                    at += 1;
                    continue;
                }
                b'"' => skip_string(text, at).0,
                b',' | b':' | b' ' | b'\n' | b'\r' | b'\t' => {
                    at += 1;
                    continue;
                }
                _ => skip_scalar(text, at),
            };
            if *byte == b'"' && text.get(skip_white(text, at)) == Some(&b':') {
                name = start..at;
                continue;
            }
            nodes.push(IndexNode {
                name: std::mem::take(&mut name),
                value: start..at,
                next: nodes.len() + 1,
            });
        }
        JsonIndex { text, nodes }
    }

    /// Returns the whole value.
    #[inline]
    pub fn root(&self) -> Value<'_> {
        Value {
            tree: self,
            index: 0,
        }
    }
}

/// One value of the tree, with its descendants.
#[derive(Clone, Copy)]
pub struct Value<'a> {
    tree: &'a JsonIndex<'a>,
    index: usize,
}

impl<'a> Value<'a> {
    fn node(&self) -> &'a IndexNode {
        &self.tree.nodes[self.index]
    }

    /// Returns its text.
    #[inline]
    pub fn value(&self) -> &'a [u8] {
        &self.tree.text[self.node().value.clone()]
    }

    /// Returns its kind.
    #[inline]
    pub fn kind(&self) -> JsonKind {
        kind_of(self.value())
    }

    /// Returns the name of a member.
    #[inline]
    pub fn name(&self) -> Spelled<'a> {
        Spelled::read(&self.tree.text[self.node().name.clone()])
    }

    /// Iterates over the elements or members, in order.
    pub fn children(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let (tree, end) = (self.tree, self.node().next);
        let first = self.index + 1;
        let inside = move |index: usize| (index < end).then_some(Value { tree, index });
        std::iter::successors(inside(first), move |child| inside(child.node().next))
    }

    /// Returns whether both are the same value; see [`super::Json::same`].
    pub fn same(&self, other: &Value<'_>) -> bool {
        let (one, two) = (self.value(), other.value());
        match (self.kind(), other.kind()) {
            (JsonKind::Array, JsonKind::Array) => {
                let (mut one, mut two) = (self.children(), other.children());
                loop {
                    match (one.next(), two.next()) {
                        (None, None) => return true,
                        (Some(one), Some(two)) if one.same(&two) => {}
                        (Some(_), _) | (None, _) => return false,
                    }
                }
            }
            (JsonKind::Object, JsonKind::Object) => {
                let (one, two) = (self.sorted(), other.sorted());
                one.len() == two.len()
                    && one.iter().zip(&two).all(|(one, two)| one.0 == two.0)
                    && one.iter().zip(&two).all(|(one, two)| one.1.same(&two.1))
            }
            (JsonKind::String, JsonKind::String) => {
                one == two || Spelled::read(one) == Spelled::read(two)
            }
            _ => one == two,
        }
    }

    /// Returns the members sorted by name; members of one name keep their order.
    pub fn sorted(&self) -> Vec<(Spelled<'a>, Value<'a>)> {
        let members = self.children().map(|member| (member.name(), member));
        let mut members: Vec<_> = members.collect();
        members.sort_by(|one, two| one.0.cmp(&two.0));
        members
    }
}
