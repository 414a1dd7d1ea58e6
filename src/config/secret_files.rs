//! Files of keys, certificates and header values: read after decoding. Used by `load`.

use std::path::{Path, PathBuf};

use crate::config::problem::Problem;
use crate::config::raw::{
    RawClientTls, RawConfig, RawFile, RawHeaderValue, RawLoginPart, RawServer, RawUpstream,
};
use crate::config::regular;

/// Far longer than any set of keys.
const LONGEST: u64 = 1024 * 1024;

/// Iterates over all secret files.
pub(super) fn all(config: &mut RawConfig) -> impl Iterator<Item = &mut RawFile> {
    let bearer = config.rollout.bearer.iter_mut();
    let tokens = bearer.flat_map(|bearer| &mut bearer.keys);
    let tls = config.listen.tls.iter_mut();
    let tls = tls.flat_map(|tls| {
        let own = [&mut tls.certificate, &mut tls.key];
        own.into_iter().chain(&mut tls.client_ca)
    });
    let upstreams = config.upstreams.iter_mut().flat_map(in_upstream);
    let store = config.rollout.store.iter_mut();
    let store = store.flat_map(|store| in_client_tls(&mut store.tls));
    let source = config.rollout.source.iter_mut();
    let source =
        source.flat_map(|source| in_client_tls(&mut source.tls).chain(&mut source.token_file));
    let tokens = tokens.map(|key| &mut key.file);
    tokens
        .chain(tls)
        .chain(upstreams)
        .chain(store)
        .chain(source)
}

fn in_client_tls(tls: &mut Option<RawClientTls>) -> impl Iterator<Item = &mut RawFile> {
    tls.iter_mut().flat_map(|tls| {
        let files = [&mut tls.ca, &mut tls.certificate, &mut tls.key];
        files.into_iter().flatten()
    })
}

fn in_upstream(upstream: &mut RawUpstream) -> impl Iterator<Item = &mut RawFile> {
    let tls = in_client_tls(&mut upstream.tls);
    let (headers, login) = match &mut upstream.server {
        RawServer::Socket(socket) => (Some(&mut socket.headers), socket.login.as_mut()),
        RawServer::Mcp(server) => (Some(&mut server.headers), None),
        RawServer::Command(child) => (None, child.login.as_mut()),
        RawServer::Url(_) => (None, None),
    };
    let values = headers.into_iter().flat_map(|headers| &mut headers.0);
    let files = values.filter_map(|(_, value)| match value {
        RawHeaderValue::File(file) => Some(file),
        RawHeaderValue::Text(_) => None,
    });
    let parts = login.into_iter().flat_map(|login| &mut login.params);
    let of_login = parts.filter_map(|part| match part {
        RawLoginPart::File(file) => Some(file),
        RawLoginPart::Json(_) | RawLoginPart::Variable(_) | RawLoginPart::Caller(_) => None,
    });
    tls.chain(files).chain(of_login)
}

/// Reads the content of each; returns the files that were read.
pub(super) fn read_files(config: &mut RawConfig, problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for file in all(config) {
        match read(&file.path.value) {
            Ok(content) => {
                file.content.0 = content;
                if !files.contains(&file.path.value) {
                    files.push(file.path.value.clone());
                }
            }
            Err(message) => problems.push(file.path.problem(message)),
        }
    }
    files
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let shown = path.display();
    let unreadable = |error| format!("`{shown}` cannot be read: {error}");
    regular::read(path, LONGEST).map_err(unreadable)
}
