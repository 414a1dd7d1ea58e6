//! What the files say of callers: clients, their keys, and the keys of tokens.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderName;

use crate::config::problem::Located;
use crate::domain::hops::Network;
use crate::domain::rollout::SubjectPattern;
use crate::domain::tls::Http2;
use crate::domain::token::Algorithm;

/// `[[client]]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawClient {
    /// `name`
    pub name: Located<String>,
    /// `match`
    pub matches: RawMatch,
    /// `key`: by what the callers of this client are told apart.
    pub key: Option<Located<RawKey>>,
}

/// `match` of a client.
#[derive(Debug, Clone, PartialEq)]
pub enum RawMatch {
    /// `subject`: every pattern must fit; at least one.
    Subject(Located<Vec<SubjectPattern>>),
    /// `api_key`: the SHA-256 of one of these keys; at least one.
    ApiKeys(Vec<Located<[u8; 32]>>),
    /// `claim`: every one named must fit; at least one.
    Claims(Located<Vec<(String, String)>>),
    /// `header`: every one named must fit; at least one.
    Headers(Vec<RawHeaderGlob>),
    /// `address`: one of these networks; at least one.
    Addresses(Vec<Located<Network>>),
    /// `user_agent`: a glob.
    UserAgent(Located<String>),
}

/// A header and the text that fits.
#[derive(Debug, Clone, PartialEq)]
pub struct RawHeaderGlob {
    /// The header.
    pub header: Located<HeaderName>,
    /// What fits: text, with `*` for any.
    pub glob: Located<String>,
}

/// `key` of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawKey {
    /// `{ header = "x-device-id" }`
    Header(HeaderName),
    /// `"api_key"`
    ApiKey,
    /// `{ claim = "sub" }`
    Claim(String),
    /// `"address"`
    Address,
    /// `{ cookie = "sid" }`
    Cookie(String),
}

/// `[rollout.bearer]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawBearer {
    /// Where `keys` stands.
    pub place: Located<()>,
    /// `keys`
    pub keys: Vec<RawTokenKey>,
    /// `issuer`
    pub issuer: Option<Located<String>>,
    /// `audience`: any where there are none.
    pub audience: Vec<Located<String>>,
    /// `leeway`
    pub leeway: Located<Duration>,
}

/// An entry of `keys`.
#[derive(Debug, Clone, PartialEq)]
pub struct RawTokenKey {
    /// What the file is.
    pub kind: RawTokenKeyFile,
    /// The file itself.
    pub file: RawFile,
}

/// `[listen.tls]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawTls {
    /// `certificate`: a chain, the listener's own first.
    pub certificate: RawFile,
    /// `key`
    pub key: RawFile,
    /// `client_ca`: whose certificates of clients are believed.
    pub client_ca: Option<RawFile>,
    /// `http2`: offered unless said.
    pub http2: Option<Located<Http2>>,
}

/// `[upstream.NAME.tls]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawClientTls {
    /// Where the table begins.
    pub place: Located<()>,
    /// `ca`: whose certificates of servers are believed, in place of the public authorities.
    pub ca: Option<RawFile>,
    /// `certificate`: what is shown to the server, only with `key`.
    pub certificate: Option<RawFile>,
    /// `key`
    pub key: Option<RawFile>,
    /// `server_name`: that of the url unless said.
    pub server_name: Option<Located<String>>,
}

/// `headers` of an upstream: names that may be sent, in lower case.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RawHeaders(pub Vec<(Located<String>, RawHeaderValue)>);

/// The value of a header.
#[derive(Debug, Clone, PartialEq)]
pub enum RawHeaderValue {
    /// As it is written: it may stand in a header.
    Text(Secret),
    /// `{ file = … }`: what the file holds, without the end of its line.
    File(RawFile),
}

/// A file that is read when all is decoded.
#[derive(Debug, Clone, PartialEq)]
pub struct RawFile {
    /// Its path, resolved against the folder of the main file.
    pub path: Located<PathBuf>,
    /// What it holds.
    pub content: Secret,
}

impl RawFile {
    /// A file that was not read yet.
    #[must_use]
    pub fn at(path: Located<PathBuf>) -> RawFile {
        RawFile {
            path,
            content: Secret::default(),
        }
    }
}

/// What the file of a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RawTokenKeyFile {
    /// `file`: a JWK set, whose keys have their algorithms.
    Set,
    /// `secret_file`, for this `algorithm`.
    Secret(Algorithm),
    /// `public_key_file`, for this `algorithm`.
    PublicKey(Algorithm),
}

/// What nobody may read from a log.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(pub Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
