//! The documents of an import, for what is read of them only when a route needs it.
//!
//! Used by `import`, `import::documenting` and `import::table`.

use std::borrow::Cow;
use std::cell::OnceCell;

use serde_json::Value;

use super::model::{CallModel, RestOperation, RpcOperation};
use super::refs::Refs;
use super::responses::{self, DeclaredResponse};
use super::tools::OperationDocs;

/// The documents, in the form of OpenAPI 3.
pub(super) struct Sources<'d> {
    documents: Vec<Source<'d>>,
}

struct Source<'d> {
    document: &'d Value,
    /// `None` if its anchors cannot be read.
    refs: OnceCell<Option<Refs<'d>>>,
}

impl<'d> Source<'d> {
    fn refs(&self) -> Option<&Refs<'d>> {
        let refs = self.refs.get_or_init(|| Refs::new(self.document).ok());
        refs.as_ref()
    }
}

impl<'d> Sources<'d> {
    pub(super) fn new(documents: &'d [Cow<'d, Value>]) -> Sources<'d> {
        let documents = documents.iter().map(|document| Source {
            document,
            refs: OnceCell::new(),
        });
        Sources {
            documents: documents.collect(),
        }
    }

    /// Returns a document.
    pub(super) fn document(&self, index: usize) -> Option<&'d Value> {
        Some(self.documents.get(index)?.document)
    }

    /// Returns a method or a tool as its document describes it.
    pub(super) fn rpc(&self, rpc: &RpcOperation) -> Option<&'d Value> {
        let list = match rpc.call {
            CallModel::Tool => "tools",
            CallModel::ByName | CallModel::ByPosition => "methods",
        };
        let own = self.document(rpc.document)?.get(list)?.get(rpc.index)?;
        Some(self.followed(rpc.document, own))
    }

    /// Returns the value itself, or the target of its reference.
    pub(super) fn followed(&self, document: usize, value: &'d Value) -> &'d Value {
        let refs = self.documents.get(document).and_then(Source::refs);
        refs.and_then(|refs| refs.follow(value).ok())
            .unwrap_or(value)
    }

    /// Returns the responses that an operation declares; none if they cannot be read.
    pub(super) fn responses(&self, rest: &RestOperation) -> Vec<DeclaredResponse> {
        let read = || {
            let source = self.documents.get(rest.document)?;
            let docs = OperationDocs::read(source.document, rest);
            responses::read(source.refs()?, docs.operation()).ok()
        };
        read().unwrap_or_default()
    }
}
