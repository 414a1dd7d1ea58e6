//! Import: documents that describe a server → a draft of its route table.
//!
//! ```text
//! refs      local references of a document, followed within bounds; no other one is followed
//! schema    what a JSON Schema says of a value: its type, its members, whether it may be absent
//! openapi, parameter, reply    an OpenAPI 3.0 to 3.2 document → REST operations
//! openrpc   an OpenRPC document, or the answer to `tools/list` → RPC operations
//! words     names cut into words, and what they have in common
//! pair      which REST operation is which RPC operation, and why
//! hole      names and spellings of holes
//! matching  which param is which part of a REST call
//! values    the values of one call: where each lies on either side
//! bind      what two operations say → those values
//! route     one route, from a pair or from one side alone
//! places    the params of a route, by name or by position
//! table     all of them, without two that one call could mean
//! write     the table as TOML
//! ```
//!
//! Laws (tested): the same documents give the same text; every operation that was read is a route, or a comment
//! that says why it is none; the text is TOML whatever the documents say. Where a document is read from is
//! nobody's business here.

mod bind;
mod hole;
mod matching;
mod model;
mod name_words;
mod openapi;
mod openrpc;
mod pair;
mod parameter;
mod places;
mod refs;
mod reply;
mod route;
mod schema;
mod table;
#[cfg(test)]
pub(crate) mod tests;
mod values;
mod write;

use serde_json::Value;

use model::Operations;
pub use refs::{DocumentFault, printable};

/// A document to draft from.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    /// Where it comes from, for people.
    pub name: String,
    /// What it has to be.
    pub kind: DocumentKind,
    /// What it says.
    pub document: Value,
}

/// What a document describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentKind {
    /// REST operations: OpenAPI 3.0 to 3.2.
    OpenApi,
    /// RPC methods: OpenRPC, also as the result of `rpc.discover`.
    OpenRpc,
    /// Tools: the result of `tools/list`.
    Tools,
}

/// A document that cannot be drafted from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{document}: {fault}")]
pub struct ImportError {
    /// Its name.
    pub document: String,
    /// What is wrong.
    pub fault: DocumentFault,
}

/// A route table to begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportDraft {
    /// The text of a route file.
    pub toml: String,
    /// What became of the operations.
    pub report: ImportReport,
}

/// What became of the operations.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportReport {
    /// REST operations that were read.
    pub rest: usize,
    /// RPC operations that were read.
    pub rpc: usize,
    /// Routes made of one operation of each side.
    pub paired: usize,
    /// Routes made of a REST operation alone.
    pub rest_alone: usize,
    /// Routes made of an RPC operation alone.
    pub rpc_alone: usize,
    /// What is no route.
    pub left_out: Vec<LeftOut>,
}

/// An operation without a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The operation.
    pub what: String,
    /// Why.
    pub why: String,
}

/// Drafts a route table from all the documents together.
///
/// # Errors
/// [`ImportError`] for the first document that is not of its kind, or is beyond the limits.
pub fn draft(given: &[Given]) -> Result<ImportDraft, ImportError> {
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
