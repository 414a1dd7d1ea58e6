//! A client, the proxy and one upstream, and calls that go all the way.

use super::{Message, Proxy, Upstream, Wire, rest_only, rpc_only};

/// The proxy before one upstream whose connections the test serves itself.
#[derive(Debug)]
pub(crate) struct Track {
    pub(crate) proxy: Proxy,
    pub(crate) upstream: Upstream,
}

/// A call as each end saw it.
#[derive(Debug)]
pub(crate) struct Carried {
    /// What the upstream got.
    pub(crate) request: Message,
    /// What the client got.
    pub(crate) answer: Message,
}

/// A call that the upstream has read and not answered yet.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) client: Wire,
    pub(crate) server: Wire,
    pub(crate) request: Message,
}

impl Track {
    /// Before a REST upstream.
    pub(crate) fn rest() -> Track {
        let upstream = Upstream::start();
        let proxy = Proxy::start(&rest_only(&upstream));
        Track { proxy, upstream }
    }

    /// Before an RPC upstream at `/rpc`.
    pub(crate) fn rpc() -> Track {
        let upstream = Upstream::start();
        let proxy = Proxy::start(&rpc_only(&upstream));
        Track { proxy, upstream }
    }

    /// Sends a request on a connection of its own, to the point where the upstream has read it.
    pub(crate) fn open(&self, request: impl AsRef<[u8]>) -> Open {
        let mut client = self.proxy.connect();
        client.send(request);
        let mut server = self.upstream.accept();
        let request = server.read_request();
        Open {
            client,
            server,
            request,
        }
    }

    /// Carries a request to the upstream and this answer back.
    pub(crate) fn carry(&self, request: impl AsRef<[u8]>, answer: impl AsRef<[u8]>) -> Carried {
        let mut open = self.open(request);
        open.server.send(answer);
        let method = open.request.head.start.split(' ').next();
        let answer = open.client.read_answer_to(method.unwrap_or_default());
        Carried {
            request: open.request,
            answer,
        }
    }
}

/// Carries one REST call through a proxy of its own.
pub(crate) fn carry(request: impl AsRef<[u8]>, answer: impl AsRef<[u8]>) -> Carried {
    Track::rest().carry(request, answer)
}
