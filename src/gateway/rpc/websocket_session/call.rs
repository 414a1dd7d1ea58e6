//! JSON-RPC messages on a client's WebSocket. [`super::WebSocketSession`] calls this for each.

use super::*;

impl WebSocketSession {
    /// Reads and parses a JSON-RPC message.
    async fn read(
        &self,
        request_record: &Record,
        body: Bytes,
    ) -> Result<(Bytes, jsonrpc::Incoming), Failure> {
        request_record.admit()?;
        let body = self
            .worker
            .memory()
            .account(body)
            .map_err(memory_exhausted)?;
        let limits = &request_record.runtime_plan().plan.limits;
        let read = offloaded_parsing::parse_messages(&self.worker, &body, limits).await?;
        let incoming = read.map_err(rejections::no_message)?;
        Ok((body, incoming))
    }

    /// Serves a JSON-RPC message; returns the answer, if it has one.
    pub(super) async fn serve_rpc_message(
        &self,
        InboundMessage {
            text: body,
            upstream_ids,
        }: InboundMessage,
    ) -> Option<OutboundMessage> {
        let runtime_plan = self.worker.runtime_plan();
        let line = RequestLine {
            version: Version::HTTP_11,
            ..RequestLine::for_call(&self.head, &self.origin)
        };
        let mut request_record = Record::begin(&self.worker, &runtime_plan, Side::Rpc, line);
        let identity = identify(&mut request_record, &self.head.headers, &self.origin);
        let (body, incoming) = match self.read(&request_record, body).await {
            Ok(read) => read,
            Err(failure) => {
                let codes = &runtime_plan.plan.face.failure_codes;
                let full = response::rpc_failure(&failure, codes, &RequestId::null());
                request_record.set_failure(full.status.as_u16(), &failure);
                return Some(OutboundMessage::new(full.body.into_bytes()));
            }
        };
        let request = RpcRequest {
            since: request_record.call_start(),
            worker: self.worker.clone(),
            head: self.head.clone(),
            body,
            origin: self.origin.clone(),
            rpc_caller: RpcCaller::new(identity, &runtime_plan.plan),
            socket: Some(self.number),
            upstream_ids,
            undelivered: matches!(incoming, jsonrpc::Incoming::Batch(_)).then(Rc::default),
            runtime_plan,
            fault: None,
        };
        let (full, candidates) = match incoming {
            jsonrpc::Incoming::Single(item) => {
                let remaining = Cell::new(request.runtime_plan.plan.limits.answer);
                match request
                    .serve_message(request_record, item, BatchContext::Batch(&remaining))
                    .await
                    .0
                {
                    ItemReply::Message(full, candidate) => (*full, candidate.into_iter().collect()),
                    ItemReply::Forwarded(_) | ItemReply::Nothing => return None,
                }
            }
            jsonrpc::Incoming::Batch(items) => {
                request_record.discard();
                request.serve_items(items).await?
            }
        };
        drop(request.take_records());
        Some(OutboundMessage {
            text: full.body.into_bytes(),
            candidates,
            permit: None,
        })
    }
}
