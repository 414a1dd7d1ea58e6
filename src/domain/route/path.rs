//! Paths: cut into segments, matched against the templates of all routes at once.
//!
//! Segments are compared in normal form. A path with empty or dot segments is irregular: it is never
//! matched as it is, only asked whether it would name a route after normalising.

use std::borrow::Cow;

use http::Method;

use super::names::ByName;
use super::siblings::Group;
use super::{Route, SegmentPattern, Template};
use crate::domain::percent::normalise;

/// A path, cut at its slashes.
#[derive(Debug, Clone)]
pub struct Segments<'a> {
    raw: Raw<'a>,
    irregular: Option<PathError>,
}

/// A list that is kept in place while it is short: few paths are long.
#[derive(Debug, Clone)]
enum Raw<'a> {
    Few([&'a str; FEW], usize),
    Many(Vec<&'a str>),
}

const FEW: usize = 6;

impl<'a> Raw<'a> {
    const NONE: Raw<'static> = Raw::Few([""; FEW], 0);

    #[inline]
    fn push(&mut self, segment: &'a str) {
        if let Raw::Few(few, count) = self
            && let Some(place) = few.get_mut(*count)
        {
            *place = segment;
            *count += 1;
        } else {
            self.push_to_many(segment);
        }
    }

    #[cold]
    fn push_to_many(&mut self, segment: &'a str) {
        match self {
            Raw::Few(few, count) => {
                let mut many = few[..*count].to_vec();
                many.push(segment);
                *self = Raw::Many(many);
            }
            Raw::Many(many) => many.push(segment),
        }
    }

    fn pop(&mut self) {
        match self {
            Raw::Few(_, count) => *count = count.saturating_sub(1),
            Raw::Many(many) => drop(many.pop()),
        }
    }

    fn as_slice(&self) -> &[&'a str] {
        match self {
            Raw::Few(few, count) => &few[..*count],
            Raw::Many(many) => many,
        }
    }
}

/// Why two programs may read a path in two ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// `//`, or a slash at the end.
    #[error("an empty segment")]
    EmptySegment,
    /// `.` or `..`, plain or percent-encoded.
    #[error("a dot segment")]
    DotSegment,
}

impl<'a> Segments<'a> {
    /// Cuts a path; `/` has no segments.
    #[must_use]
    pub fn split(path: &'a str) -> Segments<'a> {
        let mut split = Segments {
            raw: Raw::NONE,
            irregular: None,
        };
        let inside = path.strip_prefix('/').unwrap_or(path);
        if inside.is_empty() {
            return split;
        }
        let mut start = 0;
        let (words, last) = inside.as_bytes().as_chunks::<8>();
        for (index, word) in words.iter().enumerate() {
            let mut slashes = slashes(*word);
            while slashes != 0 {
                let place = index * 8 + slashes.trailing_zeros() as usize / 8;
                split.add(&inside[start..place]);
                start = place + 1;
                slashes &= slashes - 1;
            }
        }
        let behind = words.len() * 8;
        for (index, byte) in last.iter().enumerate() {
            if *byte == b'/' {
                split.add(&inside[start..behind + index]);
                start = behind + index + 1;
            }
        }
        split.add(&inside[start..]);
        split
    }

    #[inline]
    fn add(&mut self, segment: &'a str) {
        // A dot segment begins with a dot, or with one that is escaped.
        if let None | Some(b'.' | b'%') = segment.as_bytes().first() {
            self.irregular = self.irregular.or(fault(segment));
        }
        self.raw.push(segment);
    }

    /// What is irregular about the path, if anything is.
    #[must_use]
    pub fn irregular(&self) -> Option<PathError> {
        self.irregular
    }

    /// The path as a program that tidies up would read it.
    #[must_use]
    pub fn tidied(&self) -> Segments<'a> {
        let mut raw = Raw::NONE;
        for segment in self.raw() {
            match &*normalise(segment) {
                "" | "." => {}
                ".." => raw.pop(),
                _ => raw.push(segment),
            }
        }
        Segments {
            raw,
            irregular: None,
        }
    }

    /// The path with each segment in normal form.
    #[must_use]
    pub fn normal(&self) -> String {
        if self.raw().is_empty() {
            return "/".to_owned();
        }
        let mut path = String::new();
        for segment in self.raw() {
            path.push('/');
            path.push_str(&normalise(segment));
        }
        path
    }

    /// The segments as they came.
    #[must_use]
    pub fn raw(&self) -> &[&'a str] {
        self.raw.as_slice()
    }
}

/// The highest bit of each of eight bytes that is a slash; the first byte is the lowest.
const fn slashes(bytes: [u8; 8]) -> u64 {
    const LOW: u64 = u64::from_le_bytes([0x7F; 8]);
    let other = u64::from_le_bytes(bytes) ^ u64::from_le_bytes([b'/'; 8]);
    // A byte that is not zero reaches its highest bit, by itself or by the sum, which carries into no other.
    !(((other & LOW) + LOW) | other | LOW)
}

/// What is irregular about a segment, if anything is.
#[cold]
fn fault(segment: &str) -> Option<PathError> {
    match &*normalise(segment) {
        "" => Some(PathError::EmptySegment),
        "." | ".." => Some(PathError::DotSegment),
        _ => None,
    }
}

impl Template {
    /// Whether a path has the segments of this template, whatever other templates say of it.
    #[must_use]
    pub fn fits(&self, segments: &Segments<'_>) -> bool {
        let mut found: Vec<Cow<'_, str>> =
            segments.raw().iter().map(|raw| normalise(raw)).collect();
        if let (Some(verb), Some(last)) = (&self.verb, found.last_mut()) {
            let Some(head) = last
                .strip_suffix(verb.as_str())
                .and_then(|head| head.strip_suffix(':'))
            else {
                return false;
            };
            *last = Cow::Owned(head.to_owned());
        }
        let open = self.segments.last() == Some(&SegmentPattern::Rest);
        let fixed = self.segments.len() - usize::from(open);
        let longer = found.len() > fixed && !open;
        !longer
            && self.segments[..fixed]
                .iter()
                .enumerate()
                .all(|(at, pattern)| {
                    found.get(at).is_some_and(|text| match pattern {
                        SegmentPattern::Literal(literal) => literal == text,
                        SegmentPattern::One | SegmentPattern::Rest => !text.is_empty(),
                    })
                })
    }
}

/// What the templates say of a path and a method.
#[derive(Debug, PartialEq, Eq)]
pub enum Found<'t> {
    /// The routes that have this path and method; they differ in their queries only.
    Routes(&'t Group),
    /// The path has other methods.
    OtherMethods(Vec<Method>),
    /// No route has this path.
    Nothing,
}

/// All templates, as a tree of segments.
#[derive(Debug, Default)]
pub(super) struct Tree {
    root: Node,
    /// Whether any template has a verb: else none is looked for.
    has_verbs: bool,
}

#[derive(Debug, Default)]
struct Node {
    literals: ByName<Node>,
    one: Option<Box<Node>>,
    here: End,
    rest: End,
}

/// The routes whose template ends at a node, by verb and method.
#[derive(Debug, Default)]
struct End {
    plain: Vec<(Method, Group)>,
    verbs: ByName<Vec<(Method, Group)>>,
}

impl End {
    fn insert(&mut self, route: &Route, index: usize) {
        let methods = match &route.rest_call.path.verb {
            Some(verb) => self.verbs.under(verb),
            None => &mut self.plain,
        };
        match methods
            .iter_mut()
            .find(|(method, _)| *method == route.method)
        {
            Some((_, group)) => group.add(index),
            None => {
                let mut group = Group::default();
                group.add(index);
                methods.push((route.method.clone(), group));
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.verbs.is_empty()
    }

    #[inline]
    fn find<'t>(&'t self, verb: Option<&str>, search: &mut Search<'_>) -> Option<&'t Group> {
        let methods = match verb {
            Some(verb) => self.verbs.get(verb)?,
            None => &self.plain,
        };
        let found = methods.iter().find(|(method, _)| method == search.method);
        match found {
            Some((_, group)) => Some(group),
            None => search.nearest(methods),
        }
    }

    /// Whether another route with this method ends here.
    fn has_other(&self, (method, index): (&Method, usize)) -> bool {
        let mut ends = self.plain.iter().chain(self.verbs.values().flatten());
        ends.any(|(known, group)| {
            known == method && group.routes().iter().any(|route| *route != index)
        })
    }

    fn groups_mut(&mut self) -> impl Iterator<Item = &mut Group> {
        let verbs = self.verbs.values_mut().flatten();
        self.plain.iter_mut().chain(verbs).map(|(_, routes)| routes)
    }
}

struct Search<'a> {
    verb: Option<(&'a str, Cow<'a, str>)>,
    method: &'a Method,
    others: Vec<Method>,
}

/// The last segment as `head:verb`, the verb in normal form.
#[inline(never)]
fn cut_verb(last: &str) -> Option<(&str, Cow<'_, str>)> {
    let (head, verb) = last.rsplit_once(':')?;
    Some((head, normalise(verb)))
}

impl Search<'_> {
    /// HEAD is GET without the content (RFC 9110 §9.3.2); any other method that is not here is told those that are.
    #[cold]
    fn nearest<'t>(&mut self, methods: &'t [(Method, Group)]) -> Option<&'t Group> {
        let get = methods.iter().find(|(method, _)| *method == Method::GET);
        let get = get.filter(|_| *self.method == Method::HEAD);
        if get.is_none() {
            let methods = methods.iter().map(|(method, _)| method.clone());
            self.others.extend(methods);
        }
        get.map(|(_, group)| group)
    }
}

impl Tree {
    pub(super) fn insert(&mut self, route: &Route, index: usize) {
        self.has_verbs |= route.rest_call.path.verb.is_some();
        let mut node = &mut self.root;
        for segment in &route.rest_call.path.segments {
            node = match segment {
                SegmentPattern::Literal(text) => node.literals.under(text),
                SegmentPattern::One => node.one.get_or_insert_default(),
                SegmentPattern::Rest => return node.rest.insert(route, index),
            };
        }
        node.here.insert(route, index);
    }

    pub(super) fn groups_mut(&mut self) -> Vec<&mut Group> {
        let mut found = Vec::new();
        self.root.groups_mut(&mut found);
        found
    }

    /// Whether a path that a template makes may be the path of another route with its method.
    pub(super) fn contests(&self, route: &Route, index: usize) -> bool {
        let template = &route.rest_call.path;
        self.root
            .contests(&template.segments, (&route.method, index))
    }

    pub(super) fn find<'t>(&'t self, segments: &Segments<'_>, method: &Method) -> Found<'t> {
        let verb = match segments.raw() {
            [.., last] if self.has_verbs => cut_verb(last),
            _ => None,
        };
        let mut search = Search {
            verb,
            method,
            others: Vec::new(),
        };
        match self.root.find(segments.raw(), &mut search) {
            Some(routes) => Found::Routes(routes),
            None if search.others.is_empty() => Found::Nothing,
            None => {
                search
                    .others
                    .sort_by(|one, other| one.as_str().cmp(other.as_str()));
                search.others.dedup();
                Found::OtherMethods(search.others)
            }
        }
    }
}

impl Node {
    /// A literal beats a hole, one segment beats many, a verb beats none.
    fn find<'t>(&'t self, mut segments: &[&str], search: &mut Search<'_>) -> Option<&'t Group> {
        let mut node = self;
        while let Some((segment, behind)) = segments.split_first() {
            if search.verb.is_some()
                && behind.is_empty()
                && let Some(found) = node.find_verb(search)
            {
                return Some(found);
            }
            let (literal, one) = (node.literal(segment), node.one.as_deref());
            node = match (literal, one) {
                // Where one way leads on, there is none to come back for.
                (Some(next), None) | (None, Some(next)) if node.rest.is_empty() => next,
                (literal, one) => {
                    return literal
                        .and_then(|node| node.find(behind, search))
                        .or_else(|| one.and_then(|node| node.find(behind, search)))
                        .or_else(|| node.rest_verb(search))
                        .or_else(|| node.rest.find(None, search));
                }
            };
            segments = behind;
        }
        let here = node.here.find(None, search);
        here.or_else(|| node.rest.find(None, search))
    }

    /// The literals are in normal form, so a segment that is one of them is as well.
    #[inline]
    fn literal(&self, segment: &str) -> Option<&Node> {
        if self.literals.is_empty() {
            return None;
        }
        let literal = self.literals.get(segment);
        literal.or_else(|| self.escaped_literal(segment))
    }

    #[inline(never)]
    fn escaped_literal(&self, segment: &str) -> Option<&Node> {
        match normalise(segment) {
            Cow::Owned(normal) => self.literals.get(&normal),
            Cow::Borrowed(_) => None,
        }
    }

    /// The last segment as `head:verb`.
    #[inline(never)]
    fn find_verb<'t>(&'t self, search: &mut Search<'_>) -> Option<&'t Group> {
        let (head, verb) = search.verb.clone()?;
        let literal = self.literal(head);
        let one = self.one.as_deref().filter(|_| !head.is_empty());
        literal
            .and_then(|node| node.here.find(Some(&verb), search))
            .or_else(|| one.and_then(|node| node.here.find(Some(&verb), search)))
    }

    fn rest_verb<'t>(&'t self, search: &mut Search<'_>) -> Option<&'t Group> {
        let (_, verb) = search.verb.clone()?;
        self.rest.find(Some(&verb), search)
    }

    /// Verbs are not told apart here: what may be another route's is looked at when it is written.
    fn contests(&self, segments: &[SegmentPattern], own: (&Method, usize)) -> bool {
        if self.rest.has_other(own) {
            return true;
        }
        let Some((first, behind)) = segments.split_first() else {
            return self.here.has_other(own);
        };
        let one = self.one.as_deref();
        match first {
            SegmentPattern::Literal(text) => {
                let literal = self.literals.get(text);
                literal
                    .into_iter()
                    .chain(one)
                    .any(|node| node.contests(behind, own))
            }
            SegmentPattern::One => {
                let nodes = self.literals.values().chain(one);
                nodes.into_iter().any(|node| node.contests(behind, own))
            }
            SegmentPattern::Rest => {
                self.here.has_other(own)
                    || self
                        .literals
                        .values()
                        .chain(one)
                        .any(|node| node.contests(segments, own))
            }
        }
    }

    fn groups_mut<'t>(&'t mut self, found: &mut Vec<&'t mut Group>) {
        found.extend(self.here.groups_mut().chain(self.rest.groups_mut()));
        for node in self.literals.values_mut().chain(self.one.as_deref_mut()) {
            node.groups_mut(found);
        }
    }
}
