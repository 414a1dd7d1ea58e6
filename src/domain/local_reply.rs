//! What the proxy itself answers, before any route and any stage.
//!
//! How a call is read and an answer is sent is not known here. Laws: a text beats a glob, a narrower glob a
//! wider one, and two that take the same calls without one being narrower do not stand side by side; a path
//! that is answered is answered in its normal form only, and no other form of it passes by.

mod mcp_server_info;

use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};

use super::failure::Blame;
use super::frame::{FrameReply, answer_to_frame, command_to_rpc};
use super::json::Json;
use super::jsonrpc::{ErrorObject, ResponseReply};
use super::rollout::Glob;
use super::route::{AmbiguousPath, RouteTable, Segments};
use super::translate::TranslateContext;

pub use mcp_server_info::{HANDSHAKES, McpServerInfo, STATELESS};

/// One answer of the proxy's own.
#[derive(Debug, Clone)]
pub enum LocalReply {
    /// To a REST call.
    Rest(RestLocalReply),
    /// To RPC calls.
    Rpc(RpcLocalReply),
}

/// The answer to a REST call.
#[derive(Debug, Clone)]
pub struct RestLocalReply {
    /// The HTTP method; GET answers HEAD as well.
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

/// The answer to RPC calls.
#[derive(Debug, Clone)]
pub struct RpcLocalReply {
    /// Which methods.
    pub method: Glob,
    /// What they are answered with, where they have an id.
    pub answer: LocalAnswer,
}

/// What an RPC call is answered with.
#[derive(Debug, Clone)]
pub enum LocalAnswer {
    /// Success.
    Result(Json),
    /// Failure.
    Error(ErrorObject),
    /// What `initialize` is answered with: it depends on the version that is asked for.
    Initialize(Box<McpServerInfo>),
    /// What `server/discover` is answered with.
    Discover(Box<McpServerInfo>),
}

/// Two local answers to the same calls, neither of which is narrower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overlap {
    /// The later one, by its place in the list.
    pub local: usize,
    /// The earlier one.
    pub with: usize,
}

/// Whether the proxy itself answers a REST call.
#[derive(Debug, Clone, Copy)]
pub enum LocalMatch<'l> {
    /// With this.
    Answer(&'l RestLocalReply),
    /// It would for a program that tidies the path up.
    Irregular(AmbiguousPath),
    /// It does not.
    Nothing,
}

/// All answers of the proxy's own.
#[derive(Debug, Default)]
pub struct LocalReplies {
    rest: HashMap<String, Vec<RestLocalReply>>,
    rpc: HashMap<String, LocalAnswer>,
    /// The narrower before the wider.
    globs: Vec<RpcLocalReply>,
    /// The revisions of MCP by which the proxy presents itself, oldest first.
    versions: Vec<String>,
    /// Routes with one outcome each, which say what frames are answered with.
    frames: RouteTable,
}

impl LocalReplies {
    /// Arranges the answers.
    ///
    /// # Errors
    /// Every pair that takes the same calls.
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
        // Those that share a call lie one within the other, and the narrower one lies within more of them.
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

    /// The answer to the calls of an RPC method.
    #[must_use]
    pub fn rpc(&self, method: &str) -> Option<&LocalAnswer> {
        self.rpc.get(method).or_else(|| {
            let fits = |local: &&RpcLocalReply| local.method.fits(method);
            self.globs.iter().find(fits).map(|local| &local.answer)
        })
    }

    /// Whether any RPC call is answered.
    #[must_use]
    pub fn answers_rpc(&self) -> bool {
        !self.rpc.is_empty() || !self.globs.is_empty()
    }

    /// The same, with answers to frames: each route has one outcome, whose result is `{}`.
    #[must_use]
    pub fn with_frames(self, frames: RouteTable) -> LocalReplies {
        LocalReplies { frames, ..self }
    }

    /// Whether any frame is answered.
    #[must_use]
    pub fn knows_frames(&self) -> bool {
        !self.frames.routes().is_empty()
    }

    /// The answer to a frame; one that does not fit is left to the routes.
    #[must_use]
    pub fn frame(&self, frame: &Json, terms: TranslateContext) -> Option<FrameReply> {
        let route = self.frames.route(self.frames.select_frame(frame)?);
        let read = command_to_rpc(route, frame.clone(), terms).ok()?;
        let reply = ResponseReply::Result(Json::literal("{}"));
        Some(answer_to_frame(route, (reply, &read.call), terms).answer)
    }

    /// The revisions of MCP by which the proxy presents itself, oldest first; none where it does not.
    #[must_use]
    pub fn versions(&self) -> &[String] {
        &self.versions
    }

    /// The answer to a REST call.
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

    /// Returns the paths of REST calls that are answered, each with its method.
    pub fn rest_paths(&self) -> impl Iterator<Item = (&Method, &str)> {
        let all = self.rest.values().flatten();
        all.map(|local| (&local.method, local.path.as_str()))
    }

    /// The methods that are answered at a path.
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
        // HEAD is GET without the content (RFC 9110 §9.3.2).
        of(method).or_else(|| of(&Method::GET).filter(|_| *method == Method::HEAD))
    }
}

fn versions(all: &[LocalReply]) -> Vec<String> {
    let greetings = all.iter().filter_map(|local| match local {
        LocalReply::Rpc(local) => match &local.answer {
            LocalAnswer::Initialize(greeting) | LocalAnswer::Discover(greeting) => Some(greeting),
            LocalAnswer::Result(_) | LocalAnswer::Error(_) => None,
        },
        LocalReply::Rest(_) => None,
    });
    let versions = greetings.flat_map(|greeting| greeting.versions.iter().cloned());
    // Their names are dates.
    versions.collect::<BTreeSet<String>>().into_iter().collect()
}

/// Whether two answers take the same calls without one being narrower.
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
    /// Whom the answer blames, if it reports an error.
    #[must_use]
    pub fn blame(&self) -> Option<Blame> {
        Blame::of_status(self.status.as_u16()).map(own)
    }
}

impl LocalAnswer {
    /// The answer to a call with these params.
    ///
    /// # Errors
    /// The error object that the call is answered with.
    pub fn to(&self, params: Option<&Json>) -> Result<Json, ErrorObject> {
        match self {
            LocalAnswer::Result(result) => Ok(result.clone()),
            LocalAnswer::Error(error) => Err(error.clone()),
            LocalAnswer::Initialize(greeting) => greeting.initialize(params),
            LocalAnswer::Discover(greeting) => Ok(greeting.discover()),
        }
    }
}

/// Whom an error blames that the proxy itself answers with.
#[must_use]
pub fn blame_of(error: &ErrorObject) -> Blame {
    own(Blame::of_code(error.code))
}

/// No upstream is asked, so none is to blame.
fn own(blame: Blame) -> Blame {
    match blame {
        Blame::Client => Blame::Client,
        Blame::Upstream | Blame::Proxy => Blame::Proxy,
    }
}

#[cfg(test)]
mod tests;
