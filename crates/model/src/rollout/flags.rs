//! The flags in order, with an index of those that may cover a call.
//!
//! A flag that names one client or one route is found by that name, so that the flags of others cost a call nothing.
//! Law: a flag that the index leaves out does not cover any call of this client and route.
//!
//! Used by `rollout::decide`.

use std::collections::HashMap;
use std::ops::Deref;

use foldhash::fast::FixedState;

use super::{Flag, Glob};

/// The rules of a rollout, in order.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    all: Vec<Flag>,
    /// The name of each flag in descriptions of decisions.
    words: Vec<String>,
    /// The indexes of the flags that name one client.
    of_client: NamedFlags,
    /// The indexes of the flags that name one route and several clients.
    of_route: NamedFlags,
    /// The indexes of all other flags.
    open: Vec<usize>,
}

/// Ascending indexes, by name.
type NamedFlags = HashMap<Box<str>, Vec<usize>, FixedState>;

impl From<Vec<Flag>> for Flags {
    fn from(all: Vec<Flag>) -> Flags {
        let mut flags = Flags::default();
        for (index, flag) in all.iter().enumerate() {
            let indexes = if flag.client.is_literal() {
                named(&mut flags.of_client, &flag.client)
            } else if flag.route.is_literal() {
                named(&mut flags.of_route, &flag.route)
            } else {
                &mut flags.open
            };
            indexes.push(index);
        }
        flags.words = all
            .iter()
            .map(|flag| format!("flag {}", flag.name))
            .collect();
        Flags { all, ..flags }
    }
}

impl Flags {
    /// Returns the name of the flag at an index, as used in descriptions of decisions.
    pub(super) fn words(&self, index: usize) -> &str {
        self.words.get(index).map_or("flag ?", String::as_str)
    }
}

fn named<'n>(by_name: &'n mut NamedFlags, glob: &Glob) -> &'n mut Vec<usize> {
    by_name.entry(glob.as_str().into()).or_default()
}

impl Deref for Flags {
    type Target = [Flag];

    fn deref(&self) -> &[Flag] {
        &self.all
    }
}

impl Flags {
    /// Returns the flags that may cover a call of this client and route, with their indexes, in order.
    pub(super) fn near<'f>(
        &'f self,
        client: &str,
        route: &str,
    ) -> impl Iterator<Item = (usize, &'f Flag)> + use<'f> {
        let mut rest = [
            of(&self.of_client, client),
            of(&self.of_route, route),
            &self.open[..],
        ];
        std::iter::from_fn(move || {
            let heads = rest.iter_mut().filter(|places| !places.is_empty());
            let next = heads.min_by_key(|places| places[0])?;
            let (index, later) = next.split_first()?;
            *next = later;
            self.all.get(*index).map(|flag| (*index, flag))
        })
    }
}

fn of<'n>(named: &'n NamedFlags, name: &str) -> &'n [usize] {
    named.get(name).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use proptest::prelude::*;

    use super::*;
    use crate::rollout::tests::{caller, flag};
    use crate::rollout::{CallFacts, Stage};
    use dualgauge_patterns::side::Side;

    fn glob() -> impl Strategy<Value = Glob> {
        prop_oneof!["[ab]{1,2}", "[ab]\\*", "\\*[ab]", "\\*"].prop_map(Glob::new)
    }

    proptest! {
        #[test]
        fn those_that_cover_a_call_are_found_in_their_order(
            globs in prop::collection::vec((glob(), glob()), 0..12),
            client in "[ab]{1,2}",
            route in "[ab]{1,2}",
        ) {
            let flags = globs.into_iter().map(|(client, route)| Flag {
                client,
                route,
                ..flag("f", Stage::Translate)
            });
            let flags = Flags::from(flags.collect::<Vec<_>>());
            let headers = HeaderMap::new();
            let call = CallFacts {
                caller: caller(&client, None),
                route: &route,
                side: Side::Rest,
                headers: &headers,
                session: None,
            };
            let asked = flags.iter().enumerate().filter(|(_, flag)| flag.covers(&call));
            let asked: Vec<_> = asked.map(|(place, _)| place).collect();
            let near: Vec<_> = flags.near(&client, &route).collect();
            prop_assert!(near.is_sorted_by_key(|(place, _)| *place));
            let found = near.into_iter().filter(|(_, flag)| flag.covers(&call));
            prop_assert_eq!(found.map(|(place, _)| place).collect::<Vec<_>>(), asked);
        }
    }
}
