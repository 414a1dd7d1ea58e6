//! The way to the place that is looked at, told only where something differs.

use super::path::{Star, write_token};
use super::redacted::Secrecy;
use crate::domain::json::Spelled;
use crate::domain::redact::Redaction;

/// Bytes of a pointer or of a path; what lies deeper is told by the nearest place that fits.
pub(super) const LONGEST: usize = 256;

/// One step inwards.
#[derive(Debug, Clone)]
pub(super) enum PointerStep<'a> {
    /// To a member.
    Name(Spelled<'a>),
    /// To an element: of the control, and of the candidate.
    Element(usize, usize),
}

/// The steps from the answer to a place.
#[derive(Debug, Default)]
pub(super) struct PointerBuilder<'a>(Vec<PointerStep<'a>>);

/// Whose indexes a pointer bears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PointerPart {
    Control,
    Candidate,
}

impl<'a> PointerBuilder<'a> {
    pub(super) fn enter(&mut self, step: PointerStep<'a>) {
        self.0.push(step);
    }

    pub(super) fn leave(&mut self) {
        self.0.pop();
    }

    pub(super) fn depth(&self) -> usize {
        self.0.len()
    }

    /// Whether what the name of something on the way stands for is hidden.
    pub(super) fn secrecy(&self, redaction: &Redaction) -> Secrecy {
        let secret = self.0.iter().any(|step| match step {
            PointerStep::Name(name) => redaction.hides_in_reports(&name.shown()),
            PointerStep::Element(..) => false,
        });
        if secret {
            Secrecy::Secret
        } else {
            Secrecy::Open
        }
    }

    /// The pointer, and the path under which a difference here is counted: both end at the same place.
    pub(super) fn told(&self, of: PointerPart) -> (String, String) {
        let (mut pointer, mut field) = (String::new(), String::new());
        for step in &self.0 {
            let fits = (pointer.len(), field.len());
            pointer.push('/');
            field.push('/');
            match (step, of) {
                (PointerStep::Name(name), _) => {
                    let name = name.shown();
                    write_token(&name, Star::Plain, &mut pointer);
                    write_token(&name, Star::Escaped, &mut field);
                }
                (PointerStep::Element(index, _), PointerPart::Control)
                | (PointerStep::Element(_, index), PointerPart::Candidate) => {
                    pointer.push_str(&index.to_string());
                    field.push('*');
                }
            }
            if pointer.len() > LONGEST || field.len() > LONGEST {
                pointer.truncate(fits.0);
                field.truncate(fits.1);
                break;
            }
        }
        (pointer, field)
    }
}
