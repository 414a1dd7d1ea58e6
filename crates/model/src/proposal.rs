//! Outcome rows that are missing, proposed from responses that differ.
//!
//! ```text
//! report      the report of a replay, or the mismatches of a running proxy, as values
//! native      the two responses of a pair as their servers sent them
//! bind        the values that both responses have, as holes
//! no_row      the reasons for no proposal
//! pattern     patterns and rows as TOML
//! row         one row from the pairs of a group, and the proof that it makes them equal
//! field       differences that no row can remove
//! ```
//!
//! Law: a proposed row has been tried on each pair that it was made from. The caller reads files and compiles routes;
//! this module does no I/O.
//!
//! Used by `cli`.

mod bind;
mod field;
mod native;
mod no_row;
mod pattern;
mod report;
mod row;

pub use field::{DifferingField, FieldAdvice};
pub use no_row::NoRow;
pub use report::{MismatchReport, ReplyGroup, ReportFault, RouteMismatches};
pub use row::{ProposedRow, propose};

/// Renders a text as a string of TOML.
#[must_use]
pub fn quoted(text: &str) -> String {
    crate::import::quoted(text)
}

/// Reads a report and proposes rows, which a reader of TOML must accept; for tests with any bytes.
pub fn check_any_report(data: &[u8], is_toml: impl Fn(&str) -> bool) {
    let Ok(report) = MismatchReport::read(data) else {
        return;
    };
    for route in &report.routes {
        for group in &route.groups {
            if let Ok(row) = propose(group) {
                let toml = row.toml();
                assert!(!toml.contains(['\n', '\r']), "{toml}");
                assert!(is_toml(&format!("row = {toml}")), "{toml}");
            }
        }
        for field in &route.fields {
            let _ = field.advice();
        }
    }
}
