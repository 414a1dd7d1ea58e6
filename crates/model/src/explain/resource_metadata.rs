//! Explanations of requests for protected resource metadata. Used by `explain::rest`.

use super::case::Case;
use super::local_reply::record_decision;
use super::view::{Explanation, SentRequest};
use crate::rollout::DecisionReason;
use crate::routing::{MetadataRequest, metadata_request};

/// Explains a request for the metadata of the server behind an RPC path. Returns false if it is no such request.
pub(super) fn explain(case: &Case<'_>, explanation: &mut Explanation) -> bool {
    let Some(request) = metadata_request(case.plan, case.request.head) else {
        return false;
    };
    record_decision(case, DecisionReason::ResourceMetadata, explanation);
    explanation.sends = Some(sent_request(case, &request));
    true
}

fn sent_request(case: &Case<'_>, request: &MetadataRequest<'_>) -> SentRequest {
    let targets = request.targets();
    let paths = targets.iter().map(|target| target.path());
    let [first, others @ ..] = &paths.collect::<Vec<_>>()[..] else {
        return SentRequest::default();
    };
    let mut note = "the protected resource metadata of the server".to_owned();
    for other in others {
        note.push_str(&format!("; if it has none there, `{other}`"));
    }
    match &case.plan.public_url {
        Some(public) => {
            let resource = public.resource(request.resource);
            note.push_str(&format!("; `resource` becomes `{resource}`"));
        }
        None => note.push_str("; unchanged, since `listen.public_url` is not set"),
    }
    SentRequest {
        method: case.request.head.method.as_str().to_owned(),
        note: Some(note.into()),
        ..case.passes(request.upstream, first, "")
    }
}
