//! Paths of an OpenAPI document → segments of a route. Used by `import::openapi`.

use std::collections::{BTreeMap, BTreeSet};

use crate::import::model::{
    Operations, Parameter, ParameterLocation, RestOperation, Segment, SegmentPart,
};
use crate::import::refs::{DocumentFault, shown};
use crate::import::schema;
use crate::import::unsupported::Unsupported;
use dualgauge_patterns::percent::{self, Plus};

/// Splits a path into segments of a route.
pub(super) fn segments(path: &str) -> Result<Vec<Segment>, Unsupported> {
    if path == "/" {
        return Ok(Vec::new());
    }
    if path.contains(['?', '#']) {
        return Err(Unsupported::left_out(
            "its path contains `?` or `#`; declare query parameters instead",
        ));
    }
    let names: Vec<&str> = path.strip_prefix('/').unwrap_or(path).split('/').collect();
    let last = names.len() - 1;
    let cut = names.iter().enumerate().map(|(at, name)| {
        if name.is_empty() && at > 0 && at == last {
            // `/items/` is not the same resource as `/items`.
            return Ok(Segment::Literal(String::new()));
        }
        segment(name, at == last)
    });
    cut.collect()
}

/// Reads one segment. Only the last one may have a verb.
fn segment(text: &str, is_last: bool) -> Result<Segment, Unsupported> {
    if text.is_empty() || text == "." || text == ".." {
        return Err(Unsupported::left_out(
            "its path has an empty or a dot segment, which a route cannot have",
        ));
    }
    if text == "*" || text == "**" || text.chars().any(char::is_control) {
        return Err(Unsupported::left_out(format!(
            "the segment `{}` of its path has another meaning in a route",
            shown(text)
        )));
    }
    let Some(inside) = text.strip_prefix('{') else {
        if text.contains(['{', '}']) {
            return mixed(text, is_last);
        }
        // In a route the text after the last colon is a verb.
        let parts = text.rsplit_once(':').filter(|_| is_last);
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
    let (name, after) = inside.split_once('}').ok_or_else(|| unclear(text))?;
    let verb = match after.strip_prefix(':') {
        Some(verb) if is_last && !verb.contains([':', '{', '}']) && is_literal(verb) => {
            Some(verb.to_owned())
        }
        None if after.is_empty() => None,
        Some(_) | None => return mixed(text, is_last),
    };
    if name.is_empty() || name.contains('{') {
        return Err(unclear(text));
    }
    Ok(Segment::Hole {
        name: name.to_owned(),
        verb,
    })
}

/// Reads a segment with texts and parameters.
fn mixed(segment: &str, is_last: bool) -> Result<Segment, Unsupported> {
    let mut parts = Vec::new();
    let mut rest = segment;
    while !rest.is_empty() {
        let (text, after) = match rest.split_once('{') {
            Some((text, after)) => (text, Some(after)),
            None => (rest, None),
        };
        if text.contains('}') || percent::decode(text, Plus::Literal).is_err() {
            return Err(unclear(segment));
        }
        if !text.is_empty() {
            parts.push(SegmentPart::Text(text.to_owned()));
        } else if matches!(parts.last(), Some(SegmentPart::Hole(_))) && after.is_some() {
            return Err(Unsupported::left_out(format!(
                "the segment `{}` of its path has two parameters without text between them",
                shown(segment)
            )));
        }
        let Some(after) = after else { break };
        let (name, after) = after.split_once('}').ok_or_else(|| unclear(segment))?;
        if name.is_empty() || name.contains('{') {
            return Err(unclear(segment));
        }
        parts.push(SegmentPart::Hole(name.to_owned()));
        rest = after;
    }
    // In a route the text after the last colon is a verb.
    let is_verb = |text: &String| is_last && text.contains(':');
    match parts.last() {
        Some(SegmentPart::Text(text)) if is_verb(text) => Err(unclear(segment)),
        Some(_) | None => Ok(Segment::Mixed(parts)),
    }
}

/// Returns true when a route can contain this segment or verb literally.
fn is_literal(text: &str) -> bool {
    !matches!(text, "" | "." | ".." | "*" | "**")
}

fn unclear(segment: &str) -> Unsupported {
    Unsupported::left_out(format!(
        "the segment `{}` of its path cannot be spelled in a route",
        shown(segment)
    ))
}

/// Leaves out operations with text beside a parameter whose calls are also those of an operation with a parameter alone:
/// beside `/compare/{basehead}`, the route of `/compare/{base}...{head}` would take calls of the former.
pub(super) fn leave_out_shared(found: &mut Operations) -> Result<(), DocumentFault> {
    let is_mixed = |rest: &RestOperation| {
        let mut segments = rest.segments.iter();
        segments.any(|segment| matches!(segment, Segment::Mixed(_)))
    };
    if !found.rest.iter().any(is_mixed) {
        return Ok(());
    }
    let plain = found.rest.iter().filter(|rest| !is_mixed(rest));
    let plain: BTreeMap<String, String> =
        plain.map(|rest| (plain_key(rest), rest.title())).collect();
    for rest in std::mem::take(&mut found.rest) {
        let other = plain.get(&plain_key(&rest)).filter(|_| is_mixed(&rest));
        match other {
            None => found.rest.push(rest),
            Some(other) => {
                let why = format!("its calls are also calls of `{}`", shown(other));
                found.leave_out(&rest.title(), Unsupported::left_out(why))?;
            }
        }
    }
    Ok(())
}

/// Returns method and path without the names of parameters. A segment with text beside a parameter is one parameter.
fn plain_key(rest: &RestOperation) -> String {
    let hole = |_: &str| Some("{}".to_owned());
    let segments = rest.segments.iter().map(|segment| match segment {
        Segment::Mixed(_) => Some("{}".to_owned()),
        Segment::Literal(_) | Segment::Hole { .. } => segment.render(str::to_owned, hole),
    });
    let segments: Vec<String> = segments.flatten().collect();
    format!("{} /{}", rest.method, segments.join("/"))
}

/// Pairs each hole of the path with its parameter, in the order of the path.
pub(super) fn complete_path(
    segments: &[Segment],
    parameters: &mut Vec<Parameter>,
) -> Result<(), Unsupported> {
    let (path, others): (Vec<Parameter>, Vec<Parameter>) = std::mem::take(parameters)
        .into_iter()
        .partition(|parameter| parameter.location == ParameterLocation::Path);
    let path = path.into_iter();
    let named = path.map(|parameter| (parameter.named.name.clone(), parameter));
    let mut declared: BTreeMap<String, Parameter> = named.collect();
    let mut seen = BTreeSet::new();
    for name in segments.iter().flat_map(Segment::holes) {
        if !seen.insert(name) {
            return Err(Unsupported::left_out(format!(
                "its path has the parameter `{}` twice",
                shown(name)
            )));
        }
        let mut parameter = declared.remove(name).unwrap_or_else(|| Parameter {
            location: ParameterLocation::Path,
            named: schema::NamedValue {
                name: name.to_owned(),
                ..schema::NamedValue::default()
            },
            list: None,
            inside: None,
        });
        parameter.named.is_required = true;
        parameter.named.default = None;
        parameters.push(parameter);
    }
    parameters.extend(others);
    Ok(())
}
