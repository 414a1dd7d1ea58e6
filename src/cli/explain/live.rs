//! What becomes of a request, as a running process tells it: flips, trips and the kill switch count.
//!
//! The answer is printed as it is told, in the form of `--format json`.

use std::io::{self, Write};
use std::process::ExitCode;

use http::Method;
use serde_json::{Map, Value, json};

use super::http_file::Request;
use super::input::{self, InputError};
use super::unreadable;
use crate::cli::admin::{Admin, AdminArguments, Ask};
use crate::cli::{CommandError, ExplainArguments};

/// Where calls are explained.
const PATH: &str = "/api/v1/explain";

pub(super) fn explain(arguments: &ExplainArguments, url: &str) -> Result<ExitCode, CommandError> {
    let questions = match questions(arguments) {
        Ok(questions) => questions,
        Err(error) => return Ok(unreadable(&error)?),
    };
    let admin = Admin::of(&AdminArguments::at(url, arguments.token_file.clone()))?;
    let mut told = Vec::new();
    for (name, question) in questions {
        let answer = admin.ask(&Ask {
            method: Method::POST,
            path: PATH,
            body: Some(question),
            tag: None,
        })?;
        let mut one = answer.get(0).cloned().unwrap_or_default();
        if let Some(one) = one.as_object_mut() {
            one.insert("name".to_owned(), json!(name));
        }
        told.push(one);
    }
    let told = Value::from(told);
    io::stdout()
        .lock()
        .write_all(format!("{told:#}\n").as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The name of each request, and the question about it.
fn questions(arguments: &ExplainArguments) -> Result<Vec<(Option<String>, Value)>, InputError> {
    let input = input::read(arguments, None)?;
    // Where an RPC call is posted to unless it is said, only the process knows.
    let is_placed = arguments.url.is_some() || arguments.http.is_some() || arguments.path.is_some();
    let requests = input.requests.into_iter();
    requests
        .map(|request| {
            let mut question = question(&request)?;
            if is_placed {
                question["target"] = json!(request.target.to_string());
            }
            if let Some(from) = arguments.from {
                question["from"] = json!(from);
            }
            Ok((request.name, question))
        })
        .collect()
}

fn question(request: &Request) -> Result<Value, InputError> {
    let no_text = |what: &str| InputError::Argument(format!("{what} is no text"));
    let mut headers = Map::new();
    for name in request.headers.keys() {
        let values = request.headers.get_all(name).iter();
        let values = values.map(|value| value.to_str().map_err(|_| no_text("a header")));
        let values: Vec<&str> = values.collect::<Result<_, _>>()?;
        headers.insert(name.to_string(), json!(values));
    }
    let body = std::str::from_utf8(&request.body).map_err(|_| no_text("the body"))?;
    Ok(json!({ "method": request.method.as_str(), "headers": headers, "body": body }))
}
