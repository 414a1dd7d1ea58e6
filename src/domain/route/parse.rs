//! The spelling of a route in its short form.

use std::time::Duration;

use http::Method;

use super::{Effect, Foreign, PlacedHole, QueryItem, QueryValue, Route, SegmentPattern, Template};
use crate::domain::pattern::{
    Absence, Hole, PatternError, Shape, Token, hole_name, parse_hole, parse_type, tokens,
};
use crate::domain::percent;

/// What the route table says of one route.
#[derive(Debug, Clone, Default)]
pub struct RouteSource {
    /// `name`
    pub name: String,
    /// `rest = "METHOD /path?query"`
    pub rest: String,
    /// `rpc = "method"`
    pub rpc: String,
    /// `effect`; by the HTTP method where absent.
    pub effect: Option<Effect>,
    /// `timeout`
    pub timeout: Option<Duration>,
    /// `successor`
    pub successor: Option<String>,
}

/// Compiles one route.
///
/// # Errors
/// The key that is wrong (`rest` or `rpc`), and why.
pub fn parse_route(source: RouteSource) -> Result<Route, (&'static str, PatternError)> {
    let in_rest = |error| ("rest", error);
    let (method, url) = source.rest.split_once(' ').ok_or_else(|| {
        in_rest(PatternError::spelling(
            "write an HTTP method, one space and a path, such as `GET /items/{id}`",
        ))
    })?;
    let method = parse_method(method).map_err(in_rest)?;
    let (path, query) = cut_query(url);
    let path = parse_path(path).map_err(in_rest)?;
    let query = query.map_or(Ok(Vec::new()), parse_query).map_err(in_rest)?;
    let rpc = parse_rpc(&source.rpc).map_err(|error| ("rpc", error))?;
    let effect = source.effect.unwrap_or(Effect::of(&method));
    let foreign = Foreign::default();
    let RouteSource {
        name,
        rest,
        timeout,
        successor,
        ..
    } = source;
    let route = Route {
        name,
        rest,
        method,
        path,
        query,
        rpc,
        effect,
        timeout,
        successor,
        foreign,
    };
    unique_names(&route).map_err(in_rest)?;
    Ok(route)
}

fn parse_method(text: &str) -> Result<Method, PatternError> {
    let method = Method::from_bytes(text.as_bytes());
    match method {
        Ok(Method::CONNECT) => Err(PatternError::spelling(
            "CONNECT asks for a tunnel and cannot be a route",
        )),
        Ok(method) if !text.bytes().any(|byte| byte.is_ascii_lowercase()) => Ok(method),
        Ok(_) | Err(_) => Err(PatternError::spelling(format!(
            "`{text}` is no HTTP method; methods are case-sensitive, such as `GET` or `POST`"
        ))),
    }
}

fn parse_rpc(text: &str) -> Result<String, PatternError> {
    if text.is_empty() {
        return Err(PatternError::spelling("the RPC method is empty"));
    }
    let mut name = String::new();
    for token in tokens(text)? {
        match token {
            Token::Text(text) => name.push_str(&text),
            Token::Hole(inside) => {
                return Err(PatternError::Unsupported(format!(
                    "the hole `{{{inside}}}` in an RPC method"
                )));
            }
        }
    }
    Ok(name)
}

/// Cuts at the first `?` outside of braces.
fn cut_query(url: &str) -> (&str, Option<&str>) {
    match outside_braces(url, '?').next() {
        Some(at) => (&url[..at], Some(&url[at + 1..])),
        None => (url, None),
    }
}

/// The places of a character outside of braces.
fn outside_braces(text: &str, wanted: char) -> impl Iterator<Item = usize> {
    let mut open = 0_i32;
    text.char_indices().filter_map(move |(at, letter)| {
        open += i32::from(letter == '{') - i32::from(letter == '}');
        (letter == wanted && open == 0).then_some(at)
    })
}

fn split_outside_braces(text: &str, at: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for place in outside_braces(text, at) {
        parts.push(&text[start..place]);
        start = place + at.len_utf8();
    }
    parts.push(&text[start..]);
    parts
}

fn parse_path(path: &str) -> Result<Template, PatternError> {
    let Some(inside) = path.strip_prefix('/') else {
        return Err(PatternError::spelling(format!(
            "the path `{path}` must begin with `/`"
        )));
    };
    let mut template = Template {
        segments: Vec::new(),
        holes: Vec::new(),
        verb: None,
    };
    if inside.is_empty() {
        return Ok(template);
    }
    let (inside, verb) = match outside_braces(inside, ':').last() {
        Some(at) if !inside[at..].contains('/') => (&inside[..at], Some(&inside[at + 1..])),
        _ => (inside, None),
    };
    template.verb = verb.map(literal).transpose()?;
    for segment in split_outside_braces(inside, '/') {
        if template.segments.last() == Some(&SegmentPattern::Rest) {
            return Err(PatternError::spelling(
                "nothing but a verb may stand behind `**`",
            ));
        }
        parse_segment(segment, &mut template)?;
    }
    Ok(template)
}

fn parse_segment(segment: &str, template: &mut Template) -> Result<(), PatternError> {
    match &tokens(segment)?[..] {
        [] => Err(PatternError::spelling(
            "the path has an empty segment, which no request can be trusted with",
        )),
        [Token::Hole(inside)] => parse_path_hole(inside, template),
        [Token::Text(text)] => {
            template
                .segments
                .push(SegmentPattern::Literal(literal(text)?));
            Ok(())
        }
        _ => Err(PatternError::Unsupported(format!(
            "text beside a hole in the path segment `{segment}`"
        ))),
    }
}

/// A literal segment in normal form.
fn literal(text: &str) -> Result<String, PatternError> {
    if text.is_empty() || text == "." || text == ".." {
        return Err(PatternError::spelling(format!(
            "the path segment `{text}` cannot be told from no segment"
        )));
    }
    if text == "*" || text == "**" {
        return Err(PatternError::Unsupported(format!(
            "`{text}` without a name; write `{{name={text}}}`"
        )));
    }
    let mut escaped = String::new();
    for letter in text.chars() {
        // What RFC 3986 §3.3 allows in a segment stays; an escape that the pattern spells out as well.
        if letter.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@%".contains(letter) {
            escaped.push(letter);
        } else {
            percent::encode(
                letter.encode_utf8(&mut [0; 4]),
                percent::Keep::Nothing,
                &mut escaped,
            );
        }
    }
    Ok(percent::normalise(&escaped).into_owned())
}

fn parse_path_hole(inside: &str, template: &mut Template) -> Result<(), PatternError> {
    let (name, rest) = hole_name(inside)?;
    let (typed, pattern) = match rest.split_once('=') {
        Some((typed, pattern)) => (typed, Some(pattern)),
        None => (rest, None),
    };
    if typed.ends_with('?') {
        return Err(PatternError::spelling(format!(
            "`{{{inside}}}`: a hole in a path cannot be absent"
        )));
    }
    let shape = parse_type(typed, inside)?;
    let Shape::One(_) = &shape else {
        return Err(PatternError::Unsupported(format!(
            "`{{{inside}}}`: a list in a path"
        )));
    };
    let start = template.segments.len();
    for segment in pattern.unwrap_or("*").split('/') {
        template.segments.push(match segment {
            "*" => SegmentPattern::One,
            "**" => SegmentPattern::Rest,
            _ => SegmentPattern::Literal(literal(segment)?),
        });
    }
    let spanned = &template.segments[start..];
    if spanned[..spanned.len() - 1].contains(&SegmentPattern::Rest) {
        return Err(PatternError::spelling(
            "nothing but a verb may stand behind `**`",
        ));
    }
    if spanned.len() > 1 && !typed.is_empty() && typed != ":string" {
        return Err(PatternError::spelling(format!(
            "`{{{inside}}}`: several segments are a string"
        )));
    }
    let hole = Hole {
        name: name.to_owned(),
        shape,
        absence: Absence::Refused,
    };
    template.holes.push(PlacedHole {
        hole,
        start,
        end: template.segments.len(),
    });
    Ok(())
}

fn parse_query(query: &str) -> Result<Vec<QueryItem>, PatternError> {
    let mut items: Vec<QueryItem> = Vec::new();
    for pair in split_outside_braces(query, '&') {
        let (key, value) = pair.split_once('=').ok_or_else(|| {
            PatternError::spelling(format!(
                "`{pair}` in the query; write `key={{hole}}` or `key=text`"
            ))
        })?;
        let key = decoded(key)?;
        if key.is_empty() || items.iter().any(|item| item.key == key) {
            return Err(PatternError::spelling(format!(
                "the query key `{key}` is empty or given twice"
            )));
        }
        let value = match &tokens(value)?[..] {
            [] => QueryValue::Literal(String::new()),
            [Token::Text(text)] => QueryValue::Literal(decoded(text)?),
            [Token::Hole(inside)] => QueryValue::Hole(parse_hole(inside)?),
            _ => {
                return Err(PatternError::Unsupported(format!(
                    "text beside a hole in `{pair}`"
                )));
            }
        };
        items.push(QueryItem { key, value });
    }
    Ok(items)
}

fn decoded(text: &str) -> Result<String, PatternError> {
    let decoded = percent::decode(text, percent::Plus::Space);
    decoded
        .map(std::borrow::Cow::into_owned)
        .map_err(|error| PatternError::spelling(format!("`{text}`: {error}")))
}

fn unique_names(route: &Route) -> Result<(), PatternError> {
    let mut seen: Vec<&str> = Vec::new();
    for hole in route.holes() {
        if seen.contains(&hole.name.as_str()) {
            return Err(PatternError::Unsupported(format!(
                "the hole `{}` twice in one URL",
                hole.name
            )));
        }
        seen.push(&hole.name);
    }
    Ok(())
}
