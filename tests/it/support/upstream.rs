//! A server behind the proxy.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

use socket2::{Domain, Socket, Type};

use super::{Message, WITHIN, Wire};

/// Connections that may wait for a test to accept them.
const WAITING: usize = 64;

/// A listener on a port of its own.
#[derive(Debug)]
pub(crate) struct Upstream {
    address: SocketAddr,
    accepted: Mutex<Receiver<TcpStream>>,
    requests: Arc<Mutex<Vec<Message>>>,
    _held: Option<Socket>,
}

impl Upstream {
    /// An upstream whose connections the test accepts and serves itself.
    pub(crate) fn start() -> Upstream {
        Upstream::with(|stream, accepted| {
            // The receiver is gone when the test is over.
            let _ = accepted.send(stream);
        })
    }

    /// An upstream that gives every request this answer, on as many connections as come.
    pub(crate) fn answering(answer: impl AsRef<[u8]>) -> Upstream {
        let answer = answer.as_ref().to_vec();
        Upstream::serving(move |_| answer.clone())
    }

    /// An upstream that answers alone. An empty answer closes the connection.
    pub(crate) fn serving(
        answer: impl Fn(&Message) -> Vec<u8> + Send + Sync + 'static,
    ) -> Upstream {
        Upstream::serving_at(TcpListener::bind("127.0.0.1:0").unwrap(), answer)
    }

    fn serving_at(
        listener: TcpListener,
        answer: impl Fn(&Message) -> Vec<u8> + Send + Sync + 'static,
    ) -> Upstream {
        let answer = Arc::new(answer);
        let requests = Arc::<Mutex<Vec<Message>>>::default();
        let seen = requests.clone();
        let mut upstream = Upstream::at(listener, move |stream, _| {
            let (answer, seen) = (answer.clone(), seen.clone());
            thread::spawn(move || {
                let mut wire = Wire::over(stream);
                while let Some(request) = wire.next_request() {
                    let answer = answer(&request);
                    seen.lock().unwrap().push(request);
                    if answer.is_empty() || wire.try_send(answer).is_err() {
                        return;
                    }
                }
            });
        });
        upstream.requests = requests;
        upstream
    }

    fn with(take: impl FnMut(TcpStream, &SyncSender<TcpStream>) + Send + 'static) -> Upstream {
        Upstream::at(TcpListener::bind("127.0.0.1:0").unwrap(), take)
    }

    fn at(
        listener: TcpListener,
        mut take: impl FnMut(TcpStream, &SyncSender<TcpStream>) + Send + 'static,
    ) -> Upstream {
        let address = listener.local_addr().unwrap();
        let (sender, accepted) = sync_channel(WAITING);
        thread::spawn(move || {
            for stream in listener.incoming() {
                take(stream.unwrap(), &sender);
            }
        });
        Upstream {
            address,
            accepted: Mutex::new(accepted),
            requests: Arc::default(),
            _held: None,
        }
    }

    /// An address where nobody listens, for as long as the value lives.
    pub(crate) fn nowhere() -> Upstream {
        // Bound and never listening: connections are refused, and nobody else gets the port.
        let held = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        held.bind(&any.into()).unwrap();
        Upstream {
            address: held.local_addr().unwrap().as_socket().unwrap(),
            accepted: Mutex::new(sync_channel(1).1),
            requests: Arc::default(),
            _held: Some(held),
        }
    }

    /// Listens from now on, where nobody did: the test accepts the connections.
    pub(crate) fn appears(self) -> Upstream {
        Upstream::at(self.listener(), |stream, accepted| {
            let _ = accepted.send(stream);
        })
    }

    /// Listens from now on, where nobody did, and answers alone.
    pub(crate) fn appears_serving(
        self,
        answer: impl Fn(&Message) -> Vec<u8> + Send + Sync + 'static,
    ) -> Upstream {
        Upstream::serving_at(self.listener(), answer)
    }

    fn listener(self) -> TcpListener {
        let held = self._held.unwrap();
        held.listen(WAITING as i32).unwrap();
        held.into()
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next connection.
    pub(crate) fn accept(&self) -> Wire {
        let accepted = self.accepted.lock().unwrap();
        let stream = accepted
            .recv_timeout(WITHIN)
            .unwrap_or_else(|error| panic!("waited for a connection: {error}"));
        Wire::over(stream)
    }

    /// Nobody has connected since the last connection that was accepted.
    pub(crate) fn expect_no_connection(&self) {
        // Connections are accepted in order: one of our own comes behind any that was there.
        let own = Wire::connect(self.address);
        let next = self.accept();
        assert_eq!(next.peer(), own.address(), "there is another connection");
    }

    /// What came in so far, where the upstream answers alone.
    pub(crate) fn requests(&self) -> Vec<Message> {
        self.requests.lock().unwrap().clone()
    }

    /// The one request that came in.
    pub(crate) fn request(&self) -> Message {
        let requests = self.requests();
        assert_eq!(requests.len(), 1, "{requests:?}");
        requests.into_iter().next().unwrap()
    }
}
