//! Upstreams that answer what they are told to, and keep what they got.

use std::sync::{Arc, Mutex};

use super::call::Reply;
use super::json::Json;
use crate::support::{Message, Upstream};

/// A server of either side.
#[derive(Debug)]
pub(crate) struct Scripted {
    pub(crate) upstream: Upstream,
    script: Arc<Mutex<Option<Reply>>>,
}

impl Scripted {
    pub(crate) fn start() -> Scripted {
        let script = Arc::<Mutex<Option<Reply>>>::default();
        let told = script.clone();
        let upstream = Upstream::serving(move |request| {
            let reply = told.lock().unwrap().clone();
            let is_rpc = request.head.start.starts_with("POST /rpc ");
            let id = is_rpc.then(|| Json::parse(request.text()).at("id").clone());
            reply.map_or(Vec::new(), |reply| reply.bytes(id.as_ref()))
        });
        Scripted { upstream, script }
    }

    /// What it answers from now on.
    pub(crate) fn says(&self, reply: &Reply) {
        *self.script.lock().unwrap() = Some(reply.clone());
    }

    /// How many requests it got.
    pub(crate) fn count(&self) -> usize {
        self.upstream.requests().len()
    }

    /// The one request since it had got so many.
    pub(crate) fn since(&self, count: usize) -> Message {
        let mut requests = self.upstream.requests().split_off(count);
        assert_eq!(requests.len(), 1, "{requests:?}");
        requests.remove(0)
    }
}
