//! The reason why an operation of a document is left out. Used by `import`.

use core::fmt;

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

/// A named part of an operation.
#[derive(Debug, Clone, Copy)]
pub(super) enum OperationPart<'n> {
    /// A parameter.
    Parameter(&'n str),
    /// A field of a form.
    Field(&'n str),
}

impl OperationPart<'_> {
    /// Leaves out an optional part with a note.
    ///
    /// # Errors
    /// Leaves out the operation that requires the part.
    pub(super) fn leave_out(
        self,
        is_required: bool,
        why: &str,
        notes: &mut Vec<String>,
    ) -> Result<(), Unsupported> {
        if is_required {
            let part = match self {
                OperationPart::Parameter(name) => format!("its parameter `{}`", shown(name)),
                OperationPart::Field(_) => self.to_string(),
            };
            return Err(Unsupported::left_out(format!(
                "{part} is required, and {why}"
            )));
        }
        notes.push(format!("look: {self} is left out: {why}"));
        Ok(())
    }
}

impl fmt::Display for OperationPart<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OperationPart::Parameter(name) => write!(f, "the parameter `{}`", shown(name)),
            OperationPart::Field(name) => write!(f, "the field `{}` of its form", shown(name)),
        }
    }
}
