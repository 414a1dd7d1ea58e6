//! The process that serves documents as REST servers.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::Deserialize;

/// A REST server that Prism makes from one document at a time.
pub(crate) struct Mock {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// A document that is served.
#[derive(Debug, Deserialize)]
pub(crate) struct Opened {
    pub(crate) port: u16,
    pub(crate) operations: Vec<Operation>,
}

/// An operation of a document.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Operation {
    method: String,
    path: String,
    /// The media types of the request body.
    request: Vec<String>,
    /// The media types of the successful response.
    response: Vec<String>,
    /// The document describes a successful response.
    pub(crate) has_success: bool,
}

/// A call that reached the server.
#[derive(Debug, Deserialize)]
pub(crate) struct Reached {
    /// `METHOD /path` of the document.
    pub(crate) operation: Option<String>,
    pub(crate) status: u16,
    /// The differences between the request and the document.
    pub(crate) violations: Vec<String>,
    /// The differences between the response of the mock and the document.
    #[serde(default)]
    pub(crate) doubts: Vec<String>,
}

impl Operation {
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// Returns true when the operation has a body that is JSON or a form, and none of another kind.
    pub(crate) fn is_in_scope(&self) -> bool {
        let is = |types: &[String], known: fn(&str) -> bool| {
            types.is_empty() || types.iter().any(|media_type| known(essence(media_type)))
        };
        let has_body = !self.request.is_empty() || !self.response.is_empty();
        has_body
            && self.method != "HEAD"
            && is(&self.request, |one| is_json(one) || is_form(one))
            && is(&self.response, |one| is_json(one) || one == "text/plain")
    }
}

fn is_json(essence: &str) -> bool {
    essence == "*/*" || essence == "application/json" || essence.ends_with("+json")
}

fn is_form(essence: &str) -> bool {
    essence == "multipart/form-data" || essence == "application/x-www-form-urlencoded"
}

fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

impl Mock {
    /// Starts the process; `modules` is a file beside the `node_modules` with Prism.
    pub(crate) fn start(modules: &Path) -> Mock {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/documents/mock.mjs");
        let mut child = Command::new("node")
            .arg(script)
            .arg(modules)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Mock {
            commands: child.stdin.take().unwrap(),
            answers: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    pub(crate) fn open(&mut self, file: &Path) -> Opened {
        let command = format!("open {}", file.display());
        serde_json::from_str(&self.ask(&command)).unwrap()
    }

    /// Returns the calls since the last time.
    pub(crate) fn take(&mut self) -> Vec<Reached> {
        serde_json::from_str(&self.ask("take")).unwrap()
    }

    /// Responds with values made from the schemas, or with the examples of the document.
    pub(crate) fn respond_with(&mut self, kind: &'static str) {
        self.ask(kind);
    }

    pub(crate) fn close(&mut self) {
        self.ask("close");
    }

    fn ask(&mut self, command: &str) -> String {
        writeln!(self.commands, "{command}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        assert!(
            !answer.is_empty() && !answer.starts_with("{\"error\""),
            "{command}: {answer}"
        );
        answer
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
