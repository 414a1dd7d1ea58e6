//! The files of the program and of the crates, and what they import from each other.
//!
//! An import counts for the file that defines the name: re-exports are followed. A path in the code counts as an import,
//! such as `super::reply::read(body)`. Used by `architecture` and `cycles`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The path of a module, such as `["gateway", "rpc"]`, or `["crates/model", "plan"]` in another crate.
pub(crate) type Module = Vec<String>;

/// The sources of a crate.
#[derive(Clone, Copy)]
struct Root<'r> {
    /// The folder of its sources.
    folder: &'r Path,
    /// The first part of its modules' paths; `None` for the program.
    name: Option<&'r str>,
}

/// Collects the product files below a folder, with their text before the tests.
fn collect(dir: &Path, root: Root<'_>, files: &mut BTreeMap<Module, String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            if name != "tests" {
                collect(&path, root, files);
            }
            continue;
        }
        let is_product = name.ends_with(".rs")
            && !name.ends_with("tests.rs")
            && !["main.rs", "arbitrary.rs"].contains(&name.as_str())
            && (name != "lib.rs" || root.name.is_some());
        if is_product {
            let relative = path.strip_prefix(root.folder).unwrap().with_extension("");
            let parts = relative.iter().map(|part| part.to_str().unwrap());
            let parts = root.name.into_iter().chain(parts);
            let parts = parts.filter(|part| *part != "lib").map(str::to_owned);
            let text = fs::read_to_string(&path).unwrap();
            files.insert(parts.collect(), before_tests(&text).to_owned());
        }
    }
}

/// Returns the text of a file before its inline module of tests. Files of tests are declared above their imports.
pub(crate) fn before_tests(text: &str) -> &str {
    let mut tests = text.match_indices("#[cfg(test)]\n");
    let inline = tests.find(|(at, attribute)| {
        let item = text[at + attribute.len()..].lines().next();
        item.is_some_and(|line| line.ends_with("mod tests {"))
    });
    inline.map_or(text, |(at, _)| &text[..at])
}

/// Returns the paths that a `use` tree names, such as `a::{b, c::d}`.
pub(crate) fn expand(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((prefix, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        return vec![path.trim().to_owned()];
    };
    let inside = rest.trim_end().strip_suffix('}').unwrap_or(rest);
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (at, character) in inside.char_indices().chain([(inside.len(), ',')]) {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part = inside[start..at].trim();
                if !part.is_empty() {
                    let paths = expand(part);
                    found.extend(paths.iter().map(|path| format!("{}{path}", prefix.trim())));
                }
                start = at + 1;
            }
            _ => {}
        }
    }
    found
}

/// Returns the code of a file, without comments and with nothing in its literals.
pub(crate) fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let follows_word = code.ends_with(is_word);
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else {
            literal(rest, follows_word)
        };
        if length == 0 {
            code.push(character);
            rest = &rest[character.len_utf8()..];
        } else {
            code.push(' ');
            rest = &rest[length..];
        }
    }
    code
}

/// Returns true for a character of a name.
fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Returns the length of the block comment at the start of `text`, with the comments inside it.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while let Some(found) = text[at..].find(['/', '*']) {
        at += found;
        match &text[at..text.len().min(at + 2)] {
            "/*" => depth += 1,
            "*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// Returns the length of the string or character at the start of `text`; 0 if there is none.
fn literal(text: &str, follows_word: bool) -> usize {
    let raw = text.trim_start_matches(['b', 'c']);
    if let Some(raw) = raw.strip_prefix('r').filter(|_| !follows_word) {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let start = text.len() - raw.len() + hashes + 1;
            let length = text[start..].find(&end);
            return length.map_or(text.len(), |length| start + length + end.len());
        }
    }
    let Some(quote) = text
        .chars()
        .next()
        .filter(|first| ['"', '\''].contains(first))
    else {
        return 0;
    };
    let inside = &text[1..];
    // A quote before a name is a lifetime, unless another quote follows its first character.
    let is_lifetime = !inside.starts_with('\\') && inside.chars().nth(1) != Some('\'');
    if quote == '\'' && is_lifetime {
        return 0;
    }
    let mut is_escaped = false;
    for (at, character) in inside.char_indices() {
        if character == quote && !is_escaped {
            return at + 2;
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    text.len()
}

/// Splits a path into its names.
fn split_path(path: &str) -> Vec<String> {
    path.split("::")
        .map(|part| part.trim().to_owned())
        .collect()
}

/// Returns the paths that the `use` statements of a file's code import.
fn imports(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for statement in code.split(';') {
        let Some(start) = statement.rfind("use ") else {
            continue;
        };
        let before = statement[..start].lines().last().unwrap_or_default().trim();
        if before.is_empty() || before.starts_with("pub") {
            found.extend(expand(&statement[start + 4..]));
        }
    }
    found.iter().map(|path| split_path(path)).collect()
}

/// Returns the paths of more than one name in the code of a file, outside its `use` statements.
///
/// The paths of visibilities and those that begin with `$crate` are left out.
pub(crate) fn inline_paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = code[at..].find(is_word).map(|start| at + start) {
        at = start + path_length(&code[start..]);
        if code[start..].starts_with("use ") {
            at = code[start..]
                .find(';')
                .map_or(code.len(), |end| start + end);
            continue;
        }
        let (before, path) = (code[..start].trim_end(), &code[start..at]);
        let is_inside_path = before.ends_with("::") || before.ends_with(['$', '.', '\'']);
        let is_visibility = before.ends_with("(in");
        if path.contains("::") && !is_inside_path && !is_visibility {
            found.push(split_path(path));
        }
    }
    found
}

/// Returns the length of the path at the start of `code`.
fn path_length(code: &str) -> usize {
    let mut length = 0;
    loop {
        let rest = &code[length..];
        length += rest.find(|other| !is_word(other)).unwrap_or(rest.len());
        let rest = &code[length..];
        let next = rest.trim_start().strip_prefix("::").map(str::trim_start);
        let Some(next) = next.filter(|next| next.starts_with(is_word)) else {
            return length;
        };
        length = code.len() - next.len();
    }
}

/// Finds the module that a path begins with, and the rest of the path.
fn resolve(
    files: &BTreeMap<Module, String>,
    module: &Module,
    path: &[String],
) -> Option<(Module, Vec<String>)> {
    let (mut base, mut rest) = match path.first()?.as_str() {
        "crate" => {
            let first = module.first().filter(|first| first.starts_with("crates/"));
            (first.cloned().into_iter().collect(), &path[1..])
        }
        "self" => (module.clone(), &path[1..]),
        "super" => {
            let count = path.iter().take_while(|part| *part == "super").count();
            let depth = module.len().checked_sub(count)?;
            (module[..depth].to_vec(), &path[count..])
        }
        first => {
            let mut child = module.clone();
            child.push(first.to_owned());
            files.get(&child)?;
            (module.clone(), path)
        }
    };
    while let Some((first, more)) = rest.split_first() {
        base.push(first.clone());
        if !files.contains_key(&base) {
            base.pop();
            break;
        }
        rest = more;
    }
    Some((base, rest.to_vec()))
}

/// Returns the modules that each module imports from, or names in the paths of its code.
pub(crate) fn edges(files: &BTreeMap<Module, String>) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut named = Vec::new();
    let mut exports = BTreeMap::new();
    for (module, text) in files {
        let code = code_of(text);
        for path in imports(&code) {
            if let Some((base, rest)) = resolve(files, module, &path) {
                if let Some(name) = rest.last() {
                    exports.insert((module.clone(), name.clone()), base.clone());
                }
                named.push((module.clone(), base, rest));
            }
        }
        for path in inline_paths(&code) {
            if let Some((base, rest)) = resolve(files, module, &path) {
                named.push((module.clone(), base, rest));
            }
        }
    }
    let mut edges: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, base, rest) in named {
        let (mut from, mut seen) = (base, BTreeSet::new());
        while let Some(name) = rest.first()
            && let Some(next) = exports.get(&(from.clone(), name.clone()))
            && seen.insert(from.clone())
        {
            from = next.clone();
        }
        if from != module && files.contains_key(&from) {
            edges.entry(module).or_default().insert(from);
        }
    }
    edges
}

/// Returns the product files of the program and of all crates.
pub(crate) fn all_files() -> BTreeMap<Module, String> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = BTreeMap::new();
    let folder = &repository.join("src");
    collect(folder, Root { folder, name: None }, &mut files);
    for entry in fs::read_dir(repository.join("crates")).unwrap() {
        let path = entry.unwrap().path();
        let (name, folder) = (path.strip_prefix(repository).unwrap(), &path.join("src"));
        let name = name.to_str();
        collect(folder, Root { folder, name }, &mut files);
    }
    assert!(files.len() > 100, "the sources were not found");
    files
}
