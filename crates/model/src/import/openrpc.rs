//! An OpenRPC document, or the answer to `tools/list` → RPC operations. Used by `import`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::model::{CallModel, Operations, RpcOperation};
use super::openapi::plain;
use super::refs::{DocumentFault, Refs, shown, text};
use super::schema::{self, NamedValue};
use super::shape::{self, Shape};
use super::unsupported::Unsupported;

/// The most error codes that are listed in a comment.
const MOST_ERRORS: usize = 8;

/// Reads all methods of an OpenRPC document.
pub(super) fn read(document: &Value) -> Result<Operations, DocumentFault> {
    let Some(version) = document.get("openrpc") else {
        let hint = if document.get("openapi").is_some() || document.get("swagger").is_some() {
            "; this is an OpenAPI document: use `--openapi`"
        } else {
            ""
        };
        return Err(DocumentFault::Kind(format!(
            "not an OpenRPC document: `openrpc` is missing{hint}"
        )));
    };
    let version = plain(version);
    if !version.starts_with("1.") {
        return Err(DocumentFault::Kind(format!(
            "`openrpc: {}` is not supported, only 1.x",
            shown(&version)
        )));
    }
    let refs = Refs::new(document)?;
    let methods = listed(document, "methods")?;
    let mut found = Operations::default();
    for (at, method) in methods.iter().enumerate() {
        let method = match refs.follow(method).map_err(Unsupported::from) {
            Ok(method) => method,
            Err(stop) => {
                found.leave_out_rpc(&format!("method {}", at + 1), stop)?;
                continue;
            }
        };
        match text(method, "name").filter(|name| !name.is_empty()) {
            Some(name) if name.starts_with("rpc.") => found.notes.push(format!(
                "`{}` belongs to JSON-RPC itself and is not a route",
                shown(name)
            )),
            Some(name) => match read_method(&refs, name, method).map_err(Unsupported::from) {
                Ok(method) => found.rpc.push(RpcOperation {
                    index: at,
                    ..method
                }),
                Err(stop) => found.leave_out_rpc(name, stop)?,
            },
            None => found.notes.push("a method without a name".to_owned()),
        }
    }
    Ok(found)
}

fn listed<'v>(document: &'v Value, name: &str) -> Result<&'v Vec<Value>, DocumentFault> {
    let list = document.get(name).and_then(Value::as_array);
    list.filter(|list| !list.is_empty()).ok_or_else(|| {
        DocumentFault::Kind(format!(
            "`{name}` is missing or empty: there is nothing to draft"
        ))
    })
}

fn read_method<'v>(
    refs: &Refs<'v>,
    name: &str,
    method: &'v Value,
) -> Result<RpcOperation, DocumentFault> {
    let mut notes = described(method, "summary");
    // OpenRPC 1.x, Method Object: `either` is the default.
    let (call, accepts_both_forms) = match text(method, "paramStructure") {
        Some("by-name") => (CallModel::ByName, false),
        Some("by-position") => (CallModel::ByPosition, false),
        Some(_) | None => (CallModel::ByPosition, true),
    };
    refs.text(name)?;
    let mut params: Vec<NamedValue> = Vec::new();
    let mut names = BTreeSet::new();
    let declared = method.get("params").and_then(Value::as_array);
    for param in declared.into_iter().flatten() {
        let param = refs.follow(param)?;
        let schema = schema::read(refs, param.get("schema"))?;
        let name = match text(param, "name") {
            // In a pattern, `...` means the unnamed members.
            Some(name) if !name.is_empty() && name != "..." => name.to_owned(),
            Some(_) | None => format!("param{}", params.len() + 1),
        };
        refs.text(&name)?;
        if !names.insert(name.clone()) {
            notes.push(format!("look: it has the param `{}` twice", shown(&name)));
            if call == CallModel::ByName {
                continue;
            }
        }
        params.push(NamedValue {
            name,
            kind: schema.json_type(),
            is_required: schema::is_required(param),
            default: schema.default,
        });
    }
    let errors = method.get("errors").and_then(Value::as_array);
    for error in errors.into_iter().flatten().take(MOST_ERRORS) {
        let error = refs.follow(error)?;
        let code = error.get("code").filter(|code| code.is_number());
        let code = code.map(plain).unwrap_or_default();
        let message = text(error, "message").unwrap_or_default();
        refs.text(message)?;
        notes.push(shown(&format!("error {code}: {message}")));
    }
    Ok(RpcOperation {
        name: name.to_owned(),
        call,
        accepts_both_forms,
        params,
        has_others: false,
        result: None,
        document: 0,
        index: 0,
        effect: None,
        notes,
    })
}

fn described(value: &Value, first: &str) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(words) = text(value, first).or_else(|| text(value, "description")) {
        notes.push(shown(words));
    }
    if value.get("deprecated") == Some(&Value::Bool(true)) {
        notes.push("deprecated in the document".to_owned());
    }
    notes
}

/// Reads all tools of an answer to `tools/list`.
pub(super) fn read_tools(document: &Value) -> Result<Operations, DocumentFault> {
    // The references in a tool's schema are relative to that schema, each a document of its own.
    let tools = listed(document, "tools")?;
    let mut found = Operations::default();
    for (index, tool) in tools.iter().enumerate() {
        let Some(name) = text(tool, "name").filter(|name| !name.is_empty()) else {
            found.notes.push("a tool without a name".to_owned());
            continue;
        };
        let absent = Value::Bool(true);
        let input = tool.get("inputSchema").unwrap_or(&absent);
        let refs = Refs::new(input)?;
        let schema = match schema::read(&refs, Some(input)).map_err(Unsupported::from) {
            Ok(schema) => schema,
            Err(stop) => {
                found.leave_out_rpc(&format!("tools/call {name}"), stop)?;
                continue;
            }
        };
        let mut notes = described(tool, "title");
        let result = tool.get("outputSchema").map(|output| {
            notes.push("its result has `structuredContent`".to_owned());
            // A schema that cannot be read describes nothing.
            let read = Refs::new(output).and_then(|refs| shape::read(&refs, output));
            read.unwrap_or(Shape::Any)
        });
        found.rpc.push(RpcOperation {
            name: name.to_owned(),
            call: CallModel::Tool,
            accepts_both_forms: false,
            params: schema.members,
            has_others: schema.has_others,
            result,
            document: 0,
            index,
            effect: effect(tool),
            notes,
        });
    }
    Ok(found)
}

/// Returns the effect that the hints of a tool promise.
fn effect(tool: &Value) -> Option<&'static str> {
    let hint = |name: &str| {
        let annotations = tool.get("annotations")?;
        annotations.get(name)?.as_bool()
    };
    if hint("readOnlyHint") == Some(true) {
        Some("safe")
    } else if hint("idempotentHint") == Some(true) {
        Some("idempotent")
    } else {
        None
    }
}
