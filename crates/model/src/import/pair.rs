//! Pairs of a REST operation and an RPC operation that do the same.
//!
//! Rules are tried from the surest to the weakest. Under a rule, two operations are a pair if each is the only
//! candidate for the other. With several candidates the names of their parameters decide; if they do not, none is
//! paired and the report names all of them. For observed calls, the operations that are left are tried again without the
//! prefixes that methods share, and then under weaker rules (`weak_pair`). Law: the result does not depend on the order of
//! members in the documents.
//!
//! Used by `import::route` and `import::table`.

use std::collections::{BTreeMap, BTreeSet};

use super::matching::ParamNames;
use super::method_prefix;
use super::model::{BodyModel, Parameter, RestOperation, RpcOperation};
use super::name_words::{self, NameWords};
use super::weak_pair;

/// The most pairs of candidates with one key that are scored; more cannot be distinguished.
const MOST_RIVALS: usize = 400;
/// The most candidates that are named to the reader.
const MOST_DOUBTS: usize = 4;

/// The treatment of a pair with a value that only one side has, or that both have in different types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mismatches {
    /// A comment tells them.
    Noted,
    /// The operations are no pair.
    Refused,
}

/// The rule by which two operations are a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PairRule {
    SameName,
    SameMeaning,
    WholePath,
    SpelledByPath,
    LastLiteral,
    /// For observed calls only.
    Reading,
    /// For observed calls only.
    SameAction,
}

const RULES: [PairRule; 5] = [
    PairRule::SameName,
    PairRule::SameMeaning,
    PairRule::WholePath,
    PairRule::SpelledByPath,
    PairRule::LastLiteral,
];

impl PairRule {
    /// Returns the reason, for people.
    pub(super) fn reason(self) -> &'static str {
        match self {
            PairRule::SameName => "the operationId is the name",
            PairRule::SameMeaning => "the operationId and the name have the same verb and nouns",
            PairRule::WholePath => "method and path have the verb and the nouns of the name",
            PairRule::SpelledByPath => "the path has the words of the name",
            PairRule::LastLiteral => {
                "method and end of the path have the verb and the noun of the name"
            }
            PairRule::Reading => "method and path read what the name lists or gets",
            PairRule::SameAction => "the path ends as the name does, and both have the same values",
        }
    }
}

/// A pair, by index in the two lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OperationPair {
    pub(super) rest: usize,
    pub(super) rpc: usize,
    pub(super) rule: PairRule,
    /// True if the names of parameters chose among several candidates.
    pub(super) decided_by_parameters: bool,
    /// The prefix of the method without which the names match.
    pub(super) prefix: Option<String>,
}

/// The pairs, and the operations with several candidates.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    pub(super) pairs: Vec<OperationPair>,
    /// The possible RPC operations of each REST operation.
    pub(super) rest_doubts: Vec<Vec<usize>>,
    pub(super) rpc_doubts: Vec<Vec<usize>>,
    rest_paired: BTreeSet<usize>,
    rpc_paired: BTreeSet<usize>,
}

/// Pairs the operations of both sides.
pub(super) fn pair(rest: &[RestOperation], rpc: &[RpcOperation], mismatches: Mismatches) -> Pairs {
    let mut found = Pairs {
        pairs: Vec::new(),
        rest_doubts: vec![Vec::new(); rest.len()],
        rpc_doubts: vec![Vec::new(); rpc.len()],
        ..Pairs::default()
    };
    let names: Vec<&str> = rpc.iter().map(|one| one.name.as_str()).collect();
    let whole: Vec<Option<&str>> = names.iter().copied().map(Some).collect();
    pair_by_names(&whole, rest, rpc, &mut found);
    match mismatches {
        // The names of a document are those that its author wants to pair.
        Mismatches::Noted => {}
        Mismatches::Refused => {
            let path_words: BTreeSet<String> =
                rest.iter().flat_map(name_words::spelled_by_path).collect();
            let stripped = method_prefix::strip(&names, &path_words);
            let short: Vec<Option<&str>> = stripped.iter().map(|it| Some((*it)?.name)).collect();
            let before = found.pairs.len();
            pair_by_names(&short, rest, rpc, &mut found);
            for pair in &mut found.pairs[before..] {
                pair.prefix = stripped[pair.rpc].map(|stripped| stripped.prefix.to_owned());
            }
            weak_pair::pair(rest, rpc, &mut found);
        }
    }
    found
}

/// Pairs the operations that are left, by these names of RPC operations.
fn pair_by_names(
    names: &[Option<&str>],
    rest: &[RestOperation],
    rpc: &[RpcOperation],
    found: &mut Pairs,
) {
    for rule in RULES {
        let mut groups: BTreeMap<PairKey, PairGroup> = BTreeMap::new();
        for (at, one) in rest.iter().enumerate() {
            if found.rest_is_free(at)
                && let Some(key) = rest_key(rule, one)
            {
                groups.entry(key).or_default().rest.push(at);
            }
        }
        for (at, name) in names.iter().enumerate() {
            if found.rpc_is_free(at)
                && let Some(name) = name
                && let Some(group) = rpc_key(rule, name).and_then(|key| groups.get_mut(&key))
            {
                group.rpc.push(at);
            }
        }
        for group in groups.values().filter(|group| !group.rpc.is_empty()) {
            pair_group(rule, group, rest, rpc, found);
        }
    }
}

impl Pairs {
    pub(super) fn rest_is_free(&self, at: usize) -> bool {
        self.rest_doubts[at].is_empty() && !self.rest_paired.contains(&at)
    }

    pub(super) fn add(&mut self, pair: OperationPair) {
        self.rest_paired.insert(pair.rest);
        self.rpc_paired.insert(pair.rpc);
        self.pairs.push(pair);
    }

    pub(super) fn rpc_is_free(&self, at: usize) -> bool {
        self.rpc_doubts[at].is_empty() && !self.rpc_paired.contains(&at)
    }
}

/// The operations of one key.
#[derive(Debug, Default)]
struct PairGroup {
    rest: Vec<usize>,
    rpc: Vec<usize>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PairKey {
    Name(String),
    Meaning(NameWords),
    Words(Vec<String>),
}

fn rest_key(rule: PairRule, one: &RestOperation) -> Option<PairKey> {
    let key = match rule {
        PairRule::SameName => PairKey::Name(one.id.clone()?),
        PairRule::SameMeaning => PairKey::Meaning(name_words::from_name(one.id.as_ref()?)),
        PairRule::WholePath => PairKey::Meaning(name_words::from_whole_path(one)),
        PairRule::SpelledByPath => PairKey::Words(name_words::spelled_by_path(one)),
        PairRule::LastLiteral => PairKey::Meaning(name_words::from_last_literal(one)),
        PairRule::Reading | PairRule::SameAction => return None,
    };
    informative(key)
}

fn rpc_key(rule: PairRule, name: &str) -> Option<PairKey> {
    let key = match rule {
        PairRule::SameName => PairKey::Name(name.to_owned()),
        PairRule::SameMeaning | PairRule::WholePath | PairRule::LastLiteral => {
            PairKey::Meaning(name_words::from_name(name))
        }
        PairRule::SpelledByPath => PairKey::Words(name_words::spelled_by_name(name)),
        PairRule::Reading | PairRule::SameAction => return None,
    };
    informative(key)
}

/// Returns the key unless it has no word: such a key describes nothing.
fn informative(key: PairKey) -> Option<PairKey> {
    let is_informative = match &key {
        PairKey::Name(name) => !name.is_empty(),
        PairKey::Meaning(meaning) => !meaning.nouns.is_empty(),
        PairKey::Words(words) => !words.is_empty(),
    };
    is_informative.then_some(key)
}

/// Decides among the candidates of one rule and key.
fn pair_group(
    rule: PairRule,
    group: &PairGroup,
    rest: &[RestOperation],
    rpc: &[RpcOperation],
    found: &mut Pairs,
) {
    let scores = if group.rest.len() * group.rpc.len() > MOST_RIVALS {
        Vec::new()
    } else {
        scores(group, rest, rpc)
    };
    let rest_best = best(scores.iter().map(|(one, _, score)| (*one, *score)));
    let rpc_best = best(scores.iter().map(|(_, other, score)| (*other, *score)));
    for (one, other, score) in &scores {
        let alone = Some(&(*score, 1));
        if rest_best.get(one) == alone && rpc_best.get(other) == alone {
            found.add(OperationPair {
                rest: *one,
                rpc: *other,
                rule,
                decided_by_parameters: scores.len() != 1,
                prefix: None,
            });
        }
    }
    let rest: Vec<usize> = unpaired(&group.rest, &found.rest_paired);
    let rpc: Vec<usize> = unpaired(&group.rpc, &found.rpc_paired);
    // Remaining operations with a candidate are ambiguous; only the others are tried under a weaker rule.
    for one in rest.iter().filter(|_| !rpc.is_empty()) {
        found.rest_doubts[*one].extend(rpc.iter().take(MOST_DOUBTS));
    }
    for one in rpc.iter().filter(|_| !rest.is_empty()) {
        found.rpc_doubts[*one].extend(rest.iter().take(MOST_DOUBTS));
    }
}

fn unpaired(group: &[usize], paired: &BTreeSet<usize>) -> Vec<usize> {
    let remaining = group.iter().copied();
    remaining.filter(|at| !paired.contains(at)).collect()
}

/// Returns, for each operation, the best score and the number of times it occurs.
fn best(scores: impl Iterator<Item = (usize, usize)>) -> BTreeMap<usize, (usize, usize)> {
    let mut found: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for (at, score) in scores {
        let (best, count) = found.entry(at).or_insert((score, 0));
        if score > *best {
            (*best, *count) = (score, 1);
        } else if score == *best {
            *count += 1;
        }
    }
    found
}

/// Returns each pair of a group with the percentage of parameters that have a twin.
fn scores(
    group: &PairGroup,
    rest: &[RestOperation],
    rpc: &[RpcOperation],
) -> Vec<(usize, usize, usize)> {
    let names: Vec<Vec<&str>> = group.rest.iter().map(|at| names(&rest[*at])).collect();
    let known = ParamNames::new(&names);
    let mut scores = Vec::new();
    for other in &group.rpc {
        let params = &rpc[*other].params;
        let twins = known.twins(params.iter().map(|param| param.name.as_str()));
        for ((one, names), twins) in group.rest.iter().zip(&names).zip(twins) {
            let all = names.len() + params.len() - twins.min(names.len());
            let score = (twins * 100).checked_div(all).unwrap_or(0);
            scores.push((*one, *other, score));
        }
    }
    scores
}

/// Returns the names of the values of an operation.
pub(super) fn names(operation: &RestOperation) -> Vec<&str> {
    let parameters = operation.parameters.iter();
    let mut names: Vec<&str> = parameters
        .map(|Parameter { named, .. }| named.name.as_str())
        .collect();
    if let BodyModel::Members { members, .. } = &operation.body {
        names.extend(members.iter().map(|member| member.name.as_str()));
    }
    names
}
