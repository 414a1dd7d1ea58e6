//! Forms as request bodies: the kind of each field, and its pattern on both sides.
//!
//! Law: an optional field that no route can express is left out with a note; a required one leaves out the operation.
//!
//! Used by `import::openapi` and `import::route`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::drafted::{FieldSchemas, Pattern};
use super::hole::Absence;
use super::model::{BodyModel, FieldKind, FormModel, Inside, List, RestOperation};
use super::refs::{DocumentFault, Refs, shown, text};
use super::schema::{self, FieldType, Files, NamedValue, Schema, Type};
use super::unsupported::{OperationPart, Unsupported};
use super::values::{Bindings, BoundParameter, RestLocation};
use crate::form::{BodyFormat, CONTENT, CONTENT_TYPE, FILE_NAME};

/// A form among the contents of a body.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeclaredForm<'v> {
    pub(super) format: BodyFormat,
    /// The Media Type Object.
    pub(super) media: &'v Value,
}

/// Returns the form among the contents of a body. Multipart comes first, because it can carry files.
pub(super) fn find(content: &Map<String, Value>) -> Option<DeclaredForm<'_>> {
    [BodyFormat::Multipart, BodyFormat::Form]
        .into_iter()
        .find_map(|format| {
            let (_, media) = content.iter().find(|(kind, _)| {
                let kind = kind.split(';').next().unwrap_or_default().trim();
                kind.eq_ignore_ascii_case(format.media_type())
            })?;
            Some(DeclaredForm { format, media })
        })
}

/// Reads the fields of a form.
pub(super) fn read(
    refs: &Refs<'_>,
    schema: Schema,
    declared: DeclaredForm<'_>,
    notes: &mut Vec<String>,
) -> Result<(BodyModel, FormModel), Unsupported> {
    if !schema.is_open_object() && schema.kind != Type::Any {
        return Err(Unsupported::left_out(
            "its body is a form, but its schema is not an object",
        ));
    }
    let DeclaredForm { format, media } = declared;
    let encoding = media.get("encoding");
    let mut form = FormModel {
        format,
        fields: BTreeMap::new(),
        inside: BTreeMap::new(),
    };
    let mut members = Vec::new();
    let names = schema.members.iter().map(|member| member.name.clone());
    let mut names: BTreeSet<String> = names.collect();
    for mut member in schema.members {
        refs.steps(1)?;
        let field = schema.fields.get(&member.name).cloned().unwrap_or_default();
        let encoding = encoding.and_then(|encoding| encoding.get(&member.name));
        let spread = encoding.and_then(SpreadObject::new);
        if let Some(spread) = spread.filter(|_| field.kind == Type::Object) {
            let object = property(refs, media.get("schema"), &member.name)?;
            let object = schema::read(refs, object)?;
            for (named, inside) in spread.fields(refs, &member, &object, notes)? {
                if names.insert(named.name.clone()) {
                    form.inside.insert(named.name.clone(), inside);
                    members.push(named);
                } else {
                    let why = "another field has its name";
                    OperationPart::Field(&named.name).leave_out(named.is_required, why, notes)?;
                }
            }
            continue;
        }
        match kind(format, &member, &field, encoding) {
            Ok(None) => {}
            Ok(Some(kind)) => {
                member.kind = match kind {
                    FieldKind::List(..) | FieldKind::Files => Type::Array,
                    FieldKind::File => Type::String,
                    FieldKind::Json => Type::Any,
                };
                form.fields.insert(member.name.clone(), kind);
            }
            Err(why) => {
                OperationPart::Field(&member.name).leave_out(member.is_required, why, notes)?;
                continue;
            }
        }
        members.push(member);
    }
    let body = BodyModel::Members {
        members,
        has_others: schema.has_others,
    };
    Ok((body, form))
}

/// Returns the schema of a property of an object.
fn property<'v>(
    refs: &Refs<'v>,
    schema: Option<&'v Value>,
    name: &str,
) -> Result<Option<&'v Value>, DocumentFault> {
    /// The most parts of `allOf` that are looked at.
    const MOST: usize = 100;
    let mut pending: Vec<&Value> = schema.into_iter().collect();
    for _ in 0..MOST {
        let Some(schema) = pending.pop() else { break };
        refs.steps(1)?;
        let schema = refs.follow(schema)?;
        if let Some(found) = schema.get("properties").and_then(|all| all.get(name)) {
            return Ok(Some(found));
        }
        let parts = schema.get("allOf").and_then(Value::as_array);
        pending.extend(parts.into_iter().flatten().rev());
    }
    Ok(None)
}

/// An object whose members are fields of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpreadObject {
    /// `filter[eq]`
    Deep,
    /// `eq`
    Exploded,
}

/// A member of an object that is a field of the form.
type MemberField = (NamedValue, Inside);

impl SpreadObject {
    /// Reads the encoding of a field (OpenAPI 3.0 §4.7.15.1). Without `style`, an object is JSON.
    fn new(encoding: &Value) -> Option<SpreadObject> {
        let explode = encoding.get("explode").and_then(Value::as_bool);
        match text(encoding, "style")? {
            "deepObject" => Some(SpreadObject::Deep),
            "form" if explode != Some(false) => Some(SpreadObject::Exploded),
            _ => None,
        }
    }

    fn name(self, object: &str, member: &str) -> String {
        match self {
            SpreadObject::Deep => format!("{object}[{member}]"),
            SpreadObject::Exploded => member.to_owned(),
        }
    }

    /// Returns the members of an object as fields.
    fn fields(
        self,
        refs: &Refs<'_>,
        field: &NamedValue,
        object: &Schema,
        notes: &mut Vec<String>,
    ) -> Result<Vec<MemberField>, Unsupported> {
        if object.members.is_empty() {
            let why = "its members are fields of their own, which the document does not name";
            OperationPart::Field(&field.name).leave_out(field.is_required, why, notes)?;
        }
        let mut found = Vec::new();
        for member in &object.members {
            // The name of the object is repeated in each member, so it counts each time.
            refs.text(&field.name)?;
            let name = self.name(&field.name, &member.name);
            let is_required = field.is_required && member.is_required;
            if object.fields.contains_key(&member.name) || member.name.is_empty() {
                let why = "it is a list, an object or a file inside an object, which has no standard form";
                OperationPart::Field(&name).leave_out(is_required, why, notes)?;
                continue;
            }
            let inside = Inside {
                object: field.name.clone(),
                member: member.name.clone(),
            };
            let named = NamedValue {
                name,
                kind: member.kind.clone(),
                is_required,
                default: None,
            };
            found.push((named, inside));
        }
        if object.has_others && !object.members.is_empty() {
            notes.push(format!(
                "look: only the named members of `{}` are fields of the form",
                shown(&field.name)
            ));
        }
        Ok(found)
    }
}

/// Returns the kind of a field; `None` for a plain text.
fn kind(
    format: BodyFormat,
    member: &NamedValue,
    field: &FieldType,
    encoding: Option<&Value>,
) -> Result<Option<FieldKind>, &'static str> {
    let style = encoding.and_then(|encoding| text(encoding, "style"));
    let explode = encoding.and_then(|encoding| encoding.get("explode")?.as_bool());
    let is_multipart = format == BodyFormat::Multipart;
    match (&field.kind, &field.items) {
        _ if field.files == Files::One && is_multipart => Ok(Some(FieldKind::File)),
        (Type::Array, _) if field.files == Files::Many && is_multipart => {
            Ok(Some(FieldKind::Files))
        }
        (Type::Array, Some(Type::Object | Type::Array)) if style.is_none() => {
            Err("it is a list of objects or lists")
        }
        (Type::Array, items) => {
            let items = match items {
                None | Some(Type::Any) => Type::String,
                Some(items) => items.clone(),
            };
            let list = match (style.unwrap_or("form"), explode) {
                ("form", Some(false)) => List::Commas,
                ("form" | "spaceDelimited" | "pipeDelimited", Some(true)) | ("form", None) => {
                    List::Repeated
                }
                ("spaceDelimited", _) => List::Spaces,
                ("pipeDelimited", _) => List::Pipes,
                _ => return Err("a form has no such list style"),
            };
            if matches!(items, Type::Object | Type::Array) {
                return Err("it is a list of objects or lists");
            }
            Ok(Some(FieldKind::List(list, items)))
        }
        (Type::Object, _) if style.is_some() => {
            Err("its members are separated in one text, which a route cannot name")
        }
        (Type::Object, _) => Ok(Some(FieldKind::Json)),
        // In a pattern, a member without a type is a text.
        _ if member.name.is_empty() => Err("it has no name"),
        _ => Ok(None),
    }
}

/// The name of the default of a file's name and content type.
const DEFAULT_TYPE: &str = "application/octet-stream";

/// Returns the pattern of a field in the body.
pub(super) fn field(kind: &FieldKind, bound: &BoundParameter, bindings: &Bindings) -> Pattern {
    let declared = |kind: Type, list: Option<List>| {
        let bound = BoundParameter {
            kind,
            list,
            ..bound.clone()
        };
        Pattern::Text(bound.declared())
    };
    let optional = match bound.absence {
        Absence::Optional => "?",
        Absence::Required | Absence::Default(_) => "",
    };
    match kind {
        FieldKind::List(list, items) => declared(items.clone(), Some(*list)),
        FieldKind::Json => Pattern::Text(format!("{{{}:json{optional}}}", bound.hole)),
        FieldKind::File => file(bound, bindings, optional),
        FieldKind::Files => Pattern::List(vec![
            Pattern::Text("*".to_owned()),
            file(bound, bindings, ""),
        ]),
    }
}

/// Returns the names of the holes of a file's name and content type.
fn names(bound: &BoundParameter, bindings: &Bindings) -> [String; 2] {
    ["name", "type"].map(|word| bindings.free(&format!("{}_{word}", bound.hole)))
}

fn file(bound: &BoundParameter, bindings: &Bindings, optional: &str) -> Pattern {
    let [name, kind] = names(bound, bindings);
    let members = [
        (CONTENT, format!("{{{}:string{optional}}}", bound.hole)),
        (FILE_NAME, format!("{{{name}=file}}")),
        (CONTENT_TYPE, format!("{{{kind}={DEFAULT_TYPE}}}")),
    ];
    Pattern::Object(
        members
            .map(|(name, hole)| (name.to_owned(), Pattern::Text(hole)))
            .into(),
    )
}

/// Returns the pattern of a field among the params, and the members next to it.
pub(super) fn param(
    kind: Option<&FieldKind>,
    bound: &BoundParameter,
    bindings: &Bindings,
) -> (Pattern, Vec<(String, Pattern)>) {
    let hole = |name: &str| Pattern::Text(format!("{{{name}}}"));
    match kind {
        Some(FieldKind::File) => {
            let [name, content_type] = names(bound, bindings);
            let beside = [&name, &content_type].map(|name| (name.clone(), hole(name)));
            (hole(&bound.hole), beside.into())
        }
        Some(FieldKind::Files) => {
            let [name, content_type] = names(bound, bindings);
            let members = [
                (CONTENT, hole(&bound.hole)),
                (FILE_NAME, hole(&name)),
                (CONTENT_TYPE, hole(&content_type)),
            ];
            let members = members.map(|(name, hole)| (name.to_owned(), hole));
            let each = vec![
                Pattern::Text("*".to_owned()),
                Pattern::Object(members.into()),
            ];
            (Pattern::List(each), Vec::new())
        }
        Some(FieldKind::List(..) | FieldKind::Json) | None => (hole(&bound.hole), Vec::new()),
    }
}

/// Returns the schemas of the files and of the lists of files among the params, by hole. The values of other fields are
/// those of the document.
pub(super) fn files(rest: &RestOperation, bindings: &Bindings) -> BTreeMap<String, FieldSchemas> {
    let schemas = |bound: &BoundParameter| match &bound.rest {
        RestLocation::Member(name) => file_schemas(rest.field(name)?, bound, bindings),
        RestLocation::Path(_)
        | RestLocation::Query(_)
        | RestLocation::Header(_)
        | RestLocation::Body => None,
    };
    let mut found = BTreeMap::new();
    for bound in &bindings.bounds {
        if let Some(schemas) = schemas(bound) {
            found.entry(bound.hole.clone()).or_insert(schemas);
        }
    }
    found
}

/// Returns the schemas of a file or of a list of files, as [`param`] names them.
fn file_schemas(
    kind: &FieldKind,
    bound: &BoundParameter,
    bindings: &Bindings,
) -> Option<FieldSchemas> {
    let content = json!({ "type": "string", "contentEncoding": "base64" });
    let text = json!({ "type": "string" });
    let media_type =
        json!({ "type": "string", "pattern": "^[^/\\s]+/[^/\\s].*$", "examples": ["image/png"] });
    match kind {
        FieldKind::File => {
            let [name, content_type] = names(bound, bindings);
            Some(FieldSchemas {
                own: content,
                beside: vec![(name, text), (content_type, media_type)],
                is_required: bound.absence == Absence::Required,
            })
        }
        FieldKind::Files => Some(FieldSchemas {
            own: json!({ "type": "array", "items": {
                "type": "object",
                "properties": { CONTENT: content, FILE_NAME: text, CONTENT_TYPE: media_type },
                "required": [CONTENT],
                "additionalProperties": false,
            } }),
            beside: Vec::new(),
            // The pattern of a list does not match an absent one: without files, it is `[]`.
            is_required: true,
        }),
        FieldKind::List(..) | FieldKind::Json => None,
    }
}
