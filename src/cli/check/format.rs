//! The format of the report. Used by `check`.

use clap::ValueEnum;

/// The format of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ReportFormat {
    /// Lines for people
    Human,
    /// One JSON document
    Json,
    /// Problems and notes as annotations of GitHub Actions
    Github,
    /// Problems and notes as SARIF 2.1.0
    Sarif,
}
