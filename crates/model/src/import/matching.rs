//! Matching of the params of an RPC operation to the parts of a REST call.
//!
//! Names match if they are equal, if they differ in signs and case only, or as `petId` and `id` do. The parts of the
//! call are matched in their order.
//!
//! Used by `import::bind` and `import::pair`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::model::{BodyModel, RestOperation, RpcOperation};
use super::name_words;
use super::schema::Type;

/// The param of each part of a REST call.
#[derive(Debug)]
pub(super) struct Matching {
    /// The param of each parameter.
    pub(super) parameters: Vec<Option<usize>>,
    /// The param of each member of the body.
    pub(super) members: Vec<Option<usize>>,
    whole: Option<usize>,
}

/// A rule of similarity: two names match if they share a key.
#[derive(Debug, Clone, Copy)]
enum MatchRule {
    Equal,
    SameWords,
    /// Matches `petId` in the path of a pet with the param `id`.
    SameEnd,
}

/// The common key of two names that match under a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum MatchKey {
    Name(String),
    Words(Vec<String>),
    /// `Shorter` holds all words of the shorter name; `Longer` all but one of the longer name.
    Shorter(Vec<String>),
    Longer(Vec<String>),
}

impl MatchRule {
    /// Returns the keys of a name of the REST side.
    fn rest_keys(self, name: &str) -> Vec<MatchKey> {
        match self {
            MatchRule::Equal => vec![MatchKey::Name(name.to_owned())],
            MatchRule::SameWords => vec![MatchKey::Words(name_words::plain(name))],
            MatchRule::SameEnd => {
                let words = name_words::words(name);
                if !ends_in_id_or_name(&words) {
                    return Vec::new();
                }
                vec![
                    MatchKey::Longer(words[1..].to_vec()),
                    MatchKey::Shorter(words),
                ]
            }
        }
    }

    /// Returns the keys of a param.
    fn rpc_keys(self, name: &str) -> Vec<MatchKey> {
        match self {
            MatchRule::Equal | MatchRule::SameWords => self.rest_keys(name),
            MatchRule::SameEnd => {
                let words = name_words::words(name);
                let end = words.get(1..).map(|end| MatchKey::Shorter(end.to_vec()));
                let end = end.into_iter();
                end.chain([MatchKey::Longer(words)]).collect()
            }
        }
    }
}

/// Returns true if one of two names begins the other.
pub(super) fn is_abbreviation(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(str::to_ascii_lowercase);
    let is_empty = one.is_empty() || other.is_empty();
    one != other && !is_empty && (one.starts_with(&other) || other.starts_with(&one))
}

fn ends_in_id_or_name(words: &[String]) -> bool {
    words
        .last()
        .is_some_and(|word| word == "id" || word == "name")
}

impl Matching {
    pub(super) fn new(rest: &RestOperation, rpc: &RpcOperation) -> Matching {
        let parameters: Vec<&str> = rest
            .parameters
            .iter()
            .map(|parameter| parameter.named.name.as_str())
            .collect();
        let members: Vec<&str> = match &rest.body {
            BodyModel::Members { members, .. } => {
                members.iter().map(|member| member.name.as_str()).collect()
            }
            BodyModel::None | BodyModel::Whole { .. } => Vec::new(),
        };
        let mut found = Matching {
            parameters: vec![None; parameters.len()],
            members: vec![None; members.len()],
            whole: None,
        };
        found.run(MatchRule::Equal, &parameters, &members, rpc);
        found.match_objects(rest, rpc);
        for rule in [MatchRule::SameWords, MatchRule::SameEnd] {
            found.run(rule, &parameters, &members, rpc);
        }
        found.match_last(&parameters, &members, rpc);
        found
    }

    /// Matches the only name that is left on each side, if one begins the other: `q` and `query`.
    fn match_last(&mut self, parameters: &[&str], members: &[&str], rpc: &RpcOperation) {
        let [at] = self.unmatched(rpc)[..] else {
            return;
        };
        let parameters = parameters.iter().zip(&mut self.parameters);
        let members = members.iter().zip(&mut self.members);
        let unmatched = parameters.chain(members).filter(|(_, twin)| twin.is_none());
        let mut unmatched: Vec<(&&str, &mut Option<usize>)> = unmatched.collect();
        if let [(name, twin)] = &mut unmatched[..]
            && is_abbreviation(name, &rpc.params[at].name)
        {
            **twin = Some(at);
        }
    }

    /// Matches the members of an object in the query, or in a form, with the param that is the object.
    fn match_objects(&mut self, rest: &RestOperation, rpc: &RpcOperation) {
        let mut objects: BTreeMap<Vec<String>, usize> = BTreeMap::new();
        for at in self.unmatched(rpc) {
            objects
                .entry(name_words::plain(&rpc.params[at].name))
                .or_insert(at);
        }
        let parameters = rest.parameters.iter();
        let parameters = parameters.map(|parameter| parameter.inside.as_ref());
        let members = match &rest.body {
            BodyModel::Members { members, .. } => members.as_slice(),
            BodyModel::None | BodyModel::Whole { .. } => &[],
        };
        let fields = members.iter().map(|member| rest.inside(&member.name));
        let twins = self.parameters.iter_mut().chain(&mut self.members);
        for (inside, twin) in parameters.chain(fields).zip(twins) {
            if let Some(inside) = inside
                && twin.is_none()
            {
                *twin = objects.get(&name_words::plain(&inside.object)).copied();
            }
        }
    }

    /// Matches the unmatched names that share a key. The parts of the call go first in their order.
    fn run(&mut self, rule: MatchRule, parameters: &[&str], members: &[&str], rpc: &RpcOperation) {
        let mut free: BTreeSet<usize> = self.unmatched(rpc).into_iter().collect();
        let mut by_key: BTreeMap<MatchKey, VecDeque<usize>> = BTreeMap::new();
        for at in &free {
            for key in rule.rpc_keys(&rpc.params[*at].name) {
                by_key.entry(key).or_default().push_back(*at);
            }
        }
        let lists = [
            (parameters, &mut self.parameters),
            (members, &mut self.members),
        ];
        for (names, twins) in lists {
            for (name, twin) in names.iter().zip(twins) {
                if twin.is_some() {
                    continue;
                }
                let mut first: Option<usize> = None;
                for key in rule.rest_keys(name) {
                    let Some(fitting) = by_key.get_mut(&key) else {
                        continue;
                    };
                    while fitting.front().is_some_and(|at| !free.contains(at)) {
                        fitting.pop_front();
                    }
                    first = first.into_iter().chain(fitting.front().copied()).min();
                }
                if let Some(at) = first {
                    free.remove(&at);
                }
                *twin = first;
            }
        }
    }

    /// Returns the params without a match so far.
    pub(super) fn unmatched(&self, rpc: &RpcOperation) -> Vec<usize> {
        let mut is_matched = vec![false; rpc.params.len()];
        for at in self.matched() {
            is_matched[at] = true;
        }
        (0..is_matched.len())
            .filter(|at| !is_matched[*at])
            .collect()
    }

    /// Returns the last param that has a value.
    pub(super) fn last(&self) -> Option<usize> {
        self.matched().max()
    }

    /// Returns true when one param is the whole body.
    pub(super) fn has_whole_body(&self) -> bool {
        self.whole.is_some()
    }

    fn matched(&self) -> impl Iterator<Item = usize> {
        let all = self.parameters.iter().chain(&self.members);
        all.chain([&self.whole]).flatten().copied()
    }

    /// Returns the param that is the whole body: the only unmatched one that may be an object, if no member of the body
    /// is a param itself.
    pub(super) fn whole_body(&mut self, rest: &RestOperation, rpc: &RpcOperation) -> Option<usize> {
        if self.members.iter().any(Option::is_some) {
            return None;
        }
        let noun = name_words::path_words(rest).pop();
        let names_a_body = |name: &str| {
            const USUAL: &[&str] = &["body", "data", "payload", "request", "input", "item"];
            let noun = noun.as_deref();
            USUAL.contains(&name) || noun.is_some_and(|noun| name_words::same_name(noun, name))
        };
        let fits = |at: &usize| match (&rest.body, &rpc.params[*at].kind) {
            (BodyModel::None, _) => false,
            (BodyModel::Members { .. }, kind) => {
                let is_named = || names_a_body(&rpc.params[*at].name);
                *kind == Type::Object || (*kind == Type::Any && is_named())
            }
            (BodyModel::Whole { kind, .. }, param) => {
                param == kind || *param == Type::Any || *kind == Type::Any
            }
        };
        let fitting: Vec<usize> = self.unmatched(rpc).into_iter().filter(fits).collect();
        let [only] = fitting[..] else {
            return None;
        };
        self.whole = Some(only);
        Some(only)
    }
}

/// An index of the parameter names of several REST operations, to find similar ones.
#[derive(Debug, Default)]
pub(super) struct ParamNames {
    /// The operations that have each key, each once.
    keys: BTreeMap<MatchKey, Vec<usize>>,
    operations: usize,
}

impl ParamNames {
    /// Indexes the names of each operation.
    pub(super) fn new(operations: &[Vec<&str>]) -> ParamNames {
        let mut found = ParamNames {
            operations: operations.len(),
            ..ParamNames::default()
        };
        for (at, names) in operations.iter().enumerate() {
            for key in names
                .iter()
                .flat_map(|name| keys(name, MatchRule::rest_keys))
            {
                let known = found.keys.entry(key).or_default();
                if known.last() != Some(&at) {
                    known.push(at);
                }
            }
        }
        found
    }

    /// Returns, for each operation, the number of these params that match one of its values.
    pub(super) fn twins<'n>(&self, params: impl Iterator<Item = &'n str>) -> Vec<usize> {
        let mut twins = vec![0; self.operations];
        // The last param counted for each operation, from 1.
        let mut last = vec![0; self.operations];
        for (number, param) in (1..).zip(params) {
            for key in keys(param, MatchRule::rpc_keys) {
                for at in self.keys.get(&key).into_iter().flatten() {
                    if last[*at] != number {
                        last[*at] = number;
                        twins[*at] += 1;
                    }
                }
            }
        }
        twins
    }
}

/// Returns the keys of a name under all rules.
fn keys(name: &str, keys_of: fn(MatchRule, &str) -> Vec<MatchKey>) -> Vec<MatchKey> {
    let mut found = keys_of(MatchRule::SameWords, name);
    found.extend(keys_of(MatchRule::SameEnd, name));
    found
}
