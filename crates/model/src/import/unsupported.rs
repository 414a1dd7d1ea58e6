//! The reason why an operation of a document is left out. Used by `import`.

use super::refs::{DocumentFault, shown};
use super::report::LeftOut;

/// The reason why an operation is not read.
#[derive(Debug)]
pub(super) enum Unsupported {
    /// The whole document is at fault.
    Fault(DocumentFault),
    /// Only this operation cannot be expressed.
    LeftOut(String),
}

impl From<DocumentFault> for Unsupported {
    fn from(fault: DocumentFault) -> Unsupported {
        match fault {
            DocumentFault::Kind(_) | DocumentFault::TooDeep(_) | DocumentFault::TooMany => {
                Unsupported::Fault(fault)
            }
            DocumentFault::Remote(_)
            | DocumentFault::Dangling(_)
            | DocumentFault::Cycle(_)
            | DocumentFault::AllOf(_) => Unsupported::LeftOut(fault.to_string()),
        }
    }
}

impl Unsupported {
    pub(super) fn left_out(why: impl Into<String>) -> Unsupported {
        Unsupported::LeftOut(why.into())
    }

    /// Returns the left-out operation with its reason.
    ///
    /// # Errors
    /// Returns a fault of the whole document.
    pub(super) fn left_out_as(self, what: &str) -> Result<LeftOut, DocumentFault> {
        match self {
            Unsupported::Fault(fault) => Err(fault),
            Unsupported::LeftOut(why) => Ok(LeftOut {
                what: shown(what),
                why,
            }),
        }
    }
}
