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
//! model       operations as plain values, the same for all kinds of documents
//! name_words  names split into words, and their comparison
//! pair        pairs of a REST operation and an RPC operation, with the reason
//! hole        names and spellings of holes
//! matching    pairs of a param and a part of a REST call
//! values      the values of one call: the location of each on either side
//! bind        two operations → those values
//! drafted     one drafted route as plain values
//! keys        the keys that routes have claimed, and free names
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
mod drafted;
mod form;
mod hole;
mod keys;
mod matching;
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
mod rest_api;
mod route;
mod schema;
mod swagger;
mod table;
#[cfg(test)]
mod tests;
mod tools;
mod unsupported;
mod values;
mod write;

use serde_json::Value;

use model::Operations;
pub use refs::{DocumentFault, printable};
pub use report::{ImportReport, LeftOut};
pub use rest_api::{
    RestApi, RestApiOperation, RestApiOptions, check_any_list, draft_rest_api, sample,
};
pub use tools::{ToolDraftOptions, draft_as_tools};

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

/// Drafts a route table from all the documents together.
///
/// # Errors
/// [`ImportError`] for the first document that is not of its kind, or is beyond the limits.
pub fn draft(given: &[SourceDocument]) -> Result<ImportDraft, ImportError> {
    let mut found = Operations::default();
    for given in given {
        let read = match given.kind {
            DocumentKind::OpenApi => openapi::read(&given.document),
            DocumentKind::OpenRpc => openrpc::read(&given.document),
            DocumentKind::Tools => openrpc::read_tools(&given.document),
        };
        let read = read.map_err(|fault| ImportError {
            document: given.name.clone(),
            fault,
        })?;
        found.join(read);
    }
    let counted = (found.rest_count(), found.rpc_count());
    let names: Vec<&str> = given.iter().map(|given| given.name.as_str()).collect();
    let mut table = table::table(found);
    table.report.rest = counted.0;
    table.report.rpc = counted.1;
    let toml = write::write(&names, &table);
    Ok(ImportDraft {
        toml,
        report: table.report,
    })
}
