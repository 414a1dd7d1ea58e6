//! Reading of the configuration and the flags in the background: a file system that does not respond must not block
//! commands.
//!
//! Laws: one read at a time; a request is answered by a read that started after it; a late read is reported to the
//! requesters and to the log, and its result is applied whenever it ends.
//!
//! Used by `control::task`.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::oneshot;

use super::file_watch::{self, FileContents};
use super::files;
use super::state::Trigger;
use crate::config::Digests;
use crate::config::load::Sources;
use crate::config::problem::Problems;
use crate::config::raw::{RawConfig, RawFlag};
use crate::server::admin::{Refusal, ReloadView, Reloaded};
use crate::store::{Background, Late};

/// The time after which a read is late, shorter than the timeout of the admin API.
const LATE_AFTER: Duration = Duration::from_secs(3);
/// The maximum number of waiting requests.
const MOST_WAITING: usize = 64;

/// The files, or all their problems.
pub(super) type FilesRead = Result<(Box<RawConfig>, Vec<RawFlag>), Problems>;

/// The result of a read.
#[derive(Debug)]
pub(super) enum Done {
    /// The contents of all watched paths.
    Looked(FileContents),
    /// The files.
    Read(Box<FilesRead>, Trigger),
}

/// A requester of a reload.
#[derive(Debug)]
pub(super) enum Waiting {
    /// The process itself, on a signal.
    Process(oneshot::Sender<Reloaded>),
    /// A client of the admin API.
    Api(oneshot::Sender<Result<ReloadView, Refusal>>),
}

impl Waiting {
    fn is_gone(&self) -> bool {
        match self {
            Waiting::Process(reply) => reply.is_closed(),
            Waiting::Api(reply) => reply.is_closed(),
        }
    }

    /// Reports that the files were not read in time. The process notices the dropped reply channel.
    fn give_up(self, late: &Late) {
        if let Waiting::Api(reply) = self {
            let _ = reply.send(Err(Refusal::Unread(late.clone())));
        }
    }
}

/// The running read, if any, and the waiting requests.
#[derive(Debug, Default)]
pub(super) struct Reading {
    work: Background<Done>,
    /// The requests from before the read started.
    waiting: Vec<Waiting>,
    /// The requests since then.
    next: Vec<Waiting>,
    late: Option<Late>,
}

impl Reading {
    /// Checks files and folders, unless a read is running.
    pub(super) fn look(&mut self, paths: Vec<PathBuf>) {
        self.work
            .begin(move || Done::Looked(file_watch::contents(paths)));
    }

    /// Reads the files for a requester. If a read is late, reports that at once.
    pub(super) fn ask(&mut self, who: Waiting, sources: &Sources) {
        if let Some(late) = &self.late {
            return who.give_up(late);
        }
        self.next.retain(|waiting| !waiting.is_gone());
        if self.next.len() < MOST_WAITING {
            self.next.push(who);
        }
        self.read(sources, None);
    }

    /// Reads the files for the waiting requests, or else for the trigger `otherwise`, unless a read is running.
    pub(super) fn read(&mut self, sources: &Sources, otherwise: Option<Trigger>) {
        if !self.work.is_idle() {
            return;
        }
        self.waiting = std::mem::take(&mut self.next);
        let trigger = match self.waiting.is_empty() {
            true => otherwise,
            false => Some(Trigger::Asked),
        };
        if let Some(trigger) = trigger {
            let sources = sources.clone();
            let read = move || files::read(&sources, &mut Digests::new());
            self.work
                .begin(move || Done::Read(Box::new(read()), trigger));
        }
    }

    /// Waits for the result of the running read; `None` if it panicked. Cancel-safe.
    pub(super) async fn done(&mut self) -> Option<Done> {
        let done = self.work.ended().await;
        if self.late.take().is_some() {
            tracing::info!("the files of the configuration are read again");
        }
        done
    }

    /// Returns the requests that the last read answers.
    pub(super) fn answered(&mut self) -> Vec<Waiting> {
        std::mem::take(&mut self.waiting)
    }

    /// Reports a late read to the log and to the requesters, once per read.
    pub(super) fn check(&mut self) {
        if self.late.is_some() {
            return;
        }
        self.late = self.work.late(LATE_AFTER);
        let Some(late) = &self.late else {
            return;
        };
        tracing::error!(
            error = %late,
            "the files of the configuration cannot be read; what was in force stays in force"
        );
        for who in self.waiting.drain(..).chain(self.next.drain(..)) {
            who.give_up(late);
        }
    }

    /// Returns a note for operators if a read is late.
    pub(super) fn note(&self) -> Option<String> {
        let late = self.late.as_ref()?;
        Some(format!(
            "the files of the configuration cannot be read, and what was in force stays in force: {late}"
        ))
    }
}
