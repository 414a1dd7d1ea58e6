//! Route files of drafts, included by a configuration with an upstream on each side. Used by the tests of `import` and
//! `learn`.

use std::fs;

use tempfile::TempDir;

use super::check;
use crate::config::load::Sources;

const MAIN: &str = "include = ['routes.toml']\n\
                    [upstream.old]\nside = 'rest'\nurl = 'http://127.0.0.1:1'\n\
                    [upstream.new]\nside = 'rpc'\nurl = 'http://127.0.0.1:2/rpc'\n";

/// Writes a route file beside the configuration that includes it. The files are removed with the folder.
pub(super) fn written(routes: &str) -> (TempDir, Sources) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dualgauge.toml");
    fs::write(&file, MAIN).unwrap();
    fs::write(folder.path().join("routes.toml"), routes).unwrap();
    let sources = Sources {
        file: Some(file),
        ..Sources::default()
    };
    (folder, sources)
}

/// Returns the problems that `check` reports for a route file.
pub(super) fn problems(routes: &str) -> String {
    let (_folder, sources) = written(routes);
    let problems = check::problems(&sources);
    problems
        .map(|problems| problems.to_string())
        .unwrap_or_default()
}
