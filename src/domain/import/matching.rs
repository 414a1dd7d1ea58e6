//! Which param of an RPC operation is which part of a REST call.
//!
//! Names decide: the same one, the same but for signs and case, and `petId` for `id`. What comes first in the call
//! is matched first.

use super::model::{Body, RestOperation, RpcOperation};
use super::schema::Type;
use super::words;

/// Which param belongs to which part of the REST call.
#[derive(Debug)]
pub(super) struct Matching {
    /// For each parameter, its param.
    pub(super) parameters: Vec<Option<usize>>,
    /// For each member of the body, its param.
    pub(super) members: Vec<Option<usize>>,
    whole: Option<usize>,
}

/// How alike two names have to be.
type Alike = fn(&str, &str) -> bool;

impl Matching {
    pub(super) fn of(rest: &RestOperation, rpc: &RpcOperation) -> Matching {
        let parameters: Vec<&str> = rest
            .parameters
            .iter()
            .map(|parameter| parameter.named.name.as_str())
            .collect();
        let members: Vec<&str> = match &rest.body {
            Body::Members { members, .. } => {
                members.iter().map(|member| member.name.as_str()).collect()
            }
            Body::None | Body::Whole { .. } => Vec::new(),
        };
        let mut found = Matching {
            parameters: vec![None; parameters.len()],
            members: vec![None; members.len()],
            whole: None,
        };
        let rules: [Alike; 3] = [|one, other| one == other, words::same_name, ends_alike];
        for alike in rules {
            found.run(alike, &parameters, &members, rpc);
        }
        found
    }

    /// Matches those that are alike and still alone; what comes first in the call is first.
    fn run(&mut self, alike: Alike, parameters: &[&str], members: &[&str], rpc: &RpcOperation) {
        for (names, into_members) in [(parameters, false), (members, true)] {
            for (at, name) in names.iter().enumerate() {
                let taken = if into_members {
                    &self.members
                } else {
                    &self.parameters
                };
                if taken[at].is_some() {
                    continue;
                }
                let mut free = self.left(rpc).into_iter();
                let twin = free.find(|twin| alike(name, &rpc.params[*twin].name));
                if into_members {
                    self.members[at] = twin;
                } else {
                    self.parameters[at] = twin;
                }
            }
        }
    }

    /// Params that nothing belongs to yet.
    pub(super) fn left(&self, rpc: &RpcOperation) -> Vec<usize> {
        let mut taken = vec![false; rpc.params.len()];
        for at in self.matched() {
            taken[at] = true;
        }
        (0..taken.len()).filter(|at| !taken[*at]).collect()
    }

    /// Whether a param behind this one has a value.
    pub(super) fn is_followed(&self, at: usize) -> bool {
        self.matched().any(|other| other > at)
    }

    /// Whether the body as a whole is one param.
    pub(super) fn has_whole_body(&self) -> bool {
        self.whole.is_some()
    }

    fn matched(&self) -> impl Iterator<Item = usize> {
        let all = self.parameters.iter().chain(&self.members);
        all.chain([&self.whole]).flatten().copied()
    }

    /// The param that is the whole body: the one that is left, where it may be an object and the body's members
    /// are not params themselves.
    pub(super) fn whole_body(&mut self, rest: &RestOperation, rpc: &RpcOperation) -> Option<usize> {
        if self.members.iter().any(Option::is_some) {
            return None;
        }
        let fits = |at: &usize| match (&rest.body, &rpc.params[*at].kind) {
            (Body::None, _) => false,
            (Body::Members { .. }, kind) => {
                let named = names_a_body(&rpc.params[*at].name, rest);
                *kind == Type::Object || (*kind == Type::Any && named)
            }
            (Body::Whole { kind, .. }, param) => {
                param == kind || *param == Type::Any || *kind == Type::Any
            }
        };
        let fitting: Vec<usize> = self.left(rpc).into_iter().filter(fits).collect();
        let [only] = fitting[..] else {
            return None;
        };
        self.whole = Some(only);
        Some(only)
    }
}

/// Whether two names may mean one value.
pub(super) fn alike(one: &str, other: &str) -> bool {
    words::same_name(one, other) || ends_alike(one, other)
}

/// `petId` in the path of a pet, `id` among the params.
fn ends_alike(one: &str, other: &str) -> bool {
    let (one, other) = (words::words(one), words::words(other));
    let shorter = one.len().min(other.len());
    let telling = one
        .last()
        .is_some_and(|word| word == "id" || word == "name");
    telling
        && one.len().max(other.len()) == shorter + 1
        && one.len() != other.len()
        && one[one.len() - shorter..] == other[other.len() - shorter..]
}

fn names_a_body(name: &str, rest: &RestOperation) -> bool {
    const USUAL: &[&str] = &["body", "data", "payload", "request", "input", "item"];
    USUAL.contains(&name)
        || words::of_path(rest)
            .last()
            .is_some_and(|noun| words::same_name(noun, name))
}
