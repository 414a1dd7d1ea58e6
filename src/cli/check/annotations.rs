//! The report as workflow commands of GitHub Actions, which show each finding at its line. Used by `check`.

use std::fmt::Write as _;

use super::findings::{Finding, Weight};
use crate::cli::plural::count;

/// Renders one command for each finding, and the totals.
pub(super) fn render(findings: &[Finding]) -> String {
    let mut text = String::new();
    let mut problems = 0;
    for finding in findings {
        problems += usize::from(finding.weight == Weight::Problem);
        let command = match finding.weight {
            Weight::Problem => "error",
            Weight::Note => "notice",
        };
        let file = property(&finding.file.to_string_lossy());
        let _ = write!(text, "::{command} file={file}");
        if let Some(position) = finding.position {
            let _ = write!(text, ",line={}", position.line);
            let column = position.column;
            let _ = column.map_or(Ok(()), |column| write!(text, ",col={column}"));
        }
        let message = data(&finding.text);
        let _ = writeln!(text, ",title={}::{message}", property(&finding.key));
    }
    let notes = count(findings.len() - problems, "note");
    let _ = writeln!(text, "{}, {notes}", count(problems, "problem"));
    text
}

/// Escapes the message of a command.
fn data(text: &str) -> String {
    let text = text.replace('%', "%25");
    text.replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::config::problem::Position;

    #[test]
    fn texts_cannot_end_a_command_or_begin_another() {
        let finding = Finding {
            weight: Weight::Problem,
            key: "route[0].a,b".to_owned(),
            text: "100 % of\n::error::x".to_owned(),
            file: PathBuf::from("a:b.toml"),
            position: Some(Position {
                line: 3,
                column: Some(7),
            }),
        };
        let expected = "::error file=a%3Ab.toml,line=3,col=7,title=route[0].a%2Cb::100 %25 of%0A::error::x\n1 problem, 0 notes\n";
        assert_eq!(render(&[finding]), expected);
    }
}
