//! Local replies: responses by the proxy itself, before any route and stage.
//!
//! This module neither parses calls nor sends responses. Laws: a literal takes precedence over a glob, and a narrower
//! glob over a wider one; two globs that match the same calls without one being narrower are rejected; a path is
//! answered in its normal form only, and its other forms are rejected.
//!
//! Used by `config`, `model`, `gateway` and `upstream`.

mod mcp_server_info;
mod tool_list;

use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};

use super::failure::Blame;
use super::frame::{FrameReply, answer_to_frame, command_to_rpc};
use super::jsonrpc::{ErrorObject, ResponseReply};
use super::rollout::Glob;
use super::route::{AmbiguousPath, RouteTable, Segments};
use super::translate::TranslateContext;
use dualgauge_patterns::json::Json;

pub use mcp_server_info::{HANDSHAKES, McpServerInfo, STATELESS};
pub use tool_list::ToolList;

/// One local reply.
#[derive(Debug, Clone)]
pub enum LocalReply {
    /// The reply to a REST call.
    Rest(RestLocalReply),
    /// The reply to RPC calls.
    Rpc(RpcLocalReply),
}

/// The local reply to a REST call.
#[derive(Debug, Clone)]
pub struct RestLocalReply {
    /// The HTTP method; GET also matches HEAD.
    pub method: Method,
    /// The path, in normal form.
    pub path: String,
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The content.
    pub body: Bytes,
}

/// The local reply to RPC calls.
#[derive(Debug, Clone)]
pub struct RpcLocalReply {
    /// The methods.
    pub method: Glob,
    /// The response to calls with an id.
    pub answer: LocalAnswer,
}

/// The local response to an RPC call.
#[derive(Debug, Clone)]
pub enum LocalAnswer {
    /// Success.
    Result(Json),
    /// Failure.
    Error(ErrorObject),
    /// The response to `initialize`, which depends on the requested version.
    Initialize(Box<McpServerInfo>),
    /// The response to `server/discover`.
    Discover(Box<McpServerInfo>),
    /// The response to `tools/list`.
    Tools(Box<ToolList>),
}

/// Two local replies to the same calls, neither of which is narrower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overlap {
    /// The index of the later one.
    pub local: usize,
    /// The index of the earlier one.
    pub with: usize,
}

/// The match of a REST call.
#[derive(Debug, Clone, Copy)]
pub enum LocalMatch<'l> {
    /// A local reply.
    Answer(&'l RestLocalReply),
    /// A local reply for a server that normalises the path.
    Irregular(AmbiguousPath),
    /// No local reply.
    Nothing,
}

/// All local replies.
#[derive(Debug, Default)]
pub struct LocalReplies {
    rest: HashMap<String, Vec<RestLocalReply>>,
    rpc: HashMap<String, LocalAnswer>,
    /// Narrower globs before wider ones.
    globs: Vec<RpcLocalReply>,
    /// The supported MCP revisions, oldest first.
    versions: Vec<String>,
    /// Routes with one outcome each, which define the replies to frames.
    frames: RouteTable,
}

impl LocalReplies {
    /// Builds the table of local replies.
    ///
    /// # Errors
    /// Every pair that matches the same calls.
    pub fn build(all: Vec<LocalReply>) -> Result<LocalReplies, Vec<Overlap>> {
        let overlaps: Vec<Overlap> = all
            .iter()
            .enumerate()
            .filter_map(|(local, one)| {
                let with = all[..local].iter().position(|other| clash(one, other))?;
                Some(Overlap { local, with })
            })
            .collect();
        if !overlaps.is_empty() {
            return Err(overlaps);
        }
        let mut locals = LocalReplies {
            versions: versions(&all),
            ..LocalReplies::default()
        };
        for local in all {
            match local {
                LocalReply::Rest(local) => {
                    let path = locals.rest.entry(local.path.clone());
                    path.or_default().push(local);
                }
                LocalReply::Rpc(local) if local.method.is_literal() => {
                    let method = local.method.as_str().to_owned();
                    locals.rpc.insert(method, local.answer);
                }
                LocalReply::Rpc(local) => locals.globs.push(local),
            }
        }
        // Overlapping globs are nested, and the narrower one is within more of them.
        let globs: Vec<Glob> = locals
            .globs
            .iter()
            .map(|local| local.method.clone())
            .collect();
        let around = |local: &RpcLocalReply| {
            let wider = globs.iter().filter(|glob| local.method.is_within(glob));
            std::cmp::Reverse(wider.count())
        };
        locals.globs.sort_by_key(around);
        Ok(locals)
    }

    /// Returns the reply to an RPC method.
    #[must_use]
    pub fn rpc(&self, method: &str) -> Option<&LocalAnswer> {
        self.rpc.get(method).or_else(|| {
            let fits = |local: &&RpcLocalReply| local.method.fits(method);
            self.globs.iter().find(fits).map(|local| &local.answer)
        })
    }

    /// Returns whether there is any reply to RPC calls.
    #[must_use]
    pub fn answers_rpc(&self) -> bool {
        !self.rpc.is_empty() || !self.globs.is_empty()
    }

    /// Adds the replies to frames: each route has one outcome, with the result `{}`.
    #[must_use]
    pub fn with_frames(self, frames: RouteTable) -> LocalReplies {
        LocalReplies { frames, ..self }
    }

    /// Returns whether there is any reply to frames.
    #[must_use]
    pub fn answers_frames(&self) -> bool {
        !self.frames.routes().is_empty()
    }

    /// Returns the reply to a frame; a frame without a match is left to the routes.
    #[must_use]
    pub fn frame(&self, frame: &Json, context: TranslateContext) -> Option<FrameReply> {
        let route = self.frames.route(self.frames.select_frame(frame)?);
        let read = command_to_rpc(route, frame.clone(), context).ok()?;
        let reply = ResponseReply::Result(Json::literal("{}"));
        Some(answer_to_frame(route, reply, &read.bindings, context).answer)
    }

    /// Returns the supported MCP revisions, oldest first; empty if the proxy is no MCP server.
    #[must_use]
    pub fn versions(&self) -> &[String] {
        &self.versions
    }

    /// Returns the reply to a REST call.
    #[must_use]
    pub fn rest(&self, method: &Method, path: &str) -> LocalMatch<'_> {
        if self.rest.is_empty() {
            return LocalMatch::Nothing;
        }
        let segments = Segments::split(path);
        let exact = match segments.irregular() {
            None => self.at(&segments.normal(), method),
            Some(_) => None,
        };
        match (exact, segments.ambiguity()) {
            (Some(local), _) => LocalMatch::Answer(local),
            (None, Some(why)) if self.at(&segments.tidied(), method).is_some() => {
                LocalMatch::Irregular(why)
            }
            (None, _) => LocalMatch::Nothing,
        }
    }

    /// Returns true if routes are published as tools.
    #[must_use]
    pub fn publishes_tools(&self) -> bool {
        let is_list = |answer: &LocalAnswer| matches!(answer, LocalAnswer::Tools(_));
        self.rpc.values().any(is_list)
    }

    /// Iterates over the paths with REST replies, each with its method.
    pub fn rest_paths(&self) -> impl Iterator<Item = (&Method, &str)> {
        let all = self.rest.values().flatten();
        all.map(|local| (&local.method, local.path.as_str()))
    }

    /// Returns the methods with replies at a path.
    #[must_use]
    pub fn methods(&self, path: &str) -> Vec<Method> {
        if self.rest.is_empty() {
            return Vec::new();
        }
        let here = self.rest.get(&Segments::split(path).normal());
        let here = here.into_iter().flatten();
        here.map(|local| local.method.clone()).collect()
    }

    fn at(&self, path: &str, method: &Method) -> Option<&RestLocalReply> {
        let here = self.rest.get(path)?;
        let of = |method: &Method| here.iter().find(|local| local.method == *method);
        // HEAD matches where GET does (RFC 9110 §9.3.2).
        of(method).or_else(|| of(&Method::GET).filter(|_| *method == Method::HEAD))
    }
}

fn versions(all: &[LocalReply]) -> Vec<String> {
    let greetings = all.iter().filter_map(|local| match local {
        LocalReply::Rpc(local) => match &local.answer {
            LocalAnswer::Initialize(server_info) | LocalAnswer::Discover(server_info) => {
                Some(server_info)
            }
            LocalAnswer::Result(_) | LocalAnswer::Error(_) | LocalAnswer::Tools(_) => None,
        },
        LocalReply::Rest(_) => None,
    });
    let versions = greetings.flat_map(|server_info| server_info.versions.iter().cloned());
    // The names are dates, so they sort by age.
    versions.collect::<BTreeSet<String>>().into_iter().collect()
}

/// Returns whether two replies match the same calls without one being narrower.
fn clash(one: &LocalReply, other: &LocalReply) -> bool {
    match (one, other) {
        (LocalReply::Rest(one), LocalReply::Rest(other)) => {
            (&one.method, &one.path) == (&other.method, &other.path)
        }
        (LocalReply::Rpc(one), LocalReply::Rpc(other)) => {
            let (one, other) = (&one.method, &other.method);
            one.meets(other) && one.is_within(other) == other.is_within(one)
        }
        (LocalReply::Rest(_), LocalReply::Rpc(_)) | (LocalReply::Rpc(_), LocalReply::Rest(_)) => {
            false
        }
    }
}

impl RestLocalReply {
    /// Returns the party at fault, if the reply is an error.
    #[must_use]
    pub fn blame(&self) -> Option<Blame> {
        Blame::of_status(self.status.as_u16()).map(of_proxy)
    }
}

impl LocalAnswer {
    /// Returns the response to a call with these params.
    ///
    /// # Errors
    /// The error object of the response.
    pub fn respond(&self, params: Option<&Json>) -> Result<Json, ErrorObject> {
        match self {
            LocalAnswer::Result(result) => Ok(result.clone()),
            LocalAnswer::Error(error) => Err(error.clone()),
            LocalAnswer::Initialize(server_info) => server_info.initialize(params),
            LocalAnswer::Discover(server_info) => Ok(server_info.discover()),
            LocalAnswer::Tools(tools) => tools.page(params),
        }
    }
}

/// Returns the party at fault of a local error.
#[must_use]
pub fn blame_of(error: &ErrorObject) -> Blame {
    of_proxy(Blame::of_code(error.code))
}

/// No upstream is involved, so none is at fault.
fn of_proxy(blame: Blame) -> Blame {
    match blame {
        Blame::Client => Blame::Client,
        Blame::Upstream | Blame::Proxy => Blame::Proxy,
    }
}

#[cfg(test)]
mod tests;
