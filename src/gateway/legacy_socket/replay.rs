//! Second runs of command frames. They have connections of their own, because a server of frames keeps state for each
//! connection, and sends events to it.
//!
//! Used by `legacy_socket::command`.

use std::rc::Rc;

use http::request;

use super::command::{Disposition, FrameCall, FrameMessage, full_response};
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

/// A command stored so that it can be sent again.
pub(super) struct FrameReplay {
    runtime_plan: Rc<RuntimePlan>,
    head: Box<request::Parts>,
    origin: RequestOrigin,
    message: FrameMessage,
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
            message: call.message.clone(),
        }
    }

    /// Sends the command on the given way.
    async fn send(&self, record: &mut AccessRecord, way: Way) -> Result<CallResponse, Failure> {
        let worker = record.context.worker().clone();
        let mut call = FrameCall {
            worker: &worker,
            message: self.message.clone(),
            reservation: Ok(()),
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
        headers_size(&self.head.headers) + self.message.text.len() + size_of::<FrameReplay>()
    }

    fn check_complete(&self) -> Result<(), Skip> {
        Ok(())
    }

    fn send<'a>(&'a self, record: &'a mut AccessRecord, way: Way) -> ReplayFuture<'a> {
        Box::pin(FrameReplay::send(self, record, way))
    }

    fn render_failure(&self, failure: &Failure, _: &FailureCodes) -> FullResponse {
        let frame = self.message.failure(&self.runtime_plan, failure);
        full_response(frame, Some(failure))
    }
}
