//! Outputs of the machine, and what they must not be.

use super::*;

impl World {
    /// Records that a frame is not written unless its writing has begun.
    pub(super) fn withdraw(&mut self, ticket: u64) {
        if ticket > self.last_written {
            self.withdrawn.insert(ticket);
        }
    }

    /// Handles all outputs; returns the frames that the client gets.
    pub(super) fn settle_outputs(&mut self, table: &RouteTable) -> Vec<Json> {
        let mut delivered = Vec::new();
        while let Some(output) = self.machine.output() {
            self.take(table, output, &mut delivered);
        }
        delivered
    }

    pub(super) fn take(
        &mut self,
        table: &RouteTable,
        output: FrameOutput,
        delivered: &mut Vec<Json>,
    ) {
        let seed = self.seed;
        let text = |text: Bytes| Json::parse(text, 32).unwrap();
        match output {
            FrameOutput::Write(Ticket(ticket), frame) => {
                self.begin_write(ticket, &text(frame));
                if self.is_prompt() {
                    self.writing = None;
                    self.machine.written(context(table, self.now));
                }
            }
            FrameOutput::Answer(Ticket(ticket), answer, _) => self.answered(ticket, answer),
            FrameOutput::Sent(Ticket(ticket)) => {
                let was_unobserved = self.unobserved.remove(&ticket);
                assert!(was_unobserved, "seed {seed}: {ticket} is sent");
                assert!(
                    ticket <= self.last_written,
                    "seed {seed}: {ticket} is not written"
                );
            }
            FrameOutput::Failed(Ticket(ticket), why) => {
                self.withdraw(ticket);
                let caller = self.end(ticket);
                let in_time = !matches!(why, FrameCallError::Late) || caller.deadline <= self.now;
                assert!(in_time, "seed {seed}: given up too early");
            }
            FrameOutput::Passed(frame) => {
                assert!(self.has_forwarded, "seed {seed}");
                self.passed += 1;
                delivered.push(text(frame));
            }
            FrameOutput::Undelivered(why) => assert_eq!(why, Undelivered::Late, "seed {seed}"),
            FrameOutput::Notification(frame) => {
                let frame = text(frame);
                let bears = frame.has("request_id");
                assert!(!bears, "seed {seed}: an answer became news");
                delivered.push(frame);
            }
        }
    }

    /// The connection begins to write a frame.
    pub(super) fn begin_write(&mut self, ticket: u64, frame: &Json) {
        let seed = self.seed;
        assert_eq!(
            self.writing, None,
            "seed {seed}: written into another frame"
        );
        assert!(
            self.last_written < ticket,
            "seed {seed}: {ticket} overtakes"
        );
        let is_withdrawn = self.withdrawn.contains(&ticket);
        assert!(
            !is_withdrawn,
            "seed {seed}: {ticket} is written after its end"
        );
        (self.writing, self.last_written) = (Some(ticket), ticket);
        let id = frame.member("request_id").unwrap().text().unwrap().unwrap();
        let is_known = |caller: &Caller| caller.id.as_ref() == Some(&id);
        match self.open.get(&ticket) {
            Some(caller) if caller.speaks == Speaks::Rpc => {
                let is_given = self.open.values().any(is_known);
                assert!(!is_given, "seed {seed}: {id} is given twice");
                self.open.get_mut(&ticket).unwrap().id = Some(id);
            }
            Some(caller) => assert!(is_known(caller), "seed {seed}: {id} was changed"),
            // Its call was answered before, by a frame that it may share with another.
            None => {
                let mut past = self.past.iter_mut();
                let own = past.find(|caller| caller.serial == ticket);
                let own = own.unwrap_or_else(|| panic!("seed {seed}: {ticket} is for nobody"));
                let is_same = *own.id.get_or_insert_with(|| id.clone()) == id;
                assert!(is_same, "seed {seed}: {id} was changed");
            }
        }
    }

    pub(super) fn end(&mut self, ticket: u64) -> Caller {
        let caller = self.open.remove(&ticket);
        let caller = caller.unwrap_or_else(|| panic!("seed {}: {ticket} is told twice", self.seed));
        self.past.push(caller.clone());
        caller
    }

    /// Checks that the answer belongs to the command of the caller.
    pub(super) fn answered(&mut self, ticket: u64, answered: TranslatedReply<RpcAnswer>) {
        let caller = self.end(ticket);
        let seed = self.seed;
        match answered.answer {
            RpcAnswer::Error(error) => {
                let own = format!("\"of {}\"", caller.serial);
                assert_eq!(error.message.as_bytes(), own.as_bytes(), "seed {seed}");
            }
            RpcAnswer::Result(result) => {
                let subject = caller.subject;
                let expected = match caller.kind {
                    0 => {
                        let serial = caller.serial;
                        format!(r#"{{"path":"s{subject}","content":"of {serial}"}}"#)
                    }
                    1 => r#"{"status":"watching"}"#.to_owned(),
                    2 => r#"{"session":"s"}"#.to_owned(),
                    _ => format!(r#"{{"status":"started","mode":"m{subject}"}}"#),
                };
                assert_eq!(text(result), expected, "seed {seed}");
            }
        }
    }
}
