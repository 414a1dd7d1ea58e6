//! The way to the place that is looked at, told only where something differs.

use super::path::{Star, write_token};
use super::shown::Secrecy;
use crate::domain::json::Spelled;
use crate::domain::redact::Redaction;

/// Bytes of a pointer or of a path; what lies deeper is told by the nearest place that fits.
pub(super) const LONGEST: usize = 256;

/// One step inwards.
#[derive(Debug, Clone)]
pub(super) enum Step<'a> {
    /// To a member.
    Name(Spelled<'a>),
    /// To an element: of the control, and of the candidate.
    Element(usize, usize),
}

/// The steps from the answer to a place.
#[derive(Debug, Default)]
pub(super) struct Trail<'a>(Vec<Step<'a>>);

/// Whose indexes a pointer bears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Control,
    Candidate,
}

impl<'a> Trail<'a> {
    pub(super) fn enter(&mut self, step: Step<'a>) {
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
            Step::Name(name) => redaction.hides_in_reports(&name.shown()),
            Step::Element(..) => false,
        });
        if secret {
            Secrecy::Secret
        } else {
            Secrecy::Open
        }
    }

    /// The pointer, and the path under which a difference here is counted: both end at the same place.
    pub(super) fn told(&self, of: Of) -> (String, String) {
        let (mut pointer, mut field) = (String::new(), String::new());
        for step in &self.0 {
            let fits = (pointer.len(), field.len());
            pointer.push('/');
            field.push('/');
            match (step, of) {
                (Step::Name(name), _) => {
                    let name = name.shown();
                    write_token(&name, Star::Plain, &mut pointer);
                    write_token(&name, Star::Escaped, &mut field);
                }
                (Step::Element(index, _), Of::Control)
                | (Step::Element(_, index), Of::Candidate) => {
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
