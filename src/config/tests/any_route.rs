//! Laws for arbitrary routes: no panic, and each problem has a line.

use proptest::prelude::*;

use super::Fixture;
use crate::config::configuration::Configuration;
use crate::config::problem::SourceLocation;

fn any_value() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "'{x}'",
        "'{y:integer?}'",
        "'{y=5}'",
        "'{_}'",
        "'{_:null}'",
        "'{>x:json}'",
        "'{>now}'",
        "'a {x} b'",
        "'{x}{y}'",
        "'{rest...}'",
        "'*'",
        "'{'",
        "'}}'",
        "''",
        "'5xx'",
        "'common'",
        "'none.json'",
        "'ä'",
        "200",
        "-32601",
        "1.5",
        "nan",
        "true",
        "1979-05-27",
    ]);
    let name = prop::sample::select(vec![
        "a", "b", "'...'", "'a b'", "'$ref'", "status", "body", "text", "headers", "code",
        "message", "result", "error", "isError", "call", "method", "params", "type", "pattern",
    ]);
    leaf.prop_map(str::to_owned)
        .prop_recursive(3, 12, 4, move |value| {
            let member = (name.clone(), value.clone());
            let table = prop::collection::vec(member, 0..4).prop_map(|members| {
                let mut seen = std::collections::BTreeSet::new();
                let members = members.into_iter().filter(|(name, _)| seen.insert(*name));
                let members = members.map(|(name, value)| format!("{name} = {value}"));
                format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
            });
            let list = prop::collection::vec(value, 0..4);
            prop_oneof![
                table,
                list.prop_map(|items| format!("[{}]", items.join(", ")))
            ]
        })
}

fn any_lines(keys: &'static [&'static str]) -> impl Strategy<Value = String> {
    let keys = prop::sample::subsequence(keys, 0..=keys.len().min(6));
    keys.prop_flat_map(|keys| {
        let values = prop::collection::vec(any_value(), keys.len());
        values.prop_map(move |values| {
            let lines = keys.iter().zip(values);
            let lines = lines.map(|(key, value)| format!("{key} = {value}\n"));
            lines.collect::<String>()
        })
    })
}

const ROUTE: &[&str] = &[
    "params", "body", "query", "headers", "extra", "from", "stage", "notify", "lossy", "outcomes",
    "schema", "outcome", "example", "compare",
];
const ROW: &[&str] = &[
    "rest.status",
    "rest.body",
    "rest.text",
    "rest.headers",
    "rpc.result",
    "rpc.error.code",
    "rpc.error.message",
    "rpc.error.data",
];
const EXAMPLE: &[&str] = &[
    "way",
    "rest.body",
    "rest.headers",
    "rpc.params",
    "reply.rest",
    "reply.rpc",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_route_makes_it_panic_and_each_fault_has_a_line(
        route in any_lines(ROUTE),
        rows in prop::collection::vec(any_lines(ROW), 0..3),
        set in any_lines(ROW),
        example in any_lines(EXAMPLE),
    ) {
        let mut text = format!(
            "[upstream.u]\nside = 'rest'\nurl = 'http://h'\n\
             [[route]]\nname = 'a'\nrest = 'PUT /a/{{x}}'\nrpc = 'a'\n{route}"
        );
        for row in rows {
            text.push_str(&format!("[[route.outcome]]\nrest.status = 201\n{row}"));
        }
        text.push_str(&format!("[[route.example]]\nrest.call = 'PUT /a/1'\nrpc.method = 'a'\n{example}"));
        text.push_str(&format!("[[outcomes.common]]\n{set}"));
        let fixture = Fixture::new(&text);
        if let Err(problems) = Configuration::read(&fixture.sources) {
            for problem in &problems {
                let has_line = matches!(&problem.place, SourceLocation::File { position: Some(_), .. });
                prop_assert!(has_line, "{problem}\n{text}");
            }
        }
    }
}
