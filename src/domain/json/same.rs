//! Equality of values, as exact as their texts allow.
//!
//! Laws: an equivalence; white space, the order of members and the spelling of strings do not matter; numbers are
//! equal by their text (`1.0` is not `1`). The cost is that of reading both once and of sorting members.

use std::borrow::Cow;
use std::ops::Range;

use super::skip::{skip_scalar, skip_string, skip_white};
use super::{Json, Kind, decode, kind_of};

impl Json {
    /// Whether both are the same value. A name given several times has the same values in the same order; a
    /// string with a lone surrogate, which is no Unicode text, is the same as its own spelling only.
    #[must_use]
    pub fn same(&self, other: &Json) -> bool {
        let (one, other) = (self.as_bytes(), other.as_bytes());
        if one == other {
            return true;
        }
        match (kind_of(one), kind_of(other)) {
            (Kind::Object, Kind::Object) | (Kind::Array, Kind::Array) => {
                Tree::read(one).root().same(&Tree::read(other).root())
            }
            (Kind::String, Kind::String) => Spelled::read(one) == Spelled::read(other),
            // Of the other kinds a text has one spelling only.
            _ => false,
        }
    }
}

/// A text that is equal to another where both mean the same.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Spelled<'a> {
    /// A Unicode text, decoded.
    Text(Cow<'a, str>),
    /// Another string, as it is spelled.
    Raw(&'a [u8]),
}

impl Spelled<'_> {
    /// Reads a string with its quotes.
    fn read(quoted: &[u8]) -> Spelled<'_> {
        let inner = quoted
            .get(1..quoted.len().saturating_sub(1))
            .unwrap_or_default();
        decode(inner).map_or(Spelled::Raw(inner), Spelled::Text)
    }
}

/// All values of a text, each before those inside it: found in one pass, so that depth costs nothing.
struct Tree<'a> {
    text: &'a [u8],
    nodes: Vec<Node>,
}

struct Node {
    /// The name with its quotes, of a member; empty otherwise.
    name: Range<usize>,
    /// The value.
    value: Range<usize>,
    /// The first node that is not inside this one.
    next: usize,
}

impl Tree<'_> {
    fn read(text: &[u8]) -> Tree<'_> {
        let mut nodes: Vec<Node> = Vec::new();
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
            nodes.push(Node {
                name: std::mem::take(&mut name),
                value: start..at,
                next: nodes.len() + 1,
            });
        }
        Tree { text, nodes }
    }

    fn root(&self) -> Branch<'_> {
        Branch {
            tree: self,
            index: 0,
        }
    }
}

/// One value of a tree, with what is inside it.
#[derive(Clone, Copy)]
struct Branch<'a> {
    tree: &'a Tree<'a>,
    index: usize,
}

impl<'a> Branch<'a> {
    fn node(&self) -> &'a Node {
        &self.tree.nodes[self.index]
    }

    fn value(&self) -> &'a [u8] {
        &self.tree.text[self.node().value.clone()]
    }

    fn name(&self) -> Spelled<'a> {
        Spelled::read(&self.tree.text[self.node().name.clone()])
    }

    fn children(&self) -> impl Iterator<Item = Branch<'a>> + use<'a> {
        let (tree, end) = (self.tree, self.node().next);
        let first = self.index + 1;
        let inside = move |index: usize| (index < end).then_some(Branch { tree, index });
        std::iter::successors(inside(first), move |child| inside(child.node().next))
    }

    fn same(&self, other: &Branch<'_>) -> bool {
        let (one, two) = (self.value(), other.value());
        match (kind_of(one), kind_of(two)) {
            (Kind::Array, Kind::Array) => {
                let (mut one, mut two) = (self.children(), other.children());
                loop {
                    match (one.next(), two.next()) {
                        (None, None) => return true,
                        (Some(one), Some(two)) if one.same(&two) => {}
                        (Some(_), _) | (None, _) => return false,
                    }
                }
            }
            (Kind::Object, Kind::Object) => {
                let (one, two) = (self.sorted(), other.sorted());
                one.len() == two.len()
                    && one.iter().zip(&two).all(|(one, two)| one.0 == two.0)
                    && one.iter().zip(&two).all(|(one, two)| one.1.same(&two.1))
            }
            (Kind::String, Kind::String) => one == two || Spelled::read(one) == Spelled::read(two),
            _ => one == two,
        }
    }

    /// The members by name; of one name, in their order.
    fn sorted(&self) -> Vec<(Spelled<'a>, Branch<'a>)> {
        let members = self.children().map(|member| (member.name(), member));
        let mut members: Vec<_> = members.collect();
        members.sort_by(|one, two| one.0.cmp(&two.0));
        members
    }
}
