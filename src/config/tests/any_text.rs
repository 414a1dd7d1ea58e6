//! Law for arbitrary texts: no panic.

use proptest::prelude::*;

use super::Fixture;

fn any_text() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        Just("[[route]]".to_owned()),
        Just("[upstream.a]".to_owned()),
        Just("include = ['*.toml', '**/x', '/']".to_owned()),
        ("[a-z_]{1,8}", "[ -~]{0,12}").prop_map(|(key, value)| format!("{key} = {value}")),
        (
            prop::sample::select(vec![
                "limits.body",
                "limits",
                "route",
                "upstream.a.url",
                "client",
                "rollout.default",
                "listen.workers",
                "rpc.paths",
                "name",
                "match",
                "\"\"",
                "a.\"b.c\"",
            ]),
            prop::sample::select(vec![
                "1",
                "-1",
                "1e400",
                "nan",
                "'x'",
                "''",
                "[]",
                "[1,[2]]",
                "{}",
                "{a={b=[{}]}}",
                "true",
                "1979-05-27",
                "99999999999999999999",
                "0x1F",
                "[{}, 1]",
                "'ä…'",
            ])
        )
            .prop_map(|(key, value)| format!("{key} = {value}")),
        "\\PC{0,20}",
    ];
    prop_oneof![
        prop::collection::vec(line, 0..8).prop_map(|lines| lines.join("\n").into_bytes()),
        prop::collection::vec(any::<u8>(), 0..64),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_text_makes_it_panic(main in any_text(), included in any_text(), value in "\\PC{0,20}") {
        let fixture = Fixture::new("")
            .file("dualgauge.toml", &main)
            .file("r.toml", &included)
            .variable("DUALGAUGE_LIMITS__BODY", &value)
            .variable(&format!("DUALGAUGE_{value}"), &value);
        if let Err(problems) = fixture.load() {
            prop_assert!(problems.iter().count() > 0);
            prop_assert!(!problems.to_string().is_empty());
        }
    }
}

#[test]
fn nesting_is_bounded_by_the_parser() {
    let dotted = format!("{}a = 1", "a.".repeat(50_000));
    let inline = format!("a = {}1{}", "{a = ".repeat(50_000), "}".repeat(50_000));
    let list = format!("a = {}{}", "[".repeat(50_000), "]".repeat(50_000));
    for text in [dotted, inline, list] {
        let fixture = Fixture::new(&format!("[[route]]\nparams.{text}"));
        assert!(fixture.load().is_err());
    }
}
