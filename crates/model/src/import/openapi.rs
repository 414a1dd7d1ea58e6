//! An OpenAPI 3.0, 3.1 or 3.2 document, or a Swagger 2.0 one → REST operations.
//!
//! For a route, 3.0 and 3.1 differ only in the spelling of null, which [`super::schema`] handles. 3.2 adds the method
//! QUERY, `additionalOperations` and `in: querystring`. An operation that no route can express, or that needs a
//! reference outside the document, is left out with its reason; all others are read.
//!
//! Used by `import` and `import::openrpc`.

mod paths;

use std::borrow::Cow;

use http::Method;
use serde_json::{Map, Value};

use super::form;
use super::media_type::is_json;
use super::model::{BodyModel, FormModel, Operations, ReplyModel, RestOperation};
use super::parameter;
use super::refs::{DocumentFault, Refs, ReplyTypes, shown, text};
use super::reply;
use super::schema::{self, Type};
use super::swagger;
use super::unsupported::Unsupported;
use crate::route::Effect;

const METHODS: &[&str] = &[
    "get", "head", "post", "put", "patch", "delete", "options", "trace", "query",
];

/// Returns a document in the form of OpenAPI 3.
///
/// # Errors
/// [`DocumentFault::Kind`] for another kind of document.
pub(super) fn normal(document: &Value) -> Result<Cow<'_, Value>, DocumentFault> {
    if document.get("swagger").is_some() {
        return Ok(Cow::Owned(swagger::upgrade(document)?));
    }
    check_version(document)?;
    Ok(Cow::Borrowed(document))
}

/// Reads all operations for tools: their responses may have any content type.
pub(super) fn read_for_tools(document: &Value) -> Result<Operations, DocumentFault> {
    let document = normal(document)?;
    read_with(&document, ReplyTypes::Any)
}

/// Reads all operations of a document in the form of OpenAPI 3.
pub(super) fn read_normal(document: &Value) -> Result<Operations, DocumentFault> {
    read_with(document, ReplyTypes::JsonOrText)
}

fn read_with(document: &Value, replies: ReplyTypes) -> Result<Operations, DocumentFault> {
    let refs = Refs::new(document)?.accepting(replies);
    let paths = document.get("paths").and_then(Value::as_object);
    let paths = paths.filter(|paths| !paths.is_empty()).ok_or_else(|| {
        DocumentFault::Kind("`paths` is missing or empty: there is nothing to draft".to_owned())
    })?;
    let mut found = Operations::default();
    let prefix = prefix(document.get("servers"), &mut found.notes);
    // OpenAPI 3.1 §4.8.8: a name that begins with `x-` is an extension, any other begins with `/`.
    for (path, item) in paths.iter().filter(|(path, _)| !path.starts_with("x-")) {
        if !path.starts_with('/') {
            found.leave_out(
                path,
                Unsupported::left_out("it is no path: it does not begin with `/`"),
            )?;
            continue;
        }
        match refs.follow(item).map_err(Unsupported::from) {
            Ok(Value::Object(item)) => read_item(&refs, item, path, &prefix, &mut found)?,
            Ok(_) => {
                let why = "its path item is no object, so it has no operations";
                found.leave_out(&format!("{prefix}{path}"), Unsupported::left_out(why))?;
            }
            Err(stop) => found.leave_out(&format!("{prefix}{path}"), stop)?,
        }
    }
    paths::leave_out_shared(&mut found)?;
    Ok(found)
}

/// Reads the operations of one path.
fn read_item<'v>(
    refs: &Refs<'v>,
    item: &'v Map<String, Value>,
    path: &'v str,
    prefix: &str,
    found: &mut Operations,
) -> Result<(), DocumentFault> {
    let fixed = METHODS.iter().filter_map(|method| {
        let operation = item.get(*method)?;
        Some((method.to_uppercase(), operation))
    });
    // OpenAPI 3.2 §4.9: methods without a field of their own, in the case of the wire.
    let additional = item.get("additionalOperations").and_then(Value::as_object);
    let additional = additional.into_iter().flatten();
    let additional = additional.map(|(method, operation)| (method.clone(), operation));
    for (method, operation) in fixed.chain(additional) {
        refs.steps(path.matches('/').count() + method.len())?;
        refs.text(path)?;
        refs.text(prefix)?;
        let title = format!("{method} {prefix}{path}");
        let context = Context {
            refs,
            item,
            method,
            path,
            prefix,
        };
        match context.read(operation) {
            Ok(operation) => found.rest.push(operation),
            Err(stop) => found.leave_out(&title, stop)?,
        }
    }
    Ok(())
}

fn check_version(document: &Value) -> Result<(), DocumentFault> {
    let wrong = |what: String| Err(DocumentFault::Kind(what));
    let Some(version) = document.get("openapi") else {
        let hint = if document.get("openrpc").is_some() {
            "; this is an OpenRPC document: use `dualgauge import --openrpc`"
        } else {
            ""
        };
        return wrong(format!(
            "not an OpenAPI document: `openapi` is missing{hint}"
        ));
    };
    let version = plain(version);
    let known = |known: &str| {
        version
            .strip_prefix(known)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    if known("3.0") || known("3.1") || known("3.2") || version == "3" {
        Ok(())
    } else {
        wrong(format!(
            "`openapi: {}` is not supported, only 3.0 to 3.2",
            shown(&version)
        ))
    }
}

/// Returns a scalar as text, since YAML may have parsed it as a number.
pub(super) fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the path of the first server.
fn prefix(servers: Option<&Value>, notes: &mut Vec<String>) -> String {
    let mut prefixes = Vec::new();
    for server in servers.and_then(Value::as_array).into_iter().flatten() {
        prefixes.push(server_path(server));
    }
    let Some(first) = prefixes.first().cloned() else {
        return String::new();
    };
    if prefixes.iter().any(|prefix| *prefix != first) {
        notes.push(format!(
            "the servers of the document have different paths; the first one is used: `{}`",
            shown(&format!("{first}/"))
        ));
    }
    first
}

/// Returns the path of a server's URL: `https://{host}/v{version}/` → `/v1`.
fn server_path(server: &Value) -> String {
    let mut url = text(server, "url").unwrap_or_default().to_owned();
    let variables = server.get("variables").and_then(Value::as_object);
    for (name, variable) in variables.into_iter().flatten() {
        let default = variable.get("default").map(plain).unwrap_or_default();
        // A variable may contain itself; the limits stop it from growing.
        if default.len() <= 200 && url.len() <= 2_000 {
            url = url.replace(&format!("{{{name}}}"), &default);
        }
    }
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("", |at| &rest[at..]),
        None => &url,
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let path = path.trim_matches('/');
    if path.is_empty() || path == "." {
        String::new()
    } else {
        format!("/{path}")
    }
}

/// The location of an operation in the document.
struct Context<'c, 'v> {
    refs: &'c Refs<'v>,
    item: &'v Map<String, Value>,
    /// In the case of the wire.
    method: String,
    path: &'v str,
    prefix: &'c str,
}

impl<'v> Context<'_, 'v> {
    fn check_method(&self) -> Result<(), Unsupported> {
        let is_named = |method: &str| !method.bytes().any(|byte| byte.is_ascii_lowercase());
        if Method::from_bytes(self.method.as_bytes()).is_err() || !is_named(&self.method) {
            return Err(Unsupported::left_out(
                "a route cannot have a method of this name",
            ));
        }
        if self.method == "CONNECT" {
            return Err(Unsupported::left_out("CONNECT opens a tunnel"));
        }
        if self.method == "OPTIONS" {
            return Err(Unsupported::left_out(
                "OPTIONS is sent by browsers, not by clients",
            ));
        }
        if self.method == "HEAD" && self.item.contains_key("get") {
            return Err(Unsupported::left_out(
                "HEAD is answered as the GET of this path",
            ));
        }
        Ok(())
    }

    fn read(&self, operation: &'v Value) -> Result<RestOperation, Unsupported> {
        self.check_method()?;
        let mut notes = Vec::new();
        if let Some(words) = text(operation, "summary").or_else(|| text(operation, "description")) {
            notes.push(shown(words));
        }
        if operation.get("deprecated") == Some(&Value::Bool(true)) {
            notes.push("deprecated in the document".to_owned());
        }
        let prefix = match operation.get("servers").or(self.item.get("servers")) {
            Some(servers) => {
                self.refs.steps(servers.as_array().map_or(0, Vec::len))?;
                &prefix(Some(servers), &mut notes)
            }
            None => self.prefix,
        };
        let path = format!("{prefix}{}", self.path);
        let segments = paths::segments(&path)?;
        let parameter::Declared {
            mut parameters,
            unread,
        } = parameter::read(
            self.refs,
            [self.item.get("parameters"), operation.get("parameters")],
            &mut notes,
        )?;
        paths::complete_path(&segments, &mut parameters)?;
        let (body, form) = self.body(operation, &mut notes)?;
        let reply = self.reply(operation, &mut notes)?;
        let stream = reply::stream(self.refs, operation, &mut notes)?;
        let id = text(operation, "operationId").filter(|id| !id.trim().is_empty());
        self.refs.text(id.unwrap_or_default())?;
        Ok(RestOperation {
            method: self.method.clone(),
            path,
            segments,
            id: id.map(str::to_owned),
            parameters,
            unread,
            body,
            form,
            reply,
            stream,
            notes,
            document: 0,
            origin: self.path.to_owned(),
        })
    }

    fn reply(
        &self,
        operation: &'v Value,
        notes: &mut Vec<String>,
    ) -> Result<ReplyModel, Unsupported> {
        let responses = operation.get("responses").and_then(Value::as_object);
        responses.map_or(Ok(ReplyModel::Usual), |responses| {
            let effect = match Method::from_bytes(self.method.as_bytes()) {
                Ok(_) if self.method == "QUERY" => Effect::Safe,
                Ok(method) => Effect::from_method(&method),
                Err(_) => Effect::Unsafe,
            };
            self.refs.steps(responses.len())?;
            reply::read(self.refs, effect, responses, notes)
        })
    }

    fn body(
        &self,
        operation: &'v Value,
        notes: &mut Vec<String>,
    ) -> Result<(BodyModel, Option<FormModel>), Unsupported> {
        let Some(request) = operation.get("requestBody") else {
            return Ok((BodyModel::None, None));
        };
        let request = self.refs.follow(request)?;
        let content = request.get("content").and_then(Value::as_object);
        let Some(content) = content.filter(|content| !content.is_empty()) else {
            return Ok((BodyModel::None, None));
        };
        self.refs.steps(content.len())?;
        if matches!(self.method.as_str(), "HEAD" | "TRACE") {
            return Err(Unsupported::left_out(format!(
                "it declares a body, but {} requests have no body (RFC 9110 §9.3)",
                self.method
            )));
        }
        let json = content.iter().find(|(kind, _)| is_json(kind));
        match (json, form::find(content)) {
            (Some((_, media)), _) => {
                if content.len() > 1 {
                    notes.push("look: only its JSON body is translated".to_owned());
                }
                let body = self.json_body(request, media, notes)?;
                Ok((body, None))
            }
            (None, Some(declared)) => {
                if content.len() > 1 {
                    let kind = declared.format.media_type();
                    notes.push(format!("look: only its body as {kind} is translated"));
                }
                let media = self.refs.follow(declared.media)?;
                let schema = schema::read(self.refs, media.get("schema"))?;
                let declared = form::DeclaredForm { media, ..declared };
                let (body, form) = form::read(self.refs, schema, declared, notes)?;
                Ok((body, Some(form)))
            }
            (None, None) => {
                let kinds: Vec<&str> = content.keys().map(String::as_str).collect();
                Err(Unsupported::left_out(format!(
                    "its body is {}; only JSON and forms are translated, other bodies pass through",
                    shown(&kinds.join(", "))
                )))
            }
        }
    }

    fn json_body(
        &self,
        request: &'v Value,
        media: &'v Value,
        notes: &mut Vec<String>,
    ) -> Result<BodyModel, Unsupported> {
        // OpenAPI 3.2 §4.7: a media type may be a reference, too.
        let media = self.refs.follow(media)?;
        let schema = schema::read(self.refs, media.get("schema"))?;
        let is_required = schema::is_required(request);
        let body = if schema.is_open_object() {
            BodyModel::Members {
                members: schema.members,
                has_others: schema.has_others,
            }
        } else if media.get("schema").is_none() && schema.kind == Type::Any {
            // No note for a missing type: by far most bodies are objects.
            BodyModel::Members {
                members: Vec::new(),
                has_others: true,
            }
        } else {
            let kind = schema.json_type();
            BodyModel::Whole { kind, is_required }
        };
        if !is_required && self.sends_empty(&body) {
            notes.push(
                "look: its body is optional; a call without members sends `{}`, or no content on a route with \
                 `params`: this is a guess; `body = \"none\"` changes it on routes without `params`"
                    .to_owned(),
            );
        }
        if !is_required && self.needs_members(&body) {
            let look = "look: its body is optional, but a call without it is refused: the body has required members";
            notes.push(look.to_owned());
        }
        Ok(body)
    }

    /// Returns true when the route names the members of the body and requires one of them.
    fn needs_members(&self, body: &BodyModel) -> bool {
        let BodyModel::Members { members, .. } = body else {
            return false;
        };
        let is_named = matches!(self.method.as_str(), "GET" | "DELETE" | "OPTIONS");
        is_named && members.iter().any(|member| member.is_required)
    }

    /// Returns true when a call without members sends `{}`.
    fn sends_empty(&self, body: &BodyModel) -> bool {
        let BodyModel::Members { members, .. } = body else {
            return false;
        };
        let mut members = members.iter();
        matches!(self.method.as_str(), "POST" | "PUT" | "PATCH")
            && members.all(|member| !member.is_required)
    }
}
