//! The RPC side of a route's declaration: its method, its headers and the form of its params.
//!
//! Used by `route::draft`.

use super::headers::{HeaderItem, parse_headers};
use dualgauge_patterns::pattern::{
    HolePosition, HoleRef, HoleResolver, Pattern, PatternError, SourceTree, TextPatterns,
};
use dualgauge_patterns::side::Side;

/// Returns an error of `headers` as one of `rpc_headers`.
pub(super) fn of_rpc_headers(error: PatternError) -> PatternError {
    PatternError {
        key: error.key.replacen("headers", "rpc_headers", 1),
        ..error
    }
}

/// Parses the method pattern.
pub(super) fn parse_rpc(text: &str) -> Result<TextPatterns<HoleRef>, PatternError> {
    if text.is_empty() {
        return Err(PatternError::new("the RPC method is empty"));
    }
    TextPatterns::parse(text)
}

/// Returns true when a pattern matches only objects and arrays.
pub(super) fn is_structured(pattern: &Pattern) -> bool {
    match pattern {
        Pattern::Object(_) | Pattern::List(_) | Pattern::Each(_) => true,
        Pattern::Either(either) => either.alternatives.iter().all(is_structured),
        Pattern::Literal(_) | Pattern::Hole(_) | Pattern::Text(_) => false,
    }
}

/// Parses `rpc_headers`.
pub(super) fn parse_rpc_headers(
    headers: &[(String, SourceTree)],
    errors: &mut Vec<PatternError>,
) -> Vec<HeaderItem<HoleRef>> {
    let mut faults = Vec::new();
    let parsed = parse_headers(headers, &mut faults);
    errors.extend(faults.into_iter().map(of_rpc_headers));
    parsed
}

/// Adds the declarations of the holes of the RPC side.
pub(super) fn declare(
    resolver: &mut HoleResolver,
    method: &TextPatterns<HoleRef>,
    params: &Pattern<HoleRef>,
    headers: &[HeaderItem<HoleRef>],
) -> Result<(), PatternError> {
    let at = |key: &'static str| move |error: PatternError| error.under(key);
    resolver
        .at("rpc")
        .words(Side::Rpc, method, HolePosition::Path)
        .map_err(at("rpc"))?;
    resolver
        .at("params")
        .pattern(Side::Rpc, params)
        .map_err(at("params"))?;
    for item in headers {
        resolver
            .at("rpc_headers")
            .words(Side::Rpc, &item.words, HolePosition::Words)
            .map_err(at("rpc_headers"))?;
    }
    Ok(())
}

/// Returns true when the RPC side names a hole.
pub(super) fn names(
    hole: &str,
    method: &TextPatterns<HoleRef>,
    params: &Pattern<HoleRef>,
    headers: &[HeaderItem<HoleRef>],
) -> bool {
    let mut in_params = false;
    params.slots(&mut |mention| in_params |= mention.name == hole);
    let words = headers.iter().map(|item| &item.words);
    let mut mentions = words.chain([method]).flat_map(TextPatterns::mentions);
    in_params || mentions.any(|mention| mention.name == hole)
}
