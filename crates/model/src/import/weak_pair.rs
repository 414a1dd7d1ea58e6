//! Pairs of observed operations whose names differ in their verb or in their namespace.
//!
//! A pair is only made if it is the only one that is possible for both operations. Two rules: a `GET` reads what a name
//! lists or gets; the path ends as the name does, and the values of both have the same names.
//!
//! Used by `import::pair`.

use std::collections::{BTreeMap, BTreeSet};

use super::matching::ParamNames;
use super::model::{RestOperation, RpcOperation, Segment};
use super::name_words::{self, NameWords};
use super::pair::{self, OperationPair, PairRule, Pairs};

/// The most operations of a side that are compared. Without all of them, a pair could have another candidate.
const MOST: usize = 500;

/// Returns true if two operations may be a pair under a rule.
type RuleTest = fn(&RestOperation, &RpcOperation, &SideWords) -> bool;

const RULES: [(PairRule, RuleTest); 2] = [
    (PairRule::Reading, |rest, rpc, _| reads(rest, rpc)),
    (PairRule::SameAction, is_same_action),
];

/// Pairs the operations that are left.
pub(super) fn pair(rest: &[RestOperation], rpc: &[RpcOperation], found: &mut Pairs) {
    let words = SideWords::new(rest, rpc);
    for (rule, is_possible) in RULES {
        let free: Vec<usize> = (0..rest.len())
            .filter(|at| found.rest_is_free(*at))
            .collect();
        let others: Vec<usize> = (0..rpc.len()).filter(|at| found.rpc_is_free(*at)).collect();
        if free.len().max(others.len()) > MOST {
            return;
        }
        let mut possible: Vec<(usize, usize)> = Vec::new();
        for one in free {
            for other in &others {
                if is_possible(&rest[one], &rpc[*other], &words) {
                    possible.push((one, *other));
                }
            }
        }
        let rest_counts = counts(possible.iter().map(|(one, _)| *one));
        let rpc_counts = counts(possible.iter().map(|(_, other)| *other));
        for (one, other) in possible {
            if rest_counts[&one] == 1 && rpc_counts[&other] == 1 {
                found.add(OperationPair {
                    rest: one,
                    rpc: other,
                    rule,
                    decided_by_parameters: false,
                    prefix: None,
                });
            }
        }
    }
}

fn counts(operations: impl Iterator<Item = usize>) -> BTreeMap<usize, usize> {
    let mut counts = BTreeMap::new();
    for operation in operations {
        *counts.entry(operation).or_default() += 1;
    }
    counts
}

/// Returns true if a `GET` of a path that ends in a word reads what the name lists or gets. The word, such as `hidden`,
/// does not tell one from several.
fn reads(rest: &RestOperation, rpc: &RpcOperation) -> bool {
    let is_read = |verb: &str| matches!(verb, "get" | "list");
    let path = name_words::from_whole_path(rest);
    let NameWords { verb, nouns } = name_words::from_name(&rpc.name);
    let ends_in_word = rest
        .last_segment()
        .is_some_and(|segment| !segment.has_hole());
    ends_in_word && is_read(path.verb) && is_read(verb) && !nouns.is_empty() && path.nouns == nouns
}

/// Returns true if the path ends as the name does after its namespace, if both have values of the same names, and if
/// their other words do not contradict each other: each is unknown to the other side.
fn is_same_action(rest: &RestOperation, rpc: &RpcOperation, words: &SideWords) -> bool {
    let action = rpc.name.rsplit(['.', '/', ':']).next().unwrap_or_default();
    let Some(Segment::Literal(end)) = rest.last_segment() else {
        return false;
    };
    let end = name_words::plain(end);
    if end.is_empty() || end != name_words::plain(action) || !have_same_values(rest, rpc) {
        return false;
    }
    let path: BTreeSet<String> = name_words::spelled_by_path(rest).into_iter().collect();
    let name: BTreeSet<String> = name_words::spelled_by_name(&rpc.name).into_iter().collect();
    let of_path: Vec<&String> = path.difference(&name).collect();
    let of_name: Vec<&String> = name.difference(&path).collect();
    let is_contained = of_path.is_empty() || of_name.is_empty();
    // A `GET` must not become a call that changes something.
    let fits = match (rest.method.as_str(), name_words::from_name(&rpc.name).verb) {
        ("GET", "get" | "list")
        | ("POST", "" | "create" | "update" | "delete")
        | ("PUT" | "PATCH", "update")
        | ("DELETE", "delete") => true,
        ("GET", "") => of_name.is_empty(),
        (_, _) => false,
    };
    let are_unknown = || {
        of_path.iter().all(|word| !words.rpc.contains(*word))
            && of_name.iter().all(|word| !words.rest.contains(*word))
    };
    fits && (is_contained || are_unknown())
}

/// Returns true if both operations have values, each with a twin.
fn have_same_values(rest: &RestOperation, rpc: &RpcOperation) -> bool {
    let names = pair::names(rest);
    let params = rpc.params.iter().map(|param| param.name.as_str());
    let count = names.len();
    let twins = ParamNames::new(&[names]).twins(params);
    count > 0 && count == rpc.params.len() && twins == [count]
}

/// The words of all operations of each side.
struct SideWords {
    rest: BTreeSet<String>,
    rpc: BTreeSet<String>,
}

impl SideWords {
    fn new(rest: &[RestOperation], rpc: &[RpcOperation]) -> SideWords {
        let names = rpc.iter().map(|one| name_words::spelled_by_name(&one.name));
        SideWords {
            rest: rest.iter().flat_map(name_words::spelled_by_path).collect(),
            rpc: names.flatten().collect(),
        }
    }
}
