//! Schema files: read after decoding, relative to the file that names them. Used by `load`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::config::problem::{Problem, SourceLocation, Spanned};
use crate::config::raw::{RawConfig, RawSchema, RawSchemas};
use crate::config::regular;

/// Replaces each file name by the schema in the file; returns the files that were read.
pub(super) fn read_files(config: &mut RawConfig, problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    let mut files: BTreeMap<PathBuf, Value> = BTreeMap::new();
    let main = config.file.clone();
    for route in &mut config.routes {
        let RawSchemas {
            params,
            result,
            successes,
            failures,
            validate: _,
        } = &mut route.schema;
        for schema in [params, result, successes, failures].into_iter().flatten() {
            let RawSchema::File(name) = &schema.value else {
                continue;
            };
            let path = folder(schema, main.as_deref()).join(name);
            let known = files.get(&path).cloned();
            match known.map_or_else(|| read(&path), Ok) {
                Ok(value) => {
                    files.insert(path, value.clone());
                    schema.value = RawSchema::Written(value);
                }
                Err(message) => problems.push(schema.problem(message)),
            }
        }
    }
    files.into_keys().collect()
}

fn folder<'c>(schema: &'c Spanned<RawSchema>, main: Option<&'c Path>) -> &'c Path {
    let file = match &schema.place {
        SourceLocation::File { path, .. } => Some(path.as_path()),
        SourceLocation::Default
        | SourceLocation::Variable(_)
        | SourceLocation::Argument(_)
        | SourceLocation::Flip(_)
        | SourceLocation::Source(_) => main,
    };
    file.and_then(Path::parent).unwrap_or(Path::new(""))
}

fn read(path: &Path) -> Result<Value, String> {
    let shown = path.display();
    let text = regular::read(path, regular::LONGEST)
        .map_err(|error| format!("`{shown}` cannot be read: {error}"))?;
    serde_json::from_slice(&text).map_err(|error| format!("`{shown}` is not JSON: {error}"))
}
