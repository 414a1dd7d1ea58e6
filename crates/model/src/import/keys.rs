//! The keys that distinguish routes, and those that are in use. Used by `import::route` and `import::table`.

use std::collections::{BTreeMap, BTreeSet};

use super::drafted::Drafted;
use super::model::{CallModel, Operations, RestOperation, RpcOperation};
use super::name_words;
use super::refs::shown;
use crate::route::{PathTexts, without_slash};

/// Paths on which POST is JSON-RPC in the default configuration.
const RPC_PATHS: &[&str] = &["/", "/rpc", "/jsonrpc", "/mcp"];

/// The keys that distinguish a route from others.
#[derive(Debug)]
pub(super) struct RouteKeys {
    /// The operations, for people.
    pub(super) title: String,
    pub(super) origin: RouteOrigin,
    pub(super) rest: String,
    pub(super) rpc: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RouteOrigin {
    Pair,
    Rest,
    Rpc,
}

/// The keys and names in use.
#[derive(Debug, Default)]
pub(super) struct ClaimedKeys {
    rest: BTreeSet<String>,
    rpc: BTreeSet<String>,
    /// The paths with text beside a parameter.
    texts: PathTexts,
    reserved: BTreeSet<String>,
    /// The operationIds, which no generated name may equal.
    ids: BTreeSet<String>,
    /// The last number given out for each key.
    numbers: BTreeMap<String, usize>,
}

impl ClaimedKeys {
    /// Claims both sides for a route, or refuses the route. A refused route claims nothing.
    pub(super) fn claim(&mut self, drafted: &mut Drafted, keys: &RouteKeys) {
        if drafted.refused.is_some() {
            return;
        }
        if drafted.from != Some(RPC_ONLY) && is_rpc_path(&keys.rest) {
            drafted.refused = Some(format!(
                "`{}` is an RPC path of the default configuration; change `rpc.paths` or the route",
                shown(&drafted.rest)
            ));
        } else if self.rest.contains(&keys.rest) {
            drafted.refused = Some(format!(
                "`{}` is already the REST side of another route",
                shown(&keys.rest)
            ));
        } else if self.rpc.contains(&keys.rpc) {
            drafted.refused = Some(format!(
                "`{}` is already the RPC side of another route",
                shown(&keys.rpc)
            ));
        } else if drafted.from != Some(RPC_ONLY)
            && let Err(why) = self.texts.add(&drafted.rest)
        {
            drafted.refused = Some(format!("`{}` {why}", shown(&drafted.rest)));
        } else {
            self.rest.insert(keys.rest.clone());
            self.rpc.insert(keys.rpc.clone());
        }
    }

    /// Returns the method name for a REST operation without a counterpart: its operationId, the words of its path, or
    /// those with a number.
    pub(super) fn name_for(&mut self, rest: &RestOperation) -> String {
        if let Some(id) = rest.id.as_ref().filter(|id| self.is_free_rpc(id)) {
            return id.clone();
        }
        let invented = name_words::invented(rest);
        let is_free = |name: &String| self.is_free_rpc(name) && !self.ids.contains(name);
        let invented = [invented, name_words::invented_with_holes(rest)];
        if let Some(name) = invented.iter().find(|name| is_free(name)) {
            return name.clone();
        }
        let [_, wanted] = invented;
        let mut name = wanted.clone();
        while !self.is_free_rpc(&name) || self.ids.contains(&name) {
            name = format!("{wanted}.{}", self.number(&wanted) + 1);
        }
        name
    }

    /// Returns the next number of a key, from 1 on.
    pub(super) fn number(&mut self, key: &str) -> usize {
        let number = self.numbers.entry(key.to_owned()).or_insert(0);
        *number += 1;
        *number
    }

    /// Returns true when a method may have this name.
    fn is_free_rpc(&self, key: &str) -> bool {
        !self.rpc.contains(key) && !self.reserved.contains(key)
    }

    /// Returns true when a generated REST side may be this one.
    pub(super) fn is_free_rest(&self, key: &str) -> bool {
        !self.rest.contains(key) && !is_rpc_path(key)
    }

    /// Reserves the names of all operations.
    pub(super) fn reserve(&mut self, found: &Operations) {
        self.reserved = found.rpc.iter().map(rpc_key).collect();
        self.ids = found
            .rest
            .iter()
            .filter_map(|rest| rest.id.clone())
            .collect();
    }
}

/// The side of a route that only RPC clients call.
pub(super) const RPC_ONLY: &str = "rpc";

/// Returns true for POST on an RPC path of the default configuration, where no REST client can call a route.
pub(super) fn is_rpc_path(key: &str) -> bool {
    key.strip_prefix("POST ")
        .is_some_and(|path| RPC_PATHS.contains(&without_slash(path)))
}

pub(super) fn rpc_key(rpc: &RpcOperation) -> String {
    match rpc.call {
        CallModel::ByName | CallModel::ByPosition => rpc.name.clone(),
        CallModel::Tool => format!("tools/call {}", rpc.name),
    }
}
