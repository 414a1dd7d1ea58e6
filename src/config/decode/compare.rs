//! `[compare]`, and `compare` of a route. Used by `decode` and `decode::route`.

use http::HeaderName;

use crate::config::key::{Key, List, NamedValues, key, list, named_values, section};
use crate::config::kind::{HEADER, boolean, other};
use crate::config::problem::{Spanned, nearest};
use crate::config::raw::RawCompare;
use crate::config::table_reader::Table;
use crate::config::value::{RawValue, ValueError, cut, number, string};
use dualgauge_model::compare::{PLACES, Path, PathError, Show, Tolerance};

const PATHS: &str =
    "path in a response: a path begins with `/`, such as `/body/items/*/updated_at`";
const PATH_SCHEMA: &str = r#"{ "type": "string", "pattern": "^/" }"#;

section! {
    /// `[compare]`, or `compare` of a route.
    pub(super) COMPARE {
        /// Paths to skip, with everything below
        IGNORE: List<Path> = list("ignore", other(PATHS, PATH_SCHEMA, path));
        /// Lists in any order
        UNORDERED: List<Path> = list("unordered", other(PATHS, PATH_SCHEMA, json_path));
        /// Largest difference of two numbers, by path
        TOLERANCE: NamedValues<Tolerance> = named_values(
            "tolerance",
            other(
                "largest allowed difference of two numbers, such as `0.001`",
                r#"{ "type": "number", "minimum": 0 }"#,
                tolerance,
            ),
        );
        /// REST headers to compare, beside the media type
        HEADERS: List<HeaderName> = list("headers", HEADER);
        /// Reports contain values; `false` by default
        SHOW: Key<Show> = key("show", boolean(&[Show::Likeness, Show::Values]));
    }
}

/// Decodes the table; returns `None` if it is absent.
pub(super) fn compare(table: &mut Table<'_>) -> Option<RawCompare> {
    let ignore = table.list(&IGNORE);
    let unordered = table.list(&UNORDERED);
    let tolerance = table.named_values(&TOLERANCE);
    let headers = table.list(&HEADERS);
    let show = table.get(&SHOW);
    let tolerance = by_path(table, tolerance.unwrap_or_default());
    Some(RawCompare {
        ignore: ignore?,
        unordered: unordered?,
        tolerance,
        headers: headers?,
        show,
    })
}

fn path(found: RawValue<'_>) -> Result<Path, ValueError> {
    read(&string(found)?)
}

/// Decodes a path in JSON; only JSON has lists and numbers.
fn json_path(found: RawValue<'_>) -> Result<Path, ValueError> {
    inside(path(found)?)
}

fn inside(path: Path) -> Result<Path, ValueError> {
    match path.root() {
        Some("status" | "headers") => Err(ValueError::new(format!(
            "`{}` is not in a JSON value; write a path in `/body`, `/result` or `/error/data`",
            cut(&path.to_string())
        ))),
        Some(_) | None => Ok(path),
    }
}

fn read(text: &str) -> Result<Path, ValueError> {
    Path::parse(text).map_err(|error| {
        let shown = cut(text);
        let hint = match &error {
            PathError::Place(place) => nearest(place, PLACES).map(|near| {
                let rest = text.get(1 + place.len()..).unwrap_or_default();
                format!("did you mean `/{near}{}`?", cut(rest))
            }),
            PathError::NoSlash | PathError::Escape | PathError::Long => None,
        };
        ValueError {
            message: format!("`{shown}` is not a path in a response: {error}"),
            hint,
        }
    })
}

fn tolerance(found: RawValue<'_>) -> Result<Tolerance, ValueError> {
    let tolerance = number(found).and_then(|text| Tolerance::parse(&text));
    tolerance.ok_or_else(|| {
        ValueError::new(format!(
            "{} is not a tolerance; write the largest allowed difference of two numbers, such as `0.001`",
            found.describe()
        ))
    })
}

/// Decodes a table whose keys are paths.
fn by_path(
    table: &mut Table<'_>,
    named: Vec<(Spanned<String>, Spanned<Tolerance>)>,
) -> Vec<(Spanned<Path>, Spanned<Tolerance>)> {
    let mut read_all = Vec::with_capacity(named.len());
    for (name, tolerance) in named {
        match read(&name.value).and_then(inside) {
            Ok(path) => read_all.push((name.map(|_| path), tolerance)),
            Err(wrong) => {
                let mut problem = name.problem(wrong.message);
                problem.hint = wrong.hint;
                table.add(problem);
            }
        }
    }
    read_all
}
