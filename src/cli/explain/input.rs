//! The input of `explain`: the requests, and optionally a reply. Used by `explain` and `explain::live`.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, StatusCode};

use super::arguments::ExplainArguments;
use super::http_file::{self, HttpFileRequest};
use super::input_error::InputError;
use dualgauge_model::outcome::RestReply;
use dualgauge_model::plan::Plan;
use dualgauge_patterns::json::scan_value;

/// The maximum nesting depth of JSON that is checked here.
const DEPTH: u16 = 128;

/// The requests to explain, and the reply.
pub(super) struct Input {
    pub(super) requests: Vec<HttpFileRequest>,
    pub(super) reply: Option<RestReply>,
}

/// Reads requests and reply according to the arguments. Without a plan, the RPC paths are unknown here, and the running
/// process determines them.
pub(super) fn read(arguments: &ExplainArguments, plan: Option<&Plan>) -> Result<Input, InputError> {
    let from_stdin = |file: &&PathBuf| *file == Path::new("-");
    let implied = arguments.url.is_none() && arguments.http.is_none() && arguments.json.is_none();
    let mut files = [&arguments.http, &arguments.json].into_iter().flatten();
    let request_is_there = implied || files.any(|file| from_stdin(&file));
    if request_is_there && arguments.reply.iter().any(|file| from_stdin(&file)) {
        let what = "standard input is the request already; give the reply as a file";
        return Err(InputError::Argument(what.to_owned()));
    }
    let requests = match (&arguments.url, &arguments.http, &arguments.json) {
        (Some(url), _, _) => vec![typed(arguments, url)?],
        (None, Some(file), _) => http_file::requests(&text(file)?)?,
        (None, None, Some(file)) => vec![posted(arguments, plan, file)?],
        (None, None, None) => vec![posted(arguments, plan, Path::new("-"))?],
    };
    if requests.iter().any(|request| is_coded(request, plan)) {
        let what = "a body is read as it is; leave `Content-Encoding` out";
        return Err(InputError::Argument(what.to_owned()));
    }
    let reply = arguments.reply.as_deref().map(|file| {
        let status = arguments.status.map(status).transpose()?;
        http_file::reply(&text(file)?, status)
    });
    Ok(Input {
        requests,
        reply: reply.transpose()?,
    })
}

fn status(status: u16) -> Result<StatusCode, InputError> {
    let parsed = StatusCode::from_u16(status).ok();
    let parsed = parsed.filter(|status| (200..=599).contains(&status.as_u16()));
    parsed.ok_or_else(|| {
        InputError::Argument(format!(
            "{status} is not a response status; write one from 200 to 599"
        ))
    })
}

/// Returns whether a body has a content coding. On an RPC path it is rejected, and explained as such; elsewhere the
/// gateway would decode it.
fn is_coded(request: &HttpFileRequest, plan: Option<&Plan>) -> bool {
    let coding = request.headers.get(CONTENT_ENCODING);
    let on_rpc = plan.is_some_and(|plan| plan.face.find(request.target.path()).is_some());
    let elsewhere = !on_rpc || request.method != Method::POST;
    elsewhere && coding.is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// Builds a request from curl-like arguments; data is JSON unless a header says otherwise.
fn typed(arguments: &ExplainArguments, url: &str) -> Result<HttpFileRequest, InputError> {
    let wrong = InputError::Argument;
    let body = match &arguments.data {
        None => None,
        Some(data) => Some(match data.strip_prefix('@') {
            Some(file) => bytes(Path::new(file))?,
            None => Bytes::copy_from_slice(data.as_bytes()),
        }),
    };
    let method = match (&arguments.request, &body) {
        (Some(method), _) => Method::from_bytes(method.as_bytes())
            .map_err(|_| wrong(format!("`{method}` is not an HTTP method")))?,
        (None, Some(_)) => Method::POST,
        (None, None) => Method::GET,
    };
    let (target, authority) = http_file::target(url).map_err(wrong)?;
    let mut request = HttpFileRequest {
        name: None,
        method,
        target,
        headers: headers(&arguments.header)?,
        body: body.unwrap_or_default(),
    };
    request.says_json();
    request.add_host(authority);
    Ok(request)
}

/// Builds a request that posts a JSON-RPC body to an RPC path.
fn posted(
    arguments: &ExplainArguments,
    plan: Option<&Plan>,
    file: &Path,
) -> Result<HttpFileRequest, InputError> {
    let path = arguments.path.as_ref();
    let path = path.or(plan.and_then(|plan| plan.face.paths.first()));
    let path = path.map_or("/", String::as_str);
    let (target, authority) = http_file::target(path).map_err(InputError::Argument)?;
    let body = bytes(file)?;
    check_json(&body)?;
    let mut request = HttpFileRequest {
        name: None,
        method: Method::POST,
        target,
        headers: headers(&arguments.header)?,
        body,
    };
    request.says_json();
    request.add_host(authority);
    Ok(request)
}

fn check_json(body: &[u8]) -> Result<(), InputError> {
    if body.trim_ascii().is_empty() {
        return Err(InputError::NoRequest);
    }
    match scan_value(body, DEPTH) {
        // The explanation reports JSON that is too deep for the limit of the proxy.
        Err(fault) if !fault.is_too_deep() => Err(InputError::NoJson(fault)),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Returns a note on a URL without a scheme whose host is probably meant as a path.
pub(super) fn host_note(url: &str) -> Option<String> {
    if url.contains("://") {
        return None;
    }
    let host = url.split(['/', '?', '#']).next().unwrap_or_default();
    let is_name = !host.is_empty() && !host.contains(['.', ':']) && host != "localhost";
    is_name.then(|| format!("note: `{host}` is read as the host; write `/{url}` for a path\n"))
}

impl HttpFileRequest {
    fn says_json(&mut self) {
        if !self.body.is_empty() && !self.headers.contains_key(CONTENT_TYPE) {
            let json = HeaderValue::from_static("application/json");
            self.headers.insert(CONTENT_TYPE, json);
        }
    }
}

fn headers(lines: &[String]) -> Result<HeaderMap, InputError> {
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = http_file::header(line).map_err(InputError::Argument)?;
        headers.append(name, value);
    }
    Ok(headers)
}

fn bytes(file: &Path) -> Result<Bytes, InputError> {
    let read = if file == Path::new("-") {
        let mut read = Vec::new();
        io::stdin().lock().read_to_end(&mut read).map(|_| read)
    } else {
        std::fs::read(file)
    };
    read.map(Bytes::from).map_err(|source| InputError::File {
        path: file.to_owned(),
        source,
    })
}

fn text(file: &Path) -> Result<String, InputError> {
    let read = bytes(file)?;
    String::from_utf8(read.to_vec()).map_err(|error| InputError::File {
        path: file.to_owned(),
        source: io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()),
    })
}
