//! Clients: who calls, as one of the bounded names of the configuration.

use http::{HeaderMap, HeaderName};

use super::Glob;

/// The name of everyone whom no rule names.
pub const OTHER: &str = "other";

/// A SHA-256 digest, as API keys are kept.
pub type Digest = [u8; 32];

/// Who calls.
#[derive(Debug, Clone)]
pub struct Client {
    /// The name in flags, metrics and logs.
    pub name: String,
    /// How its calls are recognised.
    pub matcher: Matcher,
    /// Which of its callers is in a percentage.
    pub key: Option<KeySource>,
}

/// How calls of a client are recognised.
#[derive(Debug, Clone)]
pub enum Matcher {
    /// Every one of these headers has a value that fits. Declared by the caller, not authenticated.
    Headers(Vec<(HeaderName, Glob)>),
    /// The API key has one of these digests.
    ApiKey(Vec<Digest>),
}

/// Where the key of a caller within its client comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// The value of a header.
    Header(HeaderName),
    /// The API key.
    ApiKey,
}

/// All clients, in order.
#[derive(Debug, Clone)]
pub struct Clients {
    clients: Vec<Client>,
    api_key: HeaderName,
    hashes: Hashing,
}

/// Whether a digest of the API key is ever looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hashing {
    Needed,
    Unused,
}

/// One caller, as far as the rollout sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller<'a> {
    /// The place of the client in [`Clients`]; absent for everyone else.
    pub client: Option<usize>,
    /// The name of the client.
    pub name: &'a str,
    /// What is bucketed; never logged.
    pub key: Option<&'a str>,
}

impl Clients {
    /// The clients of a plan; `api_key` is the header that bears API keys.
    #[must_use]
    pub fn new(clients: Vec<Client>, api_key: HeaderName) -> Clients {
        let by_key = clients
            .iter()
            .any(|client| matches!(client.matcher, Matcher::ApiKey(_)));
        Clients {
            clients,
            api_key,
            hashes: if by_key {
                Hashing::Needed
            } else {
                Hashing::Unused
            },
        }
    }

    /// All clients, in order.
    #[must_use]
    pub fn all(&self) -> &[Client] {
        &self.clients
    }

    /// The header that bears API keys.
    #[must_use]
    pub fn api_key(&self) -> &HeaderName {
        &self.api_key
    }

    /// The name at a place that [`Clients::identify`] has named.
    #[must_use]
    pub fn name(&self, client: Option<usize>) -> &str {
        client
            .and_then(|index| self.clients.get(index))
            .map_or(OTHER, |client| &client.name)
    }

    /// Tells who calls: the first client whose rule fits. `digest` is SHA-256, asked for only where needed.
    #[must_use]
    pub fn identify<'a>(
        &'a self,
        headers: &'a HeaderMap,
        digest: impl Fn(&[u8]) -> Digest,
    ) -> Caller<'a> {
        let api_key = headers.get(&self.api_key);
        let digest = match (self.hashes, api_key) {
            (Hashing::Needed, Some(value)) => Some(digest(value.as_bytes())),
            (Hashing::Needed, None) | (Hashing::Unused, _) => None,
        };
        let fits = |client: &Client| match &client.matcher {
            Matcher::Headers(rules) => rules.iter().all(|(name, glob)| {
                headers
                    .get(name)
                    .and_then(|value| value.to_str().ok())
                    .is_some_and(|value| glob.fits(value))
            }),
            Matcher::ApiKey(known) => digest.is_some_and(|digest| known.contains(&digest)),
        };
        let Some(index) = self.clients.iter().position(fits) else {
            return Caller {
                client: None,
                name: OTHER,
                key: None,
            };
        };
        let client = &self.clients[index];
        let header = match &client.key {
            Some(KeySource::Header(name)) => headers.get(name),
            Some(KeySource::ApiKey) => api_key,
            None => None,
        };
        let key = header
            .and_then(|value| value.to_str().ok())
            .filter(|key| !key.is_empty());
        Caller {
            client: Some(index),
            name: &client.name,
            key,
        }
    }
}
