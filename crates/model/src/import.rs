//! Drafts of route tables from documents that describe a server.
//!
//! ```text
//! refs        local references of a document, followed within limits; no other reference is followed
//! unsupported the reason why an operation is left out
//! schema      the type, the members and the requirement of a value, read from its JSON Schema
//! swagger     a Swagger 2.0 document → the members that `openapi` reads
//! form        forms as bodies: the kinds of fields, and their patterns
//! openapi, parameter, reply    an OpenAPI 3.0 to 3.2 document → REST operations
//! openrpc     an OpenRPC document, or the answer to `tools/list` → RPC operations
//! media_type  media types of bodies
//! model       operations as plain values, the same for all kinds of documents
//! name_words  names split into words, and their comparison
//! method_prefix    prefixes that methods share
//! pair        pairs of a REST operation and an RPC operation, with the reason
//! hole        names and spellings of holes
//! matching    pairs of a param and a part of a REST call
//! values      the values of one call: the location of each on either side
//! bind        two operations → those values
//! drafted     one drafted route as plain values
//! keys        the keys that routes have claimed, and free names
//! shape       the members and elements of a body, read from its schema
//! responses   the declared responses of an operation
//! correspond  the body of the REST side and the value of a tool, compared
//! tool_rows   the outcomes of a pair with a tool
//! documenting texts and schemas of routes
//! sources     the documents, for what is read only where a route needs it
//! route       one route, from a pair or from one side alone
//! param_patterns    the params of a route, by name or by position
//! tools       a table whose RPC sides are tools, from OpenAPI documents alone
//! table       all routes, without two that match the same call
//! write       the table as TOML
//! rest_api    a REST API in front of tools
//! ```
//!
//! Laws (tested): the same documents give the same text; every operation that was read is a route, or a comment with
//! the reason why it is none; the text is valid TOML for any document. The caller reads the documents; this module does
//! no I/O.
//!
//! Used by `cli`.

#[cfg(any(test, feature = "arbitrary"))]
pub mod arbitrary;
mod bind;
mod correspond;
mod documenting;
mod drafted;
mod form;
mod hole;
mod keys;
mod matching;
mod media_type;
mod method_prefix;
mod model;
mod name_words;
mod openapi;
mod openrpc;
mod pair;
mod param_patterns;
mod parameter;
mod refs;
mod reply;
mod report;
mod responses;
mod rest_api;
mod route;
mod schema;
mod shape;
mod sources;
mod swagger;
mod table;
#[cfg(test)]
mod tests;
mod tool_rows;
mod tools;
mod unsupported;
mod values;
mod weak_pair;
mod write;

use std::borrow::Cow;

use serde_json::Value;

use model::Operations;
use pair::Mismatches;
pub use refs::{DocumentFault, printable};
pub use report::{ImportReport, LeftOut, RouteNote};
pub use rest_api::{RestApi, RestApiOperation, RestApiOptions, check_any_list, draft_rest_api};
use sources::Sources;
pub use swagger::upgrade as upgrade_swagger;
pub use tools::{ToolDraftOptions, draft_as_tools};
pub(crate) use write::{bare, quoted};

/// A document to draft from.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceDocument {
    /// The source of the document, for people.
    pub name: String,
    /// The kind that the document must be of.
    pub kind: DocumentKind,
    /// The parsed content.
    pub document: Value,
}

/// The kind of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentKind {
    /// REST operations: OpenAPI 3.0 to 3.2, or Swagger 2.0.
    OpenApi,
    /// RPC methods: OpenRPC, also as the result of `rpc.discover`.
    OpenRpc,
    /// Tools: the result of `tools/list`.
    Tools,
}

/// A document from which no draft can be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{document}: {fault}")]
pub struct ImportError {
    /// The name of the document.
    pub document: String,
    /// The fault of the document.
    pub fault: DocumentFault,
}

/// A drafted route table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportDraft {
    /// The text of a route file.
    pub toml: String,
    /// The counts of the import, and the operations without a route.
    pub report: ImportReport,
}

/// Drafts from any bytes as each kind of document, alone and with tools, and checks that the same document gives the same
/// draft without control characters. For fuzzing.
///
/// # Panics
/// If a law does not hold.
pub fn check_any_document(data: &[u8]) {
    let Ok(document) = serde_json::from_slice::<Value>(data) else {
        return;
    };
    let given = |kind| SourceDocument {
        name: "document".to_owned(),
        kind,
        document: document.clone(),
    };
    let (api, tools) = (given(DocumentKind::OpenApi), given(DocumentKind::Tools));
    let drafts = [
        draft(std::slice::from_ref(&api)),
        draft(&[given(DocumentKind::OpenRpc)]),
        draft(std::slice::from_ref(&tools)),
        draft_as_tools(std::slice::from_ref(&api), &ToolDraftOptions::default()),
    ];
    for draft in drafts.into_iter().flatten() {
        let is_shown = |character: char| character == '\n' || !character.is_control();
        assert!(draft.toml.chars().all(is_shown), "{}", draft.toml);
    }
    // One document may describe both sides.
    let pair = [api, tools];
    assert_eq!(draft(&pair), draft(&pair), "the same documents");
}

/// Reads the operations of a document, and returns it in the form of OpenAPI 3 if it describes REST operations.
fn read(
    given: &SourceDocument,
    index: usize,
) -> Result<(Cow<'_, Value>, Operations), DocumentFault> {
    let document = match given.kind {
        DocumentKind::OpenApi => openapi::normal(&given.document)?,
        DocumentKind::OpenRpc | DocumentKind::Tools => Cow::Borrowed(&given.document),
    };
    let mut found = match given.kind {
        DocumentKind::OpenApi => openapi::read_normal(&document)?,
        DocumentKind::OpenRpc => openrpc::read(&document)?,
        DocumentKind::Tools => openrpc::read_tools(&document)?,
    };
    for rest in &mut found.rest {
        rest.document = index;
    }
    for rpc in &mut found.rpc {
        rpc.document = index;
    }
    Ok((document, found))
}

/// Drafts a route table from all the documents together.
///
/// # Errors
/// [`ImportError`] for the first document that is not of its kind, or is beyond the limits.
pub fn draft(given: &[SourceDocument]) -> Result<ImportDraft, ImportError> {
    draft_with(given, Mismatches::Noted)
}

/// Does the same for documents that were inferred from calls: two operations are a pair only if each value of one has a
/// place in the other. What no call has is no omission of an author.
///
/// # Errors
/// Fails as [`draft`] does.
pub fn draft_observed(given: &[SourceDocument]) -> Result<ImportDraft, ImportError> {
    draft_with(given, Mismatches::Refused)
}

fn draft_with(
    given: &[SourceDocument],
    mismatches: Mismatches,
) -> Result<ImportDraft, ImportError> {
    let mut found = Operations::default();
    let mut documents = Vec::with_capacity(given.len());
    for (index, given) in given.iter().enumerate() {
        let (document, read) = read(given, index).map_err(|fault| ImportError {
            document: given.name.clone(),
            fault,
        })?;
        documents.push(document);
        found.join(read);
    }
    let sources = Sources::new(&documents);
    let counted = (found.rest_count(), found.rpc_count());
    let names: Vec<&str> = given.iter().map(|given| given.name.as_str()).collect();
    let mut table = table::table(found, &sources, mismatches);
    table.report.rest = counted.0;
    table.report.rpc = counted.1;
    let toml = write::write(&names, &table);
    Ok(ImportDraft {
        toml,
        report: table.report,
    })
}
