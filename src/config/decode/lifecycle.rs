//! `deprecated`, global and of a route. Used by `decode` and `decode::route`.

use http::Uri;

use super::shared::SIDES;
use crate::config::raw::{RawDeprecated, RawEnd, RawWindow};
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{RawValue, ValueError, boolean, cut, string, word};
use dualgauge_model::time::Timestamp;
use dualgauge_patterns::side::Side;

pub(super) fn deprecated(table: &mut Table<'_>) -> Option<RawDeprecated> {
    let here = table.here();
    let side = table.get_or("side", word(SIDES, &[]), Side::Rest);
    let since = table.require("since", moment);
    let sunset = table.get("sunset", moment);
    let link = table.get("link", absolute);
    let brownouts = table.tables("brownouts", window);
    Some(RawDeprecated {
        here,
        side: side?,
        since: since?,
        sunset,
        link,
        brownouts,
    })
}

/// Decodes `deprecated` of a route: a table, or `false` to opt out of the default.
pub(super) fn end(table: &mut Table<'_>) -> Option<RawEnd> {
    if table.shape("deprecated") == Shape::Table {
        let own = table.table("deprecated", deprecated)?;
        return Some(RawEnd::Table(Box::new(own)));
    }
    let opted_out = table.get("deprecated", |found| {
        match boolean(false, true)(found) {
            Ok(false) => Ok(()),
            Ok(true) | Err(_) => Err(ValueError {
                message: format!("{} is not a table", found.describe()),
                hint: Some(
                    "write `{ since = \"2026-06-30\" }`, or `false` to leave the route out of `[deprecated]`"
                        .to_owned(),
                ),
            }),
        }
    });
    opted_out.map(|_| RawEnd::Never)
}

fn window(table: &mut Table<'_>) -> Option<RawWindow> {
    let from = table.require("from", moment);
    let until = table.require("until", moment);
    Some(RawWindow {
        from: from?,
        until: until?,
    })
}

/// Decodes a date or a time, as text or as a TOML value.
fn moment(found: RawValue<'_>) -> Result<Timestamp, ValueError> {
    let shown = || cut(&found.describe());
    let text = string(found).map_err(|_| ValueError::new(format!("{} is not a date", shown())))?;
    Timestamp::parse(&text).map_err(|error| ValueError {
        message: format!("`{}` is not a date or time: {error}", cut(&text)),
        hint: None,
    })
}

/// Decodes an absolute URL, since `Link` carries it to clients of any host.
fn absolute(found: RawValue<'_>) -> Result<String, ValueError> {
    let text = string(found)?;
    let known = text
        .parse::<Uri>()
        .ok()
        .filter(|uri| uri.host().is_some() && matches!(uri.scheme_str(), Some("http" | "https")));
    match known {
        Some(_) if !text.contains(['<', '>', '"']) => Ok(text),
        Some(_) | None => Err(ValueError::new(format!(
            "`{}` is not an absolute URL; write one such as `https://api.example/changes`",
            cut(&text)
        ))),
    }
}
