//! A matcher of paths against the templates of all routes at once.
//!
//! An irregular path never matches; [`super::near`] only searches for routes that it would match after normalization.
//!
//! Used by `route::near` and `route::table`.

use std::borrow::Cow;

use http::Method;

use super::definition::Route;
use super::name_map::NameMap;
use super::overlaps::OverlapGroup;
use super::segments::{Segments, cut};
use super::template::{SegmentPattern, Template};
use dualgauge_patterns::pattern::{HoleLength, SegmentText, segment_within};
use dualgauge_patterns::percent::normalise;

impl Template {
    /// Returns true when a path has the segments of this template, regardless of other templates.
    #[must_use]
    pub fn fits(&self, segments: &Segments<'_>) -> bool {
        let mut found: Vec<Cow<'_, str>> = segments.iter().map(normalise).collect();
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
        // The segments that `**` matches must not be empty.
        let tail = found.get(fixed..).unwrap_or_default();
        let empty = open && tail.iter().any(|text| text.is_empty());
        !longer
            && !empty
            && self.segments[..fixed]
                .iter()
                .enumerate()
                .all(|(at, pattern)| {
                    found.get(at).is_some_and(|text| match pattern {
                        SegmentPattern::Literal(literal) => literal == text,
                        SegmentPattern::Text(pattern) => pattern.fits(text, HoleLength::NotEmpty),
                        SegmentPattern::One | SegmentPattern::Rest => !text.is_empty(),
                    })
                })
    }
}

/// The result of looking up a path and a method.
#[derive(Debug, PartialEq, Eq)]
pub enum PathMatch<'t> {
    /// The routes with this path and method; they differ beyond path and method.
    Routes(&'t OverlapGroup),
    /// Routes have this path, but with these methods only.
    OtherMethods(Vec<Method>),
    /// No route has this path.
    Nothing,
}

/// A tree of the segments of all templates.
#[derive(Debug, Default)]
pub(super) struct PathTree {
    root: PathNode,
    /// Records whether any template has a verb; if none has, no verb is parsed.
    has_verbs: bool,
    /// Records whether any template has text beside a hole.
    has_texts: bool,
}

#[derive(Debug, Default)]
struct PathNode {
    literals: NameMap<PathNode>,
    one: Option<Box<PathNode>>,
    here: PathEnd,
    /// The less frequent children, together, so that the usual lookup needs a single check.
    other: Option<Box<OtherChildren>>,
}

/// The children of a node other than literals and whole segments.
#[derive(Debug, Default)]
struct OtherChildren {
    /// The segments of text and holes; each comes before those that match more.
    texts: Vec<(SegmentText, PathNode)>,
    rest: PathEnd,
}

impl OtherChildren {
    /// Returns the node of a segment of text and holes, inserting it before those that match more.
    fn under(&mut self, text: &SegmentText) -> &mut PathNode {
        let known = self.texts.iter().position(|(known, _)| known == text);
        let at = known.unwrap_or_else(|| {
            // Those that match less come first, so the new one goes before the first that it is within.
            let wider = |(known, _): &(SegmentText, PathNode)| segment_within(text, known);
            let at = self
                .texts
                .iter()
                .position(wider)
                .unwrap_or(self.texts.len());
            self.texts.insert(at, (text.clone(), PathNode::default()));
            at
        });
        &mut self.texts[at].1
    }
}

/// The routes whose template ends at a node, by verb and method.
#[derive(Debug, Default)]
struct PathEnd {
    plain: Vec<(Method, OverlapGroup)>,
    verbs: NameMap<Vec<(Method, OverlapGroup)>>,
}

impl PathEnd {
    /// Returns the group of a route's verb and method.
    fn group(&mut self, route: &Route) -> &mut OverlapGroup {
        let methods = match &route.rest_call.path.verb {
            Some(verb) => self.verbs.under(verb),
            None => &mut self.plain,
        };
        let known = methods
            .iter()
            .position(|(method, _)| *method == route.method);
        let at = known.unwrap_or_else(|| {
            methods.push((route.method.clone(), OverlapGroup::default()));
            methods.len() - 1
        });
        &mut methods[at].1
    }

    #[inline]
    fn find<'t>(
        &'t self,
        verb: Option<&str>,
        search: &mut PathSearch<'_>,
    ) -> Option<&'t OverlapGroup> {
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

    /// Returns true when another route with this method ends here.
    fn has_other(&self, method: &Method, index: usize) -> bool {
        let mut ends = self.plain.iter().chain(self.verbs.values().flatten());
        ends.any(|(known, group)| {
            known == method && group.routes().iter().any(|route| *route != index)
        })
    }

    fn groups_mut(&mut self) -> impl Iterator<Item = &mut OverlapGroup> {
        let verbs = self.verbs.values_mut().flatten();
        self.plain.iter_mut().chain(verbs).map(|(_, routes)| routes)
    }
}

struct PathSearch<'a> {
    verb: Option<(&'a str, Cow<'a, str>)>,
    method: &'a Method,
    /// True if holes may be empty.
    allows_empty: bool,
    others: Vec<Method>,
}

/// The next segment of a path, and those behind it.
#[derive(Clone, Copy)]
struct CutPath<'p> {
    segment: &'p str,
    tail: Option<&'p str>,
}

/// Splits the last segment of a path as `head:verb`, with the verb in normal form.
#[inline(never)]
fn cut_verb(path: &str) -> Option<(&str, Cow<'_, str>)> {
    let (_, last) = path.rsplit_once('/').unwrap_or(("", path));
    let (head, verb) = last.rsplit_once(':')?;
    Some((head, normalise(verb)))
}

impl PathSearch<'_> {
    /// Falls back from HEAD to GET (RFC 9110 §9.3.2). For any other missing method, collects the existing ones.
    #[cold]
    fn nearest<'t>(&mut self, methods: &'t [(Method, OverlapGroup)]) -> Option<&'t OverlapGroup> {
        let get = methods.iter().find(|(method, _)| *method == Method::GET);
        let get = get.filter(|_| *self.method == Method::HEAD);
        if get.is_none() {
            let methods = methods.iter().map(|(method, _)| method.clone());
            self.others.extend(methods);
        }
        get.map(|(_, group)| group)
    }
}

impl PathTree {
    pub(super) fn insert(&mut self, route: &Route, index: usize) {
        self.group(route).add(index);
    }

    /// Adds a route with another path to the group of a route.
    pub(super) fn add_related(&mut self, route: &Route, related: usize) {
        self.group(route).add_related(related);
    }

    fn group(&mut self, route: &Route) -> &mut OverlapGroup {
        self.has_verbs |= route.rest_call.path.verb.is_some();
        let mut node = &mut self.root;
        let (segments, _) = route.rest_call.path.before_slash();
        let is_text = |segment: &SegmentPattern| matches!(segment, SegmentPattern::Text(_));
        self.has_texts |= segments.iter().any(is_text);
        for segment in segments {
            node = match segment {
                SegmentPattern::Literal(text) => node.literals.under(text),
                SegmentPattern::Text(text) => node.other.get_or_insert_default().under(text),
                SegmentPattern::One => node.one.get_or_insert_default(),
                SegmentPattern::Rest => {
                    return node.other.get_or_insert_default().rest.group(route);
                }
            };
        }
        node.here.group(route)
    }

    pub(super) fn groups_mut(&mut self) -> Vec<&mut OverlapGroup> {
        let mut found = Vec::new();
        self.root.groups_mut(&mut found);
        found
    }

    /// Returns true when a path that a route writes may be the path of another route with its method.
    pub(super) fn contests(&self, route: &Route, index: usize) -> bool {
        let (segments, _) = route.rest_call.path.before_slash();
        self.root.contests(segments, &route.method, index)
    }

    /// Returns true when the tree has no template.
    pub(super) fn is_empty(&self) -> bool {
        let root = &self.root;
        let ends_here = !root.here.plain.is_empty() || !root.here.verbs.is_empty();
        root.literals.is_empty() && root.one.is_none() && !ends_here && root.other.is_none()
    }

    /// Returns true when a template has a verb.
    pub(super) fn has_verbs(&self) -> bool {
        self.has_verbs
    }

    /// Returns true when a template has text beside a hole.
    pub(super) fn has_texts(&self) -> bool {
        self.has_texts
    }

    /// Returns the routes of a path, given without its first slash.
    pub(super) fn find<'t>(&'t self, path: Option<&str>, method: &Method) -> PathMatch<'t> {
        self.find_with(path, method, false)
    }

    /// Does the same; with `allows_empty`, a hole matches any segment of the path.
    pub(super) fn find_with<'t>(
        &'t self,
        path: Option<&str>,
        method: &Method,
        allows_empty: bool,
    ) -> PathMatch<'t> {
        let mut search = PathSearch {
            verb: path.filter(|_| self.has_verbs).and_then(cut_verb),
            method,
            allows_empty,
            others: Vec::new(),
        };
        match self.root.find(path, &mut search) {
            Some(routes) => PathMatch::Routes(routes),
            None if search.others.is_empty() => PathMatch::Nothing,
            None => {
                search
                    .others
                    .sort_by(|one, other| one.as_str().cmp(other.as_str()));
                search.others.dedup();
                PathMatch::OtherMethods(search.others)
            }
        }
    }
}

impl PathNode {
    /// Returns the best match: a literal beats a hole, one segment beats many, a verb beats none.
    fn find<'t>(
        &'t self,
        mut path: Option<&str>,
        search: &mut PathSearch<'_>,
    ) -> Option<&'t OverlapGroup> {
        let mut node = self;
        while let Some(ahead) = path {
            if let Some((next, tail)) = node.along(ahead) {
                (node, path) = (next, Some(tail));
                continue;
            }
            let (segment, tail) = cut(ahead);
            if tail.is_none()
                && search.verb.is_some()
                && let Some(found) = node.find_verb(search)
            {
                return Some(found);
            }
            let (literal, one) = (node.literal(segment), node.one.as_deref());
            node = match (literal, one) {
                // With a single way on, no backtracking is needed.
                (Some(next), None) | (None, Some(next)) if node.other.is_none() => next,
                (literal, one) => {
                    let cut = CutPath { segment, tail };
                    return node.fork(literal, one, cut, search);
                }
            };
            path = tail;
        }
        node.end(search)
    }

    /// Follows a literal that is the only child, without splitting the path.
    #[inline]
    fn along<'t, 'p>(&'t self, path: &'p str) -> Option<(&'t PathNode, &'p str)> {
        let (literal, next) = self.literals.only()?;
        if self.one.is_some() || self.other.is_some() {
            return None;
        }
        let tail = path.strip_prefix(literal)?.strip_prefix('/')?;
        Some((next, tail))
    }

    /// Tries each way in turn, until one matches.
    #[inline(never)]
    fn fork<'t>(
        &'t self,
        literal: Option<&'t PathNode>,
        one: Option<&'t PathNode>,
        cut: CutPath<'_>,
        search: &mut PathSearch<'_>,
    ) -> Option<&'t OverlapGroup> {
        let tail = cut.tail;
        literal
            .and_then(|node| node.find(tail, search))
            .or_else(|| {
                let texts = self.texts(cut.segment, search);
                texts.into_iter().find_map(|node| node.find(tail, search))
            })
            .or_else(|| one.and_then(|node| node.find(tail, search)))
            .or_else(|| self.rest_verb(search))
            .or_else(|| self.rest(None, search))
    }

    /// Returns the children whose text and holes match a segment.
    #[inline]
    fn texts<'t>(&'t self, segment: &str, search: &PathSearch<'_>) -> Vec<&'t PathNode> {
        match &self.other {
            Some(other) if !other.texts.is_empty() => fitting(&other.texts, segment, search),
            Some(_) | None => Vec::new(),
        }
    }

    /// Returns the match of the remaining segments, if there is one for any number of them.
    fn rest<'t>(
        &'t self,
        verb: Option<&str>,
        search: &mut PathSearch<'_>,
    ) -> Option<&'t OverlapGroup> {
        self.other.as_ref()?.rest.find(verb, search)
    }

    /// Returns the match where the path ends.
    fn end<'t>(&'t self, search: &mut PathSearch<'_>) -> Option<&'t OverlapGroup> {
        let here = self.here.find(None, search);
        here.or_else(|| self.rest(None, search))
    }

    /// Returns the child of a literal segment. Literals are in normal form, so an equal segment needs no normalization.
    #[inline]
    fn literal(&self, segment: &str) -> Option<&PathNode> {
        if self.literals.is_empty() {
            return None;
        }
        let literal = self.literals.get(segment);
        literal.or_else(|| self.escaped_literal(segment))
    }

    #[inline(never)]
    fn escaped_literal(&self, segment: &str) -> Option<&PathNode> {
        match normalise(segment) {
            Cow::Owned(normal) => self.literals.get(&normal),
            Cow::Borrowed(_) => None,
        }
    }

    /// Matches the last segment as `head:verb`.
    #[inline(never)]
    fn find_verb<'t>(&'t self, search: &mut PathSearch<'_>) -> Option<&'t OverlapGroup> {
        let (head, verb) = search.verb.clone()?;
        let literal = self.literal(head);
        let fits = !head.is_empty() || search.allows_empty;
        let one = self.one.as_deref().filter(|_| fits);
        literal
            .and_then(|node| node.here.find(Some(&verb), search))
            .or_else(|| {
                let texts = self.texts(head, search);
                let mut texts = texts.into_iter();
                texts.find_map(|node| node.here.find(Some(&verb), search))
            })
            .or_else(|| one.and_then(|node| node.here.find(Some(&verb), search)))
    }

    fn rest_verb<'t>(&'t self, search: &mut PathSearch<'_>) -> Option<&'t OverlapGroup> {
        let (_, verb) = search.verb.clone()?;
        self.rest(Some(&verb), search)
    }

    /// Returns true when another route may match. Verbs are ignored here: `write_rest` checks the written URL.
    fn contests(&self, segments: &[SegmentPattern], method: &Method, index: usize) -> bool {
        let rest = self.other.iter().map(|other| &other.rest);
        if rest.into_iter().any(|rest| rest.has_other(method, index)) {
            return true;
        }
        let Some((first, tail)) = segments.split_first() else {
            return self.here.has_other(method, index);
        };
        let others = || self.texts_and_one().map(|(_, node)| node);
        match first {
            SegmentPattern::Literal(text) => {
                let literal = self.literals.get(text).into_iter();
                let fitting = self.texts_and_one().filter(|(text, _)| {
                    text.is_none_or(|text| SegmentPattern::Text(text.clone()).meets(first))
                });
                let mut ways = literal.chain(fitting.map(|(_, node)| node));
                ways.any(|node| node.contests(tail, method, index))
            }
            SegmentPattern::Text(_) | SegmentPattern::One => {
                let mut nodes = self.literals.values().chain(others());
                nodes.any(|node| node.contests(tail, method, index))
            }
            SegmentPattern::Rest => {
                let mut nodes = self.literals.values().chain(others());
                self.here.has_other(method, index)
                    || nodes.any(|node| node.contests(segments, method, index))
            }
        }
    }

    /// Returns the children other than literals, with the text that they match.
    fn texts_and_one(&self) -> impl Iterator<Item = (Option<&SegmentText>, &PathNode)> {
        let texts = self.other.iter().flat_map(|other| &other.texts);
        let texts = texts.map(|(text, node)| (Some(text), node));
        texts.chain(self.one.as_deref().map(|node| (None, node)))
    }

    fn groups_mut<'t>(&'t mut self, found: &mut Vec<&'t mut OverlapGroup>) {
        found.extend(self.here.groups_mut());
        if let Some(other) = &mut self.other {
            found.extend(other.rest.groups_mut());
            for (_, node) in &mut other.texts {
                node.groups_mut(found);
            }
        }
        for node in self.literals.values_mut().chain(self.one.as_deref_mut()) {
            node.groups_mut(found);
        }
    }
}

/// Returns the nodes of those texts that a segment has.
#[cold]
fn fitting<'t>(
    texts: &'t [(SegmentText, PathNode)],
    segment: &str,
    search: &PathSearch<'_>,
) -> Vec<&'t PathNode> {
    let length = match search.allows_empty {
        true => HoleLength::Any,
        false => HoleLength::NotEmpty,
    };
    let segment = normalise(segment);
    let fits = |(text, _): &&(SegmentText, PathNode)| text.fits(&segment, length);
    texts.iter().filter(fits).map(|(_, node)| node).collect()
}
