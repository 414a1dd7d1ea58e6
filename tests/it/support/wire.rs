//! One end of a connection.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use socket2::SockRef;

use super::WITHIN;
use super::message::{Asked, Framing, Head, Message, field, latin1};

/// A connection, and what came on it that nobody has read yet.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    came: Vec<u8>,
}

/// How the other end left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It closed.
    Closed,
    /// It reset the connection.
    Reset,
}

impl Wire {
    /// Connects.
    pub(crate) fn connect(address: SocketAddr) -> Wire {
        Wire::over(TcpStream::connect_timeout(&address, WITHIN).unwrap())
    }

    /// Takes a connection over.
    pub(crate) fn over(stream: TcpStream) -> Wire {
        stream.set_read_timeout(Some(WITHIN)).unwrap();
        stream.set_write_timeout(Some(WITHIN)).unwrap();
        stream.set_nodelay(true).unwrap();
        Wire {
            stream,
            came: Vec::new(),
        }
    }

    /// The address of this end.
    pub(crate) fn address(&self) -> SocketAddr {
        self.stream.local_addr().unwrap()
    }

    /// The address of the other end.
    pub(crate) fn peer(&self) -> SocketAddr {
        self.stream.peer_addr().unwrap()
    }

    /// Sends bytes.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).unwrap();
    }

    /// Sends bytes to an end that may have left.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())
    }

    /// Sends no more, but still reads.
    pub(crate) fn finish_sending(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    /// The connection itself, of which nothing was read.
    pub(crate) fn into_stream(self) -> TcpStream {
        assert!(self.came.is_empty());
        self.stream
    }

    /// Resets the connection.
    pub(crate) fn reset(self) {
        SockRef::from(&self.stream)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
    }

    /// Reads more: false at the end.
    fn fill(&mut self) -> io::Result<bool> {
        let mut space = [0; 64 * 1024];
        let count = self.stream.read(&mut space)?;
        self.came.extend_from_slice(&space[..count]);
        Ok(count > 0)
    }

    fn more(&mut self, wanted: &str) {
        let came = self.fill();
        assert!(
            matches!(came, Ok(true)),
            "waited for {wanted}: {came:?} after {:?}",
            latin1(&self.came)
        );
    }

    /// Reads up to and with a text.
    pub(crate) fn read_until(&mut self, text: &str) -> Vec<u8> {
        loop {
            let text = text.as_bytes();
            let found = self.came.windows(text.len()).position(|at| at == text);
            if let Some(at) = found {
                return self.came.drain(..at + text.len()).collect();
            }
            self.more(&format!("{:?}", latin1(text)));
        }
    }

    /// Reads so many bytes.
    pub(crate) fn read_exactly(&mut self, count: usize) -> Vec<u8> {
        while self.came.len() < count {
            self.more(&format!("{count} bytes"));
        }
        self.came.drain(..count).collect()
    }

    /// Reads bytes that must be these.
    pub(crate) fn expect(&mut self, bytes: impl AsRef<[u8]>) {
        let found = self.read_exactly(bytes.as_ref().len());
        assert_eq!(latin1(&found), latin1(bytes.as_ref()));
    }

    /// Reads what comes next, and forgets it; tells whether something came before the end.
    pub(crate) fn read_some(&mut self) -> bool {
        self.came.clear();
        self.fill().unwrap_or(false)
    }

    /// Reads to the end.
    pub(crate) fn read_rest(&mut self) -> (Vec<u8>, End) {
        let end = loop {
            match self.fill() {
                Ok(true) => {}
                Ok(false) => break End::Closed,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break End::Reset,
                Err(error) => panic!("waited for the end: {error} after {:?}", latin1(&self.came)),
            }
        };
        (std::mem::take(&mut self.came), end)
    }

    /// The other end closes, and has nothing left to say.
    pub(crate) fn expect_closed(&mut self) {
        let (rest, end) = self.read_rest();
        assert_eq!((latin1(&rest).as_str(), end), ("", End::Closed));
    }

    /// The other end leaves, by closing or by a reset, and has nothing left to say.
    pub(crate) fn expect_gone(&mut self) {
        let (rest, _) = self.read_rest();
        assert_eq!(latin1(&rest), "");
    }

    /// Reads a head.
    pub(crate) fn read_head(&mut self) -> Head {
        Head::parse(&self.read_until("\r\n\r\n"))
    }

    /// Reads one request.
    pub(crate) fn read_request(&mut self) -> Message {
        self.read_message(Asked::Request)
    }

    /// Reads one request, if another comes before the end.
    pub(crate) fn next_request(&mut self) -> Option<Message> {
        let comes = !self.came.is_empty() || self.fill().unwrap_or(false);
        comes.then(|| self.read_request())
    }

    /// Reads one answer, if it comes before the end.
    pub(crate) fn next_answer(&mut self) -> Option<Message> {
        let comes = !self.came.is_empty() || self.fill().unwrap_or(false);
        comes.then(|| self.read_answer())
    }

    /// Reads one answer to a request that was not HEAD.
    pub(crate) fn read_answer(&mut self) -> Message {
        self.read_message(Asked::AnswerTo("GET"))
    }

    /// Reads one answer to a request of this method.
    pub(crate) fn read_answer_to(&mut self, method: &str) -> Message {
        self.read_message(Asked::AnswerTo(method))
    }

    fn read_message(&mut self, asked: Asked<'_>) -> Message {
        let head = self.read_head();
        let framing = head.framing(asked);
        self.read_body(head, framing)
    }

    /// Reads the body that belongs to a head.
    pub(crate) fn read_body(&mut self, head: Head, framing: Framing) -> Message {
        let mut message = Message {
            head,
            body: Vec::new(),
            chunks: Vec::new(),
            trailers: Vec::new(),
        };
        match framing {
            Framing::None => {}
            Framing::Sized(length) => message.body = self.read_exactly(length),
            Framing::UntilClose => {
                let (body, end) = self.read_rest();
                assert_eq!(end, End::Closed);
                message.body = body;
            }
            Framing::Chunked => {
                while let Some(chunk) = self.read_chunk() {
                    message.chunks.push(chunk.len());
                    message.body.extend(chunk);
                }
                message.trailers = self.read_trailers();
            }
        }
        message
    }

    /// Reads one chunk; none after the last.
    pub(crate) fn read_chunk(&mut self) -> Option<Vec<u8>> {
        let line = latin1(&self.read_until("\r\n"));
        let size = usize::from_str_radix(line.trim_end(), 16)
            .unwrap_or_else(|_| panic!("no chunk size: {line:?}"));
        if size == 0 {
            return None;
        }
        let chunk = self.read_exactly(size);
        self.expect("\r\n");
        Some(chunk)
    }

    fn read_trailers(&mut self) -> Vec<(String, String)> {
        let mut trailers = Vec::new();
        loop {
            let line = latin1(&self.read_until("\r\n"));
            match line.trim_end_matches("\r\n") {
                "" => return trailers,
                line => trailers.push(field(line)),
            }
        }
    }
}
