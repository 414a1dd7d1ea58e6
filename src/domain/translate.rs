//! One side read, the other written: total functions over a route and a call.
//!
//! Laws: what no hole names stays the bytes it was and where it was; a call that is translated there and
//! back is the call or its normal form; an object that a rule opens has each name once, in any letter case.

use std::ops::Range;

use memchr::memmem;

use super::json::{Json, Kind, decode, same_ignoring_case, scan_object};
use super::pieces::{Pieces, PiecesWriter};
use super::route::{BindError, Carries, Query, Route, Segments, read_url, write_url};

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

/// A member of an opened object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedMember {
    /// The name, decoded.
    pub name: String,
    /// The member with its name, as a place in the object's text.
    pub whole: Range<usize>,
    /// The value, as a place in the object's text.
    pub value: Range<usize>,
}

/// What a client may add to params of every method; it belongs to the protocol, not to the route.
const PROTOCOL_MEMBER: &str = "_meta";

/// Reads a REST call and writes its params.
///
/// # Errors
/// [`BindError`] names the place that does not fit.
pub fn rest_to_rpc(
    route: &Route,
    segments: &Segments<'_>,
    query: Option<&str>,
    body: Option<Json>,
) -> Result<ToRpc, BindError> {
    let values = read_url(route, segments, &Query::parse(query)?)?;
    let dropped = values.dropped;
    let body = match body {
        None => Json::literal("{}"),
        Some(_) if route.carries() == Carries::Nothing => {
            return Err(BindError::new(
                "body",
                format!("{} of this route takes no body", route.method),
            ));
        }
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
    if values.members.is_empty() {
        return Ok(ToRpc {
            params: body.into_bytes().into(),
            dropped,
        });
    }
    let mut writer =
        PiecesWriter::with_capacity(values.members.len() + body.as_bytes().len().min(1024) + 8);
    writer.copy(b"{");
    writer.copy(&values.members);
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

fn is_blank(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_whitespace)
}

fn refuse_collisions(route: &Route, body: &Json) -> Result<(), BindError> {
    for member in opened_members(body)? {
        let place = || format!("body member `{}`", member.name);
        if let Some(hole) = route
            .holes()
            .find(|hole| same_ignoring_case(&hole.name, &member.name))
        {
            let what = format!("`{}` is given by the URL already", hole.name);
            return Err(BindError::new(place(), what));
        }
        if route.foreign().members.contains(&member.name) {
            return Err(BindError::new(
                place(),
                format!("the route `{}` does not take it", route.name),
            ));
        }
    }
    Ok(())
}

/// The members of an object, each name once.
///
/// # Errors
/// [`BindError`] where two names are equal or differ only in letter case, or a name is no text.
pub fn opened_members(object: &Json) -> Result<Vec<OpenedMember>, BindError> {
    let text = object.as_bytes();
    let mut found = Vec::new();
    let mut lone = false;
    // The text was validated, with its depth, when it came in.
    let _ = scan_object(text, u16::MAX, |member| {
        match decode(&text[member.name.clone()]) {
            Ok(name) => found.push(OpenedMember {
                name: name.into_owned(),
                whole: member.name.start - 1..member.value.end,
                value: member.value,
            }),
            Err(_) => lone = true,
        }
    });
    if lone {
        return Err(BindError::new(
            "a member name",
            "a lone surrogate escape is no Unicode text",
        ));
    }
    let mut folded: Vec<(String, &str)> = found
        .iter()
        .map(|member| (fold(&member.name), &*member.name))
        .collect();
    folded.sort();
    if let Some([(_, one), (_, other)]) =
        folded.array_windows().find(|[one, other]| one.0 == other.0)
    {
        let what = if one == other {
            "it is given twice".to_owned()
        } else {
            format!("it differs from `{one}` only in letter case")
        };
        return Err(BindError::new(format!("member `{other}`"), what));
    }
    Ok(found)
}

/// One spelling for all names that [`same_ignoring_case`].
fn fold(name: &str) -> String {
    if name.is_ascii() {
        name.to_ascii_lowercase()
    } else {
        name.to_uppercase().to_lowercase()
    }
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
            target: write_url(route, |_| None)?,
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
            target: write_url(route, |_| None)?,
            body,
            dropped: 0,
        });
    }
    open_params(route, params)
}

fn open_params(route: &Route, params: &Json) -> Result<ToRest, BindError> {
    let members = opened_members(params)?;
    let text = params.as_bytes();
    let target = write_url(route, |name| {
        let member = members.iter().find(|member| member.name == name)?;
        Some(&text[member.value.clone()])
    })?;
    if let Some(name) = members
        .iter()
        .map(|member| &member.name)
        .find(|name| route.foreign().members.contains(name))
    {
        let what = format!("the route `{}` does not take it", route.name);
        return Err(BindError::new(format!("params/{name}"), what));
    }
    let is_hole = |name: &str| route.holes().any(|hole| hole.name == name);
    if let Some((member, hole)) = members.iter().find_map(|member| {
        let near = route
            .holes()
            .find(|hole| same_ignoring_case(&hole.name, &member.name))?;
        (near.name != member.name).then_some((member, near))
    }) {
        let what = format!("it differs from `{}` only in letter case", hole.name);
        return Err(BindError::new(format!("params/{}", member.name), what));
    }
    let rest: Vec<&OpenedMember> = members
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
fn carried(object: &Json, members: &[&OpenedMember]) -> Pieces {
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
