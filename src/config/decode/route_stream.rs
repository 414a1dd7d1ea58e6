//! `stream` and `stream_timeout` of a route. Used by `decode::route`.

use std::time::Duration;

use crate::config::key::{Key, SubTable, key, section};
use crate::config::kind::{Kind, other, words};
use crate::config::problem::Spanned;
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{RawValue, ValueError, boolean, word};
use dualgauge_model::stream_format::{RouteStream, StreamFormat};

const FORMATS: &[(&str, StreamFormat)] = &[
    ("sse", StreamFormat::EventStream),
    ("ndjson", StreamFormat::JsonLines),
];

/// `stream` of a route, for both sides.
pub(super) const STREAM: Kind<RouteStream> = other(
    "`\"sse\"`, `\"ndjson\"` or `false`",
    r#"{ "enum": ["sse", "ndjson", false] }"#,
    stream_word,
);

section! {
    /// `stream` of a route, by side.
    pub(super) STREAM_BY_SIDE {
        /// Format of the REST side
        STREAM_OF_REST: Key<StreamFormat> = key("rest", words(FORMATS)).or("sse");
        /// Format of the RPC side
        STREAM_OF_RPC: Key<StreamFormat> = key("rpc", words(FORMATS)).or("sse");
    }
}

/// `stream` and `stream_timeout` of a route.
type DecodedStream = (Option<Spanned<RouteStream>>, Option<Spanned<Duration>>);

/// Decodes `stream`, and `stream_timeout`, which needs responses that may stream.
pub(super) fn stream(
    table: &mut Table<'_>,
    one: &Key<RouteStream>,
    by_side: &SubTable,
    timeout: &Key<Duration>,
) -> DecodedStream {
    let stream = formats(table, one, by_side);
    let limit = table.get(timeout);
    if limit.is_some()
        && stream
            .as_ref()
            .is_some_and(|stream| stream.value == RouteStream::Never)
    {
        let message = "no response of the route streams; remove it, or `stream = false`";
        table.report(timeout.name, ValueError::new(message));
    }
    (stream, limit)
}

/// Decodes a format, one for each side, or `false`.
fn formats(
    table: &mut Table<'_>,
    one: &Key<RouteStream>,
    by_side: &SubTable,
) -> Option<Spanned<RouteStream>> {
    if table.shape(one.name) != Shape::Table {
        return table.get(one);
    }
    let place = table.at(one.name);
    let formats = table.table(by_side, |sides| {
        Some(RouteStream::Formats {
            rest: sides.get(&STREAM_OF_REST)?.value,
            rpc: sides.get(&STREAM_OF_RPC)?.value,
        })
    })?;
    Some(place.map(|()| formats))
}

fn stream_word(found: RawValue<'_>) -> Result<RouteStream, ValueError> {
    if let Ok(may_stream) = boolean(false, true)(found) {
        return match may_stream {
            false => Ok(RouteStream::Never),
            true => Err(ValueError {
                message: "`true` names no format".to_owned(),
                hint: Some("write `\"sse\"` or `\"ndjson\"`".to_owned()),
            }),
        };
    }
    let format = word(FORMATS)(found)?;
    Ok(RouteStream::Formats {
        rest: format,
        // JSON-RPC messages stream as server-sent events, unless the table says otherwise.
        rpc: StreamFormat::EventStream,
    })
}
