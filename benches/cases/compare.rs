//! Comparing two answers: lists of objects whose members come in another order, equal but for each tenth.

use bytes::Bytes;
use dualgauge_model::compare::{ComparedResponse, Path, RuleSource, Rules, Salt, Terms, compare};
use dualgauge_patterns::json::Json;

use super::Case;

const TERMS: Terms = Terms {
    depth: 128,
    salt: Salt([0; 16]),
};

/// The case of a name, with so many elements.
pub(crate) fn case(name: &str, size: usize) -> Option<Case> {
    let rules = match name {
        "compare many" => RuleSource::default(),
        "compare unordered many" => RuleSource {
            unordered: vec![Path::parse("/result").expect("a path")],
            ..RuleSource::default()
        },
        _ => return None,
    };
    let rules = Rules::compile(rules);
    let control =
        list((0..size).map(|n| format!(r#"{{"id":{n},"name":"item {n}","price":{n}.50}}"#)));
    let candidate = list((0..size).rev().map(|n| {
        let price = if n % 10 == 0 { n + 1 } else { n };
        format!(r#"{{ "price": {price}.5, "name": "item {n}", "id": {n} }}"#)
    }));
    Some(Box::new(move || {
        let (control, candidate) = (
            ComparedResponse::Result(&control),
            ComparedResponse::Result(&candidate),
        );
        compare(&control, &candidate, &rules, &TERMS)
            .differences
            .len()
    }))
}

fn list(elements: impl Iterator<Item = String>) -> Json {
    let text = format!("[{}]", elements.collect::<Vec<_>>().join(","));
    Json::parse(Bytes::from(text), TERMS.depth).expect("valid JSON")
}
