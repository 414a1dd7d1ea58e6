//! `deprecated`, global and of a route. Used by `decode` and `decode::route`.

use http::Uri;

use super::shared::SIDES;
use crate::config::key::{Key, SubTable, TableShape, key, section, table};
use crate::config::kind::{ANY_TEXT, Kind, SOME_TEXT, other, words};
use crate::config::raw::{RawDeprecated, RawEnd, RawWindow};
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{RawValue, ValueError, boolean, cut, string};
use dualgauge_model::time::Timestamp;
use dualgauge_patterns::side::Side;

/// A date or a time.
const MOMENT: Kind<Timestamp> = other("date", ANY_TEXT, moment);

section! {
    /// One of `brownouts`.
    BROWNOUT {
        /// Start of the brownout
        FROM: Key<Timestamp> = key("from", MOMENT).required();
        /// End of the brownout
        UNTIL: Key<Timestamp> = key("until", MOMENT).required();
    }
}

section! {
    /// `[deprecated]`, or `deprecated` of a route.
    pub(super) DEPRECATED {
        /// Side to end
        SIDE: Key<Side> = key("side", words(SIDES)).or("rest");
        /// Date of the deprecation
        SINCE: Key<Timestamp> = key("since", MOMENT).required();
        /// Date after which the side may be gone
        SUNSET: Key<Timestamp> = key("sunset", MOMENT);
        /// Page about the deprecation
        LINK: Key<String> = key(
            "link",
            other("absolute URL; write one such as `https://api.example/changes`", SOME_TEXT, absolute),
        );
        /// Times in which calls of the side fail
        BROWNOUTS: SubTable = table("brownouts", &BROWNOUT).of(TableShape::List);
    }
}

pub(super) fn deprecated(table: &mut Table<'_>) -> Option<RawDeprecated> {
    let here = table.here();
    let side = table.get(&SIDE);
    let since = table.get(&SINCE);
    let sunset = table.get(&SUNSET);
    let link = table.get(&LINK);
    let brownouts = table.tables(&BROWNOUTS, window);
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
pub(super) fn end(table: &mut Table<'_>, never: &Key<()>, own: &SubTable) -> Option<RawEnd> {
    if table.shape(own.name) == Shape::Table {
        let own = table.table(own, deprecated)?;
        return Some(RawEnd::Table(Box::new(own)));
    }
    table.get(never).map(|_| RawEnd::Never)
}

/// `false` in place of the table of a route.
pub(super) const NEVER: Kind<()> = other("`false`", r#"{ "const": false }"#, never);

fn never(found: RawValue<'_>) -> Result<(), ValueError> {
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
}

fn window(table: &mut Table<'_>) -> Option<RawWindow> {
    let from = table.get(&FROM);
    let until = table.get(&UNTIL);
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
