//! Outcome sets that a command has drafted: a text with `[[outcomes.NAME]]` tables only. Used by `cli::learn`.

use std::path::Path;

use crate::config::decode;
use crate::config::layer::{Layer, Merged};
use crate::config::problem::Problems;
use crate::config::raw::RawSet;
use crate::config::table_reader;
use crate::config::toml::{KeyPath, TomlDocument};

/// The table of a set.
const TABLES: &[&str] = &["outcomes"];

/// Decodes the sets of a text.
///
/// # Errors
/// Every problem of the text.
pub fn read(text: &str) -> Result<Vec<RawSet>, Problems> {
    let document = TomlDocument::new(Path::new("draft"), text.to_owned());
    let mut layer = Layer::new("draft");
    let mut problems = document.add_to(&mut layer, KeyPath::Included(TABLES))?;
    let merged = Merged::new(vec![layer])?;
    let sets = table_reader::read(&merged, &mut problems, |table| {
        Some(decode::outcome_sets(table))
    });
    Problems::unless(problems, sets.unwrap_or_default())
}
