//! `[rollout.source]`: the address and the credentials of the source of flags.
//!
//! Used by `config::compile` and `store`.

use http::{HeaderValue, Uri};

use super::authority::{authority, is_secured, port};
use super::tls;
use crate::config::problem::Problem;
use crate::config::raw::{RawFile, RawSource};
use dualgauge_transport::tls::ClientTls;

/// The path of the evaluation of all flags, below that of the base URL.
const ALL_FLAGS: &str = "/ofrep/v1/evaluate/flags";

/// The server with the values of flags. `Debug` shows no token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceAddress {
    /// The host and the port to connect to.
    pub server: String,
    /// The value of `Host`.
    pub authority: String,
    /// The path of the requests.
    pub path: String,
    /// The TLS settings, if TLS is used.
    pub tls: Option<ClientTls>,
    /// `Authorization`, if the source needs it; marked as sensitive.
    pub authorization: Option<HeaderValue>,
}

/// Compiles the source, and reports every invalid part.
pub fn source(raw: &RawSource, problems: &mut Vec<Problem>) -> SourceAddress {
    let url = &raw.url;
    if !matches!(url.value.scheme_str(), Some("http" | "https")) || url.value.query().is_some() {
        let message = "this is not the base URL of an OFREP server";
        let hint = "write one such as `https://flags.example:9090`, without a query";
        problems.push(url.problem(message).hint(hint));
    }
    let port = port(&url.value);
    if port.is_none() {
        problems.push(url.problem("the port of this URL is not from 1 to 65535"));
    }
    let is_secured = is_secured(&url.value);
    if let (Some(tls), false) = (&raw.tls, is_secured) {
        let message = "TLS needs a URL that begins with `https://`";
        problems.push(tls.place.problem(message));
    }
    let host = url.value.host().unwrap_or_default();
    let tls = is_secured.then(|| tls::upstream(raw.tls.as_ref(), host, url, problems));
    let token = raw.token_file.as_ref();
    SourceAddress {
        server: format!("{host}:{}", port.unwrap_or_default()),
        authority: authority(&url.value),
        path: path(&url.value),
        tls,
        authorization: token.and_then(|file| bearer(file, problems)),
    }
}

/// Returns the path of the evaluation of all flags.
fn path(base: &Uri) -> String {
    [base.path().trim_end_matches('/'), ALL_FLAGS].concat()
}

fn bearer(file: &RawFile, problems: &mut Vec<Problem>) -> Option<HeaderValue> {
    let token = std::str::from_utf8(&file.content.0).unwrap_or_default();
    let token = token.trim_end_matches(['\r', '\n']);
    let value = HeaderValue::from_str(&format!("Bearer {token}")).ok();
    let value = value.filter(|_| !token.is_empty() && !token.contains([' ', '\t']));
    let Some(mut value) = value else {
        let shown = file.path.value.display();
        let message = format!("`{shown}` is not a token: one line without spaces");
        problems.push(file.path.problem(message));
        return None;
    };
    value.set_sensitive(true);
    Some(value)
}
