//! The outcomes of a pair of a REST operation and a tool: the responses of the REST document, made of the tool's results.
//!
//! A tool's result has a value (`structuredContent`, or a text with JSON) or it is a failure with a text. The value
//! becomes the declared success, the failure the declared error. Law: what the documents do not say is a note.
//!
//! ```text
//! failures   the declared responses that a failure can become
//! ```
//!
//! Used by `import::route`.

mod failures;

use super::correspond::{AbsentParts, Comparison, Correspondence};
use super::drafted::{DraftedOutcome, Pattern, literal, object, text};
use super::model::{RestOperation, RpcOperation};
use super::name_words;
use super::responses::{Content, DeclaredResponse, DeclaredStatus};
use super::shape::Shape;
use super::values::{Bindings, RestLocation, RpcLocation};
use failures::Failures;

/// The outcomes of a route, and what a person should know of them.
#[derive(Debug, Default)]
pub(super) struct ToolRows {
    pub(super) rows: Vec<DraftedOutcome>,
    /// True if the body of a success has another form than the value of the tool.
    pub(super) maps_result: bool,
    pub(super) notes: Vec<String>,
}

/// A pattern that accepts any result, and writes one without content.
const NO_CONTENT: &str = r#"{_={"content":[]}}"#;
/// The reason for a row that ignores the texts of the tool.
const IGNORES_TEXT: &str = "REST has no text beside the body";
/// The reason for a row that ignores members of the tool.
const IGNORES_MEMBERS: &str = "each side has members that the other one lacks";

/// Drafts the outcomes of a pair. `declared` are the responses of the REST operation.
pub(super) fn draft(
    rest: &RestOperation,
    rpc: &RpcOperation,
    bindings: &Bindings,
    declared: &[DeclaredResponse],
) -> ToolRows {
    let mut found = ToolRows::default();
    found.success(rpc, bindings, declared);
    let failures = Failures {
        rest,
        names: &bindings.names,
        declared,
    };
    failures.add_to(&mut found);
    found
}

impl ToolRows {
    fn note(&mut self, text: &str) {
        self.notes.push(format!("look: {text}"));
    }

    fn success(&mut self, rpc: &RpcOperation, bindings: &Bindings, declared: &[DeclaredResponse]) {
        let successes = declared
            .iter()
            .filter_map(|response| match response.status {
                DeclaredStatus::Number(status @ 200..=299) => Some((status, &response.content)),
                DeclaredStatus::Number(_) | DeclaredStatus::Any => None,
            });
        let successes: Vec<(u16, &Content)> = successes.collect();
        let with_content = successes
            .iter()
            .find(|(_, content)| **content != Content::Nothing);
        match with_content.or(successes.first()) {
            None => self.note(
                "the REST document names no success; the value of the tool is sent with 200, or 204 without content",
            ),
            Some((status, Content::Nothing)) => self.rows.push(DraftedOutcome {
                lossy: Some(IGNORES_TEXT),
                ..DraftedOutcome::new(
                    vec![("status", literal(status))],
                    vec![("result", text(NO_CONTENT))],
                )
            }),
            Some((status, Content::Json(shape) | Content::Problem(shape))) => {
                self.body(*status, shape, rpc, bindings);
            }
            Some((status, Content::Text | Content::Other)) => {
                let hole = bindings.free("text");
                let block = vec![
                    ("type", text("text")),
                    ("text", text(&format!("{{{hole}}}"))),
                ];
                let content = Pattern::List(vec![object(block)]);
                self.rows.push(DraftedOutcome::new(
                    vec![
                        ("status", literal(status)),
                        ("text", text(&format!("{{{hole}}}"))),
                    ],
                    vec![("result", object(vec![("content", content)]))],
                ));
            }
        }
    }

    /// Adds the row of a success with JSON, unless the value of the tool is its body as it is.
    fn body(&mut self, status: u16, shape: &Shape, rpc: &RpcOperation, bindings: &Bindings) {
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
                    self.add_body(status, named);
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
        self.add_body(status, relation);
    }

    fn add_body(&mut self, status: u16, relation: Correspondence) {
        let Correspondence::Mapped { rest, rpc } = relation else {
            return;
        };
        self.maps_result |= rest != rpc;
        let lossy = (rest != rpc).then_some(IGNORES_MEMBERS);
        self.rows.push(DraftedOutcome {
            lossy,
            ..DraftedOutcome::new(
                vec![("status", literal(status)), ("body", rest)],
                vec![("result", object(vec![("structuredContent", rpc)]))],
            )
        });
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
