//! Reading of the configuration and the flags, off the task that owns the state: a file system that does not answer keeps
//! no command waiting.
//!
//! Laws: one read at a time; those who ask are answered by a read that began after they asked; a read that is late is told
//! to them and to the log, and what it finds is taken whenever it ends.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::oneshot;

use super::Trigger;
use super::file_watch::{self, FileContents};
use super::files;
use crate::config::Digests;
use crate::config::load::Sources;
use crate::config::problem::Problems;
use crate::config::raw::{RawConfig, RawFlag};
use crate::server::admin::{Refusal, ReloadView, Reloaded};
use crate::store::{Background, Late};

/// After so long a read is late; less than an asker of the admin API waits.
const LATE_AFTER: Duration = Duration::from_secs(3);
/// How many may wait for a read.
const MOST_WAITING: usize = 64;

/// What the files say, or every problem of them.
pub(super) type Said = Result<(Box<RawConfig>, Vec<RawFlag>), Problems>;

/// What was read.
#[derive(Debug)]
pub(super) enum Done {
    /// The contents of all that is watched.
    Looked(FileContents),
    /// The files.
    Read(Box<Said>, Trigger),
}

/// Somebody who has asked for a reload.
#[derive(Debug)]
pub(super) enum Waiting {
    /// The process itself, for a signal.
    Process(oneshot::Sender<Reloaded>),
    /// Somebody at the admin API.
    Api(oneshot::Sender<Result<ReloadView, Refusal>>),
}

impl Waiting {
    fn is_gone(&self) -> bool {
        match self {
            Waiting::Process(reply) => reply.is_closed(),
            Waiting::Api(reply) => reply.is_closed(),
        }
    }

    /// Tells that the files are not read in time. The process learns it from the reply that is dropped.
    fn give_up(self, late: &Late) {
        if let Waiting::Api(reply) = self {
            let _ = reply.send(Err(Refusal::Unread(late.clone())));
        }
    }
}

/// The read that is under way, if there is one, and those who wait.
#[derive(Debug, Default)]
pub(super) struct Reading {
    work: Background<Done>,
    /// Those who have asked before it began.
    waiting: Vec<Waiting>,
    /// Those who have asked since.
    next: Vec<Waiting>,
    late: Option<Late>,
}

impl Reading {
    /// Looks at files and folders, unless a read is under way.
    pub(super) fn look(&mut self, paths: Vec<PathBuf>) {
        self.work
            .begin(move || Done::Looked(file_watch::contents(paths)));
    }

    /// Reads the files for somebody. Where a read is late, he is told so at once.
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

    /// Reads the files for those who have asked, else for the reason that is given, unless a read is under way.
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

    /// Returns what was read once it was; `None` where that has failed in itself. Cancel-safe.
    pub(super) async fn done(&mut self) -> Option<Done> {
        let done = self.work.ended().await;
        if self.late.take().is_some() {
            tracing::info!("the files of the configuration are read again");
        }
        done
    }

    /// Returns those who wait for what was read.
    pub(super) fn answered(&mut self) -> Vec<Waiting> {
        std::mem::take(&mut self.waiting)
    }

    /// Tells the log, and those who wait, that a read is late; each read is told once.
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

    /// Returns what an operator should know.
    pub(super) fn note(&self) -> Option<String> {
        let late = self.late.as_ref()?;
        Some(format!(
            "the files of the configuration cannot be read, and what was in force stays in force: {late}"
        ))
    }
}
