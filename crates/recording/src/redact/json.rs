//! JSON values.

use dualgauge_patterns::json::{
    Json, JsonKind, Members, Spelled, elements, encode, kind_of, text_of,
};

use super::{MAX_NESTED, Nameless, PLACEHOLDER, Redactor};

/// Names of members that name the value beside them, as in `{"name": "password", "value": "…"}`.
const NAMING: [&str; 5] = ["name", "key", "header", "field", "param"];
/// Names of the value beside such a member.
const NAMED: [&str; 6] = ["value", "values", "default", "data", "content", "text"];

/// The members of a JSON-RPC message that a route reads values from.
const CONTENT: [&str; 3] = ["params", "result", "method"];

/// The treatment of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Treatment {
    /// Only the values of sensitive names inside are replaced.
    Searched,
    /// The value is replaced.
    Replaced,
}

/// A walk over one JSON text.
struct Walk {
    /// The text so far.
    out: Vec<u8>,
    /// The place of the current value.
    place: String,
    /// The depth of JSON inside strings that is searched.
    nested: u8,
    has_changed: bool,
}

impl Redactor<'_> {
    /// Redacts a JSON text.
    #[must_use]
    pub fn json(&mut self, place: &str, json: &Json) -> Json {
        let json = json.compact();
        let mut walk = Walk::new(place, MAX_NESTED);
        self.root(&mut walk, json.as_bytes());
        match walk.has_changed {
            true => Json::written(walk.out),
            false => json,
        }
    }

    /// Redacts a value, and returns its text.
    #[must_use]
    pub fn redacted(&mut self, value: &Json) -> String {
        let mut walk = Walk::new("request.body/id", MAX_NESTED);
        self.value(&mut walk, value.as_bytes(), Treatment::Searched);
        String::from_utf8_lossy(&walk.out).into_owned()
    }

    /// Redacts JSON inside a string. Returns `None` if it is unchanged.
    pub(super) fn contained_json(&mut self, json: &Json, nested: u8) -> Option<Vec<u8>> {
        let json = json.compact();
        // The place of the string is noted by its owner.
        let mut walk = Walk::new("", nested);
        self.value(&mut walk, json.as_bytes(), Treatment::Searched);
        walk.has_changed.then_some(walk.out)
    }

    /// Redacts a body, or the messages of a batch.
    fn root(&mut self, walk: &mut Walk, text: &[u8]) {
        let is_message = |text: &[u8]| kind_of(text) == JsonKind::Object;
        let treatment = match self.nameless {
            Nameless::AllReplaced if is_message(text) && !is_rpc(text) => {
                return self.members(walk, text, |_, _| Treatment::Replaced);
            }
            Nameless::Replaced | Nameless::AllReplaced if !is_message(text) && !is_batch(text) => {
                Treatment::Replaced
            }
            Nameless::Replaced | Nameless::AllReplaced | Nameless::Kept => Treatment::Searched,
        };
        self.value(walk, text, treatment);
    }

    /// Treats the value of each member of an object by its name; replaces another value.
    fn members(
        &mut self,
        walk: &mut Walk,
        text: &[u8],
        treatment: impl Fn(&str, &[u8]) -> Treatment,
    ) {
        let Some(mut members) = Members::new(text, 0) else {
            return self.value(walk, text, Treatment::Replaced);
        };
        walk.out.push(b'{');
        let mut is_first = true;
        while let Some((raw, _)) = members.name() {
            let value = text.get(members.value()).unwrap_or_default();
            let name = walk.name(raw, std::mem::take(&mut is_first));
            let length = walk.enter(&name);
            self.value(walk, value, treatment(&name, value));
            walk.leave(length);
        }
        walk.out.push(b'}');
    }

    /// Redacts the error of a JSON-RPC message, which may repeat values of the call. Its code tells only the kind of
    /// failure.
    fn error(&mut self, walk: &mut Walk, text: &[u8]) {
        let replaces_all = self.nameless == Nameless::AllReplaced;
        self.members(walk, text, |name, value| match name {
            "code" => Treatment::Searched,
            "data" if kind_of(value) == JsonKind::Object && !replaces_all => Treatment::Searched,
            _ => Treatment::Replaced,
        });
    }

    fn value(&mut self, walk: &mut Walk, text: &[u8], treatment: Treatment) {
        match kind_of(text) {
            JsonKind::Object if treatment == Treatment::Replaced => {
                self.replace(walk, text, b"{}");
            }
            JsonKind::Object => self.object(walk, text),
            JsonKind::Array => self.array(walk, text, treatment),
            JsonKind::Null => walk.out.extend_from_slice(text),
            JsonKind::Boolean if treatment == Treatment::Replaced => {
                self.replace(walk, text, b"false");
            }
            JsonKind::Number if treatment == Treatment::Replaced => self.replace(walk, text, b"0"),
            JsonKind::Boolean | JsonKind::Number => walk.out.extend_from_slice(text),
            JsonKind::String => self.quoted(walk, text, treatment),
        }
    }

    fn quoted(&mut self, walk: &mut Walk, text: &[u8], treatment: Treatment) {
        let redacted = match (treatment, text_of(text)) {
            (Treatment::Replaced, _) => Some(PLACEHOLDER.to_owned()),
            (Treatment::Searched, Some(Ok(string))) => self.string(&string, walk.nested),
            // A string that is not Unicode text cannot be searched.
            (Treatment::Searched, Some(Err(_))) => Some(PLACEHOLDER.to_owned()),
            (Treatment::Searched, None) => None,
        };
        match redacted {
            Some(redacted) => {
                let mut quoted = Vec::with_capacity(redacted.len() + 2);
                encode(&redacted, &mut quoted);
                self.replace(walk, text, &quoted);
            }
            None => walk.out.extend_from_slice(text),
        }
    }

    fn replace(&mut self, walk: &mut Walk, text: &[u8], placeholder: &[u8]) {
        walk.out.extend_from_slice(placeholder);
        // An empty object hides nothing.
        if text != placeholder || text != b"{}" {
            walk.has_changed = true;
            if !walk.place.is_empty() {
                let place = walk.place.clone();
                self.note(&place);
            }
        }
    }

    fn array(&mut self, walk: &mut Walk, text: &[u8], treatment: Treatment) {
        walk.out.push(b'[');
        for (index, range) in elements(text).enumerate() {
            if index > 0 {
                walk.out.push(b',');
            }
            let element = text.get(range).unwrap_or_default();
            let length = walk.enter(&index.to_string());
            self.value(walk, element, treatment);
            walk.leave(length);
        }
        walk.out.push(b']');
    }

    fn object(&mut self, walk: &mut Walk, text: &[u8]) {
        let Some(mut members) = Members::new(text, 0) else {
            return;
        };
        let is_named = self.names_its_value(text);
        walk.out.push(b'{');
        let mut is_first = true;
        while let Some((raw, _)) = members.name() {
            let value = text.get(members.value()).unwrap_or_default();
            let name = walk.name(raw, std::mem::take(&mut is_first));
            let is_value = is_named && NAMED.contains(&name.as_str());
            let length = walk.enter(&name);
            if self.nameless == Nameless::AllReplaced && CONTENT.contains(&name.as_str()) {
                self.members(walk, value, |_, _| Treatment::Replaced);
            } else if self.nameless != Nameless::Kept && name == "error" && is_rpc(text) {
                self.error(walk, value);
            } else if is_value || self.is_nameless(&name, value) || self.hides(&name) {
                self.value(walk, value, Treatment::Replaced);
            } else {
                self.value(walk, value, Treatment::Searched);
            }
            walk.leave(length);
        }
        walk.out.push(b'}');
    }

    /// Returns true for the params by position and the result of a JSON-RPC message, if values without a name are
    /// replaced.
    fn is_nameless(&self, name: &str, value: &[u8]) -> bool {
        self.nameless == Nameless::Replaced
            && matches!(name, "params" | "result")
            && kind_of(value) != JsonKind::Object
    }

    /// Returns true if a member of the object gives a sensitive name to the value beside it.
    fn names_its_value(&self, text: &[u8]) -> bool {
        let Some(mut members) = Members::new(text, 0) else {
            return false;
        };
        while let Some((raw, _)) = members.name() {
            let value = text.get(members.value()).unwrap_or_default();
            let quoted = [b"\"", raw, b"\""].concat();
            let is_naming = NAMING.contains(&&*Spelled::read(&quoted).shown());
            if is_naming
                && let Some(Ok(name)) = text_of(value)
                && self.hides(&name)
            {
                return true;
            }
        }
        false
    }
}

/// Returns true for a JSON-RPC message.
fn is_rpc(text: &[u8]) -> bool {
    Members::new(text, 0).is_some_and(|mut members| {
        while let Some((raw, _)) = members.name() {
            if raw == b"jsonrpc" {
                return true;
            }
            members.value();
        }
        false
    })
}

/// Returns true for a batch of JSON-RPC messages.
fn is_batch(text: &[u8]) -> bool {
    let first = elements(text).next();
    first.is_some_and(|first| is_rpc(text.get(first).unwrap_or_default()))
}

impl Walk {
    fn new(place: &str, nested: u8) -> Walk {
        Walk {
            out: Vec::new(),
            place: place.to_owned(),
            nested,
            has_changed: false,
        }
    }

    /// Writes the name of a member; returns it decoded.
    fn name(&mut self, raw: &[u8], is_first: bool) -> String {
        let quoted = [b"\"", raw, b"\""].concat();
        if !is_first {
            self.out.push(b',');
        }
        self.out.extend_from_slice(&quoted);
        self.out.push(b':');
        Spelled::read(&quoted).shown().into_owned()
    }

    /// Appends a member or an element to the place, as a JSON Pointer (RFC 6901) does; returns the length before.
    fn enter(&mut self, step: &str) -> usize {
        let length = self.place.len();
        if !self.place.is_empty() {
            self.place.push('/');
            self.place
                .push_str(&step.replace('~', "~0").replace('/', "~1"));
        }
        length
    }

    fn leave(&mut self, length: usize) {
        self.place.truncate(length);
    }
}
