//! Clients, trusted proxies, and token keys. Used by `compile::rollout`.

use http::HeaderName;

use super::upstreams::NOT_FORWARDED;
use crate::config::problem::{Problem, Spanned};
use crate::config::raw::{RawBearer, RawClient, RawConfig, RawMatch, RawTokenKey, RawTokenKeyFile};
use dualgauge_model::client_ip::TrustedProxies;
use dualgauge_model::forwarding::is_hop_field;
use dualgauge_model::identity_headers::IdentityHeaders;
use dualgauge_model::rollout::McpClientGlobs;
use dualgauge_model::rollout::{
    ApiKeyForms, Authentication, Client, Clients, Glob, KeySource, Matcher, OTHER,
};
use dualgauge_model::token::{ClaimPath, KeyFault, TokenKey, Tokens, key_set};

const NO_BEARER: &str = "a claim needs a verified token, and no key for tokens is configured";
const ADD_BEARER: &str = "add `[rollout.bearer]` with `keys`";

pub(super) fn clients(raw: &RawConfig, problems: &mut Vec<Problem>) -> Clients {
    for client in &raw.clients {
        if client.name.value == OTHER {
            problems.push(client.name.problem(format!(
                "`{OTHER}` is reserved for callers that match no client; write another name"
            )));
        }
        if raw.rollout.bearer.is_none() {
            claims_nobody_verifies(client, problems);
        }
        let tls = raw.listen.tls.as_ref();
        if let RawMatch::Subject(subject) = &client.matches
            && tls.is_none_or(|tls| tls.client_ca.is_none())
        {
            let message = "a subject needs a verified certificate, and no CA for client certificates is configured";
            let hint = "add `client_ca` to `[listen.tls]`";
            problems.push(subject.problem(message).hint(hint));
        }
    }
    let clients = raw.clients.iter().map(client).collect();
    let trusted = raw.listen.trusted.iter().map(|network| network.value);
    let bearer = raw.rollout.bearer.as_ref();
    Clients::new(clients, raw.rollout.api_key_header.value.clone())
        .trusting(TrustedProxies::new(trusted.collect()))
        .authenticating(authentication(raw, problems), api_key_forms(raw))
        .reading(bearer.map(|bearer| tokens(bearer, problems)))
}

fn api_key_forms(raw: &RawConfig) -> ApiKeyForms {
    let accepted = |key: &Option<Spanned<bool>>| key.as_ref().is_some_and(|key| key.value);
    ApiKeyForms {
        bearer: accepted(&raw.rollout.api_key_as_bearer),
        basic: accepted(&raw.rollout.api_key_as_password),
    }
}

/// Returns the requirement of credentials. A listener that requires them without a client that has any would refuse
/// every call.
fn authentication(raw: &RawConfig, problems: &mut Vec<Problem>) -> Authentication {
    let Some(configured) = &raw.listen.authentication else {
        return Authentication::Off;
    };
    let proves = |client: &RawClient| match &client.matches {
        RawMatch::Subject(_) | RawMatch::ApiKeys(_) | RawMatch::Claims(_) => true,
        RawMatch::Headers(_)
        | RawMatch::Addresses(_)
        | RawMatch::UserAgent(_)
        | RawMatch::McpClient(_) => false,
    };
    if configured.value == Authentication::Required && !raw.clients.iter().any(proves) {
        let message = "no client has credentials, so every call would be refused";
        let hint = "add a `[[client]]` with `match = { api_key = \"sha256:…\" }`, a claim or a certificate subject";
        problems.push(configured.problem(message).hint(hint));
    }
    configured.value
}

/// Compiles the headers that identify clients to upstreams. Framing and forwarding headers have keys of their own.
pub(super) fn headers(raw: &RawConfig, problems: &mut Vec<Problem>) -> IdentityHeaders {
    for pattern in &raw.listen.remove_headers {
        let mut framing = NOT_FORWARDED.iter();
        let removed = framing.find(|name| pattern.value.fits(&HeaderName::from_static(name)));
        if let Some(name) = removed {
            let message =
                format!("it would remove `{name}`, which the proxy needs to read requests");
            problems.push(pattern.problem(message));
        }
    }
    for (name, _) in &raw.listen.set_headers {
        let text = name.value.as_str();
        if NOT_FORWARDED.contains(&text) || text.starts_with("proxy-") || text == "via" {
            let message = format!("`{text}` is set by the proxy itself");
            problems.push(name.problem(message));
        } else if is_hop_field(&name.value) {
            let message = format!("`{text}` is a forwarding header");
            let hint = "choose the forwarding headers with `listen.forwarded`";
            problems.push(name.problem(message).hint(hint));
        }
    }
    let removed = raw.listen.remove_headers.iter();
    let written = raw.listen.set_headers.iter();
    let written = written.map(|(name, template)| (name.value.clone(), template.value.clone()));
    IdentityHeaders {
        removed: removed.map(|pattern| pattern.value.clone()).collect(),
        written: written.collect(),
    }
}

fn claims_nobody_verifies(client: &RawClient, problems: &mut Vec<Problem>) {
    if let RawMatch::Claims(claims) = &client.matches {
        problems.push(claims.problem(NO_BEARER).hint(ADD_BEARER));
    }
    if let Some(key) = &client.key
        && matches!(key.value, KeySource::Claim(_))
    {
        problems.push(key.problem(NO_BEARER).hint(ADD_BEARER));
    }
}

fn client(raw: &RawClient) -> Client {
    Client {
        name: raw.name.value.clone(),
        matcher: matcher(&raw.matches),
        key: raw.key.as_ref().map(|key| key.value.clone()),
    }
}

fn matcher(raw: &RawMatch) -> Matcher {
    match raw {
        RawMatch::Subject(patterns) => Matcher::Subject(patterns.value.clone()),
        RawMatch::ApiKeys(digests) => {
            Matcher::ApiKey(digests.iter().map(|digest| digest.value).collect())
        }
        RawMatch::Claims(rules) => {
            let rules = rules.value.iter();
            let rules = rules.map(|(path, glob)| (ClaimPath::new(&**path), Glob::new(&**glob)));
            Matcher::Claims(rules.collect())
        }
        RawMatch::Headers(rules) => {
            let rule = rules
                .iter()
                .map(|rule| (rule.header.value.clone(), Glob::new(&*rule.glob.value)));
            Matcher::Headers(rule.collect())
        }
        RawMatch::Addresses(networks) => {
            Matcher::Addresses(networks.iter().map(|network| network.value).collect())
        }
        RawMatch::McpClient(globs) => Matcher::McpClient(McpClientGlobs {
            name: Glob::new(&*globs.value.name),
            version: globs.value.version.as_deref().map(Glob::new),
        }),
        RawMatch::UserAgent(glob) => Matcher::UserAgent(Glob::new(&*glob.value)),
    }
}

fn tokens(raw: &RawBearer, problems: &mut Vec<Problem>) -> Tokens {
    if raw.keys.is_empty() {
        problems.push(
            raw.place
                .problem("the list is empty; write at least one key"),
        );
    }
    let mut keys = Vec::new();
    for key in &raw.keys {
        match token_keys(key) {
            Ok(read) => keys.extend(read),
            Err(fault) => {
                let shown = key.file.path.value.display();
                problems.push(
                    key.file
                        .path
                        .problem(format!("`{shown}` is invalid: {fault}")),
                );
            }
        }
    }
    Tokens {
        keys,
        issuer: raw.issuer.as_ref().map(|issuer| issuer.value.clone()),
        audience: raw.audience.iter().map(|name| name.value.clone()).collect(),
        leeway_seconds: raw.leeway.value.as_secs(),
    }
}

fn token_keys(raw: &RawTokenKey) -> Result<Vec<TokenKey>, KeyFault> {
    let content = &raw.file.content.0;
    match raw.kind {
        RawTokenKeyFile::Set => key_set(content),
        RawTokenKeyFile::Secret(algorithm) => {
            // Editors add a final line feed, which is not part of the secret.
            let secret = content.strip_suffix(b"\n").unwrap_or(content);
            let secret = secret.strip_suffix(b"\r").unwrap_or(secret);
            Ok(vec![TokenKey::secret(secret, algorithm)?])
        }
        RawTokenKeyFile::PublicKey(algorithm) => Ok(vec![TokenKey::public(content, algorithm)?]),
    }
}
