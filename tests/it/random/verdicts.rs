//! What `check` says of a table.

use std::collections::BTreeMap;
use std::path::Path;

use super::json::Json;
use super::route::Side;
use crate::support::{program, run_to_end};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Lossless,
    NormalForm,
    Lossy,
}

/// Verdicts by the name of the route, the key of its row (none for calls) and the side that speaks.
#[derive(Debug)]
pub(crate) struct Verdicts {
    all: BTreeMap<(String, Option<String>, &'static str), (Verdict, Json)>,
}

/// Checks the configuration in a folder, which must be found right.
pub(crate) fn check(folder: &Path) -> Verdicts {
    let mut command = program(&["check", "--format", "json", "--config"]);
    command.arg(folder.join("dualgauge.toml"));
    let ended = run_to_end(command);
    assert_eq!(
        (ended.code, ended.errors.as_str()),
        (Some(0), ""),
        "{}",
        told(&ended.output)
    );
    let mut all = BTreeMap::new();
    for route in Json::parse(&ended.output).at("routes").elements() {
        for direction in route.at("directions").elements() {
            if direction.at("kind").as_text() == "builtin" {
                continue;
            }
            let side = Side::ALL.map(Side::as_str).into_iter();
            let from = direction.at("from").as_text();
            let from = side.into_iter().find(|side| *side == from).unwrap();
            let row = Some(direction.at("row")).filter(|row| **row != Json::Null);
            let row = row.map(|row| row.as_text().to_owned());
            let verdict = match direction.at("verdict").as_text() {
                "lossless" => Verdict::Lossless,
                "normal_form" => Verdict::NormalForm,
                "lossy" => Verdict::Lossy,
                other => panic!("`{other}` of {direction}"),
            };
            let name = route.at("name").as_text().to_owned();
            all.insert((name, row, from), (verdict, direction.clone()));
        }
    }
    Verdicts { all }
}

/// The problems alone, where there are some.
fn told(output: &str) -> String {
    let Some(problems) = Json::parse(output).get("problems").cloned() else {
        return output.to_owned();
    };
    let lines = problems.elements().iter().map(|problem| {
        let word = |name: &str| problem.at(name).plain();
        format!("{}: {}: {}", word("line"), word("key"), word("message"))
    });
    lines.collect::<Vec<_>>().join("\n")
}

impl Verdicts {
    /// The verdict, and the whole row of the report for messages.
    pub(crate) fn of(&self, name: &str, row: Option<&str>, from: Side) -> (Verdict, &Json) {
        let key = (name.to_owned(), row.map(str::to_owned), from.as_str());
        let found = self.all.get(&key);
        let (verdict, said) =
            found.unwrap_or_else(|| panic!("no verdict of {key:?}: {:?}", self.all.keys()));
        (*verdict, said)
    }

    pub(crate) fn count(&self, wanted: Verdict) -> usize {
        self.all
            .values()
            .filter(|(verdict, _)| *verdict == wanted)
            .count()
    }
}
