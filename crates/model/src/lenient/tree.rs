//! A tree of template segments, compared in case-folded form.
//!
//! A hole matches any segment, even an empty one. Each node is visited at most once for one reading.
//!
//! Used by `check`, `lenient`, `rejections` and `routing`.

use std::collections::BTreeMap;

use http::Method;

use super::reading::canonical;
use dualgauge_patterns::pattern::{HoleLength, SegmentText};

/// The owner of a path according to a lenient server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The route with this index.
    Route(usize),
    /// The stream with this index.
    Stream(usize),
    /// An RPC path.
    Rpc,
    /// A local reply.
    Local,
}

/// One part of a template.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part<'p> {
    Literal(&'p str),
    Text(&'p SegmentText),
    One,
    Rest,
    /// The text after the last colon, which is stored at the end of the template.
    Verb(&'p str),
}

/// The end of a template.
#[derive(Debug, Clone)]
pub(super) struct End {
    /// Any method if `None`.
    pub(super) method: Option<Method>,
    /// The text after the last colon, in canonical form.
    pub(super) verb: Option<String>,
    pub(super) target: Target,
}

#[derive(Debug, Default)]
pub(super) struct Tree {
    root: Node,
}

#[derive(Debug, Default)]
struct Node {
    literals: BTreeMap<String, Node>,
    /// The segments of text and holes, in canonical form.
    texts: Vec<(SegmentText, Node)>,
    one: Option<Box<Node>>,
    here: Vec<End>,
    rest: Vec<End>,
}

impl Tree {
    pub(super) fn insert<'p>(&mut self, parts: impl Iterator<Item = Part<'p>>, end: End) {
        let mut node = &mut self.root;
        for part in parts {
            node = match part {
                Part::Literal(text) => {
                    let literal = canonical(text).into_owned();
                    node.literals.entry(literal).or_default()
                }
                Part::Text(text) => node.beside(text.spelled(|text| canonical(text).into_owned())),
                Part::One => node.one.get_or_insert_default(),
                Part::Rest => return node.rest.push(end),
                Part::Verb(_) => break,
            };
        }
        node.here.push(end);
    }

    /// Returns the owner of a reading, either as it is or without a trailing slash.
    pub(super) fn find(
        &self,
        method: &Method,
        reading: &str,
        counts: &impl Fn(Target) -> bool,
    ) -> Option<Target> {
        let path = reading.strip_prefix('/').unwrap_or(reading);
        let shorter = path.strip_suffix('/');
        [Some(path), shorter]
            .into_iter()
            .flatten()
            .find_map(|path| {
                let with_verb = cut_verb(path);
                let forms = [Some((path, None)), with_verb].into_iter().flatten();
                let mut found = forms.filter_map(|(path, verb)| {
                    let verb = verb.map(canonical);
                    let matches = |end: &End| {
                        end.verb.as_deref() == verb.as_deref()
                            && matches_method(end, method)
                            && counts(end.target)
                    };
                    let path = Some(path).filter(|path| !path.is_empty());
                    self.root.find(path, &matches)
                });
                found.next()
            })
    }
}

/// HEAD matches where GET does (RFC 9110 §9.3.2).
fn matches_method(end: &End, method: &Method) -> bool {
    end.method.as_ref().is_none_or(|allowed| {
        allowed == method || (*allowed == Method::GET && *method == Method::HEAD)
    })
}

/// Splits a path at the last colon of its last segment.
fn cut_verb(path: &str) -> Option<(&str, Option<&str>)> {
    let (before, verb) = path.rsplit_once(':')?;
    (!verb.contains('/')).then_some((before, Some(verb)))
}

impl Node {
    /// Returns the node of a segment of text and holes.
    fn beside(&mut self, text: SegmentText) -> &mut Node {
        let known = self.texts.iter().position(|(known, _)| *known == text);
        let at = known.unwrap_or_else(|| {
            self.texts.push((text, Node::default()));
            self.texts.len() - 1
        });
        &mut self.texts[at].1
    }

    fn find(&self, path: Option<&str>, matches: &impl Fn(&End) -> bool) -> Option<Target> {
        let end = |ends: &[End]| ends.iter().find(|end| matches(end)).map(|end| end.target);
        let Some(path) = path else {
            return end(&self.here).or_else(|| end(&self.rest));
        };
        let (segment, rest) = match path.split_once('/') {
            Some((segment, rest)) => (segment, Some(rest)),
            None => (path, None),
        };
        let literal = match self.literals.is_empty() {
            true => None,
            false => self.literals.get(&*canonical(segment)),
        };
        let fits = |text: &SegmentText| text.fits(&canonical(segment), HoleLength::Any);
        let texts = self.texts.iter().filter(|(text, _)| fits(text));
        let texts = texts.map(|(_, node)| node);
        let ways = literal.into_iter().chain(texts).chain(self.one.as_deref());
        let mut found = ways.filter_map(|node| node.find(rest, matches));
        found.next().or_else(|| end(&self.rest))
    }
}
