//! The compiled comparison rules of a route: the places that are ignored, and the comparison of the others.
//!
//! The paths of all rules form one tree, walked along with the responses: where no path continues, no rule is checked.
//!
//! Used by `compare`.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderName;

use super::decimal::Decimal;
use super::path::{Path, Token};
use crate::redact::Redaction;
use dualgauge_patterns::json::{Spelled, is_number};

/// The maximum distance between two numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tolerance(Decimal<'static>);

impl Tolerance {
    /// Parses a number that is not negative, in JSON syntax.
    #[must_use]
    pub fn parse(text: &str) -> Option<Tolerance> {
        if !is_number(text.as_bytes()) {
            return None;
        }
        let value = Decimal::read(text.as_bytes());
        let value = value.into_owned().filter(|value| !value.is_negative());
        value.map(Tolerance)
    }

    pub(super) fn decimal(&self) -> &Decimal<'static> {
        &self.0
    }
}

/// The visibility of values in reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Show {
    /// Only their type, length and hash.
    #[default]
    Likeness,
    /// Scalars and texts, truncated, except credentials.
    Values,
}

/// The rules as configured, in any order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleSource {
    /// Places that are ignored, with everything in them.
    pub ignore: Vec<Path>,
    /// Lists whose order does not matter.
    pub unordered: Vec<Path>,
    /// Numbers that may differ a little; the last tolerance of a path applies.
    pub tolerance: Vec<(Path, Tolerance)>,
    /// Headers that are compared in addition to the media type.
    pub headers: Vec<HeaderName>,
    /// The visibility of values.
    pub show: Show,
    /// The values that are hidden in any case.
    pub redaction: Arc<Redaction>,
}

/// The compiled rules of a route.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    source: RuleSource,
    /// The nodes of all paths; the first one is the whole response.
    nodes: Vec<RuleNode>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct RuleNode {
    names: BTreeMap<String, usize>,
    any: Option<usize>,
    ignored: Option<()>,
    unordered: Option<()>,
    tolerance: Option<Tolerance>,
}

/// The nodes that match one place of a response.
pub(super) type Active = Vec<usize>;

impl Rules {
    /// Compiles the rules.
    #[must_use]
    pub fn compile(mut source: RuleSource) -> Rules {
        source
            .headers
            .sort_by(|one, two| one.as_str().cmp(two.as_str()));
        source.headers.dedup();
        let mut rules = Rules {
            nodes: vec![RuleNode::default()],
            source: RuleSource::default(),
        };
        for path in &source.ignore {
            rules.node(path).ignored = Some(());
        }
        for path in &source.unordered {
            rules.node(path).unordered = Some(());
        }
        for (path, tolerance) in &source.tolerance {
            rules.node(path).tolerance = Some(tolerance.clone());
        }
        rules.source = source;
        rules
    }

    /// Returns the rules as configured.
    #[must_use]
    pub fn source(&self) -> &RuleSource {
        &self.source
    }

    fn node(&mut self, path: &Path) -> &mut RuleNode {
        let mut at = 0;
        for token in path.tokens() {
            let fresh = self.nodes.len();
            let node = &mut self.nodes[at];
            at = match token {
                Token::Any => *node.any.get_or_insert(fresh),
                Token::Name(name) => *node.names.entry(name.clone()).or_insert(fresh),
            };
            if at == fresh {
                self.nodes.push(RuleNode::default());
            }
        }
        &mut self.nodes[at]
    }

    /// Returns the node of the whole response.
    pub(super) fn root(&self) -> Active {
        (0..self.nodes.len().min(1)).collect()
    }

    /// Returns the nodes that match the member with this name.
    pub(super) fn member(&self, active: &[usize], name: &str) -> Active {
        let nodes = active.iter().filter_map(|index| self.nodes.get(*index));
        let found = nodes.flat_map(|node| [node.names.get(name).copied(), node.any]);
        found.flatten().collect()
    }

    /// Returns the nodes that match a member. A name that is not valid text is matched by its spelling.
    pub(super) fn of(&self, active: &[usize], name: &Spelled<'_>) -> Active {
        if active.is_empty() {
            return Active::new();
        }
        self.member(active, &name.shown())
    }

    /// Returns the nodes that match an element.
    pub(super) fn element(&self, active: &[usize], index: usize) -> Active {
        if active.is_empty() {
            return Active::new();
        }
        self.member(active, &index.to_string())
    }

    /// Returns the nodes that match every element; elements of an unordered list have no index.
    pub(super) fn any_element(&self, active: &[usize]) -> Active {
        let nodes = active.iter().filter_map(|index| self.nodes.get(*index));
        nodes.filter_map(|node| node.any).collect()
    }

    pub(super) fn ignores(&self, active: &[usize]) -> bool {
        active
            .iter()
            .any(|index| self.nodes[*index].ignored.is_some())
    }

    pub(super) fn is_unordered(&self, active: &[usize]) -> bool {
        active
            .iter()
            .any(|index| self.nodes[*index].unordered.is_some())
    }

    /// Returns the largest tolerance of a place.
    pub(super) fn tolerance(&self, active: &[usize]) -> Option<&Tolerance> {
        let all = active
            .iter()
            .filter_map(|index| self.nodes[*index].tolerance.as_ref());
        all.max_by(|one, two| one.0.cmp(&two.0))
    }
}
