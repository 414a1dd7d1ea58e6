//! Relative links and anchors of the documentation lead somewhere.

#![expect(
    clippy::unwrap_used,
    reason = "a page that cannot be read fails the test"
)]

#[path = "docs/pages.rs"]
mod pages;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Returns the text of a page without its fenced blocks.
fn prose(page: &str) -> String {
    let mut is_fenced = false;
    let lines = page.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fenced && !is_fence
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the anchor of a heading, as mdBook and GitHub form it: lower case, blanks as hyphens, no punctuation.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        c if c.is_alphanumeric() => Some(c),
        _ => None,
    });
    kept.collect()
}

/// Returns the anchors of a page. A heading that stands twice gets a number the second time.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for line in prose(page).lines() {
        let Some(heading) = line.strip_prefix('#') else {
            continue;
        };
        let base = anchor(heading.trim_start_matches('#'));
        let earlier = seen.get(&base).copied().unwrap_or_default();
        seen.insert(base.clone(), earlier + 1);
        anchors.insert(match earlier {
            0 => base,
            number => format!("{base}-{number}"),
        });
    }
    anchors
}

/// Returns the targets of the links of a page.
fn links(page: &str) -> Vec<String> {
    let text = prose(page);
    let targets = text.split("](").skip(1);
    let targets = targets.filter_map(|behind| Some(behind.split_once(')')?.0.to_owned()));
    targets.collect()
}

/// Returns a path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                parts.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => parts.push(part),
        }
    }
    parts
}

/// Returns why a link leads nowhere.
fn fault(page: &Path, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
    let file = match path {
        "" => page.to_owned(),
        path => normal(&page.parent().unwrap().join(path)),
    };
    if !file.exists() {
        return Some(format!("{}: no file for `{target}`", page.display()));
    }
    if fragment.is_empty() || file.extension().is_none_or(|kind| kind != "md") {
        return None;
    }
    let known = anchors(&fs::read_to_string(&file).unwrap());
    (!known.contains(fragment)).then(|| format!("{}: no heading for `{target}`", page.display()))
}

#[test]
fn every_relative_link_leads_to_a_file_and_a_heading() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = pages::of(&root.join("docs"));
    all.extend(pages::of(&root.join("deploy")));
    all.extend(pages::of(&root.join("crates")));
    let top = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    all.extend(top.filter(|path| path.extension().is_some_and(|kind| kind == "md")));
    let mut faults = Vec::new();
    let mut count = 0;
    for page in &all {
        for target in links(&fs::read_to_string(page).unwrap()) {
            count += 1;
            faults.extend(fault(page, &target));
        }
    }
    assert!(count > 100, "only {count} links were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_link_to_nowhere_is_found() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    assert!(fault(&page, "docs/no-such-page.md").is_some());
    assert!(fault(&page, "#no-such-heading").is_some());
    assert_eq!(fault(&page, "https://example.com/"), None);
    assert_eq!(anchor("`a_b` or C, twice"), "a_b-or-c-twice");
}
