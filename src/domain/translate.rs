//! One side read, the other written: total functions over a route and a call.
//!
//! Laws: what no hole names stays the bytes it was and where it was; a call that is translated there and
//! back is the call or its normal form; an object that a rule opens has each name once, in any letter case.

use memchr::memmem;

use super::json::{Json, Kind, Member, same_ignoring_case};
use super::pieces::{Pieces, PiecesWriter};
use super::route::{BindError, Carries, Query, Route, Segments, UrlValues, read_url, write_url};

/// A REST call as params.
#[derive(Debug)]
pub struct ToRpc {
    /// The params object.
    pub params: Pieces,
    /// Query parameters that the route does not know.
    pub dropped: usize,
}

/// An RPC call as a URL and a body; the HTTP method is the route's.
#[derive(Debug, PartialEq, Eq)]
pub struct ToRest {
    /// Path and query.
    pub target: String,
    /// The body, where there is one.
    pub body: Option<Pieces>,
    /// Members that the route has no place for.
    pub dropped: usize,
}

/// What a client may add to params of every method; it belongs to the protocol, not to the route.
const PROTOCOL_MEMBER: &str = "_meta";

/// Reads the URL of a REST call: all that can be said of it before its body is read.
///
/// # Errors
/// [`BindError`] names the place that does not fit.
pub fn read_rest(
    route: &Route,
    segments: &Segments<'_>,
    query: Option<&str>,
) -> Result<UrlValues, BindError> {
    read_url(route, segments, &Query::parse(query)?)
}

/// Writes the params of a REST call from its URL and its body.
///
/// # Errors
/// [`BindError`] names the place that does not fit.
pub fn rest_to_rpc(route: &Route, url: UrlValues, body: Option<Json>) -> Result<ToRpc, BindError> {
    let dropped = url.dropped;
    let body = match body {
        None => Json::literal("{}"),
        Some(_) if route.carries() == Carries::Nothing => return Err(no_body(route)),
        Some(body) if body.kind() == Kind::Object => body,
        Some(body) => {
            return Err(BindError::new(
                "body",
                format!("it must be an object, not {}", body.kind().described()),
            ));
        }
    };
    if route.holes().next().is_some() || !route.foreign().members.is_empty() {
        refuse_collisions(route, &body)?;
    }
    if url.members.is_empty() {
        return Ok(ToRpc {
            params: body.into_bytes().into(),
            dropped,
        });
    }
    let mut writer =
        PiecesWriter::with_capacity(url.members.len() + body.as_bytes().len().min(1024) + 8);
    writer.copy(b"{");
    writer.copy(&url.members);
    let text = body.into_bytes();
    let inside = text.slice(1..);
    if !is_blank(&inside[..inside.len() - 1]) {
        writer.copy(b",");
        writer.carry(inside);
    } else {
        writer.copy(b"}");
    }
    Ok(ToRpc {
        params: writer.finish(),
        dropped,
    })
}

/// What a body gets where the route has none.
#[must_use]
pub fn no_body(route: &Route) -> BindError {
    BindError::new(
        "body",
        format!("{} of this route takes no body", route.method),
    )
}

fn is_blank(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_whitespace)
}

fn refuse_collisions(route: &Route, body: &Json) -> Result<(), BindError> {
    for member in body.open()? {
        let place = || format!("body member `{}`", member.name);
        if let Some(hole) = route
            .holes()
            .find(|hole| same_ignoring_case(&hole.name, &member.name))
        {
            let what = format!("`{}` is given by the URL already", hole.name);
            return Err(BindError::new(place(), what));
        }
        if route
            .foreign()
            .members
            .iter()
            .any(|foreign| *foreign == member.name)
        {
            return Err(BindError::new(
                place(),
                format!("the route `{}` does not take it", route.name),
            ));
        }
    }
    Ok(())
}

/// Reads an RPC call and writes its URL and body.
///
/// # Errors
/// [`BindError`] names the member that does not fit.
pub fn rpc_to_rest(route: &Route, params: Option<&Json>) -> Result<ToRest, BindError> {
    if let Some(params) = params
        && params.kind() != Kind::Object
    {
        let what = format!("it must be an object, not {}", params.kind().described());
        return Err(BindError::new("params", what));
    }
    let Some(params) =
        params.filter(|params| !is_blank(&params.as_bytes()[1..params.as_bytes().len() - 1]))
    else {
        return Ok(ToRest {
            target: write_url(route, b"", &[])?,
            body: None,
            dropped: 0,
        });
    };
    let opens = route.holes().next().is_some()
        || route.carries() == Carries::Nothing
        || !route.foreign().members.is_empty()
        || memmem::find(params.as_bytes(), b"\"_meta\"").is_some();
    if !opens {
        let body = Some(params.clone().into_bytes().into());
        return Ok(ToRest {
            target: write_url(route, b"", &[])?,
            body,
            dropped: 0,
        });
    }
    open_params(route, params)
}

fn open_params(route: &Route, params: &Json) -> Result<ToRest, BindError> {
    let members = params.open()?;
    let target = write_url(route, params.as_bytes(), &members)?;
    let is_hole = |name: &str| route.holes().any(|hole| hole.name == name);
    let rest: Vec<&Member> = members
        .iter()
        .filter(|member| member.name != PROTOCOL_MEMBER && !is_hole(&member.name))
        .collect();
    match route.carries() {
        Carries::Nothing => Ok(ToRest {
            target,
            body: None,
            dropped: rest.len(),
        }),
        Carries::Members if rest.is_empty() => Ok(ToRest {
            target,
            body: None,
            dropped: 0,
        }),
        Carries::Members => Ok(ToRest {
            target,
            body: Some(carried(params, &rest)),
            dropped: 0,
        }),
    }
}

/// An object of some members of another, each as the bytes it was.
fn carried(object: &Json, members: &[&Member]) -> Pieces {
    let text = object.clone().into_bytes();
    let mut writer = PiecesWriter::with_capacity(text.len().min(1024));
    for (index, member) in members.iter().enumerate() {
        writer.copy(if index == 0 { b"{" } else { b"," });
        writer.carry(text.slice(member.whole.clone()));
    }
    writer.copy(b"}");
    writer.finish()
}

#[cfg(test)]
mod tests;
