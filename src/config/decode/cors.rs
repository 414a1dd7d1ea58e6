//! `[cors]`, and the hosts of `[listen]`. Used by `decode`.

use crate::config::raw::{RawCors, RawOrigin};
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{RawValue, ValueError, boolean, cut, duration, header, string};
use dualgauge_model::cors::{OriginError, WebOrigin, WithCredentials};
use dualgauge_model::hosts::HostName;

pub(super) fn cors(table: &mut Table<'_>) -> Option<RawCors> {
    if table.shape("origins") == Shape::Absent {
        let here = table.here();
        table.add(here.problem("`origins` is missing"));
    }
    let origins = table.one_or_many("origins", origin);
    let mirrored = table.shape("headers") == Shape::Absent;
    let headers = table.list("headers", header);
    let expose = table.list("expose", header);
    let credentials = boolean(WithCredentials::No, WithCredentials::Yes);
    let credentials = table.get_or("credentials", credentials, WithCredentials::No);
    let max_age = table.get("max_age", duration);
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

/// Decodes a host name of the proxy.
pub(super) fn host(found: RawValue<'_>) -> Result<HostName, ValueError> {
    let text = string(found)?;
    HostName::parse(&text).ok_or_else(|| {
        ValueError::new(format!(
            "`{}` is not a host; write one such as `api.example` or `localhost:8080`",
            cut(&text)
        ))
    })
}
