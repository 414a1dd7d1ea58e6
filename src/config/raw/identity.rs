//! What the files say of callers: clients, their keys, and the keys of tokens.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderName;

use crate::config::problem::Spanned;
use crate::domain::client_ip::Network;
use crate::domain::rollout::SubjectPattern;
use crate::domain::tls::Http2;
use crate::domain::token::Algorithm;

/// `[[client]]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawClient {
    /// `name`
    pub name: Spanned<String>,
    /// `match`
    pub matches: RawMatch,
    /// `key`: by what the callers of this client are told apart.
    pub key: Option<Spanned<RawKey>>,
}

/// `match` of a client.
#[derive(Debug, Clone, PartialEq)]
pub enum RawMatch {
    /// `subject`: every pattern must fit; at least one.
    Subject(Spanned<Vec<SubjectPattern>>),
    /// `api_key`: the SHA-256 of one of these keys; at least one.
    ApiKeys(Vec<Spanned<[u8; 32]>>),
    /// `claim`: every one named must fit; at least one.
    Claims(Spanned<Vec<(String, String)>>),
    /// `header`: every one named must fit; at least one.
    Headers(Vec<RawHeaderGlob>),
    /// `address`: one of these networks; at least one.
    Addresses(Vec<Spanned<Network>>),
    /// `user_agent`: a glob.
    UserAgent(Spanned<String>),
}

/// A header and the text that fits.
#[derive(Debug, Clone, PartialEq)]
pub struct RawHeaderGlob {
    /// The header.
    pub header: Spanned<HeaderName>,
    /// What fits: text, with `*` for any.
    pub glob: Spanned<String>,
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
    pub place: Spanned<()>,
    /// `keys`
    pub keys: Vec<RawTokenKey>,
    /// `issuer`
    pub issuer: Option<Spanned<String>>,
    /// `audience`: any where there are none.
    pub audience: Vec<Spanned<String>>,
    /// `leeway`
    pub leeway: Spanned<Duration>,
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
    pub http2: Option<Spanned<Http2>>,
}

/// `[upstream.NAME.tls]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawClientTls {
    /// Where the table begins.
    pub place: Spanned<()>,
    /// `ca`: whose certificates of servers are believed, in place of the public authorities.
    pub ca: Option<RawFile>,
    /// `certificate`: what is shown to the server, only with `key`.
    pub certificate: Option<RawFile>,
    /// `key`
    pub key: Option<RawFile>,
    /// `server_name`: that of the url unless said.
    pub server_name: Option<Spanned<String>>,
}

/// `headers` of an upstream: names that may be sent, in lower case.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RawHeaders(pub Vec<(Spanned<String>, RawHeaderValue)>);

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
    pub path: Spanned<PathBuf>,
    /// What it holds.
    pub content: Secret,
}

impl RawFile {
    /// A file that was not read yet.
    #[must_use]
    pub fn at(path: Spanned<PathBuf>) -> RawFile {
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
