//! Prefixes that methods of an RPC side share, such as `tools.` and `shop_`, which the paths of the REST side do not have.
//!
//! Used by `import::pair` and `import::route`.

use std::collections::{BTreeMap, BTreeSet};

use super::model::RpcOperation;
use super::name_words;
use super::refs::shown;
use super::schema::Type;

/// The signs after which a prefix ends.
const SIGNS: [char; 5] = ['.', '/', ':', '_', '-'];
/// The number of methods that make their common namespace a prefix.
const NAMESPACE: usize = 2;
/// The number of methods that make their common first word a prefix, if most methods begin with it.
const MOST: usize = 3;

/// A name without its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StrippedName<'n> {
    pub(super) prefix: &'n str,
    pub(super) name: &'n str,
}

/// Returns the names without shared prefixes; `None` for a name without one.
///
/// A word of a path is no prefix: `git.status` and `git.diff` are not `/status` and `/diff` if there is a `/git/log`.
pub(super) fn strip<'n>(
    names: &[&'n str],
    path_words: &BTreeSet<String>,
) -> Vec<Option<StrippedName<'n>>> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for found in names.iter().filter_map(|name| split(name, path_words)) {
        *counts.entry(found.prefix).or_default() += 1;
    }
    let is_shared = |prefix: &str| {
        let count = counts.get(prefix).copied().unwrap_or_default();
        let is_most = count >= MOST && count * 3 >= names.len() * 2;
        is_most || (prefix.ends_with('.') && count >= NAMESPACE)
    };
    let names = names.iter();
    names
        .map(|name| split(name, path_words).filter(|found| is_shared(found.prefix)))
        .collect()
}

/// Splits a name after its first sign; `None` if a verb, a word of a path or nothing precedes it, or nothing follows.
fn split<'n>(name: &'n str, path_words: &BTreeSet<String>) -> Option<StrippedName<'n>> {
    let sign = name.find(SIGNS)?;
    let (prefix, name) = name.split_at(sign + 1);
    let word = &prefix[..sign];
    let nouns = name_words::from_name(word).nouns;
    let is_prefix = !nouns.is_empty() && nouns.iter().all(|noun| !path_words.contains(noun));
    (is_prefix && !name.is_empty()).then_some(StrippedName { prefix, name })
}

/// Returns the reason why a pair by a guessed prefix is refused: clients often omit a boolean that is false, so a call
/// with the value and a call without it may be the same.
pub(super) fn unsure_value(rpc: &RpcOperation, prefix: Option<&str>) -> Option<String> {
    let prefix = prefix?;
    let mut params = rpc.params.iter();
    let unsure = params.find(|it| it.kind == Type::Boolean && !it.is_required)?;
    let name = shown(&unsure.name);
    Some(format!(
        "the prefix `{}` is a guess, and the default of the boolean `{name}` is not known",
        shown(prefix)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripped<'n>(names: &[&'n str]) -> Vec<&'n str> {
        let path_words = BTreeSet::from(["git".to_owned()]);
        let found = strip(names, &path_words).into_iter().zip(names);
        found
            .map(|(found, name)| found.map_or(*name, |found| found.name))
            .collect()
    }

    #[test]
    fn a_prefix_of_most_methods_and_a_namespace_of_several_are_stripped() {
        assert_eq!(
            stripped(&["shop_recall", "shop_learn", "shop_stats", "ping"]),
            ["recall", "learn", "stats", "ping"]
        );
        assert_eq!(
            stripped(&[
                "rpc.list_tools",
                "rpc.reload_tools",
                "other.chat",
                "web_search"
            ]),
            ["list_tools", "reload_tools", "other.chat", "web_search"]
        );
        for names in [
            ["get_users", "get_items", "get_orders"],
            ["users_list", "items_list", "orders_list"],
            ["_a", "_b", "_c"],
            ["a_", "a_", "a_"],
            ["git.status", "git.diff", "git.log"],
            ["ping", "pong", ""],
        ] {
            assert_eq!(stripped(&names), names);
        }
    }
}
