//! The machine-dependent part of `[rollout.store]`: the replica name, and the password file.
//!
//! Used by `decode::store` and `load`.

use std::path::Path;

use crate::config::problem::Problem;
use crate::config::raw::RawStore;
use crate::config::regular;
use crate::config::value::LONGEST_NAME;

/// Far longer than any password.
const LONGEST: u64 = 64 * 1024;

/// Returns the default name of a replica: its host name.
pub(super) fn host_name() -> String {
    name_of(&gethostname::gethostname().to_string_lossy())
}

/// Returns the name for a host: the first whole characters that fit.
pub(super) fn name_of(host: &str) -> String {
    let plain = |c: &char| !c.is_whitespace() && !c.is_control();
    let mut name = String::new();
    for c in host.chars().filter(plain) {
        if name.len() + c.len_utf8() > LONGEST_NAME {
            break;
        }
        name.push(c);
    }
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
