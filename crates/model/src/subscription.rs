//! Subscriptions of JSON-RPC: a call whose result has an id, notifications that carry it, and a call that ends it.
//!
//! A [`SubscriptionRule`] tells where the id and the event are. It knows no link and no client. Laws: the id of a result
//! and the id of a notification are equal exactly if they are the same string or the same number text; the event is a
//! part of the notification, byte for byte.
//!
//! Used by `config`, `explain`, `pending`, `route` and `gateway`.

use std::fmt::Write as _;

use bytes::Bytes;

use dualgauge_patterns::json::{Json, JsonKind};
use dualgauge_patterns::pattern::{PatternError, SourceTree};
use dualgauge_patterns::rope::Rope;

/// The placeholder of the id.
const ID: &str = "{id}";
/// The placeholder of the event.
const EVENT: &str = "{event}";
/// The maximum length of an id in bytes. The proxy keeps the ids of all open subscriptions.
const LONGEST_ID: usize = 256;

/// The declaration of a subscription, as the route table has it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SubscriptionSource {
    /// `result`: the place of the id in the result; the whole result if absent.
    pub result: Option<SourceTree>,
    /// `notification.method`
    pub method: String,
    /// `notification.params`: the places of the id and of the event.
    pub params: Option<SourceTree>,
    /// `unsubscribe.method`
    pub unsubscribe: String,
    /// `unsubscribe.params`; a list of the id if absent.
    pub unsubscribe_params: Option<SourceTree>,
}

/// The rule of the subscriptions that the calls of a route open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionRule {
    result_id: Place,
    /// The method of the notifications.
    pub method: String,
    notified_id: Place,
    event: Place,
    /// The method of the call that ends a subscription.
    pub unsubscribe: String,
    unsubscribe_params: Vec<ParamsPart>,
}

/// The id of a subscription: a string or a number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SubscriptionId(IdText);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum IdText {
    String(String),
    /// A number as written.
    Number(Bytes),
}

/// The place of a value within a JSON value.
type Place = Vec<Step>;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Member(String),
    Element(usize),
}

/// A part of the params of the call that ends a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ParamsPart {
    Json(String),
    Id,
}

impl SubscriptionRule {
    /// Compiles a declaration.
    ///
    /// # Errors
    /// Fails with the key of the wrong value.
    pub fn new(source: &SubscriptionSource) -> Result<SubscriptionRule, PatternError> {
        let whole = SourceTree::Text(ID.to_owned());
        let result = source.result.as_ref().unwrap_or(&whole);
        let result_id = only_place(result, ID).map_err(|error| error.under("result"))?;
        if places(result, EVENT)?.next().is_some() {
            let what = "a result has no event; write `{event}` in `notification.params`";
            return Err(PatternError::new(what).under("result"));
        }
        let params = source.params.as_ref();
        let params = params.ok_or_else(|| {
            let what = "write a table with `{id}` and `{event}`, such as `{ subscription = \"{id}\", result = \"{event}\" }`";
            PatternError::new(what).under("params").under("notification")
        })?;
        let of_notification = |error: PatternError| error.under("params").under("notification");
        let notified_id = only_place(params, ID).map_err(of_notification)?;
        let event = only_place(params, EVENT).map_err(of_notification)?;
        let list = SourceTree::List(vec![SourceTree::Text(ID.to_owned())]);
        let unsubscribe = source.unsubscribe_params.as_ref().unwrap_or(&list);
        let unsubscribe_params = params_parts(unsubscribe)
            .map_err(|error| error.under("params").under("unsubscribe"))?;
        Ok(SubscriptionRule {
            result_id,
            method: source.method.clone(),
            notified_id,
            event,
            unsubscribe: source.unsubscribe.clone(),
            unsubscribe_params,
        })
    }

    /// Returns the id in the result of the call that opens a subscription.
    #[must_use]
    pub fn id_of_result(&self, result: &Json) -> Option<SubscriptionId> {
        SubscriptionId::new(&at(result.clone(), &self.result_id)?)
    }

    /// Returns the id in the params of a notification.
    #[must_use]
    pub fn id_of_params(&self, params: &Json) -> Option<SubscriptionId> {
        SubscriptionId::new(&at(params.clone(), &self.notified_id)?)
    }

    /// Returns the event in a notification.
    #[must_use]
    pub fn event(&self, notification: Bytes, depth: u16) -> Option<Json> {
        let notification = Json::parse(notification, depth).ok()?;
        at(notification.member("params")?, &self.event)
    }

    /// Returns the params of the call that ends a subscription.
    #[must_use]
    pub fn unsubscribe_params(&self, id: &SubscriptionId) -> Rope {
        let mut params = Vec::new();
        for part in &self.unsubscribe_params {
            match part {
                ParamsPart::Json(text) => params.extend_from_slice(text.as_bytes()),
                ParamsPart::Id => params.extend_from_slice(id.to_json().as_bytes()),
            }
        }
        Rope::from(Bytes::from(params))
    }
}

impl SubscriptionId {
    /// Returns the id, if a value can be one.
    fn new(value: &Json) -> Option<SubscriptionId> {
        let text = value.as_bytes();
        if text.len() > LONGEST_ID {
            return None;
        }
        match value.kind() {
            JsonKind::String => Some(SubscriptionId(IdText::String(value.text()?.ok()?))),
            JsonKind::Number => {
                let number = Bytes::copy_from_slice(text);
                Some(SubscriptionId(IdText::Number(number)))
            }
            JsonKind::Null | JsonKind::Boolean | JsonKind::Array | JsonKind::Object => None,
        }
    }

    fn to_json(&self) -> Json {
        match &self.0 {
            IdText::String(text) => Json::string(text),
            IdText::Number(number) => Json::written(number.clone()),
        }
    }
}

/// Returns the value at a place.
fn at(value: Json, place: &[Step]) -> Option<Json> {
    place.iter().try_fold(value, |value, step| match step {
        Step::Member(name) => value.member(name),
        Step::Element(index) => {
            let range = value.elements().nth(*index)?;
            Some(value.piece(range))
        }
    })
}

/// Returns the only place of a placeholder.
fn only_place(tree: &SourceTree, placeholder: &str) -> Result<Place, PatternError> {
    let mut all = places(tree, placeholder)?;
    match (all.next(), all.next()) {
        (Some(place), None) => Ok(place),
        (None, _) => Err(PatternError::new(format!("`{placeholder}` is missing"))),
        (Some(_), Some(_)) => Err(PatternError::new(format!(
            "`{placeholder}` is written twice; write it once"
        ))),
    }
}

/// Returns the places of a placeholder in a tree of tables and lists, whose texts are placeholders.
fn places(
    tree: &SourceTree,
    placeholder: &str,
) -> Result<impl Iterator<Item = Place> + use<>, PatternError> {
    let mut found = Vec::new();
    collect(tree, placeholder, &mut Vec::new(), &mut found)?;
    Ok(found.into_iter())
}

fn collect(
    tree: &SourceTree,
    placeholder: &str,
    here: &mut Place,
    found: &mut Vec<Place>,
) -> Result<(), PatternError> {
    match tree {
        SourceTree::Text(text) if text == placeholder => found.push(here.clone()),
        SourceTree::Text(text) if text == ID || text == EVENT => {}
        SourceTree::Text(_) | SourceTree::Literal(_) => {
            let what = "only tables, lists, `{id}` and `{event}` are allowed here";
            return Err(PatternError::new(what));
        }
        SourceTree::Table(members) => {
            for (name, value) in members {
                here.push(Step::Member(name.clone()));
                collect(value, placeholder, here, found).map_err(|error| error.under(name))?;
                here.pop();
            }
        }
        SourceTree::List(elements) => {
            for (index, value) in elements.iter().enumerate() {
                here.push(Step::Element(index));
                collect(value, placeholder, here, found)?;
                here.pop();
            }
        }
    }
    Ok(())
}

/// Returns the parts of params that hold an id.
fn params_parts(tree: &SourceTree) -> Result<Vec<ParamsPart>, PatternError> {
    if matches!(tree, SourceTree::Text(_) | SourceTree::Literal(_)) {
        return Err(PatternError::new(
            "the params of a call are a list or a table",
        ));
    }
    let mut parts = vec![ParamsPart::Json(String::new())];
    write_params(tree, &mut parts);
    match parts.contains(&ParamsPart::Id) {
        true => Ok(parts),
        false => Err(PatternError::new("`{id}` is missing")),
    }
}

fn write_params(tree: &SourceTree, parts: &mut Vec<ParamsPart>) {
    let json = |text: &str, parts: &mut Vec<ParamsPart>| match parts.last_mut() {
        Some(ParamsPart::Json(before)) => before.push_str(text),
        Some(ParamsPart::Id) | None => parts.push(ParamsPart::Json(text.to_owned())),
    };
    match tree {
        SourceTree::Text(text) if text == ID => parts.push(ParamsPart::Id),
        SourceTree::Text(text) => json(&shown(&Json::string(text)), parts),
        SourceTree::Literal(value) => json(&shown(value), parts),
        SourceTree::Table(members) => {
            for (index, (name, value)) in members.iter().enumerate() {
                let mut start = String::from(if index == 0 { "{" } else { "," });
                let _ = write!(start, "{}:", shown(&Json::string(name)));
                json(&start, parts);
                write_params(value, parts);
            }
            json(if members.is_empty() { "{}" } else { "}" }, parts);
        }
        SourceTree::List(elements) => {
            for (index, value) in elements.iter().enumerate() {
                json(if index == 0 { "[" } else { "," }, parts);
                write_params(value, parts);
            }
            json(if elements.is_empty() { "[]" } else { "]" }, parts);
        }
    }
}

fn shown(value: &Json) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// Panics if the id or the event in a notification is not a part of it, or if the call that ends the subscription names
/// another id.
pub fn check_any_notification(data: &[u8]) {
    const DEPTH: u16 = 32;
    let hole = |name: &str, hole: &str| (name.to_owned(), SourceTree::Text(hole.to_owned()));
    let source = SubscriptionSource {
        params: Some(SourceTree::Table(vec![hole("s", ID), hole("r", EVENT)])),
        ..SubscriptionSource::default()
    };
    let Ok(rule) = SubscriptionRule::new(&source) else {
        return;
    };
    let message = Bytes::copy_from_slice(data);
    if let Some(event) = rule.event(message.clone(), DEPTH) {
        let found = memchr::memmem::find(data, event.as_bytes());
        assert!(found.is_some(), "the event is a part of the notification");
    }
    let params = Json::parse(message, DEPTH).ok();
    let params = params.and_then(|message| message.member("params"));
    let Some(id) = params.and_then(|params| rule.id_of_params(&params)) else {
        return;
    };
    let ended = Json::parse(rule.unsubscribe_params(&id).into_bytes(), DEPTH);
    let named = ended.ok().and_then(|ended| {
        let only = ended.elements().next()?;
        SubscriptionId::new(&ended.piece(only))
    });
    assert_eq!(named, Some(id), "the same subscription ends");
}

#[cfg(test)]
mod tests;
