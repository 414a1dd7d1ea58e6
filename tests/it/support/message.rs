//! HTTP/1.1 messages as they are on the wire, with nothing normalised.

use std::fmt;

/// The head of a request or an answer.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Head {
    /// The request line or the status line.
    pub(crate) start: String,
    /// Names and values as they were sent, in order. Each byte is one character (ISO 8859-1).
    pub(crate) fields: Vec<(String, String)>,
}

/// A whole message.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) head: Head,
    /// The content, without its framing.
    pub(crate) body: Vec<u8>,
    /// How long each chunk was, where the content was chunked.
    pub(crate) chunks: Vec<usize>,
    /// The trailers, as the fields of the head.
    pub(crate) trailers: Vec<(String, String)>,
}

/// How the end of a body is found (RFC 9112 §6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    None,
    Sized(usize),
    Chunked,
    UntilClose,
}

/// Each byte as one character.
pub(crate) fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// Owned fields, to compare with.
pub(crate) fn fields(fields: &[(&str, &str)]) -> Vec<(String, String)> {
    fields
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// A chunked body: each piece a chunk, then the end without trailers.
pub(crate) fn chunked(pieces: &[&[u8]]) -> Vec<u8> {
    let mut body = Vec::new();
    for piece in pieces {
        body.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        body.extend_from_slice(piece);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"0\r\n\r\n");
    body
}

/// A header or trailer line, without its end.
pub(crate) fn field(line: &str) -> (String, String) {
    let (name, value) = line
        .split_once(':')
        .unwrap_or_else(|| panic!("a field without a colon: {line:?}"));
    (name.to_owned(), value.trim_matches([' ', '\t']).to_owned())
}

impl Head {
    /// Reads a head that ends in its empty line.
    pub(crate) fn parse(bytes: &[u8]) -> Head {
        let text = latin1(bytes);
        let mut lines = text.trim_end_matches("\r\n").split("\r\n");
        Head {
            start: lines.next().unwrap_or_default().to_owned(),
            fields: lines.map(field).collect(),
        }
    }

    /// Every value of a field, in order; names compare without case.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        self.fields
            .iter()
            .filter(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
            .collect()
    }

    /// The value of a field that may be there once.
    pub(crate) fn one(&self, name: &str) -> Option<&str> {
        let values = self.all(name);
        assert!(values.len() < 2, "`{name}` is there {values:?}: {self}");
        values.first().copied()
    }

    /// How the body behind this head is framed.
    pub(crate) fn framing(&self, asked: Asked) -> Framing {
        if self.has_no_body(asked) {
            return Framing::None;
        }
        if let Some(coding) = self.one("transfer-encoding") {
            assert_eq!(coding, "chunked", "{self}");
            assert_eq!(self.one("content-length"), None, "two framings: {self}");
            return Framing::Chunked;
        }
        match (self.one("content-length"), asked) {
            (Some(length), _) => Framing::Sized(length.parse().unwrap()),
            (None, Asked::Request) => Framing::None,
            (None, Asked::AnswerTo(_)) => Framing::UntilClose,
        }
    }

    fn has_no_body(&self, asked: Asked) -> bool {
        match asked {
            Asked::Request => false,
            Asked::AnswerTo(method) => {
                method == "HEAD" || matches!(self.status(), 204 | 304) || self.status() / 100 == 1
            }
        }
    }

    /// The status of an answer.
    /// The fields by name, in lower case, for a comparison that does not depend on their order.
    pub(crate) fn sorted(&self) -> Vec<(String, String)> {
        let lower = |(name, value): &(String, String)| (name.to_ascii_lowercase(), value.clone());
        let mut fields: Vec<_> = self.fields.iter().map(lower).collect();
        fields.sort();
        fields
    }

    pub(crate) fn status(&self) -> u16 {
        let code = self.start.split(' ').nth(1).unwrap_or_default();
        code.parse()
            .unwrap_or_else(|_| panic!("no status line: {self}"))
    }
}

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked<'a> {
    Request,
    /// The answer to a request of this method.
    AnswerTo(&'a str),
}

impl Message {
    /// The status of an answer.
    pub(crate) fn status(&self) -> u16 {
        self.head.status()
    }

    /// The content as text.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The content as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in the body of {self:?}"))
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.start)?;
        for (name, value) in &self.fields {
            writeln!(f, "{name}: {value}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = &self.body[..self.body.len().min(2000)];
        writeln!(f, "{}\n{}", self.head, latin1(start))?;
        write!(
            f,
            "({} bytes, trailers {:?})",
            self.body.len(),
            self.trailers
        )
    }
}
