//! The configuration and the flags file, as read for a start or a reload.
//!
//! Nothing is compiled here and no store is opened: a start needs the log settings first.
//!
//! Used by `control::reading`.

use super::state::StartError;
use crate::config::Digests;
use crate::config::compile::compile;
use crate::config::configuration::Configuration;
use crate::config::flags::load_flags;
use crate::config::load::{Sources, load_noting};
use crate::config::problem::Problems;
use crate::config::raw::{RawConfig, RawFlag};
use crate::store::{START_LIMIT, within};

/// The files that a process starts with.
#[derive(Debug)]
pub struct Files {
    pub(super) sources: Sources,
    pub(super) config: Box<RawConfig>,
    pub(super) flags: Vec<RawFlag>,
    pub(super) digests: Digests,
}

impl Files {
    /// Reads the configuration and the flags file that it names.
    ///
    /// # Errors
    /// Returns every problem of both.
    pub fn read(sources: Sources) -> Result<Files, Problems> {
        let mut digests = Digests::new();
        let (config, flags) = read(&sources, &mut digests)?;
        Ok(Files {
            sources,
            config,
            flags,
            digests,
        })
    }

    /// Reads the files in the background, within a time limit.
    ///
    /// # Errors
    /// Returns the errors of [`Files::read`], and [`StartError::Late`] if the file system does not respond.
    pub async fn read_in_time(sources: Sources) -> Result<Files, StartError> {
        let files = within(START_LIMIT, || Files::read(sources)).await?;
        Ok(files?)
    }

    /// Returns the configuration, not compiled yet.
    #[must_use]
    pub fn config(&self) -> &RawConfig {
        &self.config
    }
}

/// Reads the configuration and the flags of the file that it names. Returns every problem of both.
pub(super) fn read(
    sources: &Sources,
    digests: &mut Digests,
) -> Result<(Box<RawConfig>, Vec<RawFlag>), Problems> {
    let config = load_noting(sources, digests).map_err(|problems| every(sources, problems))?;
    let config = Box::new(config);
    let Some(file) = &config.rollout.flags else {
        return Ok((config, Vec::new()));
    };
    match load_flags(file, digests) {
        Ok(flags) => Ok((config, flags)),
        Err(problems) => {
            let mut problems = problems.into_vec();
            let others = compile(&config, &[]).err().map(Problems::into_vec);
            problems.extend(others.into_iter().flatten());
            Err(Problems::new(problems))
        }
    }
}

/// Returns the problems of all files after the configuration could not be decoded.
fn every(sources: &Sources, problems: Problems) -> Problems {
    // The files may have been corrected in between.
    Configuration::read(sources).err().unwrap_or(problems)
}
