//! Calls from a recording, made again and compared.
//!
//! A recorded request takes the steps of a client's: its side, its caller and its route. It differs in three: its stage
//! is that of the replay, and not that of a flag; it is sent as the second run of a live shadow call, so that routes,
//! translation, noise and rules give the same verdict; and nothing of it is logged or counted as a call.
//!
//! Used by `app`.

use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::Arc;

use http::Request;
use http::header::ORIGIN;

use super::access_record::AccessRecord;
use super::recorded_call::{
    Control, NotRun, Preparation, PreparedCall, RecordedCall, ReplayTerms, ReplayedCall,
};
use super::request_line::RequestLine;
use super::request_origin::RequestOrigin;
use super::shadow::RecordedRun;
use super::worker::Worker;
use super::{request_target, rest, rpc};
use dualgauge_model::compare::Skip;
use dualgauge_model::hosts::Reach;
use dualgauge_model::rollout::Stage;
use dualgauge_model::routing::{RequestHead, classify_request};
use dualgauge_patterns::side::Side;

/// Makes the calls of a recorded request again, and compares each with `control`: one call, or as many as a batch has.
/// Dropping the future closes the connections.
pub async fn replay(
    worker: Rc<Worker>,
    call: RecordedCall,
    control: Control,
    terms: &ReplayTerms,
) -> Vec<ReplayedCall> {
    let mut replayed = Vec::new();
    for prepared in prepare(&worker, call, control.stage()).await {
        let PreparedCall { record, call } = prepared;
        let context = &record.context;
        let plan = &context.runtime_plan().plan;
        let route = context.route().map(|route| plan.routes.route(route));
        let side = context.side();
        let route: Option<Arc<str>> = route.map(|route| route.name.as_str().into());
        let is_selected = terms.selects(route.as_deref());
        let result = match call {
            _ if !is_selected => Err(NotRun::NotSelected),
            Ok(call) => {
                let run = RecordedRun {
                    record: &record,
                    call: &*call,
                };
                run.run(control.clone(), terms.unsafe_calls).await
            }
            Err(why) => Err(why),
        };
        record.discard();
        replayed.push(ReplayedCall {
            side,
            route,
            result,
        });
    }
    replayed
}

impl Control {
    /// Returns the stage whose candidate is the call that is sent.
    const fn stage(&self) -> Stage {
        match self {
            Control::RecordedForNew(_) | Control::Live => Stage::Shadow,
            Control::RecordedForOld(_) => Stage::Verify,
        }
    }
}

/// Finds the side and the routes of a request.
async fn prepare(worker: &Rc<Worker>, call: RecordedCall, stage: Stage) -> Vec<PreparedCall> {
    let runtime_plan = worker.runtime_plan();
    let plan = &runtime_plan.plan;
    // The recording does not say where its client came from.
    let origin = RequestOrigin::from_peer(IpAddr::V4(Ipv4Addr::LOCALHOST), Reach::Network);
    let (mut head, ()) = Request::new(()).into_parts();
    (head.method, head.uri, head.headers) = (call.method, call.target, call.headers);
    // The page that a browser sent the call from was allowed when it was recorded.
    head.headers.remove(ORIGIN);
    request_target::origin_form(&mut head);
    plan.identity_headers.clean(&mut head.headers, || false);
    let target = classify_request(plan, RequestHead::new(&head));
    let line = RequestLine::new(&head, &origin);
    let record = AccessRecord::begin(worker, &runtime_plan, target.side, line);
    if let Some(failure) = target.refused {
        return vec![PreparedCall::refused(record, failure)];
    }
    if target.stream.is_some() {
        return vec![PreparedCall::refused(record, NotRun::Skipped(Skip::Stream))];
    }
    let preparation = Preparation {
        head: &head,
        body: &call.body,
        origin: &origin,
        stage,
    };
    match target.side {
        Side::Rest => vec![rest::recorded::prepare(record, preparation).await],
        Side::Rpc => rpc::prepare_recorded(record, preparation).await,
    }
}
