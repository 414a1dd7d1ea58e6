//! The CORS policy: checks of values that exclude each other.

use http::HeaderName;

use crate::config::problem::{Problem, Spanned};
use crate::config::raw::{RawCors, RawOrigin};
use dualgauge_model::cors::{Cors, Origins, RequestHeaders};

pub(super) fn compile(raw: &RawCors, problems: &mut Vec<Problem>) -> Cors {
    let any = raw
        .origins
        .iter()
        .find(|origin| origin.value == RawOrigin::Any);
    let credentials = &raw.credentials;
    if let Some(any) = any {
        if raw.origins.len() > 1 {
            problems.push(any.problem("`*` matches every origin; write it alone, or remove it"));
        }
        if credentials.value {
            let message = "`*` and credentials exclude each other: any page could send requests as its user; list the origins";
            problems.push(any.problem(message));
        }
    }
    for name in raw.headers.iter().flatten().chain(&raw.expose) {
        check_name(name, credentials.value, problems);
    }
    let listed = raw.origins.iter().filter_map(|origin| match &origin.value {
        RawOrigin::Any => None,
        RawOrigin::One(origin) => Some(origin.clone()),
    });
    let names = |headers: &[Spanned<HeaderName>]| -> Vec<HeaderName> {
        headers.iter().map(|name| name.value.clone()).collect()
    };
    Cors {
        origins: match any {
            Some(_) => Origins::Any,
            None => Origins::Listed(listed.collect()),
        },
        headers: match &raw.headers {
            Some(headers) => RequestHeaders::Listed(names(headers)),
            None => RequestHeaders::Mirrored,
        },
        expose: names(&raw.expose),
        allows_credentials: credentials.value,
        max_age: raw.max_age.as_ref().map(|age| age.value),
    }
}

/// Rejects `*` with credentials: there it is an ordinary header name (Fetch, CORS protocol and credentials).
fn check_name(name: &Spanned<HeaderName>, allows_credentials: bool, problems: &mut Vec<Problem>) {
    if name.value == "*" && allows_credentials {
        let message = "`*` is not a wildcard when credentials are sent; list the names";
        problems.push(name.problem(message));
    }
}
