//! Binding: two operations → the values of their call, each with its hole. Used by `import::route`.

use std::collections::BTreeSet;

use super::hole::{self, Absence};
use super::matching::Matching;
use super::model::{
    BodyModel, CallModel, Inside, Parameter, ParameterLocation, RestOperation, RpcOperation,
};
use super::refs::shown;
use super::schema::{NamedValue, Type};
use super::values::{
    Bindings, BoundParameter, RestLocation, RpcLocation, equal_type, note_other_name,
    note_type_conflict, note_unfilled,
};

/// Returns the values of a REST operation without a twin. Its params get the names of its parameters.
pub(super) fn rest_alone(rest: &RestOperation) -> Bindings {
    let mut found = Bindings::default();
    for parameter in &rest.parameters {
        let hole = found.unique(&parameter_name(parameter));
        let rpc = unmatched_location(parameter, &hole);
        let absence = absence(parameter, None, &mut found);
        found.push(bound_parameter(parameter, hole, absence, rpc));
    }
    match &rest.body {
        BodyModel::None => {}
        BodyModel::Members {
            members,
            has_others,
        } => {
            found.has_others = *has_others;
            for member in members {
                let inside = rest.inside(&member.name);
                add_member(member, inside.map(own_object), &mut found);
            }
        }
        BodyModel::Whole { kind, is_required } => {
            add_body(kind, *is_required, "body", None, &mut found)
        }
    }
    found.name_objects_apart();
    found
}

/// Returns the location, among the params, of a parameter without a matching param.
fn unmatched_location(parameter: &Parameter, hole: &str) -> RpcLocation {
    match &parameter.inside {
        Some(inside) => own_object(inside),
        None => RpcLocation::Named(hole.to_owned()),
    }
}

/// Returns the location in an object that no param of the RPC operation is.
fn own_object(inside: &Inside) -> RpcLocation {
    in_object(inside, RpcLocation::Named(inside.object.clone()))
}

fn in_object(inside: &Inside, object: RpcLocation) -> RpcLocation {
    RpcLocation::Inside(Box::new(object), inside.member.clone())
}

/// Returns the values of an RPC operation without a twin. All of them become members of the body.
pub(super) fn rpc_alone(rpc: &RpcOperation) -> Bindings {
    let mut found = Bindings {
        has_others: rpc.has_others,
        ..Bindings::default()
    };
    let mut members = BTreeSet::new();
    for (at, param) in rpc.params.iter().enumerate() {
        let hole = found.unique(&param.name);
        let location = match rpc.call {
            CallModel::ByName | CallModel::Tool => RpcLocation::Named(param.name.clone()),
            CallModel::ByPosition => RpcLocation::Position(at),
        };
        // A name that occurs twice in an array becomes one member only.
        let member = if members.insert(param.name.clone()) {
            param.name.clone()
        } else {
            hole.clone()
        };
        members.insert(member.clone());
        found.push(BoundParameter {
            hole,
            kind: param.kind.clone(),
            list: None,
            absence: absence_from(param.is_required),
            rest: RestLocation::Member(member),
            rpc: location,
        });
    }
    found.fix_positions(rpc);
    found
}

/// Returns the values of a pair.
///
/// # Errors
/// Returns the reason why the two cannot be one route, although their names match.
pub(super) fn pair(rest: &RestOperation, rpc: &RpcOperation) -> Result<Bindings, String> {
    let mut matching = Matching::new(rest, rpc);
    let mut found = Bindings::default();
    for (at, parameter) in rest.parameters.iter().enumerate() {
        match matching.parameters[at] {
            Some(twin) => paired_parameter(parameter, rpc, twin, &mut found),
            None => unmatched_parameter(parameter, rpc, &mut found)?,
        }
    }
    match &rest.body {
        BodyModel::None => {}
        BodyModel::Members {
            members,
            has_others,
        } => {
            if let Some(whole) = matching.whole_body(rest, rpc) {
                let param = &rpc.params[whole];
                let location = Some(location(rpc, whole));
                add_body(
                    &Type::Object,
                    param.is_required,
                    &param.name,
                    location,
                    &mut found,
                );
            } else {
                found.has_others = match rpc.call {
                    CallModel::ByPosition => false,
                    CallModel::ByName | CallModel::Tool => *has_others,
                };
                for (at, member) in members.iter().enumerate() {
                    let inside = rest.inside(&member.name);
                    match (inside, matching.members[at]) {
                        (Some(inside), Some(twin)) => {
                            let object = in_object(inside, location(rpc, twin));
                            add_member(member, Some(object), &mut found);
                        }
                        (Some(inside), None) if rpc.call != CallModel::ByPosition => {
                            add_member(member, Some(own_object(inside)), &mut found);
                        }
                        (Some(_), None) | (None, _) => {
                            paired_member(member, matching.members[at], rpc, &mut found)?;
                        }
                    }
                }
            }
        }
        BodyModel::Whole { kind, is_required } => {
            let whole = matching.whole_body(rest, rpc).ok_or_else(|| {
                "no param of the RPC operation is clearly the whole body".to_owned()
            })?;
            let param = &rpc.params[whole];
            let is_required = *is_required || param.is_required;
            let location = Some(location(rpc, whole));
            add_body(kind, is_required, &param.name, location, &mut found);
        }
    }
    unmatched_params(rest, rpc, &matching, &mut found)?;
    found.name_objects_apart();
    found.fix_positions(rpc);
    Ok(found)
}

/// Binds a parameter that matches a param, or whose object is a param.
fn paired_parameter(parameter: &Parameter, rpc: &RpcOperation, twin: usize, found: &mut Bindings) {
    let param = &rpc.params[twin];
    note_other_name(&parameter.named.name, &param.name, found);
    note_unfilled(&parameter.named, param, found);
    let inside = parameter.inside.as_ref();
    let inside = inside.filter(|inside| inside.is_named(&param.name));
    if let Some(inside) = inside {
        if !matches!(param.kind, Type::Object | Type::Any) {
            note_type_conflict(&param.name, found);
        }
        let hole = found.unique(&parameter_name(parameter));
        let absence = absence(parameter, None, found);
        let location = in_object(inside, location(rpc, twin));
        found.push(bound_parameter(parameter, hole, absence, location));
        return;
    }
    let hole = hole_for(&param.name, &parameter.named.name, found);
    let absence = absence(parameter, Some(param), found);
    let mut bound = bound_parameter(parameter, hole, absence, location(rpc, twin));
    bound.kind = url_type(parameter, param, found);
    found.push(bound);
}

fn location(rpc: &RpcOperation, at: usize) -> RpcLocation {
    match rpc.call {
        CallModel::ByName | CallModel::Tool => RpcLocation::Named(rpc.params[at].name.clone()),
        CallModel::ByPosition => RpcLocation::Position(at),
    }
}

/// Returns the name of a parameter, in lower case for a header.
fn parameter_name(parameter: &Parameter) -> String {
    match parameter.location {
        ParameterLocation::Path | ParameterLocation::Query => parameter.named.name.clone(),
        ParameterLocation::Header => parameter.named.name.to_ascii_lowercase(),
    }
}

fn absence_from(is_required: bool) -> Absence {
    if is_required {
        Absence::Required
    } else {
        Absence::Optional
    }
}

fn bound_parameter(
    parameter: &Parameter,
    hole: String,
    absence: Absence,
    rpc: RpcLocation,
) -> BoundParameter {
    let name = parameter.named.name.clone();
    BoundParameter {
        hole,
        kind: parameter.named.kind.clone(),
        list: parameter.list,
        absence,
        rest: match parameter.location {
            ParameterLocation::Path => RestLocation::Path(name),
            ParameterLocation::Query => RestLocation::Query(name),
            ParameterLocation::Header => RestLocation::Header(name.to_ascii_lowercase()),
        },
        rpc,
    }
}

/// Returns the meaning of an absent parameter, on both sides.
fn absence(parameter: &Parameter, twin: Option<&NamedValue>, found: &mut Bindings) -> Absence {
    let named = &parameter.named;
    if named.is_required {
        return Absence::Required;
    }
    let default = named.default.as_ref();
    let spelled = default.and_then(|value| hole::default(&named.kind, parameter.list, value));
    let other = twin.and_then(|twin| twin.default.as_ref());
    match (default, other) {
        (Some(one), Some(other)) if one != other => {
            found.note(format!(
                "the default of `{}` is {} for REST and {} for RPC",
                shown(&named.name),
                shown(&one.to_string()),
                shown(&other.to_string())
            ));
            Absence::Optional
        }
        _ => {
            let required = twin.is_some_and(|twin| twin.is_required);
            if required && spelled.is_none() {
                found.note(format!(
                    "`{}` is optional for REST and required for RPC",
                    shown(&named.name)
                ));
            }
            spelled.map_or(Absence::Optional, Absence::Default)
        }
    }
}

/// Returns the type as which the text of a URL value is parsed.
fn url_type(parameter: &Parameter, param: &NamedValue, found: &mut Bindings) -> Type {
    let kind = parameter.named.kind.clone();
    if parameter.list.is_some() {
        if !matches!(param.kind, Type::Array | Type::Any) {
            note_type_conflict(&parameter.named.name, found);
        }
        return kind;
    }
    match (&kind, &param.kind) {
        (Type::Any, Type::Object | Type::Array) => {
            note_type_conflict(&parameter.named.name, found);
            kind
        }
        (Type::Any, other) => other.clone(),
        (_, Type::Any) => kind,
        (Type::String | Type::Enum(_), Type::String | Type::Enum(_)) => kind,
        (Type::Integer | Type::Number, Type::Integer | Type::Number) => kind,
        // A URL has only texts, so any of them can be the string that the other side takes.
        (Type::Integer | Type::Number | Type::Boolean, Type::String) => {
            found.notes.push(format!(
                "`{}` looks like another type in the URL; it is sent as a string, as the RPC side has it",
                shown(&parameter.named.name)
            ));
            Type::String
        }
        (one, other) => {
            if one != other {
                note_type_conflict(&parameter.named.name, found);
            }
            kind
        }
    }
}

/// Returns the name of the RPC side if it is valid for a hole, since no mapping is written then; else the REST name.
fn hole_for(rpc: &str, rest: &str, found: &mut Bindings) -> String {
    found.unique(if hole::name(rpc) == rpc { rpc } else { rest })
}

/// Binds a member of the body under its own name.
fn add_member(member: &NamedValue, rpc: Option<RpcLocation>, found: &mut Bindings) {
    if let Some(twin) = found.for_param(&member.name) {
        let (kind, rpc) = match (member.is_required, equal_type(&twin.kind, &member.kind)) {
            (false, _) if !twin.is_in_head() => {
                found.note(format!(
                    "the body's `{}` is left out: another part of the call has it",
                    shown(&member.name)
                ));
                return;
            }
            // The member is optional and not written, so any spelling will do.
            (false, _) => (Type::Any, RpcLocation::Equal),
            (true, Some(kind)) if twin.is_in_head() => (kind, RpcLocation::Equal),
            (true, _) => (Type::Any, RpcLocation::Twin),
        };
        let bound = BoundParameter {
            hole: twin.hole.clone(),
            rest: RestLocation::Member(member.name.clone()),
            rpc,
            kind,
            list: None,
            absence: absence_from(member.is_required),
        };
        found.push(bound);
        return;
    }
    let hole = found.unique(&member.name);
    found.push(BoundParameter {
        hole,
        kind: member.kind.clone(),
        list: None,
        absence: absence_from(member.is_required),
        rest: RestLocation::Member(member.name.clone()),
        rpc: rpc.unwrap_or_else(|| RpcLocation::Named(member.name.clone())),
    });
}

fn add_body(
    kind: &Type,
    is_required: bool,
    name: &str,
    location: Option<RpcLocation>,
    found: &mut Bindings,
) {
    let hole = found.unique(name);
    found.push(BoundParameter {
        rpc: location.unwrap_or_else(|| RpcLocation::Named(hole.clone())),
        hole,
        kind: kind.clone(),
        list: None,
        absence: absence_from(is_required),
        rest: RestLocation::Body,
    });
}

/// Binds a parameter that the RPC operation does not have.
fn unmatched_parameter(
    parameter: &Parameter,
    rpc: &RpcOperation,
    found: &mut Bindings,
) -> Result<(), String> {
    let name = shown(&parameter.named.name);
    match (parameter.location, rpc.call, parameter.named.is_required) {
        (ParameterLocation::Header, _, _) => {
            found.note(format!(
                "the header `{name}` is not a param; `forward` of an upstream can pass it on"
            ));
        }
        (_, CallModel::ByName | CallModel::Tool, _) => {
            let hole = found.unique(&parameter.named.name);
            let sent = parameter.inside.as_ref();
            let sent = sent.map_or_else(
                || shown(&hole),
                |inside| shown(&format!("{}.{}", inside.object, inside.member)),
            );
            found.note(format!(
                "no param is named like `{name}`; it is sent as `{sent}`"
            ));
            let absence = absence(parameter, None, found);
            let rpc = unmatched_location(parameter, &hole);
            found.push(bound_parameter(parameter, hole, absence, rpc));
        }
        (_, CallModel::ByPosition, true) => {
            return Err(format!("no positional param matches `{name}`"));
        }
        (_, CallModel::ByPosition, false) => {
            if parameter.location == ParameterLocation::Query {
                found.unread.push(parameter.named.name.clone());
            }
            found.note(format!("no positional param matches `{name}`"));
        }
    }
    Ok(())
}

fn paired_member(
    member: &NamedValue,
    twin: Option<usize>,
    rpc: &RpcOperation,
    found: &mut Bindings,
) -> Result<(), String> {
    let name = shown(&member.name);
    let Some(twin) = twin else {
        return match (rpc.call, member.is_required) {
            (CallModel::ByName | CallModel::Tool, _) => {
                if found.for_param(&member.name).is_none() {
                    found.note(format!("no param is named like the body's `{name}`"));
                }
                add_member(member, None, found);
                Ok(())
            }
            (CallModel::ByPosition, true) => {
                Err(format!("no positional param matches the body's `{name}`"))
            }
            (CallModel::ByPosition, false) => {
                found.note(format!("no positional param matches the body's `{name}`"));
                Ok(())
            }
        };
    };
    let param = &rpc.params[twin];
    note_other_name(&member.name, &param.name, found);
    note_unfilled(member, param, found);
    let mut member = member.clone();
    if member.kind != param.kind {
        if member.kind != Type::Any && param.kind != Type::Any {
            note_type_conflict(&member.name, found);
        }
        member.kind = Type::Any;
    }
    if param.is_required && !member.is_required {
        found.note(format!(
            "`{name}` is optional for REST and required for RPC"
        ));
    }
    let hole = hole_for(&param.name, &member.name, found);
    found.push(BoundParameter {
        hole,
        kind: member.kind,
        list: None,
        absence: absence_from(member.is_required),
        rest: RestLocation::Member(member.name),
        rpc: location(rpc, twin),
    });
    Ok(())
}

/// Binds the params that the REST operation does not have.
fn unmatched_params(
    rest: &RestOperation,
    rpc: &RpcOperation,
    matching: &Matching,
    found: &mut Bindings,
) -> Result<(), String> {
    let last = matching.last();
    for at in matching.unmatched(rpc) {
        let param = &rpc.params[at];
        let name = shown(&param.name);
        let required = param.is_required;
        match rpc.call {
            CallModel::ByPosition if required || last > Some(at) => {
                return Err(format!(
                    "no part of the REST call matches the param `{name}`"
                ));
            }
            CallModel::ByName | CallModel::Tool
                if rest.has_members() && !matching.has_whole_body() =>
            {
                found.note(format!(
                    "the REST document does not name the param `{name}`; it is a member of the body"
                ));
                let mut member = param.clone();
                member.is_required = false;
                add_member(&member, None, found);
            }
            CallModel::ByName | CallModel::Tool | CallModel::ByPosition => {
                let word = if required { "required " } else { "" };
                found.note(format!(
                    "no part of the REST call matches the {word}param `{name}`"
                ));
            }
        }
    }
    Ok(())
}
