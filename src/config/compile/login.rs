//! The login of a link: secrets from files and variables are filled in here.
//!
//! Used by `compile::stdio`, `compile::upstreams` and `compile::websocket`.

use std::sync::Arc;

use http::HeaderMap;

use crate::config::problem::Problem;
use crate::config::raw::{RawConfig, RawFile, RawLogin, RawLoginPart};
use dualgauge_model::pending::{LoginCall, LoginPart, LoginTemplate};
use dualgauge_model::plan::{Credentials, Sharing};

/// Checks the values from files and variables, which are never shown, and the credentials of callers. `sharing` is that
/// of the link; `credentials` is the key of the upstream.
pub(super) fn check(
    login: &RawLogin,
    sharing: Sharing,
    credentials: Credentials,
    config: &RawConfig,
    problems: &mut Vec<Problem>,
) {
    for part in &login.params {
        match part {
            RawLoginPart::Json(_) => {}
            RawLoginPart::File(file) if content(file).is_none() => {
                let shown = file.path.value.display();
                problems.push(file.path.problem(format!(
                    "`{shown}` is invalid: a value of a login is text, and not empty"
                )));
            }
            RawLoginPart::File(_) => {}
            RawLoginPart::Variable(name) if variable(&name.value, config).is_none() => {
                let message = format!("the environment variable `{}` is not set", name.value);
                problems.push(name.problem(message));
            }
            RawLoginPart::Variable(_) => {}
            RawLoginPart::Caller(credential) if sharing != Sharing::Client => {
                let message =
                    "the login takes credentials of a caller, but all callers share the link";
                let hint = "write `sharing = \"client\"` (WebSockets only), or `{file:PATH}` or `{env:NAME}`";
                problems.push(credential.problem(message).hint(hint));
            }
            RawLoginPart::Caller(credential) if credentials == Credentials::Drop => {
                let message = "the login takes credentials of a caller, but `credentials = \"drop\"` keeps them from this upstream";
                let hint = "remove `credentials`, or write `{file:PATH}` or `{env:NAME}`";
                problems.push(credential.problem(message).hint(hint));
            }
            RawLoginPart::Caller(_) => {}
        }
    }
}

pub(super) fn plan(login: &RawLogin, config: &RawConfig) -> LoginTemplate {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let params = login.params.iter().map(|part| match part {
        RawLoginPart::Json(json) => LoginPart::Json(text(&json.0)),
        RawLoginPart::File(file) => LoginPart::Secret(
            content(file).unwrap_or_default().to_owned(),
            Some(file.path.value.clone()),
        ),
        RawLoginPart::Variable(name) => {
            let value = variable(&name.value, config).unwrap_or_default();
            LoginPart::Secret(value.to_owned(), None)
        }
        RawLoginPart::Caller(credential) => LoginPart::Caller(credential.value.clone()),
    });
    LoginTemplate {
        method: login.method.value.clone(),
        params: params.collect(),
        expect: login.expect.clone().map(Arc::new),
    }
}

/// Returns the call of a login that takes nothing from callers.
pub(super) fn own_login(login: Option<&LoginTemplate>) -> Option<LoginCall> {
    let login = login.filter(|login| !login.needs_caller())?;
    login.call_for(&HeaderMap::new())
}

/// Returns the content of a file without the line end that editors add.
fn content(file: &RawFile) -> Option<&str> {
    let text = std::str::from_utf8(&file.content.0).ok()?;
    let text = text.trim_end_matches(['\r', '\n']);
    (!text.is_empty()).then_some(text)
}

fn variable<'c>(name: &str, config: &'c RawConfig) -> Option<&'c str> {
    let mut variables = config.inherited.iter();
    let found = variables.find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str())
}
