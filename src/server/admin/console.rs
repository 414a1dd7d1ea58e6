//! The console at `/`, and the page that shows the API at `/api/v1/docs`: static files in the binary.
//!
//! The files contain nothing of this process, so they need no token. Their policy allows no inline script and style, no
//! frame, and requests to this origin only.
//!
//! Used by `admin::response` and `admin::routes`.

use std::sync::LazyLock;

use bytes::Bytes;
use http::header::{CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY};

use crate::config::docs_page;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";
const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

/// One file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ConsoleFile {
    path: String,
    kind: &'static str,
    policy: &'static str,
    body: Bytes,
}

impl ConsoleFile {
    /// Returns the media type.
    pub(super) const fn kind(&self) -> &'static str {
        self.kind
    }

    /// Returns the content.
    pub(super) fn body(&self) -> Bytes {
        self.body.clone()
    }

    /// Returns the headers that bind browsers, beside those of every response.
    pub(super) fn headers(&self) -> [(HeaderName, HeaderValue); 4] {
        let opener = HeaderName::from_static("cross-origin-opener-policy");
        let resource = HeaderName::from_static("cross-origin-resource-policy");
        [
            (
                CONTENT_SECURITY_POLICY,
                HeaderValue::from_static(self.policy),
            ),
            (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
            (opener, HeaderValue::from_static("same-origin")),
            (resource, HeaderValue::from_static("same-origin")),
        ]
    }
}

/// A file of `console/` with its path.
macro_rules! file {
    ($path:literal, $kind:expr) => {
        (
            concat!("/console/", $path),
            $kind,
            include_str!(concat!("console/", $path)),
        )
    };
}

/// The files of the console.
const CONSOLE: &[(&str, &str, &str)] = &[
    ("/", HTML, include_str!("console/index.html")),
    file!("icon.svg", IMAGE),
    file!("style.css", STYLE),
    file!("app.js", SCRIPT),
    file!("api.js", SCRIPT),
    file!("chart.js", SCRIPT),
    file!("curl.js", SCRIPT),
    file!("dialog.js", SCRIPT),
    file!("dom.js", SCRIPT),
    file!("format.js", SCRIPT),
    file!("har.js", SCRIPT),
    file!("history.js", SCRIPT),
    file!("json.js", SCRIPT),
    file!("patterns.js", SCRIPT),
    file!("pointer.js", SCRIPT),
    file!("recording.js", SCRIPT),
    file!("list.js", SCRIPT),
    file!("live.js", SCRIPT),
    file!("sides.js", SCRIPT),
    file!("pages/clients.js", SCRIPT),
    file!("pages/configuration.js", SCRIPT),
    file!("pages/differences.js", SCRIPT),
    file!("pages/explain.js", SCRIPT),
    file!("pages/flags.js", SCRIPT),
    file!("pages/overview.js", SCRIPT),
    file!("pages/routes.js", SCRIPT),
];

static FILES: LazyLock<Vec<ConsoleFile>> = LazyLock::new(|| {
    let console = CONSOLE.iter().map(|(path, kind, body)| ConsoleFile {
        path: (*path).to_owned(),
        kind,
        policy: POLICY,
        body: Bytes::from_static(body.as_bytes()),
    });
    let docs = docs_page::page_files("/api/v1/docs", "/api/v1/admin.json");
    let docs = docs.into_iter().map(|file| ConsoleFile {
        path: file.path,
        kind: file.kind,
        policy: docs_page::POLICY,
        body: file.body,
    });
    console.chain(docs).collect()
});

/// Looks up a file by its path.
pub(super) fn find(path: &str) -> Option<&'static ConsoleFile> {
    FILES.iter().find(|file| file.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most bytes of all files of the console together.
    const MOST: usize = 300 * 1024;

    #[test]
    fn all_files_together_are_small() {
        let size: usize = FILES.iter().map(|file| file.body.len()).sum();
        assert!(size <= MOST, "{size} bytes");
    }

    #[test]
    fn every_script_and_style_that_a_file_names_is_served() {
        for file in FILES.iter() {
            let text = std::str::from_utf8(&file.body).unwrap();
            for (_, after) in text
                .match_indices("\"./")
                .map(|(at, _)| text.split_at(at + 1))
            {
                let name = after.split('"').next().unwrap().trim_start_matches("./");
                let folder = file.path.rsplit_once('/').unwrap().0;
                let path = format!("{folder}/{name}");
                assert!(find(&path).is_some(), "{} names {path}", file.path);
            }
        }
    }
}
