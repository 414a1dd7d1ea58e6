//! The task that owns a socket at a server that speaks in frames.
//!
//! What the outputs of [`Waiting`] say is done, and what happens is told to it. The routes are those of the plan that the
//! socket began with, until nobody waits. What the client does not take yet is not read from the server. A socket that
//! nobody needs any more ends without a word to callers: those who are left have gone.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};

use super::outlet::{Outlet, Way};
use super::server::{Asked, Fault, News, QUEUE, Question, Reply, Said, Told};
use crate::domain::frame::{
    Command, Heard, Output, Overheard, Stray, Unanswered, Waiting, command_to_rpc,
};
use crate::domain::json::Json;
use crate::domain::pending::{self as link, Counts, Ticket};
use crate::domain::pieces::Pieces;
use crate::domain::route::{RouteTable, Speech};
use crate::domain::translate::Terms;
use crate::gateway::silence::{Ring, Silence, Work};
use crate::gateway::{Installed, Worker};
use crate::telemetry::clock;
use crate::upstream::link::{Account, Event, Levels, Standing};
use crate::upstream::{Frames, FramesPlace, FramesUpstream, Intake};

/// The ids that are given to calls are numbers from here on: far from those that clients count for themselves, and from
/// the seconds of this century, and short enough for a server that has 32 bits for them.
const FIRST_ID: u64 = 1_000_000_001;

/// Opens a socket, and owns it until it ends.
pub(super) async fn serve(
    mut owner: Owner,
    (upstream, place): (Rc<FramesUpstream>, FramesPlace),
    (mut inbox, gone): (mpsc::Receiver<Asked>, Rc<Notify>),
) {
    let name = upstream.plan().name.as_str();
    owner.stands(0);
    let mut frames = match upstream.connect().await {
        Ok(frames) => frames,
        Err(why) => {
            tracing::warn!(upstream = name, cause = why, "a socket of frames is lost");
            upstream.standing().refuses();
            owner.share.ends();
            refuse(&owner.outlet, &mut inbox);
            drop(place);
            return owner.outlet.end().await;
        }
    };
    tracing::debug!(upstream = name, "a socket of frames is open");
    if let Some(why) = owner.run(&mut frames, (&mut inbox, &gone)).await {
        let waiting = owner.waiting.len();
        tracing::warn!(
            upstream = name,
            waiting,
            cause = why,
            "a socket of frames is lost"
        );
        owner.waiting.lost();
        owner.obey_all(None);
        owner.stands(0);
    }
    owner.share.ends();
    refuse(&owner.outlet, &mut inbox);
    let ends = async {
        frames.end().await;
        drop(place);
    };
    // The client may take its time, which is none of the server's.
    tokio::join!(ends, owner.outlet.end());
}

/// Nothing of what was not taken is written, here or over another socket of a client that is let go.
fn refuse(outlet: &Outlet, inbox: &mut mpsc::Receiver<Asked>) {
    outlet.loses();
    inbox.close();
    while let Ok(asked) = inbox.try_recv() {
        let said = Err(Fault::Link(link::Unanswered::Unreachable));
        // One that no longer waits needs no answer.
        drop(asked.reply.send(Told { said, behind: 0 }));
    }
}

/// The conduct of one socket.
pub(super) struct Owner {
    worker: Rc<Worker>,
    server: Rc<FramesUpstream>,
    /// Whose routes hold while somebody waits.
    installed: Rc<Installed>,
    waiting: Waiting,
    callers: BTreeMap<Ticket, Reply>,
    /// To be written.
    out: VecDeque<(Ticket, Bytes)>,
    writing: Option<Ticket>,
    /// To be told to the client, and to callers.
    outlet: Outlet,
    silence: Silence,
    /// How old the socket grows; it ends then when nobody waits.
    max_age: Option<Duration>,
    next: u64,
    /// What times are counted from.
    began: Instant,
    /// What has happened, and what of it is told.
    counts: Counts,
    share: Account<Arc<Standing>>,
}

/// Whether more can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    Open,
    Closed,
}

impl Owner {
    pub(super) fn new(
        worker: &Rc<Worker>,
        installed: &Rc<Installed>,
        upstream: &Rc<FramesUpstream>,
        way: Way,
    ) -> Owner {
        let (plan, frames) = (upstream.plan(), upstream.frames());
        Owner {
            worker: worker.clone(),
            server: upstream.clone(),
            installed: installed.clone(),
            waiting: Waiting::new(frames.in_flight).giving_from(FIRST_ID),
            callers: BTreeMap::new(),
            out: VecDeque::new(),
            writing: None,
            outlet: Outlet::new(way),
            silence: Silence::new(plan.idle_timeout, frames.heartbeat),
            max_age: plan.max_age,
            next: 0,
            began: clock::now(),
            counts: Counts {
                opened: 1,
                ..Counts::default()
            },
            share: Account::new(upstream.standing().clone()),
        }
    }

    /// Owns an open socket; tells why it was lost, unless it ended because nobody needs it.
    async fn run<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        frames: &mut Frames<S>,
        (inbox, gone): (&mut mpsc::Receiver<Asked>, &Notify),
    ) -> Option<String> {
        let mut entry = Entry::Open;
        self.silence.used();
        let end = self.max_age.map(|age| clock::now() + age);
        loop {
            self.stands(1);
            if !frames.is_writing()
                && let Some((ticket, text)) = self.out.pop_front()
            {
                self.writing = Some(ticket);
                frames.say(text);
            }
            if entry == Entry::Closed && !frames.is_writing() {
                return None;
            }
            let takes = entry == Entry::Open && self.out.len() < QUEUE;
            let intake = match self.outlet.is_empty() {
                true => Intake::Open,
                false => Intake::Shut,
            };
            let alarm = self.waiting.alarm().map(|at| self.began + at);
            let silence = self.silence.alarm();
            let is_quiet = self.is_idle() && self.outlet.is_empty() && !frames.is_writing();
            let end = self.ends(end).filter(|_| is_quiet);
            // Every branch is cancel-safe: what is not taken is there at the next turn.
            tokio::select! {
                asked = inbox.recv(), if takes => match asked {
                    Some(asked) => self.asked(asked),
                    None => entry = Entry::Closed,
                },
                () = self.worker.swapped() => {}
                () = gone.notified() => self.forget_gone(),
                event = frames.next(intake) => {
                    if let Some(why) = self.happened(event) {
                        return Some(why);
                    }
                }
                () = self.outlet.go_on() => {}
                () = sleep_until(alarm.unwrap_or(silence)), if alarm.is_some() => self.tick(),
                () = sleep_until(end.unwrap_or(silence)), if end.is_some() => {
                    if self.leaves(inbox) {
                        return None;
                    }
                }
                () = sleep_until(silence) => match self.rings() {
                    Ring::Ask => frames.beat(),
                    Ring::Wait => {}
                    Ring::End if self.is_idle() => {
                        if self.leaves(inbox) {
                            return None;
                        }
                    }
                    Ring::End => return Some("it showed no sign of life".to_owned()),
                },
            }
        }
    }

    /// When the socket ends: at its age, or at once, where no plan means the server any more. That is long past then, or a
    /// server that says more and more would always come first.
    fn ends(&self, aged: Option<Instant>) -> Option<Instant> {
        match self.server.is_over() {
            false => aged,
            true => Some(self.began),
        }
    }

    /// Whether the socket may end although nobody has left: not where something was asked at this very moment, which is
    /// served first.
    fn leaves(&mut self, inbox: &mut mpsc::Receiver<Asked>) -> bool {
        match inbox.try_recv() {
            Ok(asked) => {
                self.asked(asked);
                false
            }
            Err(_) => true,
        }
    }

    /// Tells how the socket stands; `ready` is 1 while it takes calls.
    fn stands(&mut self, ready: usize) {
        let queued = self.out.len();
        let levels = Levels {
            ready,
            in_flight: self.callers.len().saturating_sub(queued),
            queued,
        };
        self.share.stands(levels, self.counts);
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.out.is_empty()
    }

    fn rings(&mut self) -> Ring {
        if !self.outlet.is_empty() {
            // Nothing is read for the time being, so that nothing can be heard.
            self.silence.heard();
        }
        let open = self.waiting.len() + self.out.len() + self.outlet.len();
        self.silence.ring(Work::of(open))
    }

    fn now(&self) -> Duration {
        clock::now().saturating_duration_since(self.began)
    }

    fn terms(&self) -> Terms {
        Terms {
            depth: self.installed.plan.limits.depth,
            now: clock::rfc3339,
        }
    }

    fn asked(&mut self, asked: Asked) {
        if asked.reply.is_closed() {
            return;
        }
        self.silence.used();
        if self.waiting.is_empty() && !Rc::ptr_eq(&self.installed, &asked.installed) {
            self.installed = asked.installed;
        }
        let ticket = Ticket(self.next);
        self.next += 1;
        self.callers.insert(ticket, asked.reply);
        if asked.deadline <= clock::now() {
            return self.reply(ticket, Err(Fault::Link(link::Unanswered::Late)));
        }
        let deadline = asked.deadline.saturating_duration_since(self.began);
        match asked.question {
            Question::Call { method, params } => {
                self.call(ticket, (&method, params.as_ref()), deadline);
            }
            Question::Passed { frame, text } => self.pass(ticket, (frame, text), deadline),
        }
        self.obey_all(None);
    }

    fn call(&mut self, ticket: Ticket, call: (&str, Option<&Json>), deadline: Duration) {
        let (installed, terms, now) = (self.installed.clone(), self.terms(), self.now());
        let table = &installed.plan.routes;
        let Some(route) = table.select_rpc_to(Speech::Frame, call) else {
            // A plan that came in between has it, and this one not.
            return self.reply(ticket, Err(Fault::Link(link::Unanswered::Busy)));
        };
        let command = Command {
            ticket,
            route,
            call,
            deadline,
        };
        self.waiting.ask(table, (now, command), terms);
    }

    /// Writes a frame of the client, and looks for its answer where its route says how that looks.
    fn pass(&mut self, ticket: Ticket, (frame, text): (Json, Bytes), deadline: Duration) {
        let (installed, terms) = (self.installed.clone(), self.terms());
        let table = &installed.plan.routes;
        match overheard(table, (ticket, frame.clone()), (deadline, terms)) {
            Some(overheard) if self.waiting.clashes(table, &overheard) => {
                return self.reply(ticket, Err(Fault::Link(link::Unanswered::Busy)));
            }
            Some(overheard) => self.waiting.overhear(table, overheard),
            None => self.waiting.pass_unread(table, (ticket, &frame), deadline),
        };
        self.out.push_back((ticket, text));
    }

    fn forget_gone(&mut self) {
        let callers = self.callers.iter();
        let gone = callers.filter(|(_, reply)| reply.is_closed());
        let gone: Vec<Ticket> = gone.map(|(ticket, _)| *ticket).collect();
        for ticket in gone {
            self.callers.remove(&ticket);
            self.waiting.cancel(ticket);
            self.takes_back(ticket);
        }
    }

    /// What happens on the socket; tells why it is lost, if it is.
    fn happened(&mut self, event: Event) -> Option<String> {
        match event {
            Event::Message(text) => self.hear(text),
            Event::Written => {
                self.silence.used();
                if let Some(ticket) = self.writing.take() {
                    self.written(ticket);
                }
            }
            Event::Sign => self.silence.heard(),
            // The end follows.
            Event::Overlong => {}
            Event::Lost(why) => return Some(why),
            // A socket has none of these.
            Event::Beside(..) | Event::Failed(..) | Event::Forgotten(_) | Event::Unwritten(_) => {}
        }
        None
    }

    fn written(&mut self, ticket: Ticket) {
        let (installed, now) = (self.installed.clone(), self.now());
        self.waiting.sent(&installed.plan.routes, (now, ticket));
        if !self.waiting.waits(ticket) {
            self.reply(ticket, Ok(Said::Told));
        }
    }

    fn hear(&mut self, text: Bytes) {
        self.silence.used();
        let (installed, terms, now) = (self.installed.clone(), self.terms(), self.now());
        match Heard::of(&text, terms.depth) {
            Heard::Frame(frame) => {
                // First, so that it is told from what this frame ends.
                self.waiting.tick(&installed.plan.routes, now, terms);
                self.obey_all(None);
                self.waiting
                    .hear(&installed.plan.routes, (now, frame), terms);
                self.obey_all(Some(&text));
            }
            // A client that speaks to the server itself may know what it means.
            Heard::Rpc(_) | Heard::Noise(_) if self.waiting.has_passed() => {
                self.outlet.tell(News::Answer(text));
            }
            Heard::Rpc(_) | Heard::Noise(_) => {
                self.counts.skipped += 1;
                self.worker.count(|shard| shard.stray(Stray::Noise));
            }
        }
    }

    fn tick(&mut self) {
        let (installed, terms, now) = (self.installed.clone(), self.terms(), self.now());
        self.waiting.tick(&installed.plan.routes, now, terms);
        self.obey_all(None);
    }

    /// Does what there is to do; `heard` is the text of the frame that was heard.
    fn obey_all(&mut self, heard: Option<&Bytes>) {
        while let Some(output) = self.waiting.output() {
            self.obey(output, heard);
        }
        let strays = self.waiting.counts().stray;
        for _ in self.counts.late..strays {
            self.worker.count(|shard| shard.stray(Stray::Late));
        }
        self.counts.late = strays;
    }

    fn obey(&mut self, output: Output, heard: Option<&Bytes>) {
        let text = |frame: Json| heard.cloned().unwrap_or_else(|| frame.into_bytes());
        match output {
            Output::Write(ticket, frame) => {
                let frame: Pieces = frame;
                self.out.push_back((ticket, frame.into_bytes()));
            }
            Output::Answer(ticket, answer) => self.reply(ticket, Ok(Said::Answer(answer))),
            Output::Failed(ticket, why) => {
                self.takes_back(ticket);
                self.reply(ticket, Err(fault(why)));
            }
            Output::News(frame) => {
                self.counts.notified += 1;
                let fate = self.outlet.tell(News::Event(text(frame)));
                self.share.standing().came_to(fate);
            }
            Output::Passed(frame) => {
                self.outlet.tell(News::Answer(text(frame)));
            }
            // Its time is over, and it has not gone out whole.
            Output::Over(ticket) if heard.is_none() && self.is_unwritten(ticket) => {
                self.takes_back(ticket);
                self.reply(ticket, Err(Fault::Link(link::Unanswered::Late)));
            }
            Output::Over(ticket) => self.reply(ticket, Ok(Said::Told)),
        }
    }

    /// Whether it waits to be written, or is being written.
    fn is_unwritten(&self, ticket: Ticket) -> bool {
        self.writing == Some(ticket) || self.out.iter().any(|(own, _)| *own == ticket)
    }

    /// What was not begun is not written any more.
    fn takes_back(&mut self, ticket: Ticket) {
        self.out.retain(|(own, _)| *own != ticket);
    }

    fn reply(&mut self, ticket: Ticket, said: Result<Said, Fault>) {
        if let Some(reply) = self.callers.remove(&ticket) {
            self.outlet.answer(reply, said);
        }
    }
}

/// A frame of a client whose answer its route describes.
fn overheard(
    table: &RouteTable,
    (ticket, frame): (Ticket, Json),
    (deadline, terms): (Duration, Terms),
) -> Option<Overheard> {
    let route = table.select_frame(&frame)?;
    let read = command_to_rpc(table.route(route), frame, terms).ok()?;
    Some(Overheard {
        ticket,
        route,
        call: read.call,
        deadline,
    })
}

fn fault(why: Unanswered) -> Fault {
    match why {
        Unanswered::Busy => Fault::Link(link::Unanswered::Busy),
        Unanswered::Late => Fault::Link(link::Unanswered::Late),
        Unanswered::Cut => Fault::Link(link::Unanswered::Cut),
        Unanswered::Misfit(why) => Fault::Misfit(why),
    }
}

#[cfg(test)]
mod tests;
