//! One end of a connection whose other end may do anything: what does not come is an answer too, and fails nothing here.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use socket2::SockRef;

/// How long anything may take before it is a fault: far longer than every timeout of the proxy.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// An end of a connection.
#[derive(Debug)]
pub(super) struct Loose {
    stream: TcpStream,
    came: Vec<u8>,
}

/// What came in place of an answer, or the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Got {
    /// A whole answer: its status, its content, and whether it is the last one of its connection.
    Whole(u16, String, Last),
    /// The connection ended within an answer.
    Cut,
    /// The connection ended before an answer.
    Nothing,
    /// Neither an answer nor an end came in time.
    Late,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    Yes,
    No,
}

impl Loose {
    pub(super) fn over(stream: TcpStream) -> Loose {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let came = Vec::new();
        Loose { stream, came }
    }

    /// Sends what the other end takes.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends byte by byte.
    pub(super) fn dribble(&mut self, bytes: &[u8]) -> io::Result<()> {
        bytes.iter().try_for_each(|byte| self.send(&[*byte]))
    }

    /// Sends no more, but still reads.
    pub(super) fn finish(&self) {
        // The other end may have gone first.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Resets the connection.
    pub(super) fn reset(self) {
        let linger = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
        linger.unwrap();
    }

    /// Reads more: none at the end, however it came.
    fn fill(&mut self) -> Result<Option<()>, Got> {
        let mut space = [0; 16 * 1024];
        match self.stream.read(&mut space) {
            Ok(0) => Ok(None),
            Ok(count) => {
                self.came.extend_from_slice(&space[..count]);
                Ok(Some(()))
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(Got::Late)
            }
            Err(_) => Ok(None),
        }
    }

    fn until(&mut self, end: &[u8]) -> Result<Vec<u8>, Got> {
        loop {
            let found = self.came.windows(end.len()).position(|at| at == end);
            if let Some(at) = found {
                return Ok(self.came.drain(..at + end.len()).collect());
            }
            self.fill()?.ok_or(Got::Cut)?;
        }
    }

    fn exactly(&mut self, count: usize) -> Result<Vec<u8>, Got> {
        while self.came.len() < count {
            self.fill()?.ok_or(Got::Cut)?;
        }
        Ok(self.came.drain(..count).collect())
    }

    /// A head: none where the connection ends before it.
    pub(super) fn head(&mut self) -> Option<String> {
        let head = self.until(b"\r\n\r\n").ok()?;
        Some(String::from_utf8_lossy(&head).into_owned())
    }

    /// The body behind a head; none where it breaks off.
    pub(super) fn body(&mut self, head: &str) -> Option<Vec<u8>> {
        self.content(head).ok()
    }

    fn content(&mut self, head: &str) -> Result<Vec<u8>, Got> {
        if let Some(length) = field(head, "content-length") {
            return self.exactly(length.parse().unwrap_or(0));
        }
        if field(head, "transfer-encoding").is_none() {
            return Ok(Vec::new());
        }
        let mut body = Vec::new();
        loop {
            let line = self.until(b"\r\n")?;
            let line = String::from_utf8_lossy(&line).trim().to_owned();
            let size = usize::from_str_radix(&line, 16).map_err(|_| Got::Cut)?;
            body.extend(self.exactly(size)?);
            self.exactly(2)?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    /// An answer, or what came in its place.
    pub(super) fn answer(&mut self) -> Got {
        self.try_answer().unwrap_or_else(|got| got)
    }

    fn try_answer(&mut self) -> Result<Got, Got> {
        if self.came.is_empty() && self.fill()?.is_none() {
            return Ok(Got::Nothing);
        }
        let (head, status) = loop {
            let head = self.until(b"\r\n\r\n")?;
            let head = String::from_utf8_lossy(&head).into_owned();
            let status = head
                .get(9..12)
                .and_then(|status| status.parse::<u16>().ok());
            // Interim responses come before the answer (RFC 9110 §15.2).
            if !status.is_some_and(|status| (102..200).contains(&status)) {
                break (head, status);
            }
        };
        let body = self.content(&head)?;
        let last = match field(&head, "connection") {
            Some(said) if said.eq_ignore_ascii_case("close") => Last::Yes,
            _ => Last::No,
        };
        let body = String::from_utf8_lossy(&body).into_owned();
        Ok(Got::Whole(status.unwrap_or(0), body, last))
    }

    /// Reads to the end, whatever comes: whether there is one.
    pub(super) fn ends(&mut self) -> bool {
        loop {
            match self.fill() {
                Ok(Some(())) => self.came.clear(),
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }
}

/// The first value of a field.
pub(super) fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
