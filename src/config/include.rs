//! The files that an `include` names. Used by `load` and `other_files`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::config::progress;

/// The tables that an included file may contain.
pub(super) const ROUTE_TABLES: &[&str] =
    &["route", "outcomes", "event", "stream", "local", "schemas"];

/// Returns the files of one pattern, sorted by name.
///
/// `*` and `?` may be only in the last part of the pattern. As in a shell, they do not match a leading dot, which
/// excludes files of editors and volume mounts.
pub(super) fn matching(folder: &Path, pattern: &str) -> Result<Vec<PathBuf>, String> {
    let (parent, name) = pattern.rsplit_once('/').unwrap_or(("", pattern));
    if parent.contains(['*', '?']) {
        return Err("`*` and `?` are allowed only in the last part of a pattern".to_owned());
    }
    let folder = match (parent, pattern.starts_with('/')) {
        ("", true) => PathBuf::from("/"),
        ("", false) => folder.to_path_buf(),
        (parent, _) => folder.join(parent),
    };
    let mut names = names_of(&folder)
        .map_err(|error| format!("`{}` cannot be read: {error}", folder.display()))?;
    names.retain(|found| {
        matches(name, found)
            && (name.starts_with('.') || !found.starts_with('.'))
            && folder.join(found).is_file()
    });
    if names.is_empty() {
        return Err(format!("`{pattern}` matches no file"));
    }
    names.sort();
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
}

fn names_of(folder: &Path) -> std::io::Result<Vec<String>> {
    // A bare file name has the empty folder as its parent, which the system does not accept.
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    progress::note(folder);
    fs::read_dir(folder)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}

/// Returns whether a name matches a pattern of `*` (any text) and `?` (one character).
fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut from) = (0, 0);
    let mut star = None;
    while from < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(&wanted) if wanted == '?' || wanted == name[from] => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((star_at, matched)) = star else {
                    return false;
                };
                star = Some((star_at, matched + 1));
                at = star_at + 1;
                from = matched + 1;
            }
        }
    }
    pattern[at..].iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text_and_a_question_mark_one_character() {
        let fits = [
            ("*.toml", "a.toml"),
            ("*", "x"),
            ("a*b*c", "aXbXbc"),
            ("r?.toml", "rä.toml"),
            ("**", ""),
            ("a.toml", "a.toml"),
        ];
        for (pattern, name) in fits {
            assert!(matches(pattern, name), "{pattern} fits {name}");
        }
        let misses = [
            ("*.toml", "a.tom"),
            ("?", ""),
            ("a*b", "a"),
            ("a", "ab"),
            ("ab", "a"),
        ];
        for (pattern, name) in misses {
            assert!(!matches(pattern, name), "{pattern} does not fit {name}");
        }
    }

    #[test]
    fn hidden_files_and_folders_are_left_out_and_names_are_sorted() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.toml", "a.toml", ".hidden.toml", "c.txt"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        fs::create_dir(folder.path().join("folder.toml")).unwrap();
        let found = matching(folder.path(), "*.toml").unwrap();
        let names: Vec<_> = found.iter().filter_map(|path| path.file_name()).collect();
        assert_eq!(names, ["a.toml", "b.toml"]);
    }
}
