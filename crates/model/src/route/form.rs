//! Bodies that are forms: a field is a text in the request, and has the type of its hole in the pattern.
//!
//! A form arrives as an object of strings ([`crate::form`]). Before a pattern reads it, each text becomes a value of
//! the type of its hole; after a pattern wrote it, each value becomes text again. So a hole behaves as in a query, except
//! that a required text may be empty.
//!
//! Used by `route::draft` and `translate`.

use std::borrow::Cow;

use super::definition::RestCall;
use crate::form::{BodyFormat, CONTENT, CONTENT_TYPE, FILE_NAME};
use dualgauge_patterns::json::{Json, JsonKind, encode};
use dualgauge_patterns::pattern::{
    BoundValue, Codec, EachPattern, HoleFacts, HolePosition, HoleRef, HoleResolver, HoleUse,
    MatchError, ObjectPattern, Pattern, PatternError, Scalar, Shape, Slot, as_key,
};
use dualgauge_patterns::side::Side;

/// Checks that a form can have the fields of a body, and gives each hole of a file the type of a string.
///
/// # Errors
/// Returns [`PatternError`] with the field that a form cannot have.
pub(super) fn check(
    body: Option<Pattern<HoleRef>>,
    format: BodyFormat,
) -> Result<Pattern<HoleRef>, PatternError> {
    let Some(Pattern::Object(object)) = body else {
        let what = format!(
            "`body_format = \"{}\"` needs a body that is a table: write `body = {{ field = \"{{hole}}\" }}`, or leave out `params` and `body`",
            format.as_str()
        );
        return Err(PatternError::new(what).under("body_format"));
    };
    let members = object.members.into_iter().map(|(name, member)| {
        let field = field(member, format);
        let field = field.map_err(|error| error.under(&as_key(&name)).under("body"))?;
        Ok((name, field))
    });
    let members = members.collect::<Result<_, PatternError>>()?;
    Ok(Pattern::Object(ObjectPattern::new(members, object.rest)))
}

fn field(pattern: Pattern<HoleRef>, format: BodyFormat) -> Result<Pattern<HoleRef>, PatternError> {
    match pattern {
        Pattern::Hole(_) | Pattern::Text(_) => Ok(pattern),
        Pattern::Literal(value) => Ok(Pattern::Literal(literal(&value)?)),
        Pattern::Object(object) => file(object, format).map(Pattern::Object),
        Pattern::Each(each) => match *each.item {
            Pattern::Object(object) => Ok(Pattern::Each(EachPattern {
                item: Box::new(Pattern::Object(file(object, format)?)),
                holes: each.holes,
            })),
            Pattern::Literal(_)
            | Pattern::Hole(_)
            | Pattern::Text(_)
            | Pattern::List(_)
            | Pattern::Each(_)
            | Pattern::Either(_) => Err(PatternError::new(
                "a repeated field of texts is one hole; write `{x:string[]}`",
            )),
        },
        Pattern::Either(_) => Err(PatternError::new(
            "a field of a form has no alternatives; write a hole",
        )),
        Pattern::List(_) => Err(PatternError::new(
            "a form has no lists with fixed elements; write `{x:string[]}` for a repeated field",
        )),
    }
}

/// Returns the text of a literal as a string.
fn literal(value: &Json) -> Result<Json, PatternError> {
    match value.kind() {
        JsonKind::String => Ok(value.clone()),
        JsonKind::Number | JsonKind::Boolean => {
            Ok(Json::string(&String::from_utf8_lossy(value.as_bytes())))
        }
        JsonKind::Null | JsonKind::Object | JsonKind::Array => Err(PatternError::new(
            "a field of a form is a text; it has no `null`",
        )),
    }
}

/// Checks the members of a file.
fn file(
    object: ObjectPattern<HoleRef>,
    format: BodyFormat,
) -> Result<ObjectPattern<HoleRef>, PatternError> {
    if format != BodyFormat::Multipart {
        return Err(PatternError::new(
            "a field of a form is a text; write `{x:json}` for JSON in it, name members as `\"field[member]\"`, or send files with `body_format = \"multipart\"`",
        ));
    }
    let known = [CONTENT, FILE_NAME, CONTENT_TYPE];
    let has = |wanted: &str| object.members.iter().any(|(name, _)| name == wanted);
    let all_known = object
        .members
        .iter()
        .all(|(name, _)| known.contains(&name.as_str()));
    if !all_known
        || object.rest.is_some()
        || !has(CONTENT)
        || !(has(FILE_NAME) || has(CONTENT_TYPE))
    {
        return Err(PatternError::new(
            "a file has the members `content` (base64), `filename` and `content_type`; write `{ content = \"{file}\", filename = \"{file_name=file}\", content_type = \"{file_type=application/octet-stream}\" }`",
        ));
    }
    let members = object.members.into_iter().map(|(name, member)| {
        let member = match member {
            Pattern::Hole(mut mention) => {
                if mention.shape.is_none() && mention.used == HoleUse::Both && mention.name != "_" {
                    mention.shape = Some(Shape::One(Scalar::String));
                }
                Ok(Pattern::Hole(mention))
            }
            Pattern::Text(_) => Ok(member),
            Pattern::Literal(value) => literal(&value).map(Pattern::Literal),
            Pattern::Object(_) | Pattern::List(_) | Pattern::Each(_) | Pattern::Either(_) => {
                Err(PatternError::new("it is a text; write a hole"))
            }
        };
        let member = member.map_err(|error| error.under(&as_key(&name)))?;
        Ok((name, member))
    });
    let members = members.collect::<Result<_, PatternError>>()?;
    Ok(ObjectPattern::new(members, None))
}

/// Returns the position of a field's hole: a text that may be repeated. `{=x}` must be a whole value.
fn position(mention: &HoleRef) -> HolePosition {
    match mention.used {
        HoleUse::Equal => HolePosition::Json,
        HoleUse::Both | HoleUse::WriteOnly | HoleUse::ReadOnly => HolePosition::Words,
    }
}

/// Adds the declarations of the holes of a form.
///
/// # Errors
/// Returns [`PatternError`] on contradictions.
pub(super) fn declare(
    resolver: &mut HoleResolver,
    body: &Pattern<HoleRef>,
) -> Result<(), PatternError> {
    let Pattern::Object(object) = body else {
        return resolver.pattern(Side::Rest, body);
    };
    for (name, member) in &object.members {
        let declared = match member {
            Pattern::Hole(mention) => resolver.mention(Side::Rest, mention, position(mention), 0),
            Pattern::Literal(_)
            | Pattern::Text(_)
            | Pattern::Object(_)
            | Pattern::List(_)
            | Pattern::Each(_)
            | Pattern::Either(_) => resolver.pattern(Side::Rest, member),
        };
        declared.map_err(|error| error.under(&as_key(name)))?;
    }
    let mut rest = object.rest.iter();
    rest.try_for_each(|rest| resolver.mention(Side::Rest, rest, HolePosition::Rest, 0))
}

/// Returns the pattern of a form with its slots.
///
/// # Errors
/// Returns [`PatternError`] if a hole occurs where it cannot.
pub(super) fn resolve(facts: &HoleFacts, body: &Pattern<HoleRef>) -> Result<Pattern, PatternError> {
    let Pattern::Object(object) = body else {
        return facts.resolve(Side::Rest, body);
    };
    let members = object.members.iter().map(|(name, member)| {
        let resolved = match member {
            Pattern::Hole(mention) => facts
                .slot(Side::Rest, mention, position(mention), 0)
                .and_then(text_slot)
                .map(Pattern::Hole),
            Pattern::Literal(_)
            | Pattern::Text(_)
            | Pattern::Object(_)
            | Pattern::List(_)
            | Pattern::Each(_)
            | Pattern::Either(_) => facts.resolve(Side::Rest, member),
        };
        let resolved = resolved.map_err(|error| error.under(&as_key(name)))?;
        Ok((name.clone(), resolved))
    });
    let members = members.collect::<Result<_, PatternError>>()?;
    let rest = object.rest.as_ref();
    let rest = rest.map(|rest| facts.slot(Side::Rest, rest, HolePosition::Rest, 0));
    Ok(Pattern::Object(ObjectPattern::understood(
        members,
        rest.transpose()?,
    )))
}

/// Rejects a default that is no text: `{_=7}` would write a number.
fn text_slot(mut slot: Slot) -> Result<Slot, PatternError> {
    use dualgauge_patterns::pattern::Role;
    if let Role::Ignored(Some(value)) = &slot.role {
        slot.role = Role::Ignored(Some(literal(value)?));
    }
    Ok(slot)
}

/// Returns the names of the fields that contain JSON.
pub(super) fn json_fields(body: &Pattern) -> Vec<String> {
    let Pattern::Object(object) = body else {
        return Vec::new();
    };
    let fields = object
        .members
        .iter()
        .filter(|(_, member)| matches!(member, Pattern::Hole(slot) if slot.codec.is_json()));
    fields.map(|(name, _)| name.clone()).collect()
}

/// Returns the object of a form with a value of its type in each field that a hole reads.
///
/// # Errors
/// [`MatchError`] names the field that does not have its type.
pub(crate) fn typed<'j>(
    call: &RestCall,
    body: &'j Json,
    depth: u16,
) -> Result<Cow<'j, Json>, MatchError> {
    let Some(Pattern::Object(object)) = call.body.as_ref().filter(|_| call.format.is_form()) else {
        return Ok(Cow::Borrowed(body));
    };
    if body.kind() != JsonKind::Object {
        return Ok(Cow::Borrowed(body));
    }
    let mut out = FieldWriter::default();
    let found = body.open()?;
    for member in &found {
        let value = body.piece(member.value.clone());
        let pattern = pattern_of(object, &member.name);
        let typed = match pattern {
            Some(Pattern::Hole(slot)) => typed_hole(slot, &value, depth),
            Some(Pattern::Each(_)) => Ok(as_list(value)),
            Some(
                Pattern::Literal(_)
                | Pattern::Text(_)
                | Pattern::Object(_)
                | Pattern::List(_)
                | Pattern::Either(_),
            )
            | None => Ok(value),
        };
        out.member(
            &member.name,
            &typed.map_err(|error| error.within(&member.name))?,
        );
    }
    // A list of files without elements has no field.
    for (name, member) in &object.members {
        if matches!(member, Pattern::Each(_)) && found.iter().all(|found| found.name != *name) {
            out.member(name, &Json::literal("[]"));
        }
    }
    Ok(Cow::Owned(out.finish()))
}

fn pattern_of<'p>(object: &'p ObjectPattern, name: &str) -> Option<&'p Pattern> {
    let found = object.members.iter().find(|(known, _)| known == name);
    found.map(|(_, pattern)| pattern)
}

fn as_list(value: Json) -> Json {
    if value.kind() == JsonKind::Array {
        return value;
    }
    Json::written([b"[", value.as_bytes(), b"]"].concat())
}

fn typed_hole(slot: &Slot, value: &Json, depth: u16) -> Result<Json, MatchError> {
    if slot.binds().is_none() {
        return Ok(value.clone());
    }
    let texts = texts(value)?;
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let is_list = matches!(slot.shape, Shape::Repeated(_) | Shape::Separated(..));
    let bound = match (&slot.codec, &texts[..]) {
        (Codec::Json(_) | Codec::Keys(_), [_]) => return Ok(value.clone()),
        (Codec::Plain | Codec::Percent | Codec::Map(_) | Codec::Page(_), texts) if is_list => {
            slot.read_texts(texts, depth)
        }
        (Codec::Plain | Codec::Percent | Codec::Map(_) | Codec::Page(_), [text]) => {
            slot.read_text(text, depth)
        }
        (
            Codec::Plain
            | Codec::Percent
            | Codec::Map(_)
            | Codec::Page(_)
            | Codec::Json(_)
            | Codec::Keys(_),
            _,
        ) => Err("it is given more than once".into()),
    };
    match bound.map_err(MatchError::here)? {
        // The pattern reads the value in the encoding of its place.
        BoundValue::Value(value) => {
            let spelled = slot.as_json(Cow::Owned(value));
            spelled.map(Cow::into_owned).map_err(MatchError::here)
        }
        BoundValue::Unbound | BoundValue::Absent | BoundValue::Members(_) | BoundValue::Each(_) => {
            Ok(value.clone())
        }
    }
}

/// Returns the texts of a field.
fn texts(value: &Json) -> Result<Vec<String>, MatchError> {
    let one = |value: &Json| match value.text() {
        Some(text) => text.map_err(MatchError::here),
        None => Err(MatchError::here("it is a file; the route expects a text")),
    };
    if value.kind() == JsonKind::Array {
        value
            .elements()
            .map(|range| one(&value.piece(range)))
            .collect()
    } else {
        Ok(vec![one(value)?])
    }
}

/// Returns the object of a form with the texts of all values that a pattern wrote.
///
/// # Errors
/// [`MatchError`] names the member that a form cannot have.
pub(crate) fn as_texts(pattern: &Pattern, typed: &Json) -> Result<Json, MatchError> {
    let Pattern::Object(object) = pattern else {
        return Ok(typed.clone());
    };
    let mut out = FieldWriter::default();
    for member in typed.open()? {
        let value = typed.piece(member.value.clone());
        let within = |error: MatchError| match pattern_of(object, &member.name) {
            // The caller of the other side finds the value by the name of its hole.
            Some(Pattern::Hole(slot)) if slot.binds().is_some() => {
                MatchError::new(&slot.name, error.what)
            }
            _ => error.within(&member.name),
        };
        let text = match pattern_of(object, &member.name) {
            Some(Pattern::Hole(slot)) if slot.codec.keeps_elements() && slot.binds().is_some() => {
                hole_texts(slot, value)
            }
            Some(Pattern::Each(_)) => Ok(as_few(value)),
            Some(Pattern::Object(file)) => sent_file(file, value),
            Some(
                Pattern::Literal(_) | Pattern::Text(_) | Pattern::List(_) | Pattern::Either(_),
            )
            | Some(Pattern::Hole(_))
            | None => Ok(Some(value)),
        };
        if let Some(text) = text.map_err(within)? {
            out.member(&member.name, &text);
        }
    }
    Ok(out.finish())
}

fn hole_texts(slot: &Slot, value: Json) -> Result<Option<Json>, MatchError> {
    let bound = match slot.codec.map() {
        Some(_) => slot.read_json(Some(&value), 0).map_err(MatchError::here)?,
        None => BoundValue::Value(value),
    };
    let strings: Vec<Json> = match &slot.shape {
        Shape::Repeated(_) | Shape::Separated(..) => {
            let texts = slot.write_texts(&bound).map_err(MatchError::here)?;
            texts.into_iter().map(|text| Json::string(&text)).collect()
        }
        Shape::Any | Shape::One(_) | Shape::Object | Shape::Array | Shape::Null => {
            let text = slot.write_text(&bound).map_err(MatchError::here)?;
            text.iter().map(|text| Json::string(text)).collect()
        }
    };
    Ok(match &strings[..] {
        [] => None,
        [one] => Some(one.clone()),
        several => {
            let texts: Vec<&[u8]> = several.iter().map(Json::as_bytes).collect();
            Some(Json::written([b"[", &*texts.join(&b','), b"]"].concat()))
        }
    })
}

/// Returns a file to send; `None` if it has no content, and nothing else but its defaults.
fn sent_file(file: &ObjectPattern, value: Json) -> Result<Option<Json>, MatchError> {
    if value.member(CONTENT).is_some() {
        return Ok(Some(value));
    }
    for member in value.open()? {
        let given = value.piece(member.value.clone());
        let default = match pattern_of(file, &member.name) {
            Some(Pattern::Hole(slot)) => slot.default(),
            Some(Pattern::Literal(literal)) => Some(literal),
            Some(
                Pattern::Text(_)
                | Pattern::Object(_)
                | Pattern::List(_)
                | Pattern::Each(_)
                | Pattern::Either(_),
            )
            | None => None,
        };
        if default != Some(&given) {
            let what = "a file with a name or a type needs its content, too";
            return Err(MatchError::new(CONTENT, what));
        }
    }
    Ok(None)
}

/// Returns true when a hole is the content of a file, which is base64.
pub(crate) fn is_file_content(call: &RestCall, hole: usize) -> bool {
    let Some(Pattern::Object(object)) = call.body.as_ref().filter(|_| call.format.is_form()) else {
        return false;
    };
    object.members.iter().any(|(_, member)| {
        let file = match member {
            Pattern::Object(file) => Some(file),
            Pattern::Each(each) => match &*each.item {
                Pattern::Object(file) => Some(file),
                Pattern::Literal(_)
                | Pattern::Hole(_)
                | Pattern::Text(_)
                | Pattern::List(_)
                | Pattern::Each(_)
                | Pattern::Either(_) => None,
            },
            Pattern::Literal(_)
            | Pattern::Hole(_)
            | Pattern::Text(_)
            | Pattern::List(_)
            | Pattern::Either(_) => None,
        };
        let content = file.and_then(|file| pattern_of(file, CONTENT));
        matches!(content, Some(Pattern::Hole(slot)) if slot.binds() == Some(hole))
    })
}

/// Returns a list as a form has it: none, one value, or several.
fn as_few(list: Json) -> Option<Json> {
    let mut elements = list.elements();
    match (elements.next(), elements.next()) {
        (None, _) => None,
        (Some(one), None) => Some(list.piece(one)),
        (Some(_), Some(_)) => Some(list),
    }
}

/// The text of an object, member by member.
#[derive(Debug, Default)]
struct FieldWriter(Vec<u8>);

impl FieldWriter {
    fn member(&mut self, name: &str, value: &Json) {
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
        encode(name, &mut self.0);
        self.0.push(b':');
        self.0.extend_from_slice(value.as_bytes());
    }

    fn finish(mut self) -> Json {
        self.0
            .extend_from_slice(if self.0.is_empty() { b"{}" } else { b"}" });
        Json::written(self.0)
    }
}
