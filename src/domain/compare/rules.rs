//! The rules of a route, compiled: which places are not looked at, and how the others are.
//!
//! The paths of all rules are one tree, walked along with the answers: where no path leads on, nothing is asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderName;

use super::decimal::Decimal;
use super::path::{Path, Token};
use crate::domain::json::{Spelled, is_number};
use crate::domain::redact::Redaction;

/// How far apart two numbers may lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tolerance(Decimal<'static>);

impl Tolerance {
    /// Reads a number that is not negative, in the spelling of JSON.
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

/// Whether values of answers may be shown to whoever reads reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Show {
    /// Only what they are like.
    #[default]
    Likeness,
    /// Scalars and texts, cut, but for those of credentials.
    Values,
}

/// The rules as they are said, in any order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleSource {
    /// Places that are not looked at, with all that is in them.
    pub ignore: Vec<Path>,
    /// Lists whose order does not matter.
    pub unordered: Vec<Path>,
    /// Numbers that may differ a little; of two for one path the last holds.
    pub tolerance: Vec<(Path, Tolerance)>,
    /// Headers that are compared beside the media type.
    pub headers: Vec<HeaderName>,
    /// Whether values may be shown.
    pub show: Show,
    /// Which are not, all the same.
    pub redaction: Arc<Redaction>,
}

/// The rules of a route.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    source: RuleSource,
    /// All paths; the first node is the whole answer.
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

/// The nodes that fit one place of an answer.
pub(super) type Active = Vec<usize>;

impl Rules {
    /// Compiles rules.
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

    /// What they were compiled of, for whoever shows them.
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

    /// The whole answer.
    pub(super) fn root(&self) -> Active {
        (0..self.nodes.len().min(1)).collect()
    }

    /// What fits the member of a name.
    pub(super) fn member(&self, active: &[usize], name: &str) -> Active {
        let nodes = active.iter().filter_map(|index| self.nodes.get(*index));
        let found = nodes.flat_map(|node| [node.names.get(name).copied(), node.any]);
        found.flatten().collect()
    }

    /// What fits a member; one whose name is no text goes by its spelling.
    pub(super) fn of(&self, active: &[usize], name: &Spelled<'_>) -> Active {
        if active.is_empty() {
            return Active::new();
        }
        self.member(active, &name.shown())
    }

    /// What fits an element.
    pub(super) fn element(&self, active: &[usize], index: usize) -> Active {
        if active.is_empty() {
            return Active::new();
        }
        self.member(active, &index.to_string())
    }

    /// What fits every element: those of a list without order have no index.
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

    /// The widest tolerance of a place.
    pub(super) fn tolerance(&self, active: &[usize]) -> Option<&Tolerance> {
        let all = active
            .iter()
            .filter_map(|index| self.nodes[*index].tolerance.as_ref());
        all.max_by(|one, two| one.0.cmp(&two.0))
    }
}
