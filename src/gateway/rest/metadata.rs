//! Requests for protected resource metadata, in the pipeline. Used by `rest`.

use http::{HeaderValue, Response, request};

use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_response::CallResponse;
use crate::gateway::request_origin::ClientRequest;
use crate::gateway::resource_metadata;
use crate::gateway::response::render_annotated;
use crate::gateway::response_body::ResponseBody;
use crate::gateway::serve::{ProtocolCall, TwoWayCall};
use dualgauge_model::failure::Failure;
use dualgauge_model::rollout::DecisionReason;
use dualgauge_model::routing::MetadataRequest;

/// A request for metadata. It has no route: it goes to the MCP server.
pub(super) struct MetadataCall<'a> {
    pub(super) metadata: MetadataRequest<'a>,
    pub(super) cors_origin: Option<HeaderValue>,
}

impl<'a> TwoWayCall for MetadataCall<'a> {
    type Head = &'a request::Parts;
    type Answer = CallResponse;

    async fn pass_through(
        &mut self,
        record: &mut AccessRecord,
        request: ClientRequest<'_, &'a request::Parts>,
        _: Option<usize>,
    ) -> Result<CallResponse, Failure> {
        record
            .context
            .handle_locally(DecisionReason::ResourceMetadata);
        resource_metadata::serve(record, request.borrowed(), &self.metadata).await
    }
}

impl ProtocolCall for MetadataCall<'_> {
    type Response = Response<ResponseBody>;

    const AWAITS_BODY: bool = true;

    async fn respond(
        &mut self,
        record: Box<AccessRecord>,
        result: Result<CallResponse, Failure>,
    ) -> Response<ResponseBody> {
        render_annotated(record, result, None, self.cors_origin.as_ref())
    }
}
