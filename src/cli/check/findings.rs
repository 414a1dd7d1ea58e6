//! Problems and notes with their places in a repository, for the formats of pipelines.
//!
//! Used by `annotations` and `sarif`.

use std::path::{Component, Path, PathBuf};

use super::verdict::Checked;
use crate::config::problem::{Position, Problem, Problems, SourceLocation};

/// The weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// The exit code is 1.
    Problem,
    /// It does not change the exit code.
    Note,
}

/// A problem or a note, with its place.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) weight: Weight,
    /// The key in the configuration.
    pub(super) key: String,
    /// The message, with its hint on a second line.
    pub(super) text: String,
    /// The file, relative to the current folder if it is inside.
    pub(super) file: PathBuf,
    pub(super) position: Option<Position>,
}

/// The places of findings.
#[derive(Debug)]
pub(super) struct Places<'p> {
    /// The main file: the place of findings that are in no file.
    pub(super) main: &'p Path,
    /// The current folder, which is the root of the repository in a pipeline.
    pub(super) folder: &'p Path,
}

/// Returns all problems, and the notes without those of an upgrade.
pub(super) fn findings(
    checked: &Result<Checked<'_>, Problems>,
    places: &Places<'_>,
) -> Vec<Finding> {
    let (problems, notes) = match checked {
        Ok(checked) => (checked.problems.as_ref(), checked.notes.as_ref()),
        Err(problems) => (Some(problems), None),
    };
    let problems = problems.into_iter().flatten();
    let problems = problems.map(|problem| places.finding(Weight::Problem, problem));
    let notes = notes.into_iter().flatten();
    let notes = notes.map(|note| places.finding(Weight::Note, note));
    problems.chain(notes).collect()
}

impl Places<'_> {
    fn finding(&self, weight: Weight, problem: &Problem) -> Finding {
        let (file, position, origin) = match &problem.place {
            SourceLocation::File { path, position } => (path.as_path(), *position, String::new()),
            SourceLocation::Default => (self.main, None, String::new()),
            place @ (SourceLocation::Variable(_)
            | SourceLocation::Argument(_)
            | SourceLocation::Flip(_)
            | SourceLocation::Source(_)) => (self.main, None, format!("{place}: ")),
        };
        let hint = problem.hint.as_ref();
        let hint = hint.map(|hint| format!("\nhint: {hint}"));
        Finding {
            weight,
            key: problem.key.clone(),
            text: format!("{origin}{}{}", problem.message, hint.unwrap_or_default()),
            file: self.relative(file),
            position,
        }
    }

    /// Returns a path without `.` and `..`, relative to the current folder if it is inside.
    fn relative(&self, file: &Path) -> PathBuf {
        let mut plain = PathBuf::new();
        for part in self.folder.join(file).components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => {
                    plain.pop();
                }
                Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                    plain.push(part);
                }
            }
        }
        match plain.strip_prefix(self.folder) {
            Ok(inside) => inside.to_owned(),
            Err(_) => plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_relative_to_the_root_of_the_repository() {
        let places = Places {
            main: Path::new("dualgauge.toml"),
            folder: Path::new("/repo"),
        };
        let relative = |file: &str| places.relative(Path::new(file)).display().to_string();
        assert_eq!(relative("dualgauge.toml"), "dualgauge.toml");
        assert_eq!(relative("./deploy/../config/a.toml"), "config/a.toml");
        assert_eq!(relative("/repo/config/a.toml"), "config/a.toml");
        assert_eq!(relative("/etc/dualgauge/a.toml"), "/etc/dualgauge/a.toml");
    }
}
