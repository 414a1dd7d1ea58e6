//! The flags file.

use std::path::Path;

use crate::config::digest::Digests;
use crate::config::flags::{load_flags, parse_flags};
use crate::config::problem::{SourceLocation, Spanned};
use crate::config::raw::RawFlag;
use dualgauge_model::rollout::{Stage, WithoutKey};
use dualgauge_patterns::side::Side;

fn flags(text: &str) -> Vec<RawFlag> {
    parse_flags(Path::new("flags.toml"), text).unwrap_or_else(|problems| panic!("{problems}"))
}

fn problems(text: &str) -> String {
    let problems = parse_flags(Path::new("flags.toml"), text).unwrap_err();
    problems.to_string()
}

#[test]
fn a_flag_has_defaults() {
    let flags = flags("[[flag]]\nname = 'all'\nstage = 'retired'\n");
    let [flag] = flags.as_slice() else {
        panic!("one flag");
    };
    assert_eq!(flag.client.value, "*");
    assert_eq!(flag.route.value, "*");
    assert_eq!(flag.side, None);
    assert_eq!(flag.stage.value, Stage::Retired);
    assert_eq!(flag.percent.value, 100_000);
    assert_eq!(flag.without_key.value, WithoutKey::Out);
    assert_eq!(flag.place.to_string(), "flags.toml:1");
}

#[test]
fn a_percentage_is_exact_in_every_spelling() {
    let cases = [
        ("25", 25_000),
        ("0", 0),
        ("100", 100_000),
        ("100.0", 100_000),
        ("0.001", 1),
        ("1e-3", 1),
        ("33.333", 33_333),
        ("0.29", 290),
        ("'12.5'", 12_500),
        ("'12.50000%'", 12_500),
    ];
    for (spelling, thousandths) in cases {
        let text = format!("[[flag]]\nname = 'f'\nstage = 'translate'\npercent = {spelling}\n");
        assert_eq!(flags(&text)[0].percent.value, thousandths, "{spelling}");
    }
    for spelling in [
        "-1", "100.001", "101", "0.0001", "nan", "inf", "'half'", "''", "'.5'", "'+1'", "[]",
        "true",
    ] {
        let text = format!("[[flag]]\nname = 'f'\nstage = 'translate'\npercent = {spelling}\n");
        assert!(
            problems(&text).contains("is not a percentage"),
            "{spelling}"
        );
    }
}

#[test]
fn the_hash_follows_the_meaning_and_not_the_spelling() {
    let hash = |text: &str| flags(text).pop().unwrap().text_hash;
    let plain = hash("[[flag]]\nname = 'f'\nstage = 'translate'\npercent = 25\n");
    let same = hash(
        "# moved\n[[flag]]\npercent = 25.0\nclient = '*'\nstage = \"translate\"\nname = 'f'\n",
    );
    assert_eq!(plain, same);
    assert_eq!(plain.len(), 64);
    let edits = [
        "[[flag]]\nname = 'f'\nstage = 'translate'\npercent = 26\n",
        "[[flag]]\nname = 'f'\nstage = 'retired'\npercent = 25\n",
        "[[flag]]\nname = 'f'\nstage = 'translate'\npercent = 25\nside = 'rest'\n",
        "[[flag]]\nname = 'f'\nstage = 'translate'\npercent = 25\nwithout_key = 'in'\n",
        "[[flag]]\nname = 'f'\nstage = 'translate'\npercent = 25\nroute = 'a.*'\n",
        "[[flag]]\nname = 'f'\nstage = 'translate'\npercent = 25\nholdback = 5\n",
        "[[flag]]\nname = 'f'\nstage = 'translate'\npercent = 25\nheader = { x-beta = '*' }\n",
    ];
    for edit in edits {
        assert_ne!(plain, hash(edit), "{edit}");
    }
}

#[test]
fn the_hash_is_a_file_format() {
    let flags = flags("[[flag]]\nname = 'f'\nside = 'rpc'\nstage = 'translate'\npercent = 25\n");
    assert_eq!(flags[0].side.as_ref().unwrap().value, Side::Rpc);
    assert_eq!(
        flags[0].text_hash,
        "faa9318895cac1466bc14190541d9aa3bc856a61df8e84388e116e2433c3b567"
    );
}

#[test]
fn every_problem_of_the_flags_is_reported_at_once() {
    assert_eq!(
        problems(
            r#"[[flag]]
name = "a"
stage = "shadowed"
guard = { window = "60s" }

[[flag]]
name = "b"
stage = "tranlsate"
side = "both"
procent = 5

[[flag]]
stage = "retired"
percent = 33.3333

[flags]
"#
        ),
        "flags.toml:3: flag[0].stage: `shadowed` is not allowed here; write `passthrough`, `shadow`, `verify`, `translate` or `retired`
  hint: did you mean `shadow`?
flags.toml:8: flag[1].stage: `tranlsate` is not allowed here; write `passthrough`, `shadow`, `verify`, `translate` or `retired`
  hint: did you mean `translate`?
flags.toml:9: flag[1].side: `both` is not allowed here; write `rest` or `rpc`
flags.toml:10: flag[1].procent: unknown key
  hint: did you mean `percent`?
flags.toml:12: flag[2]: `name` is missing
flags.toml:14: flag[2].percent: the number `33.3333` is not a percentage; write a number from 0 to 100 in steps of 0.001
flags.toml:16: flags: unknown key
  hint: did you mean `flag`?"
    );
}

#[test]
fn a_name_is_given_once() {
    let text = "[[flag]]\nname = 'a'\nstage = 'retired'\n".repeat(2);
    assert_eq!(
        problems(&text),
        "flags.toml:5: flag[1].name: the name `a` is already used by flag[0].name at flags.toml:2"
    );
}

#[test]
fn a_missing_file_is_a_problem() {
    let file = Spanned {
        value: "no/such/flags.toml".into(),
        place: SourceLocation::file(Path::new("dualgauge.toml")),
        key: "rollout.flags".to_owned(),
    };
    let problems = load_flags(&file, &mut Digests::new()).unwrap_err();
    assert_eq!(
        problems.to_string(),
        "no/such/flags.toml: cannot be read: No such file or directory (os error 2)\n  \
         hint: `rollout.flags` at dualgauge.toml names this file"
    );
}
