//! The flags file: what people write about the rollout. The program never rewrites it.

use std::path::Path;

use sha2::{Digest, Sha256};

use crate::config::decode::{LATER_STAGES, SIDES, STAGES};
use crate::config::kind::{name, percent, text, word};
use crate::config::layer::{Layer, Merged};
use crate::config::problem::Problems;
use crate::config::raw::{RawFlag, StageWord, WithoutKeyWord};
use crate::config::reader::{self, Table, unique};
use crate::config::toml::{Document, Part};

const WITHOUT_KEY: &[(&str, WithoutKeyWord)] =
    &[("out", WithoutKeyWord::Out), ("in", WithoutKeyWord::In)];
/// All of them, in thousandths of a percent.
const ALL: u32 = 100_000;

/// Reads the flags of a file, in order.
///
/// # Errors
/// Every problem of the file.
pub fn load_flags(path: &Path) -> Result<Vec<RawFlag>, Problems> {
    decode(&Document::read(path)?)
}

/// Reads the flags of a text; problems name it by `path`.
///
/// # Errors
/// Every problem of the text.
pub fn parse_flags(path: &Path, text: &str) -> Result<Vec<RawFlag>, Problems> {
    decode(&Document::new(path, text.to_owned()))
}

fn decode(document: &Document) -> Result<Vec<RawFlag>, Problems> {
    let mut layer = Layer::new("flags");
    let mut problems = document.add_to(&mut layer, Part::Main)?;
    let merged = Merged::new(vec![layer])?;
    let flags = reader::read(&merged, &mut problems, |table| {
        let flags = table.tables("flag", flag);
        unique(flags.iter().map(|flag| &flag.name), table);
        Some(flags)
    });
    Problems::unless(problems, flags.unwrap_or_default())
}

fn flag(table: &mut Table<'_>) -> Option<RawFlag> {
    table.later(&["guard", "ramp", "holdback", "header"]);
    let here = table.here();
    let name = table.require("name", name);
    let client = table.get_or("client", text, "*".to_owned());
    let route = table.get_or("route", text, "*".to_owned());
    let side = table.get("side", word(SIDES, &[]));
    let stage = table.require("stage", word(STAGES, LATER_STAGES));
    let percent = table.get_or("percent", percent, ALL);
    let without_key = table.get_or("without_key", word(WITHOUT_KEY, &[]), WithoutKeyWord::Out);
    let mut flag = RawFlag {
        place: here.place,
        key: here.key,
        name: name?,
        client: client?,
        route: route?,
        side,
        stage: stage?,
        percent: percent?,
        without_key: without_key?,
        text_hash: String::new(),
    };
    flag.text_hash = text_hash(&flag);
    Some(flag)
}

/// A hash of what the flag means. It lies in the state folder, so the form below is a file format: a change of it
/// makes every stored flip look as if its flag had been edited.
fn text_hash(flag: &RawFlag) -> String {
    let meaning = serde_json::json!([
        flag.name.value,
        flag.client.value,
        flag.route.value,
        flag.side.as_ref().map(|side| side.value.as_str()),
        stage_word(flag.stage.value),
        flag.percent.value,
        matches!(flag.without_key.value, WithoutKeyWord::In),
    ]);
    let digest = Sha256::digest(meaning.to_string());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

const fn stage_word(stage: StageWord) -> &'static str {
    match stage {
        StageWord::Passthrough => "passthrough",
        StageWord::Translate => "translate",
        StageWord::Retired => "retired",
    }
}
