//! Every shipped table is complete in a configuration of its own under `config/examples`, and `check` proves it. So is every kit.

use std::fs;
use std::path::{Path, PathBuf};

use super::servers::config;
use crate::support::{program, run_to_end};

/// The files of a folder that are configuration, by name.
fn tables(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "toml"))
        .collect();
    found.sort();
    found
}

#[test]
fn every_example_passes_its_check() {
    let examples = tables(&config().join("examples"));
    assert!(!examples.is_empty());
    for example in examples {
        let mut check = program(&["check", "--config"]);
        check.arg(&example);
        let ended = run_to_end(check);
        let said = format!("{}: {}{}", example.display(), ended.output, ended.errors);
        assert_eq!(ended.code, Some(0), "{said}");
    }
}

#[test]
fn every_kit_passes_its_check() {
    let kits = fs::read_dir(config().join("kits")).unwrap();
    for kit in kits {
        let folder = kit.unwrap().path();
        // The kit `a2a` has a main file for each version of the agent.
        let main_files = ["dualgauge.toml", "agent-v03.toml"].map(|name| folder.join(name));
        for main_file in main_files.iter().filter(|file| file.exists()) {
            let mut check = program(&["check", "--config"]);
            check.arg(main_file);
            let ended = run_to_end(check);
            let said = format!("{}{}", ended.output, ended.errors);
            assert_eq!(ended.code, Some(0), "{said}");
        }
    }
}

#[test]
fn every_table_has_its_example() {
    let own = ["dualgauge.toml", "flags.toml"];
    for table in tables(&config()) {
        let name = table.file_name().unwrap().to_str().unwrap();
        if own.contains(&name) {
            continue;
        }
        let example = fs::read_to_string(config().join("examples").join(name)).unwrap();
        let include = format!("include = [\"../{name}\"]");
        assert!(example.contains(&include), "no {include} in {example}");
    }
}
