//! A server that answers well until it dies, and takes all its connections along.

use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use socket2::{Domain, Socket, Type};

use super::ends::Loose;
use crate::support::becomes;

/// Listens where another one may have died a moment ago.
pub(crate) fn listen(address: SocketAddr) -> TcpListener {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.bind(&address.into()).unwrap();
    socket.listen(64).unwrap();
    socket.into()
}

/// The server.
#[derive(Debug)]
pub(crate) struct Leaver {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    dead: AtomicBool,
    heard: AtomicUsize,
    open: Mutex<Vec<TcpStream>>,
}

impl Leaver {
    pub(crate) fn serving(listener: TcpListener, answer: Vec<u8>) -> Leaver {
        let address = listener.local_addr().unwrap();
        let shared = Arc::<Shared>::default();
        let all = shared.clone();
        let accepting = thread::spawn(move || {
            for stream in listener.incoming() {
                if all.dead.load(Ordering::Acquire) {
                    return;
                }
                let (stream, shared, answer) = (stream.unwrap(), all.clone(), answer.clone());
                shared
                    .open
                    .lock()
                    .unwrap()
                    .push(stream.try_clone().unwrap());
                thread::spawn(move || {
                    let mut end = Loose::over(stream);
                    while let Some(head) = end.head() {
                        shared.heard.fetch_add(1, Ordering::Relaxed);
                        if end.body(&head).is_none() || end.send(&answer).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Leaver {
            address,
            shared,
            accepting,
        }
    }

    /// Waits until so many calls have come in.
    pub(crate) fn heard_more(&self, calls: usize) {
        becomes(|| self.shared.heard.load(Ordering::Relaxed) >= calls, &true);
    }

    /// Closes the listener and every connection.
    pub(crate) fn dies(self) {
        self.shared.dead.store(true, Ordering::Release);
        // It wakes the listener.
        let _own = TcpStream::connect(self.address);
        self.accepting.join().unwrap();
        for stream in self.shared.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}
