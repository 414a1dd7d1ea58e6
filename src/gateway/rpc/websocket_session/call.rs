//! JSON-RPC messages on a client's WebSocket. [`super::WebSocketSession`] calls this for each.

use super::*;

impl WebSocketSession {
    /// Reads and parses a JSON-RPC message.
    async fn read(
        &self,
        reading: &Record,
        body: Bytes,
    ) -> Result<(Bytes, jsonrpc::Incoming), Failure> {
        reading.admit()?;
        let body = self.worker.memory().account(body).map_err(no_room)?;
        let limits = &reading.installed().plan.limits;
        let read = offloaded_parsing::messages(&self.worker, &body, limits).await?;
        let incoming = read.map_err(rejections::no_message)?;
        Ok((body, incoming))
    }

    /// Serves a JSON-RPC message; returns the answer, if it has one.
    pub(super) async fn call(
        &self,
        InboundMessage {
            text: body,
            upstream_ids: minted,
        }: InboundMessage,
    ) -> Option<OutboundMessage> {
        let installed = self.worker.installed();
        let line = RequestLine {
            version: Version::HTTP_11,
            ..RequestLine::within(&self.head, &self.arrival)
        };
        let mut reading = Record::begin(&self.worker, &installed, Side::Rpc, line);
        let identity = identify(&mut reading, &self.head.headers, &self.arrival);
        let (body, incoming) = match self.read(&reading, body).await {
            Ok(read) => read,
            Err(failure) => {
                let codes = &installed.plan.face.failure_codes;
                let whole = response::rpc_failure(&failure, codes, &RequestId::null());
                reading.failed(whole.status.as_u16(), &failure);
                return Some(OutboundMessage::alone(whole.body.into_bytes()));
            }
        };
        let letter = RpcRequest {
            since: reading.beginning(),
            worker: self.worker.clone(),
            head: self.head.clone(),
            body,
            arrival: self.arrival.clone(),
            author: RpcCaller::new(identity, &installed.plan),
            socket: Some(self.number),
            minted,
            kept: matches!(incoming, jsonrpc::Incoming::Batch(_)).then(Rc::default),
            installed,
            fault: None,
        };
        let (whole, followed_by) = match incoming {
            jsonrpc::Incoming::Single(item) => {
                let room = Cell::new(letter.installed.plan.limits.answer);
                match letter
                    .answer(reading, item, BatchContext::Batch(&room))
                    .await
                    .0
                {
                    ItemReply::Message(whole, candidate) => {
                        (*whole, candidate.into_iter().collect())
                    }
                    ItemReply::Forwarded(_) | ItemReply::Nothing => return None,
                }
            }
            jsonrpc::Incoming::Batch(items) => {
                reading.discard();
                letter.answers(items).await?
            }
        };
        drop(letter.given());
        Some(OutboundMessage {
            text: whole.body.into_bytes(),
            followed_by,
            permit: None,
        })
    }
}
