//! The parser of the REST side: `METHOD /path/{hole}?key={hole}`, by the grammar of `google.api.http`.
//!
//! Used by `route::draft` and `route::old`.

use http::Method;

use super::headers::words;
use super::template::{PlacedHole, QueryItem, SegmentPattern, Template};
use dualgauge_patterns::pattern::{
    HoleRef, HoleUse, PatternError, SegmentText, SourceTree, TextPatterns, Token, as_key,
    cut_default, hole_name, mention_named, normal_text, parse_encoded_type, tokens,
};
use dualgauge_patterns::percent;

/// Method, path and query, as spelled.
#[derive(Debug)]
pub(super) struct RestSpelling {
    pub(super) method: Method,
    pub(super) path: Template<HoleRef>,
    pub(super) query: Vec<QueryItem<HoleRef>>,
}

/// Parses `METHOD /path?query`.
pub(super) fn parse_rest(text: &str) -> Result<RestSpelling, PatternError> {
    let (method, url) = text.split_once(' ').ok_or_else(|| {
        PatternError::new("write an HTTP method, one space and a path, such as `GET /items/{id}`")
    })?;
    let method = parse_method(method)?;
    let (path, query) = cut_query(url);
    let path = parse_path(path)?;
    let query = query.map_or(Ok(Vec::new()), parse_query)?;
    Ok(RestSpelling {
        method,
        path,
        query,
    })
}

/// Parses the method of a request.
///
/// # Errors
///
/// Fails if the text is not an HTTP method in upper case, and for `CONNECT`.
pub fn parse_method(text: &str) -> Result<Method, PatternError> {
    let method = Method::from_bytes(text.as_bytes());
    match method {
        Ok(Method::CONNECT) => Err(PatternError::new(
            "CONNECT opens a tunnel and cannot be a route",
        )),
        Ok(method) if !text.bytes().any(|byte| byte.is_ascii_lowercase()) => Ok(method),
        Ok(_) | Err(_) => Err(PatternError::new(format!(
            "`{text}` is not an HTTP method; methods are case-sensitive, such as `GET` or `POST`"
        ))),
    }
}

/// Splits at the first `?` outside of braces.
fn cut_query(url: &str) -> (&str, Option<&str>) {
    match outside_braces(url, '?').next() {
        Some(at) => (&url[..at], Some(&url[at + 1..])),
        None => (url, None),
    }
}

/// Returns the positions of a character outside of braces.
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

fn parse_path(path: &str) -> Result<Template<HoleRef>, PatternError> {
    let Some(inside) = path.strip_prefix('/') else {
        return Err(PatternError::new(format!(
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
        // Text before a hole is no verb: `/{project}:{place}`.
        Some(at) if !inside[at..].contains(['/', '{']) => (&inside[..at], Some(&inside[at + 1..])),
        _ => (inside, None),
    };
    template.verb = verb.map(literal).transpose()?;
    let segments = split_outside_braces(inside, '/');
    let last = segments.len() - 1;
    for (at, segment) in segments.into_iter().enumerate() {
        if template.segments.last() == Some(&SegmentPattern::Rest) {
            return Err(PatternError::new("only a verb may follow `**`"));
        }
        if segment.is_empty() && at > 0 && at == last && template.verb.is_none() {
            // The trailing slash of `/items/`.
            let empty = SegmentPattern::Literal(String::new());
            template.segments.push(empty);
        } else {
            parse_segment(segment, &mut template)?;
        }
    }
    Ok(template)
}

fn parse_segment(segment: &str, template: &mut Template<HoleRef>) -> Result<(), PatternError> {
    match &tokens(segment)?[..] {
        [] => Err(PatternError::new(
            "only the last segment of a path may be empty, as in `/items/`",
        )),
        [Token::Hole(inside)] => parse_path_hole(inside, template),
        [Token::Text(text)] => {
            template
                .segments
                .push(SegmentPattern::Literal(literal(text)?));
            Ok(())
        }
        cut => parse_segment_text(cut, template),
    }
}

/// Parses a segment of text and holes.
fn parse_segment_text(cut: &[Token], template: &mut Template<HoleRef>) -> Result<(), PatternError> {
    let start = template.segments.len();
    let (mut before, mut after) = (String::new(), Vec::<String>::new());
    for token in cut {
        match token {
            Token::Text(text) => *after.last_mut().unwrap_or(&mut before) = text.clone(),
            Token::Hole(inside) => {
                let slot = parse_segment_hole(inside)?;
                if after.last().is_some_and(String::is_empty) {
                    return Err(PatternError::new(format!(
                        "the hole `{}` touches the one before it, whose end would be ambiguous; write text between them",
                        slot.name
                    )));
                }
                after.push(String::new());
                let end = start + 1;
                template.holes.push(PlacedHole { slot, start, end });
            }
        }
    }
    let text = SegmentText::parse(&before, &after)?;
    template.segments.push(SegmentPattern::Text(text));
    Ok(())
}

/// Parses a path without holes.
pub(super) fn literal_path(path: &str) -> Result<Template, PatternError> {
    let template = parse_path(path)?;
    if !template.holes.is_empty() {
        return Err(PatternError::new(format!("the path `{path}` has a hole")));
    }
    Ok(Template {
        segments: template.segments,
        holes: Vec::new(),
        verb: template.verb,
    })
}

/// Parses a literal segment into normal form.
fn literal(text: &str) -> Result<String, PatternError> {
    if text.is_empty() || text == "." || text == ".." {
        return Err(PatternError::new(format!(
            "the path segment `{text}` cannot be distinguished from an absent one"
        )));
    }
    if text == "*" || text == "**" {
        return Err(PatternError::new(format!(
            "`{text}` needs a name; write `{{name={text}}}`"
        )));
    }
    Ok(normal_text(text))
}

/// Parses a hole next to text. It is a part of one segment.
fn parse_segment_hole(inside: &str) -> Result<HoleRef, PatternError> {
    let PathHole {
        name,
        typed,
        pattern,
    } = path_hole(inside)?;
    if pattern.is_some() {
        return Err(PatternError::new(format!(
            "`{{{inside}}}`: a hole next to text has neither a template nor a default"
        )));
    }
    let (shape, codec) = parse_encoded_type(typed, inside)?;
    Ok(HoleRef {
        codec,
        ..mention_named(name, HoleUse::Both, shape)
    })
}

/// The parts of a hole in a path.
struct PathHole<'a> {
    name: &'a str,
    /// The type with its colon; may be empty.
    typed: &'a str,
    /// The segments after `=`.
    pattern: Option<&'a str>,
}

/// Splits a hole of a path, and refuses what no path can have.
fn path_hole(inside: &str) -> Result<PathHole<'_>, PatternError> {
    let wrong = |what: &str| PatternError::new(format!("`{{{inside}}}`: {what}"));
    let (name, rest) = hole_name(inside)?;
    let (typed, pattern) = cut_default(rest);
    if name == "_" {
        return Err(wrong(
            "a path cannot be written without a value; name the hole",
        ));
    }
    if typed.ends_with('?') {
        return Err(wrong("a hole in a path cannot be absent"));
    }
    if typed == ":json" {
        return Err(wrong(
            "a path cannot contain JSON; put it into the query or the body",
        ));
    }
    Ok(PathHole {
        name,
        typed,
        pattern,
    })
}

fn parse_path_hole(inside: &str, template: &mut Template<HoleRef>) -> Result<(), PatternError> {
    let wrong = |what: &str| PatternError::new(format!("`{{{inside}}}`: {what}"));
    let PathHole {
        name,
        typed,
        pattern,
    } = path_hole(inside)?;
    let (shape, codec) = parse_encoded_type(typed, inside)?;
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
        return Err(PatternError::new("only a verb may follow `**`"));
    }
    if spanned.len() > 1 && !typed.is_empty() && typed != ":string" {
        return Err(wrong("several segments are a string"));
    }
    template.holes.push(PlacedHole {
        slot: HoleRef {
            codec,
            ..mention_named(name, HoleUse::Both, shape)
        },
        start,
        end: template.segments.len(),
    });
    Ok(())
}

fn parse_query(query: &str) -> Result<Vec<QueryItem<HoleRef>>, PatternError> {
    let mut items: Vec<QueryItem<HoleRef>> = Vec::new();
    for pair in split_outside_braces(query, '&') {
        let (key, value) = pair.split_once('=').ok_or_else(|| {
            PatternError::new(format!(
                "`{pair}` in the query; write `key={{hole}}` or `key=text`"
            ))
        })?;
        let key = decoded(key)?;
        let words = match TextPatterns::parse(value)? {
            TextPatterns::Literal(text) => TextPatterns::Literal(decoded(&text)?),
            words @ (TextPatterns::Hole(_) | TextPatterns::Mixed(_)) => words,
        };
        items.push(QueryItem { key, words });
    }
    Ok(items)
}

/// Parses `query = { key = "{hole}" }`.
pub(super) fn parse_query_table(
    query: &[(String, SourceTree)],
    errors: &mut Vec<PatternError>,
) -> Vec<QueryItem<HoleRef>> {
    let mut items = Vec::with_capacity(query.len());
    for (key, tree) in query {
        match words(tree) {
            Ok(words) => items.push(QueryItem {
                key: key.clone(),
                words,
            }),
            Err(error) => errors.push(error.under(&format!("query.{}", as_key(key)))),
        }
    }
    items
}

fn decoded(text: &str) -> Result<String, PatternError> {
    let decoded = percent::decode(text, percent::Plus::Space);
    decoded
        .map(std::borrow::Cow::into_owned)
        .map_err(|error| PatternError::new(format!("`{text}`: {error}")))
}
