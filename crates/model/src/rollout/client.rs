//! Clients: the bounded set of configured names for callers. Used in most modules.

use core::fmt;

use http::HeaderName;

use super::{Glob, SubjectPattern};
use crate::client_ip::Network;
use crate::mcp::ClientInfo;
use crate::token::ClaimPath;

/// The name of the callers that match no client.
pub const OTHER: &str = "other";

/// A SHA-256 digest; API keys are stored in this form.
pub type Digest = [u8; 32];

/// A client.
#[derive(Debug, Clone)]
pub struct Client {
    /// The name in flags, metrics and logs.
    pub name: String,
    /// The rule that recognises its calls.
    pub matcher: Matcher,
    /// The key that assigns its callers to buckets.
    pub key: Option<KeySource>,
}

/// A rule that recognises the calls of a client.
#[derive(Debug, Clone)]
pub enum Matcher {
    /// All of these patterns match the client certificate.
    Subject(Vec<SubjectPattern>),
    /// The API key has one of these digests.
    ApiKey(Vec<Digest>),
    /// All of these claims of a verified token match.
    Claims(Vec<(ClaimPath, Glob)>),
    /// All of these headers have a matching value.
    Headers(Vec<(HeaderName, Glob)>),
    /// The address of the caller is in one of these networks.
    Addresses(Vec<Network>),
    /// The program that an MCP client declares in `clientInfo` matches.
    McpClient(McpClientGlobs),
    /// The user agent matches.
    UserAgent(Glob),
}

/// The source of an identity, in the order of precedence. Proven sources come before declared ones, so that a caller
/// cannot change an authenticated identity, its own or another's, by adding claims.
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
    /// The address of the caller.
    Address,
    /// `clientInfo` of an MCP client.
    McpClient,
    /// The user agent.
    UserAgent,
}

/// Patterns for the program that an MCP client declares.
#[derive(Debug, Clone)]
pub struct McpClientGlobs {
    /// The pattern for its name.
    pub name: Glob,
    /// The pattern for its version; any if absent.
    pub version: Option<Glob>,
}

impl McpClientGlobs {
    /// Returns true if a program matches.
    #[must_use]
    pub fn fits(&self, info: &ClientInfo) -> bool {
        let version = self.version.as_ref();
        self.name.fits(info.name()) && version.is_none_or(|glob| glob.fits(info.version()))
    }
}

/// The strength of an identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Proof {
    /// The caller has presented a credential of this client.
    Authenticated,
    /// The caller or the network only declares it.
    Declared,
    /// There is no identity: the caller is [`OTHER`].
    None,
}

impl Proof {
    /// Returns the name used in logs, explanations and views.
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
    /// Returns the name used in views: the key in `match`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            MatcherSource::Subject => "subject",
            MatcherSource::ApiKey => "api_key",
            MatcherSource::Claim => "claim",
            MatcherSource::Header => "header",
            MatcherSource::Address => "address",
            MatcherSource::McpClient => "mcp_client",
            MatcherSource::UserAgent => "user_agent",
        }
    }

    /// Returns the strength of an identity from this source.
    #[must_use]
    pub const fn proof(self) -> Proof {
        match self {
            MatcherSource::Subject | MatcherSource::ApiKey | MatcherSource::Claim => {
                Proof::Authenticated
            }
            MatcherSource::Header
            | MatcherSource::Address
            | MatcherSource::McpClient
            | MatcherSource::UserAgent => Proof::Declared,
        }
    }
}

impl Matcher {
    /// Returns the source of the identity.
    #[must_use]
    pub const fn source(&self) -> MatcherSource {
        match self {
            Matcher::Subject(_) => MatcherSource::Subject,
            Matcher::ApiKey(_) => MatcherSource::ApiKey,
            Matcher::Claims(_) => MatcherSource::Claim,
            Matcher::Headers(_) => MatcherSource::Header,
            Matcher::Addresses(_) => MatcherSource::Address,
            Matcher::McpClient(_) => MatcherSource::McpClient,
            Matcher::UserAgent(_) => MatcherSource::UserAgent,
        }
    }
}

/// The source of a caller's key within its client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// The value of a header.
    Header(HeaderName),
    /// The API key.
    ApiKey,
    /// A claim of a verified token.
    Claim(ClaimPath),
    /// The address of the caller.
    Address,
    /// The value of a cookie.
    Cookie(String),
}

/// The caller of one call, as the rollout knows it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Caller<'a> {
    /// The index of the client in [`super::Clients`]; `None` for [`OTHER`].
    pub client: Option<usize>,
    /// The name of the client.
    pub name: &'a str,
    /// The key that determines the bucket; never logged.
    pub key: Option<&'a str>,
    /// The strength of the identity.
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
