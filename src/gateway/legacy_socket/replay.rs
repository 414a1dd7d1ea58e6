//! Second runs of command frames. They have connections of their own, because a server of frames keeps state for each
//! connection, and sends events to it.
//!
//! Used by `legacy_socket::command`.

use std::rc::Rc;

use bytes::Bytes;
use http::request;

use super::command::{Disposition, FrameCall, failure_frame, full_response};
use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_response::{CallResponse, FullResponse};
use crate::gateway::request_origin::{ClientRequest, RequestOrigin};
use crate::gateway::runtime_plan::RuntimePlan;
use crate::gateway::serve;
use crate::gateway::shadow::{ReplayFuture, ReplayableCall, headers_size};
use crate::upstream::SocketReply;
use dualgauge_model::compare::Skip;
use dualgauge_model::failure::{Failure, FailureCodes};
use dualgauge_model::rejections;
use dualgauge_model::rollout::Way;
use dualgauge_patterns::json::Json;

/// A command stored so that it can be sent again.
pub(super) struct FrameReplay {
    runtime_plan: Rc<RuntimePlan>,
    head: Box<request::Parts>,
    origin: RequestOrigin,
    /// The number of the client's socket.
    socket: u64,
    frame: Json,
    /// The text as received.
    text: Bytes,
    route: Option<usize>,
}

impl FrameReplay {
    /// Stores a command that has not been sent yet.
    pub(super) fn new(
        call: &FrameCall<'_>,
        request: ClientRequest<'_>,
        runtime_plan: &Rc<RuntimePlan>,
    ) -> FrameReplay {
        FrameReplay {
            runtime_plan: runtime_plan.clone(),
            head: Box::new(request.head.clone()),
            origin: request.origin.for_second_runs(),
            socket: call.socket,
            frame: call.frame.clone(),
            text: call.text.clone(),
            route: call.route,
        }
    }

    /// Sends the command on the given way.
    async fn send(&self, record: &mut AccessRecord, way: Way) -> Result<CallResponse, Failure> {
        let worker = record.context.worker().clone();
        let mut call = FrameCall {
            worker: &worker,
            socket: self.socket,
            frame: self.frame.clone(),
            text: self.text.clone(),
            reservation: Ok(()),
            route: self.route,
            observer: None,
        };
        let request = ClientRequest {
            head: &*self.head,
            origin: &self.origin,
        };
        let frame = match serve::send_again(record, request, &mut call, way).await? {
            Disposition::Replied(frame) => frame,
            Disposition::Forwarded(forwarded) => {
                let answer = forwarded.answer(record).await;
                match answer.ok_or_else(rejections::missing_answer)?? {
                    SocketReply::Answer(_, frame) => frame,
                    SocketReply::Sent => None,
                }
            }
        };
        let full = full_response(frame, None);
        Ok(CallResponse::Full(Box::new(full)))
    }
}

impl ReplayableCall for FrameReplay {
    fn size(&self) -> usize {
        headers_size(&self.head.headers) + self.text.len() + size_of::<FrameReplay>()
    }

    fn check_complete(&self) -> Result<(), Skip> {
        Ok(())
    }

    fn is_invalid(&self) -> bool {
        false
    }

    fn extract_own_part(&self, answer: Bytes) -> Bytes {
        answer
    }

    fn send<'a>(&'a self, record: &'a mut AccessRecord, way: Way) -> ReplayFuture<'a> {
        Box::pin(FrameReplay::send(self, record, way))
    }

    fn render_failure(&self, failure: &Failure, _: &FailureCodes) -> FullResponse {
        let frame = failure_frame(&self.runtime_plan, self.route, &self.frame, failure);
        full_response(frame, Some(failure))
    }
}
