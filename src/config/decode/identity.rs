//! `[[client]]`, `[rollout.bearer]`, `[listen.tls]` and `[upstream.NAME.tls]`: identification of clients, and TLS.
//!
//! Used by `decode` and `flags`.

use std::time::Duration;

use http::HeaderName;

use super::shared::file;
use crate::config::problem::Spanned;
use crate::config::raw::{
    RawBearer, RawClient, RawClientTls, RawFile, RawHeaderGlob, RawKey, RawMatch, RawTls,
    RawTokenKey, RawTokenKeyFile,
};
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{
    RawValue, ValueError, boolean, cut, duration, header, header_named, key_hash, name, string,
    text, word,
};
use dualgauge_model::client_ip::Network;
use dualgauge_model::identity_headers::{HeaderPattern, HeaderTemplate};
use dualgauge_model::rollout::{
    DnsPattern, EmailPattern, Glob, NamePattern, SubjectPattern, UriPattern,
};
use dualgauge_model::tls::Http2;
use dualgauge_model::token::Algorithm;

/// Allowed clock skew.
const LEEWAY: Duration = Duration::from_secs(60);

/// The words of `key`.
const KEYS: &[(&str, RawKey)] = &[("api_key", RawKey::ApiKey), ("address", RawKey::Address)];

/// The ways to identify a client, in the order of trial.
const SOURCES: [&str; 6] = [
    "subject",
    "api_key",
    "claim",
    "header",
    "address",
    "user_agent",
];

pub(super) fn client(table: &mut Table<'_>) -> Option<RawClient> {
    let name = table.require("name", name);
    let matches = table.require_table("match", matching);
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
                "the client has no match rule; write `subject`, `api_key`, `claim`, `header`, `address` or `user_agent`",
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
        "api_key" => table
            .one_or_many("api_key", key_hash)
            .map(RawMatch::ApiKeys),
        "claim" => claims(table).map(RawMatch::Claims),
        "header" => {
            let named = table.named_values("header", string)?;
            header_globs(table, named).map(RawMatch::Headers)
        }
        "address" => table
            .one_or_many("address", network)
            .map(RawMatch::Addresses),
        _ => table.get("user_agent", text).map(RawMatch::UserAgent),
    }
}

/// Decodes a pattern for the distinguished name, or a table of patterns for parts of the subject.
fn subject(table: &mut Table<'_>) -> Option<Spanned<Vec<SubjectPattern>>> {
    if table.shape("subject") != Shape::Table {
        let pattern = table.get("subject", distinguished_name)?;
        return Some(pattern.map(|pattern| vec![SubjectPattern::Name(pattern)]));
    }
    let here = table.at("subject");
    let patterns = table.table("subject", |subject| {
        let name = subject.get("dn", distinguished_name);
        let common = subject.get("cn", text);
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
    let patterns = subject.table("san", |san| {
        let dns = san.get("dns", text);
        let email = san.get("email", text);
        let uri = san.get("uri", text);
        let address = san.get("ip", network);
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
    let named = table.named_values("claim", string)?;
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

/// Decodes a network, or a single address.
pub(super) fn network(found: RawValue<'_>) -> Result<Network, ValueError> {
    let text = string(found)?;
    Network::parse(&text).map_err(|fault| ValueError::new(format!("`{}` {fault}", cut(&text))))
}

/// Decodes an entry of `listen.remove_headers`: a name, or a prefix.
pub(super) fn header_pattern(found: RawValue<'_>) -> Result<HeaderPattern, ValueError> {
    let text = string(found)?;
    HeaderPattern::parse(&text)
        .map_err(|fault| ValueError::new(format!("`{}` {fault}", cut(&text))))
}

/// Decodes `listen.set_headers`.
pub(super) fn set_headers(
    table: &mut Table<'_>,
) -> Option<Vec<(Spanned<HeaderName>, Spanned<HeaderTemplate>)>> {
    if table.shape("set_headers") == Shape::Absent {
        return Some(Vec::new());
    }
    let template = |found: RawValue<'_>| {
        let text = string(found)?;
        // The text may be a secret, and is not shown.
        HeaderTemplate::parse(&text).map_err(|fault| ValueError::new(format!("the value {fault}")))
    };
    let named = table.named_values("set_headers", template)?;
    let count = named.len();
    let mut headers = Vec::with_capacity(count);
    for (name, template) in named {
        match header_named(&name.value) {
            Ok(header) => headers.push((name.map(|_| header), template)),
            Err(wrong) => table.add(name.problem(wrong.message)),
        }
    }
    (headers.len() == count).then_some(headers)
}

/// Decodes `"api_key"` or `"address"`, or a table that names a header, a claim or a cookie.
fn client_key(table: &mut Table<'_>) -> Option<Spanned<RawKey>> {
    if table.shape("key") == Shape::Table {
        return table.table("key", named_key);
    }
    table.get("key", |found| {
        let known = KEYS.iter().find(|(word, _)| found.is_text(word));
        if let Some((_, key)) = known {
            return Ok(key.clone());
        }
        let words: &[(&str, ())] = &[("api_key", ()), ("address", ())];
        word(words, &[])(found)
            .map(|()| RawKey::ApiKey)
            .map_err(|wrong| ValueError {
                message: format!(
                    "{}, or `{{ header = \"x-device-id\" }}`, `{{ claim = \"sub\" }}` or `{{ cookie = \"sid\" }}`",
                    wrong.message
                ),
                hint: wrong.hint,
            })
    })
}

fn named_key(key: &mut Table<'_>) -> Option<Spanned<RawKey>> {
    let header: Option<Spanned<HeaderName>> = key.get("header", header);
    let claim = key.get("claim", text);
    let cookie = key.get("cookie", cookie);
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
    let header = header.map(|header| header.map(RawKey::Header));
    let claim = claim.map(|claim| claim.map(RawKey::Claim));
    header
        .or(claim)
        .or(cookie.map(|cookie| cookie.map(RawKey::Cookie)))
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

/// Decodes `[rollout.bearer]`.
pub(super) fn bearer(table: &mut Table<'_>) -> Option<RawBearer> {
    let keys = table.tables("keys", token_key);
    if keys.is_empty() && table.shape("keys") == Shape::Absent {
        let here = table.here();
        table.add(here.problem("`keys` is missing"));
    }
    let issuer = table.get("issuer", text);
    let audience = table.one_or_many("audience", text);
    let leeway = table.get_or("leeway", duration, LEEWAY);
    Some(RawBearer {
        place: table.at("keys"),
        keys,
        issuer,
        audience: audience?,
        leeway: leeway?,
    })
}

/// Decodes a JWK set, or a key with its algorithm.
fn token_key(table: &mut Table<'_>) -> Option<RawTokenKey> {
    let set = table.get("file", file);
    let secret = table.get("secret_file", file);
    let public = table.get("public_key_file", file);
    let names = ["file", "secret_file", "public_key_file"].into_iter();
    let present: Vec<_> = names
        .filter(|name| table.shape(name) != Shape::Absent)
        .collect();
    let (kind, file) = match present[..] {
        ["file"] => {
            if table.shape("algorithm") != Shape::Absent {
                let message = "a JWK set names the algorithms of its keys; remove it";
                table.report("algorithm", ValueError::new(message));
            }
            (RawTokenKeyFile::Set, set?)
        }
        ["secret_file"] => {
            let algorithm = table.require("algorithm", word(Algorithm::OF_SECRETS, &[]));
            (RawTokenKeyFile::Secret(algorithm?.value), secret?)
        }
        ["public_key_file"] => {
            let algorithm = table.require("algorithm", word(Algorithm::OF_PUBLIC_KEYS, &[]));
            (RawTokenKeyFile::PublicKey(algorithm?.value), public?)
        }
        _ => {
            table.shape("algorithm");
            let here = table.here();
            let message = "write one of `file` (a JWK set), `secret_file` and `public_key_file`";
            table.add(here.problem(message));
            return None;
        }
    };
    Some(RawTokenKey {
        kind,
        file: RawFile::at(file),
    })
}

/// Decodes `[listen.tls]`.
pub(super) fn tls(table: &mut Table<'_>) -> Option<RawTls> {
    let certificate = table.require("certificate", file);
    let key = table.require("key", file);
    let client_ca = table.get("client_ca", file);
    let http2 = table.get("http2", boolean(Http2::Off, Http2::Offered));
    Some(RawTls {
        certificate: RawFile::at(certificate?),
        key: RawFile::at(key?),
        client_ca: client_ca.map(RawFile::at),
        http2,
    })
}

/// Decodes `[upstream.NAME.tls]`.
pub(super) fn client_tls(table: &mut Table<'_>) -> Option<RawClientTls> {
    let place = table.here();
    let ca = table.get("ca", file);
    let certificate = table.get("certificate", file);
    let key = table.get("key", file);
    let server_name = table.get("server_name", text);
    for word in ["verify", "insecure"] {
        if table.shape(word) != Shape::Absent {
            let message = "server certificates are always verified";
            let hint = "name the CA that signed it, or the certificate itself, in `ca`";
            table.report(word, ValueError::new(message).hint(hint));
        }
    }
    for (one, other) in [("certificate", "key"), ("key", "certificate")] {
        if table.shape(one) != Shape::Absent && table.shape(other) == Shape::Absent {
            let message = format!("`{one}` needs `{other}`");
            table.report(one, ValueError::new(message));
        }
    }
    Some(RawClientTls {
        place,
        ca: ca.map(RawFile::at),
        certificate: certificate.map(RawFile::at),
        key: key.map(RawFile::at),
        server_name,
    })
}
