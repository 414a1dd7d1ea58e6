//! The path to the current place of a walk, formatted only if something differs there.
//!
//! Used by `compare::diff` and `compare::parts`.

use super::path::{Star, write_token};
use crate::redact::Redaction;
use dualgauge_patterns::json::Spelled;

/// The maximum number of bytes of a pointer or a path; a deeper place is reported as its nearest ancestor that fits.
pub(super) const LONGEST: usize = 256;

/// A step inwards.
#[derive(Debug, Clone)]
pub(super) enum PointerStep<'a> {
    /// A step to a member.
    Name(Spelled<'a>),
    /// A step to an element: its index in the control and in the candidate.
    Element(usize, usize),
}

/// The steps from the response to a place.
#[derive(Debug, Default)]
pub(super) struct PointerBuilder<'a>(Vec<PointerStep<'a>>);

/// The response whose indexes a pointer contains.
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

    /// Returns true if any name on the path looks like that of a credential.
    pub(super) fn is_secret(&self, redaction: &Redaction) -> bool {
        self.0.iter().any(|step| match step {
            PointerStep::Name(name) => redaction.hides_in_reports(&name.shown()),
            PointerStep::Element(..) => false,
        })
    }

    /// Returns the pointer, and the path under which a difference here is counted; both end at the same place.
    pub(super) fn render(&self, of: PointerPart) -> (String, String) {
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
