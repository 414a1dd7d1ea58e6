//! Sends the calls of a file, some at a time and at a limited rate, until its end or a signal. Used by `replay`.

use std::rc::Rc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::calls::{FileCall, FilePart};
use super::fault::ReplayFault;
use super::input::Input;
use super::pace::Pace;
use super::prepare::{Prepared, Preparer, Redacted};
use super::progress::Progress;
use super::summary::{CallPlace, Summary};
use crate::gateway::{ReplayTerms, ReplayedCall, Worker, replay};

/// The most parts that are read without a pause for calls in progress.
const READ_AT_ONCE: usize = 64;

/// The rules by which the calls of a file are sent.
pub(super) struct Driver {
    pub(super) preparer: Preparer,
    pub(super) terms: ReplayTerms,
    /// The most calls at a time.
    pub(super) concurrency: usize,
    /// The most calls per second; `None` for no limit.
    pub(super) rate: Option<u32>,
}

/// A call that was made again.
struct Done {
    place: CallPlace,
    redacted: Redacted,
    calls: Vec<ReplayedCall>,
}

/// The signals that end a replay with the summary so far.
struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    fn listen() -> Result<Stop, ReplayFault> {
        Ok(Stop {
            interrupt: signal(SignalKind::interrupt()).map_err(ReplayFault::Start)?,
            terminate: signal(SignalKind::terminate()).map_err(ReplayFault::Start)?,
        })
    }

    /// Waits for a signal. Cancel-safe.
    async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

impl Driver {
    /// Sends the calls of a file, and adds their results to `summary`.
    ///
    /// # Errors
    /// [`ReplayFault`] if the file cannot be read.
    pub(super) async fn drive(
        &self,
        worker: Rc<Worker>,
        input: &mut Input,
        summary: &mut Summary,
    ) -> Result<(), ReplayFault> {
        let mut stop = Stop::listen()?;
        let mut progress = Progress::new();
        let mut running = FuturesUnordered::new();
        let mut has_more = true;
        let mut pace = Pace::new(self.rate);
        while has_more || !running.is_empty() {
            let may_start = has_more && running.len() < self.concurrency.max(1);
            // All branches are cancel-safe: the set keeps its calls, and a pause is taken up again.
            tokio::select! {
                biased;
                () = stop.wait() => {
                    // Calls in progress are dropped, which closes their connections.
                    summary.interrupt(running.len());
                    break;
                }
                () = pace.ready(), if may_start => {
                    has_more = match self.next_call(input, summary)? {
                        Next::Call(place, prepared) => {
                            pace.start();
                            running.push(self.send(worker.clone(), place, *prepared));
                            true
                        }
                        Next::Unsent => true,
                        Next::End => false,
                    };
                }
                Some(done) = running.next(), if !running.is_empty() => {
                    let Done { place, redacted, calls } = done;
                    for call in calls {
                        summary.add(&place, redacted, call);
                    }
                    progress.show(input.percent(), summary);
                }
            }
        }
        progress.end();
        Ok(())
    }

    /// Reads up to the next call that can be sent.
    fn next_call(&self, input: &mut Input, summary: &mut Summary) -> Result<Next, ReplayFault> {
        for _ in 0..READ_AT_ONCE {
            let Some(part) = input.next()? else {
                return Ok(Next::End);
            };
            match part {
                FilePart::NoCall(number, why) => summary.add_no_call(number, why),
                FilePart::End(number, why) => {
                    summary.end_early(number, &why);
                    return Ok(Next::End);
                }
                FilePart::Call(call) => {
                    let place = place_of(&call);
                    let route = call.call.route.clone();
                    match self.preparer.prepare(*call) {
                        Ok(prepared) => return Ok(Next::Call(place, Box::new(prepared))),
                        // A call that cannot be sent is not routed, so the name in the file decides.
                        Err(_) if !self.terms.selects(route.as_deref()) => {
                            summary.not_selected += 1
                        }
                        Err(why) => summary.add_unsendable(&place, route, why),
                    }
                }
            }
        }
        Ok(Next::Unsent)
    }

    async fn send(&self, worker: Rc<Worker>, place: CallPlace, prepared: Prepared) -> Done {
        let Prepared {
            call,
            control,
            redacted,
        } = prepared;
        let calls = replay(worker, call, control, &self.terms).await;
        Done {
            place,
            redacted,
            calls,
        }
    }
}

/// The next step of reading.
enum Next {
    Call(CallPlace, Box<Prepared>),
    /// The parts that were read have no call that can be sent.
    Unsent,
    End,
}

fn place_of(call: &FileCall) -> CallPlace {
    let request = &call.call.request;
    let path = request.target.split('?').next().unwrap_or_default();
    CallPlace {
        number: call.number,
        method: request.method.clone(),
        path: path.to_owned(),
        side: call.call.side,
    }
}
