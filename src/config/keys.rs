//! The files of keys and certificates: read once all is decoded.

use std::fs;
use std::path::{Path, PathBuf};

use crate::config::problem::Problem;
use crate::config::raw::{RawConfig, RawFile};

/// Far beyond any set of keys.
const LONGEST: u64 = 1024 * 1024;

/// All of them.
pub(super) fn of(config: &mut RawConfig) -> impl Iterator<Item = &mut RawFile> {
    let bearer = config.rollout.bearer.iter_mut();
    let tokens = bearer.flat_map(|bearer| &mut bearer.keys);
    let tls = config.listen.tls.iter_mut();
    let tls = tls.flat_map(|tls| {
        let own = [&mut tls.certificate, &mut tls.key];
        own.into_iter().chain(&mut tls.client_ca)
    });
    tokens.map(|key| &mut key.file).chain(tls)
}

/// Reads what each holds; gives the files that were read.
pub(super) fn read_files(config: &mut RawConfig, problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for file in of(config) {
        match read(&file.path.value) {
            Ok(content) => {
                file.content.0 = content;
                if !files.contains(&file.path.value) {
                    files.push(file.path.value.clone());
                }
            }
            Err(message) => problems.push(file.path.problem(message)),
        }
    }
    files
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let shown = path.display();
    let unreadable = |error| format!("`{shown}` cannot be read: {error}");
    let length = fs::metadata(path).map_err(unreadable)?.len();
    if length > LONGEST {
        return Err(format!(
            "`{shown}` is longer than {LONGEST} bytes, so it is no key and no certificate"
        ));
    }
    fs::read(path).map_err(unreadable)
}
