//! Clients and their keys, token keys, TLS, and headers of upstreams. Used by `cli` and `config`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderName;

use crate::config::problem::Spanned;
use dualgauge_model::client_ip::Network;
use dualgauge_model::rollout::{KeySource, SubjectPattern};
use dualgauge_model::token::Algorithm;

/// `[[client]]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawClient {
    /// `name`
    pub name: Spanned<String>,
    /// `match`
    pub matches: RawMatch,
    /// `key`: the value that identifies one caller of this client.
    pub key: Option<Spanned<KeySource>>,
}

/// `match` of a client.
#[derive(Debug, Clone, PartialEq)]
pub enum RawMatch {
    /// `subject`: all patterns must match; at least one.
    Subject(Spanned<Vec<SubjectPattern>>),
    /// `api_key`: the SHA-256 of one of these keys; at least one.
    ApiKeys(Vec<Spanned<[u8; 32]>>),
    /// `claim`: all must match; at least one.
    Claims(Spanned<Vec<(String, String)>>),
    /// `header`: all must match; at least one.
    Headers(Vec<RawHeaderGlob>),
    /// `address`: one of these networks; at least one.
    Addresses(Vec<Spanned<Network>>),
    /// `mcp_client`: globs for the declared name, and for the version.
    McpClient(Spanned<RawMcpClient>),
    /// `user_agent`: a glob.
    UserAgent(Spanned<String>),
}

/// `mcp_client` of `match`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawMcpClient {
    /// `name`: a glob.
    pub name: String,
    /// `version`: a glob; any version if absent.
    pub version: Option<String>,
}

/// A header, and a pattern for its value.
#[derive(Debug, Clone, PartialEq)]
pub struct RawHeaderGlob {
    /// The header.
    pub header: Spanned<HeaderName>,
    /// The pattern: text, with `*` for any text.
    pub glob: Spanned<String>,
}

/// `[rollout.bearer]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawBearer {
    /// The location of `keys`.
    pub place: Spanned<()>,
    /// `keys`
    pub keys: Vec<RawTokenKey>,
    /// `issuer`
    pub issuer: Option<Spanned<String>>,
    /// `audience`: any if empty.
    pub audience: Vec<Spanned<String>>,
    /// `leeway`
    pub leeway: Spanned<Duration>,
}

/// An entry of `keys`.
#[derive(Debug, Clone, PartialEq)]
pub struct RawTokenKey {
    /// The content of the file.
    pub kind: RawTokenKeyFile,
    /// The file.
    pub file: RawFile,
}

/// `[listen.tls]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawTls {
    /// `certificate`: a chain, the listener's own first.
    pub certificate: RawFile,
    /// `key`
    pub key: RawFile,
    /// `client_ca`: the trusted CAs of client certificates.
    pub client_ca: Option<RawFile>,
    /// `http2`: offered by default.
    pub http2: Option<Spanned<bool>>,
}

/// `[upstream.NAME.tls]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawClientTls {
    /// The location of the table.
    pub place: Spanned<()>,
    /// `ca`: the trusted CAs of server certificates, instead of the public ones.
    pub ca: Option<RawFile>,
    /// `certificate`: the client certificate; only with `key`.
    pub certificate: Option<RawFile>,
    /// `key`
    pub key: Option<RawFile>,
    /// `server_name`: by default the host of the url.
    pub server_name: Option<Spanned<String>>,
}

/// `headers` of an upstream: allowed names, in lower case.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RawHeaders(pub Vec<(Spanned<String>, RawHeaderValue)>);

/// The value of a header.
#[derive(Debug, Clone, PartialEq)]
pub enum RawHeaderValue {
    /// The value itself, valid in a header.
    Text(Secret),
    /// `{ file = … }`: the content of the file, without the trailing newline.
    File(RawFile),
}

/// A file that is read after decoding.
#[derive(Debug, Clone, PartialEq)]
pub struct RawFile {
    /// The path, resolved against the folder of the main file.
    pub path: Spanned<PathBuf>,
    /// The content.
    pub content: Secret,
}

impl RawFile {
    /// Returns a file that has not been read yet.
    #[must_use]
    pub fn at(path: Spanned<PathBuf>) -> RawFile {
        RawFile {
            path,
            content: Secret::default(),
        }
    }
}

/// The kind of a key file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RawTokenKeyFile {
    /// `file`: a JWK set, which names the algorithms of its keys.
    Set,
    /// `secret_file`, for this `algorithm`.
    Secret(Algorithm),
    /// `public_key_file`, for this `algorithm`.
    PublicKey(Algorithm),
}

/// A value that is never logged.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(pub Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
