//! The machine-dependent part of `[rollout.store]`: the replica name, and the password file.
//!
//! Used by `decode::store` and `load`.

use std::path::Path;

use crate::config::problem::Problem;
use crate::config::raw::RawStore;
use crate::config::regular;

/// Far longer than any password.
const LONGEST: u64 = 64 * 1024;

/// The longest name.
const LONGEST_NAME: usize = 100;

/// Returns the default name of a replica: its host name.
pub(super) fn host_name() -> String {
    let host = gethostname::gethostname();
    let plain = |c: char| !c.is_whitespace() && !c.is_control();
    let name: String = host
        .to_string_lossy()
        .chars()
        .filter(|c| plain(*c))
        .take(LONGEST_NAME)
        .collect();
    if name.is_empty() {
        return "replica".to_owned();
    }
    name
}

/// Reads the password file, and puts the password into the address.
pub(super) fn read_password(store: &mut RawStore, folder: &Path) -> Result<(), Problem> {
    let Some(file) = &mut store.password_file else {
        return Ok(());
    };
    file.value = folder.join(&file.value);
    let text = regular::read_text(&file.value, LONGEST).map_err(|error| {
        let shown = file.value.display();
        file.problem(format!("`{shown}` cannot be read: {error}"))
    })?;
    if store.url.value.password().is_some() {
        let both = "`rollout.store.url` already has a password; write one of the two";
        return Err(file.problem(both));
    }
    let password = text.trim_end_matches(['\r', '\n']);
    if password.is_empty() {
        return Err(file.problem(format!("`{}` is empty", file.value.display())));
    }
    store.url.value = store.url.value.clone().with_password(password);
    Ok(())
}
