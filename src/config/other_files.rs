//! Problems of other files while the main file is not valid TOML.
//!
//! The parser continues after an error, so the included files and the flags file are mostly known. Only problems that
//! do not depend on the main file are reported: TOML errors, and values that cannot be decoded.
//!
//! Used by `load`.

use std::path::{Path, PathBuf};

use crate::config::decode;
use crate::config::digest::Digests;
use crate::config::flags;
use crate::config::include;
use crate::config::layer::{Layer, Merged};
use crate::config::problem::{Problem, SourceLocation, Spanned};
use crate::config::table_reader;
use crate::config::toml::{KeyPath, TomlDocument};

/// Returns the problems of the files that the main file names.
pub(super) fn problems(main: &Path) -> Vec<Problem> {
    let Ok(document) = TomlDocument::read(main, &mut Digests::new()) else {
        return Vec::new();
    };
    let folder = main.parent().unwrap_or(Path::new(""));
    let patterns = document.strings_at(&["include"]);
    let named = patterns.iter().flat_map(|pattern| {
        // A name in a broken file may be incomplete.
        include::matching(folder, pattern).unwrap_or_default()
    });
    let mut paths: Vec<PathBuf> = named.filter(|path| path != main).collect();
    paths.sort();
    paths.dedup();
    let mut problems = included(&paths);
    let flags = document.strings_at(&["rollout", "flags"]).into_iter();
    for path in flags.map(|flags| folder.join(flags)) {
        if path.is_file() {
            let file = Spanned {
                value: path,
                place: SourceLocation::file(main),
                key: "rollout.flags".to_owned(),
            };
            problems.extend(flags::load_parts(&file).1);
        }
    }
    problems
}

fn included(paths: &[PathBuf]) -> Vec<Problem> {
    let (mut problems, mut layer) = (Vec::new(), Layer::new("files"));
    for path in paths {
        let read = TomlDocument::read(path, &mut Digests::new());
        match read
            .and_then(|read| read.add_to(&mut layer, KeyPath::Included(include::ROUTE_TABLES)))
        {
            Ok(found) => problems.extend(found),
            Err(unreadable) => problems.push(unreadable),
        }
    }
    let mut found = Vec::new();
    if let Ok(merged) = Merged::new(vec![layer]) {
        // The configuration lacks the values of the main file, so it is discarded.
        let _ = table_reader::read(&merged, &mut found, decode::config);
    }
    let is_of_them = |problem: &Problem| match &problem.place {
        SourceLocation::File { path, .. } => paths.contains(path),
        SourceLocation::Default
        | SourceLocation::Variable(_)
        | SourceLocation::Argument(_)
        | SourceLocation::Flip(_)
        | SourceLocation::Source(_) => false,
    };
    problems.extend(found.into_iter().filter(is_of_them));
    problems
}
