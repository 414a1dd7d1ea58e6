//! In which order clients are asked, and which of them need not be.
//!
//! Clients of one source are asked one after another, in the order of the configuration. Where what they ask for is a plain
//! text, a table tells at once whom a value may belong to, so that the hundredth client costs no more than the first.
//! Law: the client that is found is the one that asking each of them in turn finds.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use http::HeaderName;
use http::header::USER_AGENT;

use super::{Client, Digest, Glob, Matcher};

/// The clients, as they are asked.
#[derive(Debug, Clone, Default)]
pub(super) struct ClientIndex {
    /// The place of each client, by its rank: by source, and within one source as the configuration has them.
    places: Vec<usize>,
    groups: Vec<HeaderGroup>,
}

/// Clients of neighbouring ranks, of one kind.
#[derive(Debug, Clone)]
enum HeaderGroup {
    /// Those with API keys: the rank of the first one that has this key.
    Keys(HashMap<Digest, usize>),
    /// Those that a header names.
    Named(Vec<HeaderClients>),
    /// One that can only be asked, by its rank.
    One(usize),
}

/// The clients that are looked up by one header, by their ranks.
#[derive(Debug, Clone)]
struct HeaderClients {
    header: HeaderName,
    /// Those that ask for a plain text, in their order.
    literal: HashMap<Box<str>, Vec<usize>, FixedState>,
    /// All others, in their order.
    open: Vec<usize>,
}

/// What an order asks of a call.
pub(super) trait CallEvidence {
    /// The digest of its API key.
    fn digest(&self) -> Option<&Digest>;
    /// The text of a header.
    fn text(&self, name: &HeaderName) -> Option<&str>;
    /// Whether the client at a place fits.
    fn fits(&self, place: usize) -> bool;
}

/// What a client is looked up by: of several headers, the first one that is to have a plain text.
fn handle(matcher: &Matcher) -> Option<(&HeaderName, &Glob)> {
    match matcher {
        Matcher::Headers(rules) => {
            let literal = rules.iter().find(|(_, glob)| glob.is_literal());
            let (name, glob) = literal.or_else(|| rules.first())?;
            Some((name, glob))
        }
        Matcher::UserAgent(glob) => Some((&USER_AGENT, glob)),
        Matcher::Subject(_) | Matcher::ApiKey(_) | Matcher::Claims(_) | Matcher::Addresses(_) => {
            None
        }
    }
}

impl ClientIndex {
    /// The order of these clients.
    pub(super) fn new(clients: &[Client]) -> ClientIndex {
        let mut places: Vec<usize> = (0..clients.len()).collect();
        // Stable: clients of one source stay in their order.
        places.sort_by_key(|place| clients[*place].matcher.source());
        let mut groups = Vec::new();
        for (rank, place) in places.iter().enumerate() {
            add(&mut groups, rank, &clients[*place].matcher);
        }
        ClientIndex { places, groups }
    }

    /// The place of the first client that fits.
    pub(super) fn first(&self, shown: &impl CallEvidence) -> Option<usize> {
        let fits = |rank: usize| {
            let place = *self.places.get(rank)?;
            shown.fits(place).then_some(place)
        };
        self.groups.iter().find_map(|group| match group {
            HeaderGroup::Keys(keys) => fits(*keys.get(shown.digest()?)?),
            HeaderGroup::Named(named) => {
                let ranks = named.iter().filter_map(|named| named.first(shown, fits));
                ranks.min().and_then(|rank| self.places.get(rank).copied())
            }
            HeaderGroup::One(rank) => fits(*rank),
        })
    }
}

impl HeaderClients {
    /// The rank of the first of them that fits.
    fn first(
        &self,
        shown: &impl CallEvidence,
        fits: impl Fn(usize) -> Option<usize> + Copy,
    ) -> Option<usize> {
        let first = |ranks: &[usize]| ranks.iter().copied().find(|rank| fits(*rank).is_some());
        if let ([_], true) = (&self.open[..], self.literal.is_empty()) {
            // It looks for the header itself.
            return first(&self.open);
        }
        let text = shown.text(&self.header)?;
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
        place(&mut named, header, (glob, rank));
        groups.push(HeaderGroup::Named(named));
    } else {
        groups.push(HeaderGroup::One(rank));
    }
}

fn place(named: &mut Vec<HeaderClients>, header: &HeaderName, (glob, rank): (&Glob, usize)) {
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

    /// A call that shows what it has, and the clients that are asked.
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

        fn fits(&self, place: usize) -> bool {
            let says = |name: &HeaderName, glob: &Glob| {
                self.text(name).is_some_and(|text| glob.fits(text))
            };
            match &self.clients[place].matcher {
                Matcher::ApiKey(known) => self.digest().is_some_and(|own| known.contains(own)),
                Matcher::Headers(rules) => rules.iter().all(|(name, glob)| says(name, glob)),
                Matcher::UserAgent(glob) => says(&USER_AGENT, glob),
                Matcher::Addresses(_) => place % 2 == 1,
                Matcher::Subject(_) | Matcher::Claims(_) => false,
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
            let client = |(place, matcher)| Client {
                name: format!("client-{place}"),
                matcher,
                key: None,
            };
            let clients: Vec<Client> = matchers.into_iter().enumerate().map(client).collect();
            let call = Call { clients: &clients, headers, digest };
            let mut places: Vec<usize> = (0..clients.len()).collect();
            places.sort_by_key(|place| clients[*place].matcher.source());
            let asked = places.into_iter().find(|place| call.fits(*place));
            prop_assert_eq!(ClientIndex::new(&clients).first(&call), asked);
        }
    }
}
