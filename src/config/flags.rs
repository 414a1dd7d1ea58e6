//! The flags file: the rollout as written by people. The program never rewrites it.
//!
//! Used by `app::control::files`, `configuration`, `json_schema` and `other_files`.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::config::decode::guard::{self, GUARD, RAMP};
use crate::config::decode::identity::header_globs;
use crate::config::decode::shared::{SIDES, STAGES};
use crate::config::digest::Digests;
use crate::config::key::{
    Key, NamedValues, Rule, SubTable, TableShape, key, named_values, section, table,
};
use crate::config::kind::{NAME, PERCENT, STRING, TEXT, words};
use crate::config::layer::{Layer, Merged};
use crate::config::problem::{Problem, Problems, Spanned};
use crate::config::raw::RawFlag;
use crate::config::table_reader::{self, Shape, Table, unique};
use crate::config::toml::{KeyPath, TomlDocument};
use dualgauge_model::rollout::{Arming, Stage, WithoutKey};
use dualgauge_patterns::side::Side;

const WITHOUT_KEY_WORDS: &[(&str, WithoutKey)] =
    &[("out", WithoutKey::Out), ("in", WithoutKey::In)];

section! {
    /// `[[flag]]`
    FLAG {
        /// Unique name; also seeds the percentage
        FLAG_NAME: Key<String> = key("name", NAME).required();
        /// Glob of clients
        CLIENT: Key<String> = key("client", TEXT).or("*");
        /// Glob of routes
        ROUTE: Key<String> = key("route", TEXT).or("*");
        /// Only calls from this side; both if absent
        SIDE: Key<Side> = key("side", words(SIDES));
        /// Stage of matching calls
        STAGE: Key<Stage> = key("stage", words(STAGES)).required();
        /// Percent of callers, by key
        SHARE: Key<u32> = key("percent", PERCENT).or("100");
        /// Callers without a key
        WITHOUT_KEY: Key<WithoutKey> = key("without_key", words(WITHOUT_KEY_WORDS)).or("out");
        /// Percent of callers always kept out
        HOLDBACK: Key<u32> = key("holdback", PERCENT).or("0");
        /// Automatic rollback
        OF_GUARD: SubTable = table("guard", &GUARD);
        /// Automatic increase of `percent`
        OF_RAMP: SubTable = table("ramp", &RAMP);
        /// Headers, each with a glob: all must match
        HEADERS: NamedValues<String> = named_values("header", STRING);
    }
    rules [
        Rule::Needs("ramp", &["guard"]),
    ]
}

section! {
    /// The flags file.
    pub(super) FILE {
        /// Flags, in order: the first that matches decides
        FLAGS: SubTable = table("flag", &FLAG).of(TableShape::List);
    }
}

/// Reads the flags of the file of `rollout.flags`, in order, and records its digest.
///
/// # Errors
/// Every problem of the file.
pub fn load_flags(
    file: &Spanned<PathBuf>,
    digests: &mut Digests,
) -> Result<Vec<RawFlag>, Problems> {
    let (flags, problems) = decode(&read(file, digests)?)?;
    Problems::unless(problems, flags)
}

/// Reads the flags of a file that can be decoded, with every problem of the file.
pub(super) fn load_parts(file: &Spanned<PathBuf>) -> (Vec<RawFlag>, Vec<Problem>) {
    let read = read(file, &mut Digests::new()).and_then(|document| decode(&document));
    read.unwrap_or_else(|problem| (Vec::new(), vec![problem]))
}

fn read(file: &Spanned<PathBuf>, digests: &mut Digests) -> Result<TomlDocument, Problem> {
    TomlDocument::read(&file.value, digests).map_err(|problem| Problem {
        hint: Some(format!("`{}` at {} names this file", file.key, file.place)),
        ..problem
    })
}

/// Reads the flags of a text; problems name it by `path`.
///
/// # Errors
/// Every problem of the text.
pub fn parse_flags(path: &Path, text: &str) -> Result<Vec<RawFlag>, Problems> {
    let (flags, problems) = decode(&TomlDocument::new(path, text.to_owned()))?;
    Problems::unless(problems, flags)
}

/// Decodes the flags of a document, with every problem found. Fails if the text is not TOML.
fn decode(document: &TomlDocument) -> Result<(Vec<RawFlag>, Vec<Problem>), Problem> {
    let mut layer = Layer::new("flags");
    let mut problems = document.add_to(&mut layer, KeyPath::Main)?;
    let merged = Merged::new(vec![layer])?;
    let flags = table_reader::read(&merged, &mut problems, |table| {
        let flags = table.tables(&FLAGS, flag);
        unique(flags.iter().map(|flag| &flag.name), table);
        Some(flags)
    });
    Ok((flags.unwrap_or_default(), problems))
}

fn flag(table: &mut Table<'_>) -> Option<RawFlag> {
    let here = table.here();
    let name = table.get(&FLAG_NAME);
    let client = table.get(&CLIENT);
    let route = table.get(&ROUTE);
    let side = table.get(&SIDE);
    let stage = table.get(&STAGE);
    let share = table.get(&SHARE);
    let without_key = table.get(&WITHOUT_KEY);
    let holdback = table.get(&HOLDBACK);
    let guard = table.table(&OF_GUARD, guard::guard).map(Box::new);
    let ramp = table.table(&OF_RAMP, guard::ramp).map(Box::new);
    let headers = match table.shape(HEADERS.name) {
        Shape::Absent => Some(Vec::new()),
        Shape::Table | Shape::Value => {
            let headers = table.named_values(&HEADERS);
            headers.and_then(|headers| header_globs(table, headers))
        }
    };
    let mut flag = RawFlag {
        place: here.place,
        key: here.key,
        name: name?,
        client: client?,
        route: route?,
        side,
        stage: stage?,
        percent: share?,
        without_key: without_key?,
        holdback: holdback?,
        headers: headers?,
        guard,
        ramp,
        arming: Arming::Armed,
        text_hash: String::new(),
    };
    flag.text_hash = text_hash(&flag);
    Some(flag)
}

/// Returns a hash of the flag's meaning. It is stored in the state folder, so the form below is a file format: a change
/// makes every stored flip look as if its flag had been edited.
fn text_hash(flag: &RawFlag) -> String {
    let mut meaning = serde_json::json!([
        flag.name.value,
        flag.client.value,
        flag.route.value,
        flag.side.as_ref().map(|side| side.value.as_str()),
        flag.stage.value.as_str(),
        flag.percent.value,
        matches!(flag.without_key.value, WithoutKey::In),
    ]);
    // Newer keys are hashed only if set, so that existing flags do not look edited.
    if let Some(meaning) = meaning.as_array_mut() {
        let headers = flag.headers.iter();
        meaning.extend(headers.map(|rule| {
            serde_json::json!({ "header": rule.header.value.as_str(), "fits": rule.glob.value })
        }));
        if flag.holdback.value > 0 {
            meaning.push(serde_json::json!({ "holdback": flag.holdback.value }));
        }
        if let Some(ramp) = &flag.ramp {
            let steps: Vec<u32> = ramp.steps.iter().map(|step| step.value).collect();
            meaning.push(serde_json::json!({ "ramp": steps }));
        }
    }
    let digest = Sha256::digest(meaning.to_string());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
