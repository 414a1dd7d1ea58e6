//! One event as one JSON value, whatever its form: patterns read and write this value.
//!
//! A notification or a frame is its own value. An event of a stream is `{event, id, data}`; JSON data is wrapped in an
//! array, so that it differs from the same data as text.
//!
//! Used by `event::table`, `stream::rewrite` and `gateway::legacy_socket::events`.

use bytes::Bytes;

use super::EventForm;
use crate::jsonrpc::{Incoming, MessageItem, MessageLimits, parse};
use dualgauge_patterns::json::{Json, JsonKind, encode};
use dualgauge_patterns::pattern::MatchError;

/// An event in one of its forms.
#[derive(Debug, Clone)]
pub struct EventValue {
    form: EventForm,
    pub(super) view: Json,
    /// Members that a pattern need not name.
    pub(super) unnamed: usize,
}

/// The fields of a stream's event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseFields {
    /// The type.
    pub event: String,
    /// The new id, if it changes.
    pub id: Option<String>,
    /// The data.
    pub data: String,
}

/// The member that holds the id of a stream's event.
pub(super) const ID: &str = "id";

impl EventValue {
    /// Returns a notification; `None` if the text is not one: invalid JSON-RPC, a request, a response, a batch.
    #[must_use]
    pub fn rpc(text: &Bytes, depth: u16) -> Option<EventValue> {
        let limits = MessageLimits { depth, batch: 1 };
        let Ok(Incoming::Single(MessageItem::Call(call))) = parse(text, limits) else {
            return None;
        };
        call.id.is_none().then_some(EventValue {
            form: EventForm::Rpc,
            view: call.text,
            unnamed: 0,
        })
    }

    /// Returns a frame.
    #[must_use]
    pub fn frame(frame: Json) -> EventValue {
        EventValue {
            form: EventForm::Frame,
            view: frame,
            unnamed: 0,
        }
    }

    /// Returns an event of a stream.
    #[must_use]
    pub fn sse(event: &str, id: Option<&str>, data: &str, depth: u16) -> EventValue {
        let mut view = Vec::with_capacity(data.len() + event.len() + 32);
        view.extend_from_slice(b"{\"event\":");
        encode(event, &mut view);
        if let Some(id) = id {
            view.extend_from_slice(b",\"id\":");
            encode(id, &mut view);
        }
        view.extend_from_slice(b",\"data\":");
        match Json::parse(Bytes::copy_from_slice(data.as_bytes()), depth) {
            Ok(json) => {
                view.push(b'[');
                view.extend_from_slice(json.as_bytes());
                view.push(b']');
            }
            Err(_) => encode(data, &mut view),
        }
        view.push(b'}');
        EventValue {
            form: EventForm::Sse,
            view: Json::written(view),
            unnamed: usize::from(id.is_some()),
        }
    }

    /// Returns the event with the value that a pattern wrote.
    pub(super) fn written(form: EventForm, view: Json) -> Result<EventValue, MatchError> {
        let event = EventValue {
            form,
            view,
            unnamed: 0,
        };
        match form {
            EventForm::Rpc => {
                let params = event.view.member("params").map(|params| params.kind());
                if !matches!(params, None | Some(JsonKind::Object | JsonKind::Array)) {
                    let what = "params must be an object or an array (JSON-RPC 2.0 §4.2)";
                    return Err(MatchError::new("rpc/params", what));
                }
            }
            EventForm::Sse => event.is_readable()?,
            EventForm::Frame => {}
        }
        Ok(event)
    }

    /// Rejects a text that would be read as JSON.
    fn is_readable(&self) -> Result<(), MatchError> {
        let data = self.view.member("data");
        let text = data.and_then(|data| data.text()?.ok());
        let is_json = |text: String| Json::parse(Bytes::from(text), u16::MAX).is_ok();
        if text.is_some_and(is_json) {
            return Err(MatchError::new("sse/text", "it would be read as JSON"));
        }
        Ok(())
    }

    /// Returns the form.
    #[must_use]
    pub fn form(&self) -> EventForm {
        self.form
    }

    /// Returns the notification, or the frame.
    #[must_use]
    pub fn message(&self) -> Option<&Json> {
        match self.form {
            EventForm::Rpc | EventForm::Frame => Some(&self.view),
            EventForm::Sse => None,
        }
    }

    /// Returns the fields of a stream's event.
    #[must_use]
    pub fn fields(&self) -> Option<SseFields> {
        if self.form != EventForm::Sse {
            return None;
        }
        let text = |name: &str| self.view.member(name)?.text()?.ok();
        let data = self.view.member("data");
        let json = data.as_ref().and_then(|data| {
            let inside = data.elements().next()?;
            let inside = data.piece(inside);
            String::from_utf8(inside.as_bytes().to_vec()).ok()
        });
        Some(SseFields {
            event: text("event").unwrap_or_else(|| crate::sse::MESSAGE.to_owned()),
            id: text(ID),
            data: json.or_else(|| text("data")).unwrap_or_default(),
        })
    }
}
