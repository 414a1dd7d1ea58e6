//! The outcomes of a pair of a REST operation and a tool: the responses of the REST document, made of the tool's results.
//!
//! A tool's result has a value (`structuredContent`, or a text with JSON) or it is a failure with a text. The value
//! becomes the declared success, the failure the declared error. Law: what the documents do not say is a note.
//!
//! ```text
//! failures   the declared responses that a failure can become
//! location   the address of a created resource
//! ```
//!
//! Used by `import::route`.

mod failures;
mod location;

use super::correspond::{AbsentParts, Comparison, Correspondence};
use super::drafted::{DraftedOutcome, Pattern, literal, object, text};
use super::model::{RestOperation, RpcOperation};
use super::name_words;
use super::refs::shown;
use super::responses::{Content, DeclaredResponse, DeclaredStatus};
use super::shape::Shape;
use super::values::{Bindings, RestLocation, RpcLocation};
use failures::Failures;
use location::Address;
pub(super) use location::{ItemPath, ItemPaths};

/// The outcomes of a route, and what a person should know of them.
#[derive(Debug, Default)]
pub(super) struct ToolRows {
    pub(super) rows: Vec<DraftedOutcome>,
    /// True if the body of a success has another form than the value of the tool.
    pub(super) maps_result: bool,
    pub(super) notes: Vec<String>,
    /// True if a row has the `Location` of a created resource.
    is_located: bool,
}

/// The parts of the REST document that describe the responses of an operation.
#[derive(Debug, Default)]
pub(super) struct RestDeclaration<'a> {
    pub(super) responses: Vec<DeclaredResponse>,
    /// The operation that gets what this one creates.
    pub(super) item: Option<ItemPath<'a>>,
}

impl RestDeclaration<'_> {
    /// Returns the address of a created resource, if a response declares it and the documents say it.
    fn address<'a>(
        &'a self,
        response: &'a DeclaredResponse,
        rpc: &RpcOperation,
    ) -> Option<Address<'a>> {
        let is_created = response.status == DeclaredStatus::Number(201);
        let is_declared = response.headers.iter().any(|name| name == LOCATION);
        match &response.content {
            Content::Json(shape) | Content::Problem(shape) if is_created && is_declared => {
                self.item.as_ref()?.address(shape, rpc)
            }
            Content::Json(_)
            | Content::Problem(_)
            | Content::Nothing
            | Content::Text
            | Content::Other => None,
        }
    }
}

/// A success with JSON.
struct Success<'s> {
    status: u16,
    shape: &'s Shape,
    rpc: &'s RpcOperation,
    bindings: &'s Bindings,
    address: Option<&'s Address<'s>>,
}

/// A pattern that accepts any result, and writes one without content.
const NO_CONTENT: &str = r#"{_={"content":[]}}"#;
/// The reason for a row that ignores the texts of the tool.
const IGNORES_TEXT: &str = "REST has no text beside the body";
/// A header of a created resource (RFC 9110 §15.3.2).
const LOCATION: &str = "location";
/// The reason for a row with an address.
const REWRITES_LOCATION: &str = "the address is made of the result";
/// The reason for a row that ignores members of the tool.
const IGNORES_MEMBERS: &str = "each side has members that the other one lacks";

/// Drafts the outcomes of a pair.
pub(super) fn draft(
    rest: &RestOperation,
    rpc: &RpcOperation,
    bindings: &Bindings,
    declared: &RestDeclaration<'_>,
) -> ToolRows {
    let mut found = ToolRows::default();
    found.success(rpc, bindings, declared);
    let failures = Failures {
        rest,
        names: &bindings.names,
        declared: &declared.responses,
    };
    failures.add_to(&mut found);
    found
}

impl ToolRows {
    fn note(&mut self, text: &str) {
        self.notes.push(format!("look: {text}"));
    }

    fn success(&mut self, rpc: &RpcOperation, bindings: &Bindings, declared: &RestDeclaration<'_>) {
        let successes = declared
            .responses
            .iter()
            .filter_map(|response| match response.status {
                DeclaredStatus::Number(status @ 200..=299) => Some((status, response)),
                DeclaredStatus::Number(_) | DeclaredStatus::Any => None,
            });
        let successes: Vec<(u16, &DeclaredResponse)> = successes.collect();
        let with_content = successes
            .iter()
            .find(|(_, response)| response.content != Content::Nothing);
        let Some((status, response)) = with_content.or(successes.first()).copied() else {
            self.note(
                "the REST document names no success; the value of the tool is sent with 200, or 204 without content",
            );
            return;
        };
        let address = declared.address(response, rpc);
        match &response.content {
            Content::Nothing => self.rows.push(DraftedOutcome {
                lossy: Some(IGNORES_TEXT),
                ..DraftedOutcome::new(
                    vec![("status", literal(status))],
                    vec![("result", text(NO_CONTENT))],
                )
            }),
            Content::Json(shape) | Content::Problem(shape) => self.body(&Success {
                status,
                shape,
                rpc,
                bindings,
                address: address.as_ref(),
            }),
            Content::Text | Content::Other => self.text(status, bindings),
        }
        self.note_headers(status, &response.headers, address.as_ref());
    }

    /// Adds the row of a success with a text.
    fn text(&mut self, status: u16, bindings: &Bindings) {
        let hole = format!("{{{}}}", bindings.free("text"));
        let block = vec![("type", text("text")), ("text", text(&hole))];
        let content = Pattern::List(vec![object(block)]);
        self.rows.push(DraftedOutcome::new(
            vec![("status", literal(status)), ("text", text(&hole))],
            vec![("result", object(vec![("content", content)]))],
        ));
    }

    /// Adds the row of a success with JSON, unless the value of the tool is its body as it is.
    fn body(&mut self, success: &Success<'_>) {
        let Success {
            status,
            shape,
            rpc,
            bindings,
            ..
        } = *success;
        let relation = match &rpc.result {
            Some(result) => {
                if *shape == Shape::Any {
                    self.note(&format!(
                        "the REST document does not describe the body of the {status}; it is the value of the tool"
                    ));
                }
                let compared = [AbsentParts::Copied, AbsentParts::Named].map(|absent| {
                    let in_call = |name: &str| hole_of_call(bindings, name);
                    let mut comparison = Comparison {
                        names: bindings.names.clone(),
                        in_call: &in_call,
                        absent,
                        notes: Vec::new(),
                    };
                    let relation = comparison.bodies(shape, result);
                    (relation, comparison.notes)
                });
                let [(copied, notes), (named, _)] = compared;
                self.notes.extend(notes);
                if named != copied {
                    self.add_body(success, named);
                }
                copied
            }
            None => {
                self.note(&format!(
                    "the tool has no outputSchema; the body of the {status} is its `structuredContent`, or its text as JSON"
                ));
                Correspondence::Same
            }
        };
        let relation = match relation {
            Correspondence::Same | Correspondence::None if status == 200 => return,
            Correspondence::Same | Correspondence::None => {
                let hole = text(&format!("{{{}}}", bindings.free("reply")));
                Correspondence::Mapped {
                    rest: hole.clone(),
                    rpc: hole,
                }
            }
            mapped @ Correspondence::Mapped { .. } => mapped,
        };
        self.add_body(success, relation.clone());
        if self.is_located {
            // A REST server may send another address, or none.
            let without = Success {
                address: None,
                ..*success
            };
            self.add_body(&without, relation);
        }
    }

    fn add_body(&mut self, success: &Success<'_>, relation: Correspondence) {
        let Correspondence::Mapped { rest, rpc } = relation else {
            return;
        };
        let address = success.address;
        let located =
            address.and_then(|address| address.write(rest.clone(), rpc.clone(), success.bindings));
        let mut response = vec![("status", literal(success.status))];
        let (rest, rpc, lossy) = match located {
            Some((rest, rpc, location)) => {
                self.is_located = true;
                response.push(("headers", object(vec![(LOCATION, location)])));
                (rest, rpc, Some(REWRITES_LOCATION))
            }
            None => {
                let lossy = match (rest != rpc, self.is_located) {
                    (true, _) => Some(IGNORES_MEMBERS),
                    (false, true) => Some(REWRITES_LOCATION),
                    (false, false) => None,
                };
                (rest, rpc, lossy)
            }
        };
        self.maps_result |= rest != rpc;
        response.push(("body", rest));
        self.rows.push(DraftedOutcome {
            lossy,
            ..DraftedOutcome::new(
                response,
                vec![("result", object(vec![("structuredContent", rpc)]))],
            )
        });
    }

    /// Adds notes on the declared headers of a success.
    fn note_headers(&mut self, status: u16, headers: &[String], address: Option<&Address<'_>>) {
        let address = address.filter(|_| self.is_located);
        if let Some(address) = address {
            self.note(&address.note());
        }
        let lost = headers
            .iter()
            .filter(|name| address.is_none() || *name != LOCATION);
        let lost: Vec<String> = lost
            .map(|name| format!("the header `{}`", shown(name)))
            .collect();
        if !lost.is_empty() {
            self.note(&format!(
                "the {status} declares {}, but the documents do not say which part of the tool's result it is; REST clients do not get it unless you add `headers` to the outcome",
                lost.join(" and ")
            ));
        }
    }
}

/// Returns the hole of the call whose value has this name, outside of a list.
fn hole_of_call(bindings: &Bindings, name: &str) -> Option<String> {
    let mut bounds = bindings.bounds.iter().filter(|bound| {
        let is_written = !matches!(bound.rpc, RpcLocation::Twin | RpcLocation::Equal);
        is_written && bound.list.is_none()
    });
    let found = bounds.find(|bound| match &bound.rest {
        RestLocation::Path(own) | RestLocation::Member(own) => {
            name_words::same_name(own, name) || name_words::same_end(own, name)
        }
        RestLocation::Query(_) | RestLocation::Header(_) | RestLocation::Body => false,
    });
    found.map(|bound| bound.hole.clone())
}
