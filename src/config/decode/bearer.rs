//! `[rollout.bearer]` Used by `decode::rollout`.

use std::path::PathBuf;
use std::time::Duration;

use crate::config::key::{Key, List, Rule, SubTable, TableShape, key, one_or_many, section, table};
use crate::config::kind::{DURATION, FILE, TEXT, words};
use crate::config::raw::{RawBearer, RawFile, RawTokenKey, RawTokenKeyFile};
use crate::config::table_reader::{Shape, Table};
use crate::config::value::ValueError;
use dualgauge_model::token::Algorithm;

section! {
    /// One of `keys`.
    TOKEN_KEY {
        /// JWK set
        SET: Key<PathBuf> = key("file", FILE);
        /// Secret of an HMAC
        SECRET: Key<PathBuf> = key("secret_file", FILE);
        /// PEM file with a public key
        PUBLIC_KEY: Key<PathBuf> = key("public_key_file", FILE);
        /// Algorithm of the secret
        OF_SECRET: Key<Algorithm> = key("algorithm", words(Algorithm::OF_SECRETS));
        /// Algorithm of the public key
        OF_PUBLIC_KEY: Key<Algorithm> = key("algorithm", words(Algorithm::OF_PUBLIC_KEYS));
    }
    rules [
        Rule::ExactlyOne(&["file", "secret_file", "public_key_file"]),
        Rule::Excludes("file", &["algorithm"]),
        Rule::Needs("secret_file", &["algorithm"]),
        Rule::Needs("public_key_file", &["algorithm"]),
    ]
}

section! {
    /// `[rollout.bearer]`
    pub(super) BEARER {
        /// Keys that verify tokens
        KEYS: SubTable = table("keys", &TOKEN_KEY).of(TableShape::List).required();
        /// Required `iss` of a token; any if absent
        ISSUER: Key<String> = key("issuer", TEXT);
        /// Values of `aud`, of which a token must have one; any if absent
        AUDIENCE: List<String> = one_or_many("audience", TEXT);
        /// Allowed clock skew
        LEEWAY: Key<Duration> = key("leeway", DURATION).or("60s");
    }
}

/// Decodes `[rollout.bearer]`.
pub(super) fn bearer(table: &mut Table<'_>) -> Option<RawBearer> {
    let keys = table.tables(&KEYS, token_key);
    let issuer = table.get(&ISSUER);
    let audience = table.list(&AUDIENCE);
    let leeway = table.get(&LEEWAY);
    Some(RawBearer {
        place: table.at(KEYS.name),
        keys,
        issuer,
        audience: audience?,
        leeway: leeway?,
    })
}

/// Decodes a JWK set, or a key with its algorithm.
fn token_key(table: &mut Table<'_>) -> Option<RawTokenKey> {
    let set = table.get(&SET);
    let secret = table.get(&SECRET);
    let public = table.get(&PUBLIC_KEY);
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
            let algorithm = table.require(&OF_SECRET);
            (RawTokenKeyFile::Secret(algorithm?.value), secret?)
        }
        ["public_key_file"] => {
            let algorithm = table.require(&OF_PUBLIC_KEY);
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
