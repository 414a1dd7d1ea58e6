//! Checks that the files of a folder of `src`, or of a crate, do not import each other in cycles of more than two files.
//!
//! The files of one translated call, as `ARCHITECTURE.md` lists them, import downwards only.

#![expect(
    clippy::unwrap_used,
    reason = "sources that cannot be read fail the test"
)]

mod source_graph;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use source_graph::{Module, all_files, before_tests, code_of, edges, expand, inline_paths};

/// The largest group of files that may import each other.
const LARGEST: usize = 2;

/// The most files that a reader of one translated call follows.
const MOST_OF_A_CALL: usize = 25;

/// Returns the modules that can be reached from one over `edges` within a folder.
fn reachable(
    edges: &BTreeMap<Module, BTreeSet<Module>>,
    start: &Module,
    folder: &str,
) -> BTreeSet<Module> {
    let (mut found, mut open) = (BTreeSet::new(), vec![start]);
    while let Some(module) = open.pop() {
        for next in edges.get(module).into_iter().flatten() {
            if next[0] == folder && found.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    found
}

/// Returns the groups of modules of a folder that import each other.
fn groups(
    files: &BTreeMap<Module, String>,
    edges: &BTreeMap<Module, BTreeSet<Module>>,
    folder: &str,
) -> BTreeSet<BTreeSet<Module>> {
    let modules: Vec<&Module> = files.keys().filter(|module| module[0] == folder).collect();
    let reached: BTreeMap<&Module, BTreeSet<Module>> = modules
        .iter()
        .map(|module| (*module, reachable(edges, module, folder)))
        .collect();
    let group = |module: &Module| -> BTreeSet<Module> {
        let mutual = reached[module].iter();
        let mutual = mutual.filter(|other| reached[other].contains(module));
        mutual.cloned().collect()
    };
    modules.into_iter().map(group).collect()
}

/// Returns the module of a file, from its path in the repository.
fn module_of(path: &str) -> Module {
    let path = path.trim_end_matches(".rs");
    match path.split_once("/src/") {
        Some((name, rest)) => {
            let rest = rest.split('/').filter(|part| *part != "lib");
            [name].into_iter().chain(rest).map(str::to_owned).collect()
        }
        None => path
            .trim_start_matches("src/")
            .split('/')
            .map(str::to_owned)
            .collect(),
    }
}

/// Returns the section of `ARCHITECTURE.md` about the files of one translated call.
fn section_of_a_call() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, section) = page
        .split_once("\n## The files of one translated call\n")
        .unwrap();
    section.split("\n## ").next().unwrap().to_owned()
}

/// Returns the files of one translated call, as the table lists them.
fn listed_files() -> Vec<String> {
    let section = section_of_a_call();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| "));
    let paths = rows.filter_map(|row| row.split('`').nth(1));
    paths.map(str::to_owned).collect()
}

/// Returns the files of `gateway` that the list below the table names, because the call does not need them.
fn left_out_files() -> BTreeSet<Module> {
    let section = section_of_a_call();
    let list = section.split_once("\n- ").unwrap().1;
    let lines = list
        .lines()
        .map(|line| line.split_once(": ").map_or(line, |(_, files)| files));
    let names = lines.flat_map(|files| files.split('`').skip(1).step_by(2));
    names
        .map(|name| module_of(&format!("src/gateway/{name}")))
        .collect()
}

#[test]
fn the_table_of_a_call_leaves_out_no_file_silently() {
    let edges = edges(&all_files());
    let listed: BTreeSet<Module> = listed_files().iter().map(|path| module_of(path)).collect();
    let of_gateway = listed.iter().filter(|module| module[0] == "gateway");
    let named = of_gateway.flat_map(|module| &edges[module]);
    let named = named.filter(|module| module[0] == "gateway" && !listed.contains(*module));
    assert_eq!(named.cloned().collect::<BTreeSet<_>>(), left_out_files());
}

#[test]
fn a_translated_call_is_followed_through_few_files_from_top_to_bottom() {
    let files = all_files();
    let edges = edges(&files);
    let imports = |from: &Module, of: &Module| edges.get(from).is_some_and(|all| all.contains(of));
    let listed = listed_files();
    assert!((20..=MOST_OF_A_CALL).contains(&listed.len()), "{listed:?}");
    let mut faults = Vec::new();
    for (at, path) in listed.iter().enumerate() {
        let own = module_of(path);
        if !files.contains_key(&own) {
            faults.push(format!("{path} does not exist"));
        }
        let above: Vec<Module> = listed[..at].iter().map(|path| module_of(path)).collect();
        for (other, path_above) in above.iter().zip(&listed) {
            if imports(&own, other) {
                faults.push(format!("{path} imports {path_above}, which is above it"));
            }
        }
        let path_in_program = program_path(&own);
        let is_reached = |other: &Module| {
            imports(other, &own)
                || own[..own.len() - 1] == other[..]
                || files[other].contains(&path_in_program)
        };
        // The first file of a crate may be reached through a re-export, which is not followed across crates.
        let is_first = !above.iter().any(|other| crate_of(other) == crate_of(&own));
        if !is_first && !above.iter().any(is_reached) {
            faults.push(format!("no file above {path} imports it"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Returns the path of a module of a crate as the program writes it, such as `dualgauge_model::plan`.
fn program_path(module: &Module) -> String {
    let path = module.join("::");
    path.replace("crates/", "dualgauge_")
}

/// Returns the crate of a module; `None` for the program.
fn crate_of(module: &Module) -> Option<&String> {
    module.first().filter(|first| first.starts_with("crates/"))
}

#[test]
fn files_of_a_folder_do_not_import_each_other_in_a_large_cycle() {
    let files = all_files();
    let edges = edges(&files);
    let folders: BTreeSet<&String> = files.keys().map(|module| &module[0]).collect();
    let mut faults = Vec::new();
    for folder in folders {
        for group in groups(&files, &edges, folder) {
            if group.len() <= LARGEST {
                continue;
            }
            let names: Vec<String> = group.iter().map(|module| module.join("::")).collect();
            let count = names.len();
            faults.push(format!(
                "{count} files of {folder} import each other, at most {LARGEST} may: {}",
                names.join(", ")
            ));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_use_tree_is_expanded_to_its_paths() {
    assert_eq!(
        expand("crate::a::{self, b::{C, D as E}, F}"),
        [
            "crate::a::self",
            "crate::a::b::C",
            "crate::a::b::D",
            "crate::a::F"
        ]
    );
}

#[test]
fn paths_in_the_code_are_found_outside_of_comments_and_literals() {
    let text = r####"
use super::imported::{self, a::B};
/// See super::documented::C. /* Not a comment.
pub(in crate::visible) fn call<'a>(quote: char, value: &'a super::named::D) -> bool {
    /* crate::old::E /* nested */ crate::old::F */
    let strings = ["crate::text::G \" super::text::H", r#"super::raw::I " "#];
    quote == '"' && matches!(child::read::<crate::generic::J>(value), Some(self::child::K))
        && $crate::shown::l() && <super::qualified::M>::n::o() && value.p::q()
}
use child::R;
"####;
    let paths = inline_paths(&code_of(text));
    let paths: Vec<String> = paths.iter().map(|path| path.join("::")).collect();
    assert_eq!(
        paths,
        [
            "super::named::D",
            "child::read",
            "crate::generic::J",
            "self::child::K",
            "super::qualified::M"
        ]
    );
}

#[test]
fn only_inline_tests_are_left_out_of_a_file() {
    assert_eq!(
        before_tests("#[cfg(test)]\nmod tests;\n\nuse a::B;\n"),
        "#[cfg(test)]\nmod tests;\n\nuse a::B;\n"
    );
    assert_eq!(
        before_tests("a\n#[cfg(test)]\npub(super) mod tests {\n}\n"),
        "a\n"
    );
}
