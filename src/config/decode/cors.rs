//! `[cors]`, and the hosts of `[listen]`. Used by `decode` and `decode::listen`.

use std::time::Duration;

use http::HeaderName;

use crate::config::key::{Key, List, key, list, one_or_many, section};
use crate::config::kind::{DURATION, HEADER, Kind, SOME_TEXT, boolean, other};
use crate::config::raw::{RawCors, RawOrigin};
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{RawValue, ValueError, cut, string};
use dualgauge_model::cors::{OriginError, WebOrigin};
use dualgauge_model::hosts::HostName;

/// A host name of the proxy.
pub(super) const HOST: Kind<HostName> = other(
    "host; write one such as `api.example` or `localhost:8080`",
    SOME_TEXT,
    host,
);

section! {
    /// `[cors]`
    pub(super) CORS {
        /// Origins whose pages may call, as browsers write them, or `*`
        ORIGINS: List<RawOrigin> = one_or_many(
            "origins",
            other("origin; write one such as `https://app.example`, or `*` alone", SOME_TEXT, origin),
        ).required();
        /// Request headers that pages may send; those they ask for by default
        HEADERS: List<HeaderName> = list("headers", HEADER);
        /// Response headers that pages may read
        EXPOSE: List<HeaderName> = list("expose", HEADER);
        /// Pages may send credentials
        CREDENTIALS: Key<bool> = key("credentials", boolean(&[false, true])).or("false");
        /// Lifetime of preflights; that of the browser by default
        MAX_AGE: Key<Duration> = key("max_age", DURATION);
    }
}

pub(super) fn cors(table: &mut Table<'_>) -> Option<RawCors> {
    let origins = table.list(&ORIGINS);
    let mirrored = table.shape(HEADERS.name) == Shape::Absent;
    let headers = table.list(&HEADERS);
    let expose = table.list(&EXPOSE);
    let credentials = table.get(&CREDENTIALS);
    let max_age = table.get(&MAX_AGE);
    let headers = headers?;
    Some(RawCors {
        origins: origins?,
        headers: (!mirrored).then_some(headers),
        expose: expose?,
        credentials: credentials?,
        max_age,
    })
}

fn origin(found: RawValue<'_>) -> Result<RawOrigin, ValueError> {
    let text = string(found)?;
    if text == "*" {
        return Ok(RawOrigin::Any);
    }
    WebOrigin::parse(&text)
        .map(RawOrigin::One)
        .map_err(|error| match error {
            OriginError::Shape => ValueError::new(format!(
                "`{}` is not an origin; write one such as `https://app.example`, or `*` alone",
                cut(&text)
            )),
            OriginError::Spelling(spelled) => ValueError::new(format!(
                "browsers write the origin `{}` as `{}`; write that",
                cut(&text),
                cut(&spelled)
            )),
        })
}

fn host(found: RawValue<'_>) -> Result<HostName, ValueError> {
    let text = string(found)?;
    HostName::parse(&text).ok_or_else(|| {
        ValueError::new(format!(
            "`{}` is not a host; write one such as `api.example` or `localhost:8080`",
            cut(&text)
        ))
    })
}
