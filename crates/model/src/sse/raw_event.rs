//! One server-sent event: parsing of its lines, and rewriting. Used by `event`, `stream` and `upstream`.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use memchr::memchr2;

/// The default event type (§9.2.6).
pub const MESSAGE: &str = "message";

/// An event as received.
#[derive(Debug)]
pub struct RawEvent {
    text: Bytes,
    lines: Vec<RawLine>,
}

#[derive(Debug)]
struct RawLine {
    kind: LineKind,
    /// The value after the colon and one space.
    value: Range<usize>,
    whole: Range<usize>,
    /// The start of the line end.
    end: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineKind {
    Event,
    Data,
    Id,
    Retry,
    Comment,
    /// An unknown field, or one with a value that readers ignore.
    Ignored,
    Blank,
}

/// The new content of a rewritten event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventContent<'c> {
    /// Its type.
    pub event: &'c str,
    /// Its data.
    pub data: &'c str,
    /// The new id, if it changes.
    pub id: Option<&'c str>,
}

/// The reason why no event can have a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unwritable {
    /// The value contains a line end, which would start another field (§9.2.6).
    #[error("the {0} of an event has no line ends")]
    LineEnd(&'static str),
    /// Readers treat a carriage return in data as a line feed.
    #[error("the data of an event has no carriage returns")]
    Return,
    /// Readers ignore an id with NUL.
    #[error("the id of an event has no NUL")]
    Nul,
    /// An event without a type is read as `message`.
    #[error("the type of an event is not empty")]
    NoType,
}

impl RawEvent {
    /// Parses the lines of an event; returns `None` if they are not UTF-8, which no rule can match.
    #[must_use]
    pub fn read(text: &Bytes) -> Option<RawEvent> {
        std::str::from_utf8(text).ok()?;
        let mut lines = Vec::new();
        let mut start = 0;
        while start < text.len() {
            let end = memchr2(b'\r', b'\n', &text[start..]).map_or(text.len(), |at| start + at);
            let next_line = match &text[end..] {
                [b'\r', b'\n', ..] => end + 2,
                [] => end,
                [_, ..] => end + 1,
            };
            let (kind, from) = field(&text[start..end]);
            lines.push(RawLine {
                kind,
                value: start + from..end,
                whole: start..next_line,
                end,
            });
            start = next_line;
        }
        let text = text.clone();
        Some(RawEvent { text, lines })
    }

    /// Returns the type.
    #[must_use]
    pub fn event(&self) -> &str {
        match self.last(LineKind::Event) {
            None | Some("") => MESSAGE,
            Some(event) => event,
        }
    }

    /// Returns the id that the event sets.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.last(LineKind::Id)
    }

    /// Returns the data, with lines joined by line feeds. Clients do not dispatch an event without data.
    #[must_use]
    pub fn data(&self) -> Option<Cow<'_, str>> {
        let mut all = self.lines.iter().filter(|line| line.kind == LineKind::Data);
        let first = self.value(all.next()?);
        let mut data = Cow::Borrowed(first);
        for line in all {
            let joined = data.to_mut();
            joined.push('\n');
            joined.push_str(self.value(line));
        }
        Some(data)
    }

    /// Returns the data of an event that clients dispatch, as UTF-8; `None` if the data is missing or empty (§9.2.6).
    /// Data of one line is not copied.
    #[must_use]
    pub fn dispatched_data(&self) -> Option<Bytes> {
        let mut lines = self.lines.iter().filter(|line| line.kind == LineKind::Data);
        let data = match (lines.next()?, lines.next()) {
            (only, None) => self.text.slice(only.value.clone()),
            (_, Some(_)) => self.data()?.into_owned().into(),
        };
        (!data.is_empty()).then_some(data)
    }

    /// Returns the event with another content. Id, retry, comments and unknown fields stay in place, and line ends are
    /// kept.
    ///
    /// # Errors
    /// [`Unwritable`] if an event cannot have this content.
    pub fn rewritten(&self, content: EventContent<'_>) -> Result<Vec<u8>, Unwritable> {
        content.check()?;
        let mut out = Vec::with_capacity(self.text.len() + content.data.len());
        let keeps_event = self.event() == content.event;
        let mut event = (!keeps_event && content.event != MESSAGE).then_some(content.event);
        let mut id = content.id;
        let mut data = Some(content.data);
        for line in &self.lines {
            let end = self.end_of(line);
            match line.kind {
                LineKind::Event if !keeps_event => put(&mut out, "event", event.take(), end),
                LineKind::Id if content.id.is_some() => put(&mut out, "id", id.take(), end),
                LineKind::Data => {
                    put(&mut out, "event", event.take(), end);
                    put(&mut out, "id", id.take(), end);
                    for piece in data.take().into_iter().flat_map(|data| data.split('\n')) {
                        put(&mut out, "data", Some(piece), end);
                    }
                }
                LineKind::Event
                | LineKind::Id
                | LineKind::Retry
                | LineKind::Comment
                | LineKind::Ignored
                | LineKind::Blank => copy(&mut out, &self.text[line.whole.clone()]),
            }
        }
        Ok(out)
    }

    /// Returns the part of a dropped event that must still be sent: its id, retry and comments. Without data, clients
    /// dispatch no event. Empty if there are none.
    #[must_use]
    pub fn emptied(&self) -> Vec<u8> {
        let stays =
            |kind: LineKind| matches!(kind, LineKind::Id | LineKind::Retry | LineKind::Comment);
        if !self.lines.iter().any(|line| stays(line.kind)) {
            return Vec::new();
        }
        let lines = self.lines.iter();
        let lines = lines.filter(|line| stays(line.kind) || line.kind == LineKind::Blank);
        let mut out = Vec::new();
        for line in lines {
            copy(&mut out, &self.text[line.whole.clone()]);
        }
        out
    }

    fn value(&self, line: &RawLine) -> &str {
        // The whole event was checked to be UTF-8, and fields end at ASCII characters.
        std::str::from_utf8(&self.text[line.value.clone()]).unwrap_or_default()
    }

    fn last(&self, kind: LineKind) -> Option<&str> {
        let mut lines = self.lines.iter().rev();
        lines
            .find(|line| line.kind == kind)
            .map(|line| self.value(line))
    }

    /// Returns the end of a line; the last line of a stream may have none, but a line written after it needs one.
    fn end_of(&self, line: &RawLine) -> &[u8] {
        match &self.text[line.end..line.whole.end] {
            [] => {
                let first = self.lines.first();
                let first = first.map(|first| &self.text[first.end..first.whole.end]);
                first.filter(|end| !end.is_empty()).unwrap_or(b"\n")
            }
            end => end,
        }
    }
}

impl EventContent<'_> {
    fn check(&self) -> Result<(), Unwritable> {
        let breaks = |text: &str| text.contains(['\r', '\n']);
        if breaks(self.event) {
            return Err(Unwritable::LineEnd("type"));
        }
        if self.event.is_empty() {
            return Err(Unwritable::NoType);
        }
        if self.data.contains('\r') {
            return Err(Unwritable::Return);
        }
        match self.id {
            Some(id) if breaks(id) => Err(Unwritable::LineEnd("id")),
            Some(id) if id.contains('\0') => Err(Unwritable::Nul),
            Some(_) | None => Ok(()),
        }
    }
}

/// Copies a line. One that is only `\n` would become a part of the `\r` before it, where a line between them is left out.
fn copy(out: &mut Vec<u8>, line: &[u8]) {
    if out.ends_with(b"\r") && line.starts_with(b"\n") {
        out.push(b'\n');
    }
    out.extend_from_slice(line);
}

fn put(out: &mut Vec<u8>, name: &str, value: Option<&str>, end: &[u8]) {
    let Some(value) = value else { return };
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(end);
}

/// Returns the kind of a line, and the offset of its value (§9.2.6).
fn field(line: &[u8]) -> (LineKind, usize) {
    let colon = memchr::memchr(b':', line);
    let name = &line[..colon.unwrap_or(line.len())];
    let from = match colon {
        None => line.len(),
        Some(colon) if line.get(colon + 1) == Some(&b' ') => colon + 2,
        Some(colon) => colon + 1,
    };
    let value = &line[from..];
    let kind = match name {
        b"" if colon.is_some() => LineKind::Comment,
        b"" => LineKind::Blank,
        b"event" => LineKind::Event,
        b"data" => LineKind::Data,
        b"id" if !value.contains(&0) => LineKind::Id,
        b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => LineKind::Retry,
        _ => LineKind::Ignored,
    };
    (kind, from)
}
