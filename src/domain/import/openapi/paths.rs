//! Paths of an OpenAPI document → segments of a route.

use std::collections::{BTreeMap, BTreeSet};

use super::Unsupported;
use crate::domain::import::model::{Parameter, ParameterPlace, Segment};
use crate::domain::import::refs::shown;
use crate::domain::import::schema::{self, Requirement};
use crate::domain::percent::{self, Plus};

/// Splits a path into segments of a route.
pub(super) fn segments(path: &str) -> Result<Vec<Segment>, Unsupported> {
    if path == "/" {
        return Ok(Vec::new());
    }
    if path.contains(['?', '#']) {
        return Err(Unsupported::left_out(
            "its path has a `?` or a `#`, which no path can have; declare query parameters",
        ));
    }
    let names: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let last = names.len() - 1;
    let cut = names.iter().enumerate().map(|(at, name)| {
        if name.is_empty() && at > 0 && at == last {
            // `/items/` is not the same resource as `/items`.
            return Ok(Segment::Literal(String::new()));
        }
        let spot = if at == last { Spot::Last } else { Spot::Before };
        segment(name, spot)
    });
    cut.collect()
}

/// The position of a segment: only the last one may have a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spot {
    Before,
    Last,
}

fn segment(text: &str, spot: Spot) -> Result<Segment, Unsupported> {
    if text.is_empty() || text == "." || text == ".." {
        return Err(Unsupported::left_out(
            "its path has an empty or a dot segment, which a route cannot have",
        ));
    }
    if text == "*" || text == "**" || text.chars().any(char::is_control) {
        return Err(Unsupported::left_out(format!(
            "the segment `{}` of its path means something else in a route",
            shown(text)
        )));
    }
    let Some(inside) = text.strip_prefix('{') else {
        if text.contains(['{', '}']) {
            return Err(beside(text));
        }
        // A route takes the text behind the last colon as a verb.
        let parts = text.rsplit_once(':').filter(|_| spot == Spot::Last);
        let is_odd = |(name, verb): (&str, &str)| {
            text.starts_with(':') || !is_literal(name) || !is_literal(verb)
        };
        if parts.is_some_and(is_odd) || percent::decode(text, Plus::Literal).is_err() {
            return Err(Unsupported::left_out(format!(
                "the segment `{}` of its path cannot be spelled in a route",
                shown(text)
            )));
        }
        return Ok(Segment::Literal(text.to_owned()));
    };
    let (name, behind) = inside.split_once('}').ok_or_else(|| beside(text))?;
    if name.is_empty() || name.contains('{') || behind.contains(['{', '}']) {
        return Err(beside(text));
    }
    let verb = match behind.strip_prefix(':') {
        Some(verb) if spot == Spot::Last && is_literal(verb) && !verb.contains(':') => {
            Some(verb.to_owned())
        }
        None if behind.is_empty() => None,
        Some(_) | None => return Err(beside(text)),
    };
    Ok(Segment::Hole {
        name: name.to_owned(),
        verb,
    })
}

/// Returns true when a route takes this segment or verb literally.
fn is_literal(text: &str) -> bool {
    !matches!(text, "" | "." | ".." | "*" | "**")
}

fn beside(segment: &str) -> Unsupported {
    Unsupported::left_out(format!(
        "the segment `{}` of its path has text beside a parameter",
        shown(segment)
    ))
}

/// Pairs each hole of the path with its parameter, in the order of the path.
pub(super) fn complete_path(
    segments: &[Segment],
    parameters: &mut Vec<Parameter>,
) -> Result<(), Unsupported> {
    let (path, others): (Vec<Parameter>, Vec<Parameter>) = std::mem::take(parameters)
        .into_iter()
        .partition(|parameter| parameter.place == ParameterPlace::Path);
    let path = path.into_iter();
    let named = path.map(|parameter| (parameter.named.name.clone(), parameter));
    let mut declared: BTreeMap<String, Parameter> = named.collect();
    let mut seen = BTreeSet::new();
    for segment in segments {
        let Segment::Hole { name, .. } = segment else {
            continue;
        };
        if !seen.insert(name.as_str()) {
            return Err(Unsupported::left_out(format!(
                "its path has the parameter `{}` twice",
                shown(name)
            )));
        }
        let mut parameter = declared.remove(name).unwrap_or_else(|| Parameter {
            place: ParameterPlace::Path,
            named: schema::NamedValue {
                name: name.clone(),
                ..schema::NamedValue::default()
            },
            list: None,
            inside: None,
        });
        parameter.named.need = Requirement::Required;
        parameter.named.default = None;
        parameters.push(parameter);
    }
    parameters.extend(others);
    Ok(())
}
