//! The documentation of drafted routes: texts and schemas of the documents.
//!
//! A route of a REST operation has the texts and schemas of the REST document, one of an RPC operation alone those of its
//! own. Schemas that several routes share are written once.
//!
//! Used by `import::table`.

use serde_json::{Map, Value, json};

use super::drafted::{Drafted, DraftedDocs, DraftedResult, Pattern};
use super::hole::Absence;
use super::model::{CallModel, RestOperation, RpcOperation};
use super::sources::Sources;
use super::tools::{
    OperationDocs, ResultDocs, Schemas, declared_failures, declared_successes, limited, of_type,
};
use super::values::{BoundParameter, RestLocation, RpcLocation};

/// The documentation of all routes.
pub(super) struct Documenting<'s, 'd> {
    sources: &'s Sources<'d>,
    schemas: Schemas<'d>,
}

impl<'s, 'd> Documenting<'s, 'd> {
    pub(super) fn new(sources: &'s Sources<'d>) -> Documenting<'s, 'd> {
        Documenting {
            sources,
            schemas: Schemas::default(),
        }
    }

    /// Documents the route of a REST operation, and its twin for params by name.
    pub(super) fn rest(&mut self, rest: &RestOperation, drafted: &mut Drafted) {
        let Some(document) = self.sources.document(rest.document) else {
            return;
        };
        self.schemas.begin(document);
        let docs = OperationDocs::read(document, rest);
        let failures = declared_failures(document, docs.operation(), &mut self.schemas);
        let successes = declared_successes(document, docs.operation(), &mut self.schemas);
        let result = docs.result(&mut self.schemas);
        let params = docs.params(drafted.call(), drafted, &mut self.schemas);
        drafted.comments.retain(|note| !docs.says(note));
        let mut found = DraftedDocs {
            params: Some(params).filter(|params| says_more(params, drafted)),
            result: result_of(result, drafted).filter(says_something),
            successes,
            failures,
            ..docs.texts()
        };
        if let Some(named) = &mut drafted.by_name {
            let params = docs.params(named.call(), named, &mut self.schemas);
            let params = Some(params).filter(|params| says_more(params, named));
            let docs = DraftedDocs {
                params,
                ..found.clone()
            };
            named.docs = Some(Box::new(docs));
        }
        found.tags.truncate(MOST_TAGS);
        drafted.docs = Some(Box::new(found));
    }

    /// Documents the route of an RPC operation that has no twin.
    pub(super) fn rpc(&mut self, rpc: &RpcOperation, drafted: &mut Drafted) {
        let Some(own) = self.sources.rpc(rpc) else {
            return;
        };
        let (mut params, result) = match rpc.call {
            CallModel::Tool => {
                let parts = ["inputSchema", "outputSchema"];
                let [arguments, result] = parts.map(|name| self.part_of_its_own(own.get(name)));
                (arguments, result)
            }
            CallModel::ByName | CallModel::ByPosition => {
                self.schemas
                    .begin(self.sources.document(rpc.document).unwrap_or(own));
                let result = own.get("result").map(|result| self.followed(rpc, result));
                let result = result.and_then(|result| result.get("schema"));
                (self.params(rpc, own), self.part(result))
            }
        };
        if rpc.call == CallModel::Tool {
            params = params.map(|arguments| json!({ "properties": { "arguments": arguments } }));
        }
        let title = limited(own, "title").or_else(|| limited(own, "summary"));
        let docs = DraftedDocs {
            summary: title,
            description: limited(own, "description"),
            tags: Vec::new(),
            body: None,
            params: params.filter(says_something),
            result: result.filter(says_something),
            successes: None,
            failures: None,
        };
        let says = |note: &String| {
            let texts = [&docs.summary, &docs.description];
            texts
                .into_iter()
                .flatten()
                .any(|text| super::refs::shown(text) == *note)
        };
        drafted.comments.retain(|note| !says(note));
        if let Some(named) = &mut drafted.by_name {
            named.docs = Some(Box::new(docs.clone()));
        }
        drafted.docs = Some(Box::new(docs));
    }

    /// Returns the shared schemas.
    pub(super) fn finish(self) -> Map<String, Value> {
        self.schemas.finish()
    }

    /// Converts the schema of a tool, whose references are relative to itself.
    fn part_of_its_own(&mut self, schema: Option<&'d Value>) -> Option<Value> {
        self.schemas.begin(schema?);
        Some(self.schemas.convert(schema?)).filter(Value::is_object)
    }

    fn part(&mut self, schema: Option<&'d Value>) -> Option<Value> {
        Some(self.schemas.convert(schema?)).filter(Value::is_object)
    }

    fn followed(&self, rpc: &RpcOperation, value: &'d Value) -> &'d Value {
        self.sources.followed(rpc.document, value)
    }

    /// Returns the schema of the params of a method.
    fn params(&mut self, rpc: &RpcOperation, method: &'d Value) -> Option<Value> {
        let declared = method.get("params")?.as_array()?;
        let mut named = Map::new();
        let mut required = Vec::new();
        let mut positions = Vec::new();
        for param in declared {
            let param = self.followed(rpc, param);
            let schema = param.get("schema");
            let mut schema = self.part(schema).unwrap_or_else(|| json!({}));
            if let (Some(text), Value::Object(members)) =
                (limited(param, "description"), &mut schema)
            {
                members.insert("description".to_owned(), text.into());
            }
            if let Some(name) = param.get("name").and_then(Value::as_str) {
                if param.get("required") == Some(&Value::Bool(true)) {
                    required.push(name);
                }
                named.insert(name.to_owned(), schema.clone());
            }
            positions.push(schema);
        }
        Some(match rpc.call {
            CallModel::ByPosition => json!({ "type": "array", "prefixItems": positions }),
            CallModel::ByName | CallModel::Tool => {
                let mut schema = json!({ "type": "object", "properties": named });
                if !required.is_empty() {
                    schema["required"] = json!(required);
                }
                schema
            }
        })
    }
}

/// The most tags of a route.
const MOST_TAGS: usize = 20;

/// Returns the schema of the result of a route.
fn result_of(result: ResultDocs, drafted: &Drafted) -> Option<Value> {
    let nothing = json!({ "type": "null" });
    let is_whole = drafted.result == DraftedResult::Whole;
    match (result.schema, result.may_be_empty) {
        (Some(schema), _) if drafted.result == DraftedResult::MappedToolValue => {
            wrapped(schema, drafted)
        }
        (None, _) if drafted.result == DraftedResult::MappedToolValue => None,
        (Some(schema), true) if is_whole => Some(json!({ "anyOf": [schema, nothing] })),
        (None, true) if is_whole => Some(nothing),
        (Some(_) | None, true) => None,
        (schema, false) => schema,
    }
}

/// Returns the schema of a tool's value that wraps the body of the REST side in one member.
fn wrapped(body: Value, drafted: &Drafted) -> Option<Value> {
    let wrapper = drafted.outcomes.iter().find_map(|outcome| {
        let whole = member(&outcome.rest, "body")?;
        let value = member(member(&outcome.rpc, "result")?, "structuredContent")?;
        let (Pattern::Text(_), Pattern::Object(members)) = (whole, value) else {
            return None;
        };
        let (name, _) = members.iter().find(|(_, inner)| inner == whole)?;
        Some(name)
    })?;
    Some(json!({
        "type": "object",
        "required": [wrapper],
        "properties": { (wrapper.as_str()): body },
    }))
}

/// Returns the member of an object.
fn member<'p>(pattern: &'p Pattern, name: &str) -> Option<&'p Pattern> {
    let Pattern::Object(members) = pattern else {
        return None;
    };
    let (_, found) = members.iter().find(|(own, _)| own == name)?;
    Some(found)
}

/// Returns true for a schema that describes at least one value.
fn says_something(schema: &Value) -> bool {
    let names = schema.get("properties").and_then(Value::as_object);
    let positions = schema.get("prefixItems").and_then(Value::as_array);
    names.is_some_and(|names| !names.is_empty())
        || positions.is_some_and(|positions| !positions.is_empty())
        || (names.is_none() && positions.is_none() && *schema != json!({}))
}

/// Returns true for a schema that says more than the types and defaults of the holes.
fn says_more(params: &Value, drafted: &Drafted) -> bool {
    if drafted.call() == CallModel::Tool {
        return says_something(params);
    }
    let is_plain = |bound: &BoundParameter| {
        let schema = match &bound.rpc {
            RpcLocation::Named(name) => params.get("properties").and_then(|all| all.get(name)),
            RpcLocation::Position(at) => params.get("prefixItems").and_then(|all| all.get(at)),
            RpcLocation::Inside(..) => return false,
            RpcLocation::Twin | RpcLocation::Equal => return true,
        };
        // A short form carries the members of its body without naming them.
        if drafted.body.is_none() && matches!(bound.rest, RestLocation::Member(_)) {
            return false;
        }
        let Some(Value::Object(members)) = schema else {
            return true;
        };
        let mut members = members.clone();
        if matches!(bound.absence, Absence::Default(_)) {
            members.remove("default");
        }
        Value::Object(members) == of_type(&bound.kind, bound.list.is_some())
    };
    says_something(params) && !drafted.bounds.iter().all(is_plain)
}
