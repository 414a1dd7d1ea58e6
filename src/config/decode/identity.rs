//! `[[client]]`: identification of clients.
//!
//! Used by `decode`, `decode::listen` and `flags`.

use http::HeaderName;

use crate::config::key::{
    Key, List, NamedValues, Rule, SubTable, key, named_values, one_or_many, section, table,
};
use crate::config::kind::{HEADER, KEY_HASH, Kind, NAME, SOME_TEXT, STRING, TEXT, Words, other};
use crate::config::problem::Spanned;
use crate::config::raw::{RawClient, RawHeaderGlob, RawMatch, RawMcpClient};
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{RawValue, ValueError, cut, header_named, string, text, word};
use dualgauge_model::client_ip::Network;
use dualgauge_model::rollout::{
    DnsPattern, EmailPattern, Glob, KeySource, NamePattern, SubjectPattern, UriPattern,
};
use dualgauge_model::token::ClaimPath;

/// The words of `key`.
const KEYS: Words<KeySource> = &[
    ("api_key", KeySource::ApiKey),
    ("address", KeySource::Address),
];

/// A network, or a single address.
pub(super) const NETWORK: Kind<Network> = other(
    "address or network; write one such as `10.0.0.0/8`, `192.0.2.7` or `::1`",
    SOME_TEXT,
    network,
);
/// A pattern for a distinguished name.
const DISTINGUISHED_NAME: Kind<NamePattern> = other("string", SOME_TEXT, distinguished_name);

section! {
    /// `san` of a subject.
    ALTERNATIVES {
        /// Pattern for a DNS name
        DNS: Key<String> = key("dns", TEXT);
        /// Pattern for an email address
        EMAIL: Key<String> = key("email", TEXT);
        /// Pattern for a URI
        URI: Key<String> = key("uri", TEXT);
        /// Address or network
        IP: Key<Network> = key("ip", NETWORK);
    }
}

section! {
    /// `subject` of `match`.
    SUBJECT {
        /// Pattern for the distinguished name
        DN: Key<NamePattern> = key("dn", DISTINGUISHED_NAME);
        /// Pattern for the common name
        CN: Key<String> = key("cn", TEXT);
        /// Patterns for alternative names
        SAN: SubTable = table("san", &ALTERNATIVES);
    }
}

section! {
    /// `mcp_client` of `match`.
    MCP_CLIENT {
        /// Glob for the name that the client declares
        MCP_NAME: Key<String> = key("name", TEXT).required();
        /// Glob for its version
        MCP_VERSION: Key<String> = key("version", TEXT);
    }
}

section! {
    /// `match` of a client: exactly one of these keys.
    MATCH {
        /// Pattern for the distinguished name of the client certificate
        SUBJECT_NAME: Key<NamePattern> = key("subject", DISTINGUISHED_NAME);
        /// Patterns for parts of the subject of the client certificate
        SUBJECT_PARTS: SubTable = table("subject", &SUBJECT);
        /// SHA-256 of an API key
        API_KEY: List<[u8; 32]> = one_or_many("api_key", KEY_HASH);
        /// Claims of a bearer token, each with a glob
        CLAIM: NamedValues<String> = named_values("claim", STRING);
        /// Headers, each with a glob
        HEADER_GLOBS: NamedValues<String> = named_values("header", STRING);
        /// Address of the caller, or its network
        ADDRESS: List<Network> = one_or_many("address", NETWORK);
        /// Program that an MCP client declares in `clientInfo`
        MCP_PROGRAM: SubTable = table("mcp_client", &MCP_CLIENT);
        /// Glob for the `user-agent` header
        USER_AGENT: Key<String> = key("user_agent", TEXT);
    }
    rules [
        Rule::ExactlyOne(&SOURCES),
    ]
}

section! {
    /// `key` of a client: exactly one of these keys.
    NAMED_KEY {
        /// Header whose value identifies the caller
        KEY_HEADER: Key<HeaderName> = key("header", HEADER);
        /// Claim whose value identifies the caller
        KEY_CLAIM: Key<String> = key("claim", TEXT);
        /// Cookie whose value identifies the caller
        KEY_COOKIE: Key<String> = key("cookie", other("cookie name", SOME_TEXT, cookie));
    }
    rules [
        Rule::ExactlyOne(&["header", "claim", "cookie"]),
    ]
}

section! {
    /// `[[client]]`
    pub(super) CLIENT {
        /// Unique name
        CLIENT_NAME: Key<String> = key("name", NAME).required();
        /// Rule that identifies the client
        MATCHING: SubTable = table("match", &MATCH).required();
        /// Value that identifies one caller of this client
        KEY_WORD: Key<KeySource> = key("key", Kind::Words(KEYS, key_word));
        /// Header, claim or cookie that identifies one caller of this client
        KEY_TABLE: SubTable = table("key", &NAMED_KEY);
    }
}

/// The ways to identify a client, in the order of trial.
const SOURCES: [&str; 7] = [
    "subject",
    "api_key",
    "claim",
    "header",
    "address",
    "mcp_client",
    "user_agent",
];

pub(super) fn client(table: &mut Table<'_>) -> Option<RawClient> {
    let name = table.get(&CLIENT_NAME);
    let matches = table.table(&MATCHING, matching);
    let key = client_key(table);
    Some(RawClient {
        name: name?,
        matches: matches?,
        key,
    })
}

/// Decodes exactly one of [`SOURCES`].
fn matching(table: &mut Table<'_>) -> Option<RawMatch> {
    let present: Vec<&'static str> = SOURCES
        .into_iter()
        .filter(|source| table.shape(source) != Shape::Absent)
        .collect();
    let [only] = present[..] else {
        let here = table.here();
        table.add(match &present[..] {
            [] => here.problem(
                "the client has no match rule; write `subject`, `api_key`, `claim`, `header`, `address`, `mcp_client` or `user_agent`",
            ),
            [first, second, ..] => here.problem(format!(
                "`{first}` and `{second}` exclude each other; write two clients"
            )),
            [_] => return None,
        });
        return None;
    };
    match only {
        "subject" => subject(table).map(RawMatch::Subject),
        "api_key" => table.list(&API_KEY).map(RawMatch::ApiKeys),
        "claim" => claims(table).map(RawMatch::Claims),
        "header" => {
            let named = table.named_values(&HEADER_GLOBS)?;
            header_globs(table, named).map(RawMatch::Headers)
        }
        "address" => table.list(&ADDRESS).map(RawMatch::Addresses),
        "mcp_client" => mcp_client(table).map(RawMatch::McpClient),
        _ => table.get(&USER_AGENT).map(RawMatch::UserAgent),
    }
}

fn mcp_client(table: &mut Table<'_>) -> Option<Spanned<RawMcpClient>> {
    let here = table.at("mcp_client");
    let globs = table.table(&MCP_PROGRAM, |program| {
        let name = program.get(&MCP_NAME);
        let version = program.get(&MCP_VERSION);
        Some(RawMcpClient {
            name: name?.value,
            version: version.map(|version| version.value),
        })
    })?;
    Some(here.map(|()| globs))
}

/// Decodes a pattern for the distinguished name, or a table of patterns for parts of the subject.
fn subject(table: &mut Table<'_>) -> Option<Spanned<Vec<SubjectPattern>>> {
    if table.shape("subject") != Shape::Table {
        let pattern = table.get(&SUBJECT_NAME)?;
        return Some(pattern.map(|pattern| vec![SubjectPattern::Name(pattern)]));
    }
    let here = table.at("subject");
    let patterns = table.table(&SUBJECT_PARTS, |subject| {
        let name = subject.get(&DN);
        let common = subject.get(&CN);
        let mut patterns = alternatives(subject);
        patterns.extend(name.map(|name| SubjectPattern::Name(name.value)));
        patterns.extend(common.map(|glob| SubjectPattern::CommonName(Glob::new(glob.value))));
        if ["dn", "cn", "san"].map(|key| subject.shape(key)) == [Shape::Absent; 3] {
            let here = subject.here();
            subject.add(here.problem("the table has no pattern; write `dn`, `cn` or `san`"));
            return None;
        }
        Some(patterns)
    })?;
    Some(here.map(|()| patterns))
}

/// Decodes `san`: patterns for alternative names, each for one kind.
fn alternatives(subject: &mut Table<'_>) -> Vec<SubjectPattern> {
    match subject.shape("san") {
        Shape::Absent => return Vec::new(),
        Shape::Table => {}
        Shape::Value => {
            let message = "a pattern needs the kind of alternative name";
            let hint =
                "write `san = { dns = \"*.example\" }`, or `email`, `uri` or `ip` instead of `dns`";
            subject.report("san", ValueError::new(message).hint(hint));
            return Vec::new();
        }
    }
    let patterns = subject.table(&SAN, |san| {
        let dns = san.get(&DNS);
        let email = san.get(&EMAIL);
        let uri = san.get(&URI);
        let address = san.get(&IP);
        if ["dns", "email", "uri", "ip"].map(|key| san.shape(key)) == [Shape::Absent; 4] {
            let here = san.here();
            san.add(here.problem("the table has no pattern; write `dns`, `email`, `uri` or `ip`"));
        }
        let patterns = [
            dns.map(|dns| SubjectPattern::Dns(DnsPattern::new(&dns.value))),
            email.map(|email| SubjectPattern::Email(EmailPattern::new(&email.value))),
            uri.map(|uri| SubjectPattern::Uri(UriPattern::new(&uri.value))),
            address.map(|network| SubjectPattern::Address(network.value)),
        ];
        Some(patterns.into_iter().flatten().collect())
    });
    patterns.unwrap_or_default()
}

/// Decodes a distinguished name of RFC 4514, with `*` for any text.
fn distinguished_name(found: RawValue<'_>) -> Result<NamePattern, ValueError> {
    let text = text(found)?;
    NamePattern::parse(&text).map_err(|fault| ValueError::new(format!("`{}` {fault}", cut(&text))))
}

fn claims(table: &mut Table<'_>) -> Option<Spanned<Vec<(String, String)>>> {
    let here = table.at("claim");
    let named = table.named_values(&CLAIM)?;
    if named.is_empty() {
        let message = "the table is empty; write at least one claim";
        table.report("claim", ValueError::new(message));
        return None;
    }
    let globs = named.into_iter();
    let globs = globs.map(|(name, glob)| (name.value, glob.value)).collect();
    Some(here.map(|()| globs))
}

/// Decodes header patterns: at least one.
pub(in crate::config) fn header_globs(
    table: &mut Table<'_>,
    named: Vec<(Spanned<String>, Spanned<String>)>,
) -> Option<Vec<RawHeaderGlob>> {
    if named.is_empty() {
        table.report(
            "header",
            ValueError::new("the table is empty; write at least one header"),
        );
        return None;
    }
    let mut globs = Vec::with_capacity(named.len());
    let count = named.len();
    for (name, glob) in named {
        match header_named(&name.value) {
            Ok(header) => globs.push(RawHeaderGlob {
                header: name.map(|_| header),
                glob,
            }),
            Err(wrong) => table.add(name.problem(wrong.message)),
        }
    }
    (globs.len() == count).then_some(globs)
}

fn network(found: RawValue<'_>) -> Result<Network, ValueError> {
    let text = string(found)?;
    Network::parse(&text).map_err(|fault| ValueError::new(format!("`{}` {fault}", cut(&text))))
}

/// Decodes `"api_key"` or `"address"`, or a table that names a header, a claim or a cookie.
fn client_key(table: &mut Table<'_>) -> Option<Spanned<KeySource>> {
    if table.shape(KEY_TABLE.name) == Shape::Table {
        return table.table(&KEY_TABLE, named_key);
    }
    table.get(&KEY_WORD)
}

fn key_word(words: Words<KeySource>, found: RawValue<'_>) -> Result<KeySource, ValueError> {
    word(words)(found).map_err(|wrong| ValueError {
        message: format!(
            "{}, or `{{ header = \"x-device-id\" }}`, `{{ claim = \"sub\" }}` or `{{ cookie = \"sid\" }}`",
            wrong.message
        ),
        hint: wrong.hint,
    })
}

fn named_key(key: &mut Table<'_>) -> Option<Spanned<KeySource>> {
    let header = key.get(&KEY_HEADER);
    let claim = key.get(&KEY_CLAIM);
    let cookie = key.get(&KEY_COOKIE);
    let present = ["header", "claim", "cookie"];
    let present = present.into_iter();
    let present = present
        .filter(|name| key.shape(name) != Shape::Absent)
        .count();
    if present != 1 {
        let here = key.here();
        key.add(here.problem("write one of `header`, `claim` and `cookie`"));
        return None;
    }
    let header = header.map(|header| header.map(KeySource::Header));
    let claim = claim.map(|claim| claim.map(|path| KeySource::Claim(ClaimPath::new(path))));
    header
        .or(claim)
        .or(cookie.map(|cookie| cookie.map(KeySource::Cookie)))
}

/// Decodes the name of a cookie: a token (RFC 6265 §4.1.1).
fn cookie(found: RawValue<'_>) -> Result<String, ValueError> {
    let name = text(found)?;
    if name
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && !b"=;,\"".contains(&byte))
    {
        return Ok(name);
    }
    Err(ValueError::new(format!(
        "`{}` is not a cookie name",
        cut(&name)
    )))
}
