//! Messages that clients send to an RPC path. Used by `model` and `gateway`.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use dualgauge_patterns::json::{
    BYTE_ORDER_MARK, Json, JsonFault, JsonKind, MemberSpan, decode, kind_of, same_ignoring_case,
    scan_array, scan_object, scan_value, text_of,
};

use super::RequestId;

/// The limits of reading a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageLimits {
    /// The deepest nesting of arrays and objects.
    pub depth: u16,
    /// The maximum number of messages in one batch.
    pub batch: usize,
}

/// The content of one body.
#[derive(Debug)]
pub enum Incoming {
    /// One message.
    Single(MessageItem),
    /// A batch of at least one message (JSON-RPC 2.0 §6).
    Batch(Vec<MessageItem>),
}

impl Incoming {
    /// Returns whether it has at least one valid message.
    #[must_use]
    pub fn has_message(&self) -> bool {
        match self {
            Incoming::Single(item) => item.is_message(),
            Incoming::Batch(items) => items.iter().any(MessageItem::is_message),
        }
    }
}

/// One message, or an invalid value in its place.
#[derive(Debug)]
pub enum MessageItem {
    /// A request or a notification.
    Call(Call),
    /// A response of the client to a request of the server.
    Response(Json),
    /// Valid JSON that is not a message.
    Invalid(Invalid),
}

impl MessageItem {
    /// Returns whether it is a valid message.
    #[must_use]
    pub fn is_message(&self) -> bool {
        match self {
            MessageItem::Call(_) | MessageItem::Response(_) => true,
            MessageItem::Invalid(_) => false,
        }
    }
}

/// A request, or a notification if the id is absent.
#[derive(Debug, Clone)]
pub struct Call {
    /// The whole message.
    pub text: Json,
    /// The method, decoded.
    pub method: Arc<str>,
    /// The parameters: an object, an array, or absent.
    pub params: Option<Json>,
    /// The id; absent for a notification.
    pub id: Option<RequestId>,
    pub(super) id_range: Option<Range<usize>>,
}

impl Call {
    /// Returns the message with another id; every other byte is unchanged.
    #[must_use]
    pub fn with_id(&self, id: u64) -> Bytes {
        let text = self.text.as_bytes();
        let Some(range) = self.id_range.clone() else {
            return self.text.clone().into_bytes();
        };
        [
            &text[..range.start],
            id.to_string().as_bytes(),
            &text[range.end..],
        ]
        .concat()
        .into()
    }

    /// Returns the call as a request, with a null id if it has none.
    #[must_use]
    pub fn into_request(self) -> Call {
        Call {
            id: Some(self.id.unwrap_or(RequestId::null())),
            ..self
        }
    }

    /// Returns the message without some of its members; `None` if it has none of them.
    #[must_use]
    pub fn without(&self, is_removed: impl Fn(&str) -> bool) -> Option<Bytes> {
        // The message was opened successfully when it was read.
        let members = self.text.open().ok()?;
        if !members.iter().any(|member| is_removed(&member.name)) {
            return None;
        }
        let mut out = Vec::with_capacity(self.text.as_bytes().len());
        for member in members.iter().filter(|member| !is_removed(&member.name)) {
            out.push(if out.is_empty() { b'{' } else { b',' });
            out.extend_from_slice(&self.text.as_bytes()[member.whole.clone()]);
        }
        out.push(b'}');
        Some(out.into())
    }
}

/// The reason why a JSON value is not a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// The id for the error response: the sender's if readable, else null.
    pub id: RequestId,
    /// The fault, with the name of the member.
    pub why: Cow<'static, str>,
    /// The value.
    pub text: Bytes,
}

/// The reason why the messages of a body are not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The body is not JSON.
    #[error("the body is not JSON: {0}")]
    Json(JsonFault),
    /// The body is nested beyond the limit.
    #[error("{0}")]
    TooDeep(JsonFault),
    /// An empty batch.
    #[error("the batch is empty; send at least one message (JSON-RPC 2.0 §6)")]
    EmptyBatch,
    /// More messages than the limit.
    #[error("the batch has {found} messages; at most {limit} are allowed")]
    BatchTooLarge {
        /// The number of messages.
        found: usize,
        /// The limit.
        limit: usize,
    },
}

impl From<JsonFault> for MessageError {
    fn from(fault: JsonFault) -> Self {
        if fault.is_too_deep() {
            MessageError::TooDeep(fault)
        } else {
            MessageError::Json(fault)
        }
    }
}

/// Parses a body.
///
/// # Errors
/// [`MessageError`] if no part of the body can be answered individually.
pub fn parse(body: &Bytes, limits: MessageLimits) -> Result<Incoming, MessageError> {
    match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => Ok(Incoming::Single(single(body, limits.depth)?)),
        Some(b'[') => batch(body, limits),
        _ if body.starts_with(BYTE_ORDER_MARK) => {
            let text = body.slice(BYTE_ORDER_MARK.len()..);
            // Only one byte order mark is ignored.
            if text.starts_with(BYTE_ORDER_MARK) {
                scan_value(&text, limits.depth)?;
            }
            parse(&text, limits)
        }
        _ => {
            let value = scan_value(body, limits.depth)?;
            Ok(Incoming::Single(no_object(body.slice(value))))
        }
    }
}

fn no_message(text: Bytes, why: impl Into<Cow<'static, str>>) -> MessageItem {
    MessageItem::Invalid(Invalid {
        id: RequestId::null(),
        why: why.into(),
        text,
    })
}

fn no_object(text: Bytes) -> MessageItem {
    let kind = kind_of(&text).described();
    no_message(text, format!("a message must be an object, not {kind}"))
}

fn batch(body: &Bytes, limits: MessageLimits) -> Result<Incoming, MessageError> {
    let mut ranges = Vec::new();
    let mut found = 0;
    scan_array(body, limits.depth, |range| {
        found += 1;
        if found <= limits.batch {
            ranges.push(range);
        }
    })?;
    if found == 0 {
        return Err(MessageError::EmptyBatch);
    }
    if found > limits.batch {
        return Err(MessageError::BatchTooLarge {
            found,
            limit: limits.batch,
        });
    }
    let items = ranges
        .into_iter()
        .map(|range| match kind_of(&body[range.clone()]) {
            JsonKind::Object => single(&body.slice(range), limits.depth),
            JsonKind::Array
            | JsonKind::String
            | JsonKind::Number
            | JsonKind::Boolean
            | JsonKind::Null => Ok(no_object(body.slice(range))),
        });
    items
        .collect::<Result<_, _>>()
        .map(Incoming::Batch)
        .map_err(Into::into)
}

fn single(text: &Bytes, depth: u16) -> Result<MessageItem, JsonFault> {
    let mut envelope = Envelope::default();
    let whole = scan_object(text, depth, |member| envelope.note(text, member))?;
    Ok(envelope.into_item(text, whole))
}

/// Returns whether a value is the string `2.0`, with or without escapes.
fn is_two(value: &[u8]) -> bool {
    let escaped = || {
        let inner = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        decode(inner).ok().map(|version| version == "2.0")
    };
    value == b"\"2.0\"" || escaped() == Some(true)
}

/// The ranges of the members that the specification defines.
#[derive(Debug, Default)]
pub(super) struct Envelope {
    pub(super) ranges: [Option<Range<usize>>; 6],
    pub(super) fault: Option<String>,
}

pub(super) const JSONRPC: usize = 0;
pub(super) const ID: usize = 1;
pub(super) const METHOD: usize = 2;
pub(super) const PARAMS: usize = 3;
pub(super) const RESULT: usize = 4;
pub(super) const ERROR: usize = 5;
pub(super) const NAMES: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

impl Envelope {
    pub(super) fn note(&mut self, text: &[u8], member: MemberSpan) {
        let raw = &text[member.name];
        let index = match raw {
            b"jsonrpc" => JSONRPC,
            b"id" => ID,
            b"method" => METHOD,
            b"params" => PARAMS,
            b"result" => RESULT,
            b"error" => ERROR,
            _ => return self.note_unknown(raw, member.value),
        };
        self.put(index, member.value);
    }

    /// Records an unknown member whose name may be another spelling of a known one.
    fn note_unknown(&mut self, raw: &[u8], value: Range<usize>) {
        // The longest name has seven letters; an escape or a non-ASCII letter makes a name longer.
        let plain = raw.is_ascii() && !raw.contains(&b'\\');
        if plain && raw.len() > 7 {
            return;
        }
        let Ok(name) = decode(raw) else { return };
        match NAMES
            .iter()
            .position(|known| same_ignoring_case(known, &name))
        {
            Some(index) if NAMES[index] == name => self.put(index, value),
            Some(index) => {
                let known = NAMES[index];
                self.set_fault(format!(
                    "the member `{name}` differs from `{known}` only in letter case"
                ));
            }
            None => {}
        }
    }

    fn put(&mut self, index: usize, value: Range<usize>) {
        if self.ranges[index].replace(value).is_some() {
            self.set_fault(format!("the member `{}` is given twice", NAMES[index]));
        }
    }

    fn set_fault(&mut self, what: String) {
        self.fault.get_or_insert(what);
    }

    fn value(&self, text: &Bytes, index: usize) -> Option<Json> {
        self.ranges[index]
            .clone()
            .map(|range| Json::scanned(text, range))
    }

    fn into_item(self, text: &Bytes, whole: Range<usize>) -> MessageItem {
        let id = match self.value(text, ID).map(RequestId::new) {
            None => None,
            Some(Some(id)) => Some(id),
            Some(None) => {
                let why = "`id` must be a string, a number or null";
                return no_message(text.slice(whole), why);
            }
        };
        let invalid = |why: Cow<'static, str>| {
            MessageItem::Invalid(Invalid {
                id: id.clone().unwrap_or(RequestId::null()),
                why,
                text: text.slice(whole.clone()),
            })
        };
        if let Some(fault) = self.fault {
            // With a repeated name, nothing in the envelope can be trusted, least of all the id.
            return no_message(text.slice(whole), fault);
        }
        match self.ranges[JSONRPC].clone().map(|range| &text[range]) {
            Some(version) if is_two(version) => {}
            None => return invalid("`jsonrpc` is missing; it must be \"2.0\"".into()),
            Some(_) => return invalid("`jsonrpc` must be the string \"2.0\"".into()),
        }
        let answers = self.ranges[RESULT].is_some() || self.ranges[ERROR].is_some();
        let method = match self.ranges[METHOD]
            .clone()
            .map(|range| text_of(&text[range]))
        {
            None if answers => return MessageItem::Response(Json::scanned(text, whole)),
            None => return invalid("`method` is missing".into()),
            Some(Some(Ok(_))) if answers => {
                return invalid("a message with `method` must not have `result` or `error`".into());
            }
            Some(Some(Ok(method))) => Arc::from(&*method),
            Some(_) => return invalid("`method` must be a string".into()),
        };
        let params = self.value(text, PARAMS);
        if let Some(kind) = params.as_ref().map(Json::kind)
            && !matches!(kind, JsonKind::Object | JsonKind::Array)
        {
            let found = kind.described();
            return invalid(format!("`params` must be an object or an array, not {found}; leave it out where there are none").into());
        }
        let id_range = self.ranges[ID]
            .clone()
            .map(|range| range.start - whole.start..range.end - whole.start);
        MessageItem::Call(Call {
            text: Json::scanned(text, whole),
            method,
            params,
            id,
            id_range,
        })
    }
}
