//! An index over clients that avoids testing each of them for a call.
//!
//! The clients of one source are tested in the order of the configuration. If their patterns are literals, a table
//! finds the candidates for a value, so that the hundredth client costs no more than the first. Law: the result is the
//! client that a linear search would find.
//!
//! Used by `rollout::identify`.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use http::HeaderName;
use http::header::USER_AGENT;

use super::{Client, Digest, Glob, Matcher};

/// The index over the clients.
#[derive(Debug, Clone, Default)]
pub(super) struct ClientIndex {
    /// The index of each client, by rank: by source, and within a source in the order of the configuration.
    order: Vec<usize>,
    groups: Vec<HeaderGroup>,
}

/// Clients of neighbouring ranks and of one kind.
#[derive(Debug, Clone)]
enum HeaderGroup {
    /// Clients with API keys: the rank of the first one with each key.
    Keys(HashMap<Digest, usize>),
    /// Clients that match on a header.
    Named(Vec<HeaderClients>),
    /// A client that needs a test of its own, by rank.
    One(usize),
}

/// The clients that are found by one header, by rank.
#[derive(Debug, Clone)]
struct HeaderClients {
    header: HeaderName,
    /// The clients with a literal value, in order.
    literal: HashMap<Box<str>, Vec<usize>, FixedState>,
    /// All others, in order.
    open: Vec<usize>,
}

/// The evidence of a call that the index needs.
pub(super) trait CallEvidence {
    /// Returns the digest of the API key.
    fn digest(&self) -> Option<&Digest>;
    /// Returns the text of a header.
    fn text(&self, name: &HeaderName) -> Option<&str>;
    /// Returns true if the client at this index matches.
    fn fits(&self, index: usize) -> bool;
}

/// Returns the header by which a client is found: of several, the first one with a literal value.
fn handle(matcher: &Matcher) -> Option<(&HeaderName, &Glob)> {
    match matcher {
        Matcher::Headers(rules) => {
            let literal = rules.iter().find(|(_, glob)| glob.is_literal());
            let (name, glob) = literal.or_else(|| rules.first())?;
            Some((name, glob))
        }
        Matcher::UserAgent(glob) => Some((&USER_AGENT, glob)),
        Matcher::Subject(_)
        | Matcher::ApiKey(_)
        | Matcher::Claims(_)
        | Matcher::Addresses(_)
        | Matcher::McpClient(_) => None,
    }
}

impl ClientIndex {
    /// Creates the index of these clients.
    pub(super) fn new(clients: &[Client]) -> ClientIndex {
        let mut order: Vec<usize> = (0..clients.len()).collect();
        // The sort is stable: clients of one source stay in their order.
        order.sort_by_key(|index| clients[*index].matcher.source());
        let mut groups = Vec::new();
        for (rank, index) in order.iter().enumerate() {
            add(&mut groups, rank, &clients[*index].matcher);
        }
        ClientIndex { order, groups }
    }

    /// Returns the index of the first client that matches.
    pub(super) fn first(&self, evidence: &impl CallEvidence) -> Option<usize> {
        let fits = |rank: usize| {
            let index = *self.order.get(rank)?;
            evidence.fits(index).then_some(index)
        };
        self.groups.iter().find_map(|group| match group {
            HeaderGroup::Keys(keys) => fits(*keys.get(evidence.digest()?)?),
            HeaderGroup::Named(named) => {
                let ranks = named.iter().filter_map(|named| named.first(evidence, fits));
                ranks.min().and_then(|rank| self.order.get(rank).copied())
            }
            HeaderGroup::One(rank) => fits(*rank),
        })
    }
}

impl HeaderClients {
    /// Returns the rank of the first client in this group that matches.
    fn first(
        &self,
        evidence: &impl CallEvidence,
        fits: impl Fn(usize) -> Option<usize> + Copy,
    ) -> Option<usize> {
        let first = |ranks: &[usize]| ranks.iter().copied().find(|rank| fits(*rank).is_some());
        if let ([_], true) = (&self.open[..], self.literal.is_empty()) {
            // The pattern looks for the header itself.
            return first(&self.open);
        }
        let text = evidence.text(&self.header)?;
        let literal = self.literal.get(text).and_then(|ranks| first(ranks));
        let before = literal.unwrap_or(usize::MAX);
        let open = self.open.partition_point(|rank| *rank < before);
        first(&self.open[..open]).or(literal)
    }
}

fn add(groups: &mut Vec<HeaderGroup>, rank: usize, matcher: &Matcher) {
    if let Matcher::ApiKey(known) = matcher {
        let mut keys = match groups.pop() {
            Some(HeaderGroup::Keys(keys)) => keys,
            other => {
                groups.extend(other);
                HashMap::new()
            }
        };
        for digest in known {
            keys.entry(*digest).or_insert(rank);
        }
        groups.push(HeaderGroup::Keys(keys));
    } else if let Some((header, glob)) = handle(matcher) {
        let mut named = match groups.pop() {
            Some(HeaderGroup::Named(named)) => named,
            other => {
                groups.extend(other);
                Vec::new()
            }
        };
        insert(&mut named, header, glob, rank);
        groups.push(HeaderGroup::Named(named));
    } else {
        groups.push(HeaderGroup::One(rank));
    }
}

fn insert(named: &mut Vec<HeaderClients>, header: &HeaderName, glob: &Glob, rank: usize) {
    let known = named.iter().position(|named| named.header == *header);
    let at = known.unwrap_or_else(|| {
        named.push(HeaderClients {
            header: header.clone(),
            literal: HashMap::default(),
            open: Vec::new(),
        });
        named.len() - 1
    });
    if glob.is_literal() {
        let ranks = named[at].literal.entry(glob.as_str().into());
        ranks.or_default().push(rank);
    } else {
        named[at].open.push(rank);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A call with its evidence, and the clients to match.
    struct Call<'a> {
        clients: &'a [Client],
        headers: Vec<(HeaderName, String)>,
        digest: Option<Digest>,
    }

    impl CallEvidence for Call<'_> {
        fn digest(&self) -> Option<&Digest> {
            self.digest.as_ref()
        }

        fn text(&self, name: &HeaderName) -> Option<&str> {
            let mut headers = self.headers.iter();
            let found = headers.find(|(own, _)| own == name);
            found.map(|(_, text)| text.as_str())
        }

        fn fits(&self, index: usize) -> bool {
            let says = |name: &HeaderName, glob: &Glob| {
                self.text(name).is_some_and(|text| glob.fits(text))
            };
            match &self.clients[index].matcher {
                Matcher::ApiKey(known) => self.digest().is_some_and(|own| known.contains(own)),
                Matcher::Headers(rules) => rules.iter().all(|(name, glob)| says(name, glob)),
                Matcher::UserAgent(glob) => says(&USER_AGENT, glob),
                Matcher::Addresses(_) => index % 2 == 1,
                Matcher::Subject(_) | Matcher::Claims(_) | Matcher::McpClient(_) => false,
            }
        }
    }

    fn glob() -> impl Strategy<Value = Glob> {
        prop_oneof!["[ab]{1,2}", "[ab]\\*", "\\*[ab]"].prop_map(Glob::new)
    }

    fn header() -> impl Strategy<Value = HeaderName> {
        prop_oneof![Just("x-one"), Just("x-two"), Just("user-agent")]
            .prop_map(HeaderName::from_static)
    }

    fn matcher() -> impl Strategy<Value = Matcher> {
        prop_oneof![
            4 => prop::collection::vec((header(), glob()), 1..3).prop_map(Matcher::Headers),
            2 => glob().prop_map(Matcher::UserAgent),
            1 => Just(Matcher::Addresses(Vec::new())),
            1 => prop::collection::vec((0..3u8).prop_map(|key| [key; 32]), 1..3)
                .prop_map(Matcher::ApiKey),
        ]
    }

    proptest! {
        #[test]
        fn who_is_found_is_whom_asking_everybody_in_turn_finds(
            matchers in prop::collection::vec(matcher(), 0..12),
            headers in prop::collection::vec((header(), "[ab]{1,2}"), 0..3),
            digest in prop::option::of((0..3u8).prop_map(|key| [key; 32])),
        ) {
            let client = |(index, matcher)| Client {
                name: format!("client-{index}"),
                matcher,
                key: None,
            };
            let clients: Vec<Client> = matchers.into_iter().enumerate().map(client).collect();
            let call = Call { clients: &clients, headers, digest };
            let mut order: Vec<usize> = (0..clients.len()).collect();
            order.sort_by_key(|index| clients[*index].matcher.source());
            let asked = order.into_iter().find(|index| call.fits(*index));
            prop_assert_eq!(ClientIndex::new(&clients).first(&call), asked);
        }
    }
}
