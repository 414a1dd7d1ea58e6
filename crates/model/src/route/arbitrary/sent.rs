//! Calls that mostly fit a route. Used by `route::arbitrary`.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::route::{PlacedHole, Route, SegmentPattern};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::arbitrary::{Dice, texts, value};
use dualgauge_patterns::pattern::{SegmentText, TextPatterns};
use dualgauge_patterns::percent::{self, Keep};

/// A REST call, as its parts.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Json>,
}

/// A REST call that mostly fits a route.
pub(crate) fn rest_call(route: &Route, dice: &mut Dice) -> Sent {
    let call = &route.rest_call;
    let mut target = path(route, dice);
    let mut separator = '?';
    for item in &call.query {
        for text in texts(&item.words, dice) {
            target.push(separator);
            separator = '&';
            percent::encode(&item.key, Keep::Nothing, &mut target);
            target.push('=');
            percent::encode(&text, Keep::Nothing, &mut target);
        }
    }
    if call.other_query.is_some() {
        for _ in 0..dice.below(4) {
            let name = dice.pick(&["zz", "zz", "é x", "ZZ", "utm_source", "k0", ""]);
            target.push_str(&format!(
                "{separator}{name}={}",
                dice.pick(&["", "a", "%20&", "é"])
            ));
            separator = '&';
        }
    }
    let mut headers = HeaderMap::new();
    for prefix in &call.header_prefixes {
        for _ in 0..dice.below(4) {
            let name = format!("{}{}", prefix.prefix, dice.pick(&["a", "a", "b-c", "d"]));
            let value = HeaderValue::from_static(["", "a", "b, c"][dice.below(3)]);
            headers.append(HeaderName::try_from(name).unwrap(), value);
        }
    }
    for item in &call.headers {
        for text in texts(&item.words, dice) {
            let name: HeaderName = item.name.clone();
            // White space around it is not of the value (RFC 9110 §5.5).
            headers.append(name, HeaderValue::from_str(text.trim()).unwrap());
        }
    }
    let body = call.body.as_ref().map(|body| value(body, dice));
    Sent {
        target,
        headers,
        body,
    }
}

fn path(route: &Route, dice: &mut Dice) -> String {
    let template = &route.rest_call.path;
    let mut path = String::new();
    for (index, segment) in template.segments.iter().enumerate() {
        let placed = template.holes.iter().find(|placed| placed.start == index);
        let text = match (segment, placed) {
            (SegmentPattern::Literal(text), _) => text.clone(),
            (SegmentPattern::Text(text), _) => {
                path.push('/');
                let holes = template.holes.iter().filter(|placed| placed.start == index);
                beside_text(text, holes, &mut path, dice);
                continue;
            }
            (SegmentPattern::One, Some(placed)) if placed.end == index + 1 => {
                let words = TextPatterns::Hole(placed.slot.clone());
                texts(&words, dice).pop().unwrap_or_default()
            }
            (SegmentPattern::One, _) => "one".into(),
            (SegmentPattern::Rest, _) => "two/three".into(),
        };
        path.push('/');
        let keep = match dice.below(2) {
            0 => Keep::Slashes,
            _ => Keep::Commas,
        };
        percent::encode(&text, keep, &mut path);
    }
    if let Some(verb) = &template.verb {
        path.push(':');
        path.push_str(verb);
    }
    path
}

/// A segment of text and holes, with values that may be empty or contain the text.
fn beside_text<'h>(
    text: &SegmentText,
    holes: impl Iterator<Item = &'h PlacedHole>,
    path: &mut String,
    dice: &mut Dice,
) {
    path.push_str(text.before());
    for (placed, after) in holes.zip(text.after()) {
        let words = TextPatterns::Hole(placed.slot.clone());
        let mut value = texts(&words, dice).pop().unwrap_or_default();
        if dice.below(4) == 0 {
            value.push_str(after);
        }
        match dice.below(3) {
            0 if value.is_ascii() && !value.contains(['/', '?', '%', '#', ' ']) => {
                path.push_str(&value)
            }
            _ => percent::encode(&value, Keep::Nothing, path),
        }
        path.push_str(after);
    }
}

/// An RPC call that mostly fits a route.
pub(crate) fn rpc_call(route: &Route, dice: &mut Dice) -> (String, Json) {
    let method = match &route.rpc_call.method {
        TextPatterns::Literal(method) => method.clone(),
        words @ (TextPatterns::Hole(_) | TextPatterns::Mixed(_)) => {
            texts(words, dice).pop().unwrap_or_default()
        }
    };
    (method, value(&route.rpc_call.params, dice))
}
