//! The comparison of two responses, part by part.

use http::header::{CONTENT_TYPE, HeaderMap, HeaderName};

use super::canonical_key::KeyBudget;
use super::comparison::{Comparison, Kind, Terms};
use super::diff::{Differ, DifferenceList, equal};
use super::pointer::{PointerBuilder, PointerStep};
use super::redacted::RedactedValue;
use super::response::{ComparedBody, ComparedResponse, ParsedResponse, ResponseTrees, essence};
use super::rules::{Active, Rules};
use dualgauge_patterns::json::{JsonIndex, Spelled};

/// Compares the responses of the control and of the candidate to one call.
#[must_use]
pub fn compare(
    control: &ComparedResponse<'_>,
    candidate: &ComparedResponse<'_>,
    rules: &Rules,
    terms: &Terms,
) -> Comparison {
    let root = rules.root();
    if rules.ignores(&root) {
        return ignored(&compare(control, candidate, &Rules::default(), terms));
    }
    let parsed = [control, candidate].map(|answer| ParsedResponse::new(answer, terms.depth));
    let trees = [parsed[0].trees(), parsed[1].trees()];
    let mut differ = Differ {
        rules,
        terms,
        budget: KeyBudget::from_bytes(parsed.iter().map(ParsedResponse::len).sum()),
        pointer_path: PointerBuilder::default(),
        differences: DifferenceList::default(),
    };
    differ.statuses([control, candidate], &root);
    if let (
        ComparedResponse::Rest { headers: one, .. },
        ComparedResponse::Rest { headers: two, .. },
    ) = (control, candidate)
    {
        let headers = [*one, *two];
        if parsed
            .iter()
            .all(|parsed| !matches!(parsed.body, ComparedBody::Absent))
        {
            differ.media_types(headers, &root);
        }
        differ.headers(headers, &root);
    }
    differ.bodies(
        [&parsed[0].body, &parsed[1].body],
        [&trees[0].body, &trees[1].body],
        &root,
    );
    differ.part("result", [&trees[0].result, &trees[1].result], &root);
    differ.errors([control, candidate], [&trees[0], &trees[1]], &root);
    differ.differences.finish()
}

/// Returns the result if the whole response is ignored.
fn ignored(found: &Comparison) -> Comparison {
    let differences = found.differences.iter().map(|found| found.times);
    Comparison {
        ignored: differences.sum::<usize>() + found.more,
        ..Comparison::default()
    }
}

impl<'a> Differ<'a, '_> {
    /// Compares a top-level member of the response, and returns to the top level.
    fn within(
        &mut self,
        name: &'static str,
        active: &Active,
        compare_inside: impl FnOnce(&mut Self, &Active),
    ) {
        let inside = self.rules.member(active, name);
        self.pointer_path
            .enter(PointerStep::Name(Spelled::Text(name.into())));
        compare_inside(self, &inside);
        self.pointer_path.leave();
    }

    fn part(&mut self, name: &'static str, trees: [&'a Option<JsonIndex<'a>>; 2], active: &Active) {
        let [control, candidate] = trees.map(|tree| tree.as_ref().map(JsonIndex::root));
        self.within(name, active, |differ, active| {
            differ.maybe(control, candidate, active)
        });
    }

    /// Compares two values that are not JSON and may be absent.
    fn plain<T: PartialEq>(
        &mut self,
        both: [Option<T>; 2],
        kind: Kind,
        active: &Active,
        show: impl Fn(&Self, &T) -> RedactedValue,
    ) {
        let [control, candidate] = &both;
        if control == candidate {
            return;
        }
        if self.rules.ignores(active) {
            self.differences.ignore();
            return;
        }
        let kind = match (control, candidate) {
            (Some(_), None) => Kind::Missing,
            (None, Some(_)) => Kind::Extra,
            (_, _) => kind,
        };
        let shown = |value: &Option<T>| {
            value
                .as_ref()
                .map_or_else(RedactedValue::absent, |value| show(self, value))
        };
        let (control, candidate) = (shown(control), shown(candidate));
        self.note(kind, control, candidate);
    }

    fn statuses(&mut self, answers: [&ComparedResponse<'_>; 2], active: &Active) {
        let both = answers.map(|answer| match answer {
            ComparedResponse::Rest { status, .. } => Some(*status),
            ComparedResponse::Result(_) | ComparedResponse::Error { .. } => None,
        });
        self.within("status", active, |differ, active| {
            differ.plain(both, Kind::Status, active, |_, status| {
                RedactedValue::number(status)
            });
        });
    }

    /// Only the essence counts: `application/json` equals `application/json; charset=utf-8`.
    fn media_types(&mut self, headers: [&HeaderMap; 2], active: &Active) {
        let both = headers.map(essence);
        self.header(&CONTENT_TYPE, both, active);
    }

    fn headers(&mut self, headers: [&HeaderMap; 2], active: &Active) {
        for name in &self.rules.source().headers {
            if *name != CONTENT_TYPE {
                let both = headers.map(|headers| combined(headers, name));
                self.header(name, both, active);
            }
        }
    }

    fn header(&mut self, name: &HeaderName, both: [Option<String>; 2], active: &Active) {
        self.within("headers", active, |differ, active| {
            let inside = if differ.rules.ignores(active) {
                active.clone()
            } else {
                differ.rules.member(active, name.as_str())
            };
            let text = name.as_str().to_owned();
            differ
                .pointer_path
                .enter(PointerStep::Name(Spelled::Text(text.into())));
            differ.plain(both, Kind::Header, &inside, |differ, value| {
                differ.visibility().text("text", value)
            });
            differ.pointer_path.leave();
        });
    }

    fn bodies(
        &mut self,
        bodies: [&ComparedBody<'_>; 2],
        trees: [&'a Option<JsonIndex<'a>>; 2],
        active: &Active,
    ) {
        let [control, candidate] = bodies;
        if !matches!(
            (control, candidate),
            (ComparedBody::Text(_), _) | (_, ComparedBody::Text(_))
        ) {
            self.part("body", trees, active);
            return;
        }
        let kind = match (control, candidate) {
            (ComparedBody::Text(_), ComparedBody::Text(_)) => Kind::Value,
            (_, _) => Kind::Type,
        };
        let both = bodies.map(|body| match body {
            ComparedBody::Absent => None,
            ComparedBody::Json(json) => Some((ComparedBody::JSON, json.as_bytes())),
            ComparedBody::Text(text) => Some((ComparedBody::TEXT, *text)),
        });
        self.within("body", active, |differ, active| {
            differ.plain(both, kind, active, |differ, (what, bytes)| {
                differ.visibility().bytes(what, bytes)
            });
        });
    }

    fn errors(
        &mut self,
        answers: [&ComparedResponse<'_>; 2],
        trees: [&'a ResponseTrees<'a>; 2],
        active: &Active,
    ) {
        let codes = answers.map(|answer| match answer {
            ComparedResponse::Error { code, .. } => Some(*code),
            ComparedResponse::Rest { .. } | ComparedResponse::Result(_) => None,
        });
        let one_only = codes.iter().flatten().count() == 1;
        self.within("error", active, |differ, active| {
            if one_only {
                // If only one response is an error, its content adds nothing.
                differ.plain(codes, Kind::Code, active, |_, code| {
                    RedactedValue::number(code)
                });
                return;
            }
            if differ.rules.ignores(active) {
                differ.ignored_error(codes, trees);
                return;
            }
            differ.within("code", active, |differ, active| {
                differ.plain(codes, Kind::Code, active, |_, code| {
                    RedactedValue::number(code)
                });
            });
            differ.part("message", trees.map(|trees| &trees.message), active);
            differ.part("data", trees.map(|trees| &trees.data), active);
        });
    }

    fn ignored_error(&mut self, codes: [Option<i64>; 2], trees: [&'a ResponseTrees<'a>; 2]) {
        let [one, two] = trees;
        let parts = [(&one.message, &two.message), (&one.data, &two.data)];
        let same = parts.iter().all(|(one, two)| match (one, two) {
            (Some(one), Some(two)) => equal(&one.root(), &two.root()),
            (one, two) => one.is_none() && two.is_none(),
        });
        if !same || codes[0] != codes[1] {
            self.differences.ignore();
        }
    }
}

/// Returns all values of a header combined (RFC 9110 §5.3); `None` if it is absent.
fn combined(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let values = headers.get_all(name).iter();
    let values: Vec<_> = values
        .map(|value| String::from_utf8_lossy(value.as_bytes().trim_ascii()))
        .collect();
    (!values.is_empty()).then(|| values.join(", "))
}
