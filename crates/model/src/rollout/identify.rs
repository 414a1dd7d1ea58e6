//! Identification of callers: from the evidence in a call to a client, and to the key of the caller within it.
//!
//! Sources are tried in the order of [`super::MatcherSource`], and the clients of one source in the order of the
//! configuration. Expensive evidence (a digest, a signature, a list of hops) is computed at most once, and only if a
//! rule needs it. Laws: a declared name never replaces an authenticated one; the identity of a caller depends only on
//! its own evidence.
//!
//! Used by `config`, `rollout` and `gateway`.

use core::cell::OnceCell;
use core::fmt;
use core::net::IpAddr;
use std::borrow::Cow;
use std::rc::Rc;

use http::header::{COOKIE, USER_AGENT};
use http::{HeaderMap, HeaderName};

use super::api_key::{ApiKeyForms, ApiKeys};
use super::client_index::{CallEvidence, ClientIndex};
use super::{
    Caller, Client, Digest, Glob, KeySource, Matcher, MatcherSource, OTHER, Proof, Subject,
};
use crate::client_ip::{Peer, TrustedProxies};
use crate::headers::first_value;
use crate::mcp::ClientInfo;
use crate::token::{Claims, Tokens, bearer};

/// All clients, in order, and the settings for identifying them.
#[derive(Debug, Clone)]
pub struct Clients {
    clients: Vec<Client>,
    order: ClientIndex,
    api_keys: ApiKeys,
    hops: TrustedProxies,
    tokens: Option<Tokens>,
    authentication: Authentication,
    reads_mcp_clients: bool,
}

/// The treatment of callers without credentials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Authentication {
    /// They are served.
    #[default]
    Off,
    /// They are refused.
    Required,
}

/// The fault of a call that is refused for its credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CredentialFault {
    /// The call has none.
    Missing,
    /// The call has some, which are not those of a client.
    Unknown,
}

impl CredentialFault {
    /// Every fault.
    pub const ALL: [CredentialFault; 2] = [CredentialFault::Missing, CredentialFault::Unknown];

    /// Returns the word used in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            CredentialFault::Missing => "missing",
            CredentialFault::Unknown => "unknown",
        }
    }
}

/// The evidence of a call for the identity of its caller.
#[derive(Clone, Copy)]
pub struct ClientEvidence<'a, 'm> {
    /// The headers of the call.
    pub headers: &'a HeaderMap,
    /// The peer of the connection. If unknown, declared headers are trusted and no address matches.
    pub peer: Option<&'a Peer>,
    /// The subject of the verified client certificate.
    pub subject: Option<&'m Subject>,
    /// The program that an MCP client declares, in the message or at the start of its session.
    pub mcp_client: Option<&'m ClientInfo>,
    /// The SHA-256 function.
    pub digest: fn(&[u8]) -> Digest,
    /// Returns the claims of a bearer token if it is verified.
    pub claims: &'m dyn Fn(&Tokens, &str) -> Option<Rc<Claims>>,
}

/// The identity of a caller, independent of the plan that identified it.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity<'a> {
    client: Option<usize>,
    proof: Proof,
    key: Option<Cow<'a, str>>,
}

/// The key is never shown.
impl fmt::Debug for Identity<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({:?}, {:?}, ***)", self.client, self.proof)
    }
}

impl Identity<'_> {
    /// The identity of a caller that matches no client.
    pub const OTHER: Identity<'static> = Identity {
        client: None,
        proof: Proof::None,
        key: None,
    };

    /// Returns the caller, given the clients that identified it.
    #[must_use]
    pub fn caller<'c>(&'c self, clients: &'c Clients) -> Caller<'c> {
        Caller {
            client: self.client,
            name: clients.name(self.client),
            key: self.key.as_deref(),
            proof: self.proof,
        }
    }

    /// Returns true when the caller presented the credentials of a client.
    #[must_use]
    pub fn is_authenticated(&self) -> bool {
        self.proof == Proof::Authenticated
    }

    /// Returns the identity with a borrowed key.
    #[must_use]
    pub fn borrowed(&self) -> Identity<'_> {
        Identity {
            client: self.client,
            proof: self.proof,
            key: self.key.as_deref().map(Cow::Borrowed),
        }
    }

    /// Returns the identity with an owned key.
    #[must_use]
    pub fn into_owned(self) -> Identity<'static> {
        Identity {
            client: self.client,
            proof: self.proof,
            key: self.key.map(|key| Cow::Owned(key.into_owned())),
        }
    }
}

impl Clients {
    /// Creates the clients of a plan; `api_key` is the header for API keys.
    #[must_use]
    pub fn new(clients: Vec<Client>, api_key: HeaderName) -> Clients {
        let mut sources = clients.iter().map(|client| client.matcher.source());
        Clients {
            reads_mcp_clients: sources.any(|source| source == MatcherSource::McpClient),
            order: ClientIndex::new(&clients),
            clients,
            api_keys: ApiKeys {
                header: api_key,
                forms: ApiKeyForms::default(),
            },
            hops: TrustedProxies::default(),
            tokens: None,
            authentication: Authentication::Off,
        }
    }

    /// Sets the treatment of callers without credentials, and the places of API keys beside their header.
    #[must_use]
    pub fn authenticating(mut self, authentication: Authentication, forms: ApiKeyForms) -> Clients {
        self.authentication = authentication;
        self.api_keys.forms = forms;
        self
    }

    /// Returns the treatment of callers without credentials.
    #[must_use]
    pub const fn authentication(&self) -> Authentication {
        self.authentication
    }

    /// Returns the schemes of `WWW-Authenticate` (RFC 9110 §11.6.1).
    #[must_use]
    pub const fn challenges(&self) -> &'static [&'static str] {
        let forms = self.api_keys.forms;
        match (forms.bearer || self.tokens.is_some(), forms.basic) {
            (true, true) => &["Bearer", "Basic"],
            (true, false) => &["Bearer"],
            (false, true) => &["ApiKey", "Basic"],
            (false, false) => &["ApiKey"],
        }
    }

    /// Returns the fault of a call without credentials of a client.
    #[must_use]
    pub fn credential_fault(&self, evidence: &ClientEvidence<'_, '_>) -> CredentialFault {
        match evidence.subject.is_some() || self.api_keys.are_stated(evidence.headers) {
            true => CredentialFault::Unknown,
            false => CredentialFault::Missing,
        }
    }

    /// Returns the trusted proxies.
    #[must_use]
    pub fn hops(&self) -> &TrustedProxies {
        &self.hops
    }

    /// Sets the trusted proxies.
    #[must_use]
    pub fn trusting(self, hops: TrustedProxies) -> Clients {
        Clients { hops, ..self }
    }

    /// Sets the accepted tokens.
    #[must_use]
    pub fn reading(self, tokens: Option<Tokens>) -> Clients {
        Clients { tokens, ..self }
    }

    /// Returns all clients, in the order of the configuration.
    #[must_use]
    pub fn all(&self) -> &[Client] {
        &self.clients
    }

    /// Returns true if a client is recognised by the program that it declares, so that messages must be read for it.
    #[must_use]
    pub fn reads_mcp_clients(&self) -> bool {
        self.reads_mcp_clients
    }

    /// Returns the header for API keys.
    #[must_use]
    pub fn api_key(&self) -> &HeaderName {
        &self.api_keys.header
    }

    /// Returns the places of API keys.
    #[must_use]
    pub fn api_keys(&self) -> &ApiKeys {
        &self.api_keys
    }

    /// Returns the accepted tokens.
    #[must_use]
    pub fn tokens(&self) -> Option<&Tokens> {
        self.tokens.as_ref()
    }

    /// Returns the name of a client by an index from [`Clients::identify`].
    #[must_use]
    pub fn name(&self, client: Option<usize>) -> &str {
        client
            .and_then(|index| self.clients.get(index))
            .map_or(OTHER, |client| &client.name)
    }

    /// Identifies the caller: returns the first client that matches, proven sources before declared ones.
    #[must_use]
    pub fn identify<'a>(&self, evidence: ClientEvidence<'a, '_>) -> Identity<'a> {
        let reading = IdentityReader {
            clients: self,
            evidence,
            digest: OnceCell::new(),
            claims: OnceCell::new(),
            address: OnceCell::new(),
            is_trusted: OnceCell::new(),
        };
        let Some(index) = self.order.first(&reading) else {
            return Identity::OTHER;
        };
        let client = &self.clients[index];
        let key = client.key.as_ref().and_then(|source| reading.key(source));
        Identity {
            client: Some(index),
            proof: client.matcher.source().proof(),
            key: key.filter(|key| !key.is_empty()),
        }
    }
}

/// The reader of the evidence; it computes each expensive part at most once.
struct IdentityReader<'a, 'm, 'c> {
    clients: &'c Clients,
    evidence: ClientEvidence<'a, 'm>,
    digest: OnceCell<Option<Digest>>,
    claims: OnceCell<Option<Rc<Claims>>>,
    address: OnceCell<Option<IpAddr>>,
    /// True if the declarations of the peer are trusted.
    is_trusted: OnceCell<bool>,
}

impl CallEvidence for IdentityReader<'_, '_, '_> {
    fn digest(&self) -> Option<&Digest> {
        let digest = || {
            let key = self.clients.api_keys.find(self.evidence.headers)?;
            Some((self.evidence.digest)(&key))
        };
        self.digest.get_or_init(digest).as_ref()
    }

    fn text(&self, name: &HeaderName) -> Option<&str> {
        self.stated(name)
    }

    fn fits(&self, place: usize) -> bool {
        self.is(&self.clients.clients[place].matcher)
    }
}

impl<'a> IdentityReader<'a, '_, '_> {
    fn is(&self, matcher: &Matcher) -> bool {
        match matcher {
            Matcher::Subject(patterns) => self.evidence.subject.is_some_and(|subject| {
                let mut patterns = patterns.iter();
                patterns.all(|pattern| subject.fits(pattern))
            }),
            Matcher::ApiKey(known) => self.digest().is_some_and(|digest| known.contains(digest)),
            Matcher::Claims(rules) => self
                .claims()
                .is_some_and(|claims| rules.iter().all(|(path, glob)| path.fits(claims, glob))),
            Matcher::Headers(rules) => {
                self.is_trusted() && rules.iter().all(|(name, glob)| self.says(name, glob))
            }
            Matcher::Addresses(networks) => self.address().is_some_and(|address| {
                let mut networks = networks.iter();
                networks.any(|network| network.contains(address))
            }),
            Matcher::McpClient(globs) => {
                self.is_trusted()
                    && self
                        .evidence
                        .mcp_client
                        .is_some_and(|info| globs.fits(info))
            }
            Matcher::UserAgent(glob) => self.is_trusted() && self.says(&USER_AGENT, glob),
        }
    }

    fn key(&self, source: &KeySource) -> Option<Cow<'a, str>> {
        match source {
            KeySource::Header(name) => self.stated(name).map(Cow::Borrowed),
            KeySource::ApiKey => self.api_key(),
            KeySource::Claim(path) => path.text(self.claims()?).map(Cow::Owned),
            KeySource::Address => Some(self.evidence.peer?.text_of(self.address()?)),
            KeySource::Cookie(name) => cookie(self.evidence.headers, name).map(Cow::Borrowed),
        }
    }

    fn api_key(&self) -> Option<Cow<'a, str>> {
        let keys = &self.clients.api_keys;
        if let Some(key) = self.stated(&keys.header) {
            return Some(Cow::Borrowed(key));
        }
        match keys.find(self.evidence.headers)? {
            Cow::Borrowed(key) => str::from_utf8(key).ok().map(Cow::Borrowed),
            Cow::Owned(key) => String::from_utf8(key).ok().map(Cow::Owned),
        }
    }

    fn stated(&self, name: &HeaderName) -> Option<&'a str> {
        first_value(self.evidence.headers, name)?.to_str().ok()
    }

    fn says(&self, name: &HeaderName, glob: &Glob) -> bool {
        self.stated(name).is_some_and(|value| glob.fits(value))
    }

    fn claims(&self) -> Option<&Claims> {
        let claims = || {
            let tokens = self.clients.tokens.as_ref()?;
            (self.evidence.claims)(tokens, bearer(self.evidence.headers)?)
        };
        self.claims.get_or_init(claims).as_deref()
    }

    fn address(&self) -> Option<IpAddr> {
        let caller = |peer: &Peer| {
            let hops = &self.clients.hops;
            hops.caller(peer.address(), self.evidence.headers)
        };
        *self.address.get_or_init(|| self.evidence.peer.map(caller))
    }

    /// Returns true if the declarations of the peer are trusted. If trusted proxies are configured, those of any other
    /// peer are ignored.
    fn is_trusted(&self) -> bool {
        let is_trusted = || {
            let (hops, peer) = (&self.clients.hops, self.evidence.peer);
            hops.is_empty() || peer.is_none_or(|peer| hops.trusts(peer.address()))
        };
        *self.is_trusted.get_or_init(is_trusted)
    }
}

/// Returns the value of the first cookie with this name (RFC 6265 §4.2).
fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(COOKIE).iter();
    let lines = lines.filter_map(|line| line.to_str().ok());
    let mut pairs = lines
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    pairs
        .find(|(own, _)| *own == name)
        .map(|(_, value)| value.trim_matches('"'))
}
