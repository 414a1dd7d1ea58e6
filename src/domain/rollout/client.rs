//! Clients: who calls, as one of the bounded names of the configuration.

use core::fmt;

use http::HeaderName;

use super::{Glob, SubjectPattern};
use crate::domain::client_ip::Network;
use crate::domain::token::ClaimPath;

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
    /// Every one of these patterns fits the client certificate.
    Subject(Vec<SubjectPattern>),
    /// The API key has one of these digests.
    ApiKey(Vec<Digest>),
    /// Every one of these claims of a verified token fits.
    Claims(Vec<(ClaimPath, Glob)>),
    /// Every one of these headers has a value that fits.
    Headers(Vec<(HeaderName, Glob)>),
    /// The caller's address is in one of these networks.
    Addresses(Vec<Network>),
    /// The user agent fits.
    UserAgent(Glob),
}

/// Where an identity is from. The order is that in which sources are asked: what is proved comes before what is
/// only said, so that nobody can take a name from himself, or from another one, by saying more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatcherSource {
    /// The certificate of the connection.
    Subject,
    /// The API key.
    ApiKey,
    /// A verified token.
    Claim,
    /// Headers.
    Header,
    /// The caller's address.
    Address,
    /// The user agent.
    UserAgent,
}

/// Whether an identity is more than what the caller says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Proof {
    /// The caller has shown a secret of this client.
    Authenticated,
    /// The caller, or the network, says so.
    Declared,
    /// Nobody says anything: the caller is [`OTHER`].
    None,
}

impl Proof {
    /// The word used in logs, explanations and views.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Proof::Authenticated => "authenticated",
            Proof::Declared => "declared",
            Proof::None => "none",
        }
    }
}

impl MatcherSource {
    /// The word used in views: the key of `match`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            MatcherSource::Subject => "subject",
            MatcherSource::ApiKey => "api_key",
            MatcherSource::Claim => "claim",
            MatcherSource::Header => "header",
            MatcherSource::Address => "address",
            MatcherSource::UserAgent => "user_agent",
        }
    }

    /// What it proves.
    #[must_use]
    pub const fn proof(self) -> Proof {
        match self {
            MatcherSource::Subject | MatcherSource::ApiKey | MatcherSource::Claim => {
                Proof::Authenticated
            }
            MatcherSource::Header | MatcherSource::Address | MatcherSource::UserAgent => {
                Proof::Declared
            }
        }
    }
}

impl Matcher {
    /// Where the identity is from.
    #[must_use]
    pub const fn source(&self) -> MatcherSource {
        match self {
            Matcher::Subject(_) => MatcherSource::Subject,
            Matcher::ApiKey(_) => MatcherSource::ApiKey,
            Matcher::Claims(_) => MatcherSource::Claim,
            Matcher::Headers(_) => MatcherSource::Header,
            Matcher::Addresses(_) => MatcherSource::Address,
            Matcher::UserAgent(_) => MatcherSource::UserAgent,
        }
    }
}

/// Where the key of a caller within its client comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// The value of a header.
    Header(HeaderName),
    /// The API key.
    ApiKey,
    /// A claim of a verified token.
    Claim(ClaimPath),
    /// The caller's address.
    Address,
    /// The value of a cookie.
    Cookie(String),
}

/// One caller, as far as the rollout sees it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Caller<'a> {
    /// The place of the client in [`super::Clients`]; absent for everyone else.
    pub client: Option<usize>,
    /// The name of the client.
    pub name: &'a str,
    /// What is bucketed; never logged.
    pub key: Option<&'a str>,
    /// Whether that is more than what the caller says.
    pub proof: Proof,
}

impl fmt::Debug for Caller<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key.map(|_| "***");
        f.debug_struct("Caller")
            .field("client", &self.client)
            .field("name", &self.name)
            .field("key", &key)
            .field("proof", &self.proof)
            .finish()
    }
}
