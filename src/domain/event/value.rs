//! One event as one JSON value, whatever its form: what patterns read and write.
//!
//! A notification is itself, a frame as well. An event of a stream is `{event, id, data}`; data that is JSON stands in
//! an array of its own, so that it is never taken for the text that other data is.

use bytes::Bytes;

use super::EventForm;
use crate::domain::json::{Json, JsonKind, encode};
use crate::domain::jsonrpc::{Incoming, MessageItem, MessageLimits, parse};
use crate::domain::pattern::MatchError;

/// An event in one of its forms.
#[derive(Debug, Clone)]
pub struct EventValue {
    form: EventForm,
    pub(super) view: Json,
    /// Members of the view that a pattern need not name.
    pub(super) unnamed: usize,
}

/// What an event of a stream says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseFields {
    /// Its type.
    pub event: String,
    /// Its id, where it has another one now.
    pub id: Option<String>,
    /// Its data.
    pub data: String,
}

/// The member of the view that holds the id of a stream's event.
pub(super) const ID: &str = "id";

impl EventValue {
    /// A notification; none where the text is no valid one: no JSON-RPC, a request, a response, a batch.
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

    /// A frame.
    #[must_use]
    pub fn frame(frame: Json) -> EventValue {
        EventValue {
            form: EventForm::Frame,
            view: frame,
            unnamed: 0,
        }
    }

    /// An event of a stream.
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

    /// What a pair has written.
    pub(super) fn written(form: EventForm, view: Json) -> Result<EventValue, MatchError> {
        let told = EventValue {
            form,
            view,
            unnamed: 0,
        };
        match form {
            EventForm::Rpc => {
                let params = told.view.member("params").map(|params| params.kind());
                if !matches!(params, None | Some(JsonKind::Object | JsonKind::Array)) {
                    let what = "params are an object or an array (JSON-RPC 2.0 §4.2)";
                    return Err(MatchError::new("rpc/params", what));
                }
            }
            EventForm::Sse => told.is_readable()?,
            EventForm::Frame => {}
        }
        Ok(told)
    }

    /// Refuses a text that would be read as JSON.
    fn is_readable(&self) -> Result<(), MatchError> {
        let data = self.view.member("data");
        let text = data.and_then(|data| data.text()?.ok());
        let is_json = |text: String| Json::parse(Bytes::from(text), u16::MAX).is_ok();
        if text.is_some_and(is_json) {
            return Err(MatchError::new("sse/text", "it would be read as JSON"));
        }
        Ok(())
    }

    /// Its form.
    #[must_use]
    pub fn form(&self) -> EventForm {
        self.form
    }

    /// The notification, or the frame.
    #[must_use]
    pub fn message(&self) -> Option<&Json> {
        match self.form {
            EventForm::Rpc | EventForm::Frame => Some(&self.view),
            EventForm::Sse => None,
        }
    }

    /// What an event of a stream says.
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
            event: text("event").unwrap_or_else(|| crate::domain::sse::MESSAGE.to_owned()),
            id: text(ID),
            data: json.or_else(|| text("data")).unwrap_or_default(),
        })
    }
}
