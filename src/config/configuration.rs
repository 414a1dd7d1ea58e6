//! The whole way from what is said to what it means, for whoever starts, reloads or checks.

use crate::config::compile::compile;
use crate::config::flags::load_flags;
use crate::config::load::{Sources, load};
use crate::config::problem::Problems;
use crate::config::raw::{RawConfig, RawFlag};
use crate::domain::plan::Plan;

/// A configuration in which nothing is wrong.
#[derive(Debug)]
pub struct Configuration {
    /// What the files, variables and arguments say: listeners, files and the log are read from here.
    pub raw: RawConfig,
    /// What the flags file says.
    pub flags: Vec<RawFlag>,
    /// What calls are served by.
    pub plan: Plan,
}

impl Configuration {
    /// Reads the configuration and the flags file that it names, and compiles both.
    ///
    /// # Errors
    /// Every problem of both. Where the configuration cannot be decoded, those of the flags file are not known yet.
    pub fn read(sources: &Sources) -> Result<Configuration, Problems> {
        let raw = load(sources)?;
        let mut problems = Vec::new();
        let flags = match &raw.rollout.flags {
            Some(file) => load_flags(&file.value).unwrap_or_else(|found| {
                problems.extend(found.into_vec());
                Vec::new()
            }),
            None => Vec::new(),
        };
        match compile(&raw, &flags) {
            Ok(plan) => Problems::unless(problems, Configuration { raw, flags, plan }),
            Err(found) => {
                problems.extend(found.into_vec());
                Err(Problems::new(problems))
            }
        }
    }
}
