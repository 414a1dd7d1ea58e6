//! Drafts of tables that serve the operations of OpenAPI documents as tools (MCP, "Tools").
//!
//! ```text
//! operation  the documentation of an operation: texts, and the schemas of its values
//! together   the demands of a body on its members together
//! schema     schemas of OpenAPI as JSON Schemas that refer to shared ones
//! texts      texts of the document, limited
//! cycles     references that lead back to themselves, cut
//! ```
//!
//! Laws: the names of the tools are valid and distinct; the same documents give the same text; an operation that cannot
//! be a tool is listed with its reason, and all others are drafted.
//!
//! Used by `import`.

mod cycles;
mod operation;
mod responses;
mod schema;
mod texts;
mod together;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::bind;
use super::drafted::{Drafted, DraftedDocs, DraftedResult};
use super::keys::{ClaimedKeys, RPC_ONLY, is_rpc_path};
use super::model::{CallModel, Operations, RestOperation, RpcOperation};
use super::name_words;
use super::refs::{DocumentFault, shown};
use super::report::{ImportReport, LeftOut};
use super::route;
use super::table::{Table, UniqueNames};
use super::values::{Bindings, RpcLocation};
use super::{DocumentKind, ImportDraft, ImportError, SourceDocument, openapi};
use crate::rollout::Glob;
pub(super) use operation::{OperationDocs, ResultDocs, of_type};
pub(super) use responses::{declared_failures, declared_successes};
pub(super) use schema::Schemas;
pub(super) use texts::limited;

/// The longest name of a tool (MCP, "Tool Names").
const LONGEST_NAME: usize = 128;

/// The choices of a draft with tools.
#[derive(Debug, Clone, Default)]
pub struct ToolDraftOptions {
    /// The name of the MCP server; that of the first document if absent.
    pub name: Option<String>,
    /// The operations to draft, by the name of the tool, the operationId, the path, `METHOD /path` or a tag; all if
    /// empty.
    pub include: Vec<Glob>,
    /// The operations to leave out, by the same names.
    pub exclude: Vec<Glob>,
}

/// Drafts a route table whose RPC sides are tools, with the local replies of an MCP server.
///
/// # Errors
/// [`ImportError`] for the first document that is no OpenAPI document, or is beyond the limits.
pub fn draft_as_tools(
    given: &[SourceDocument],
    options: &ToolDraftOptions,
) -> Result<ImportDraft, ImportError> {
    let mut draft = ToolDraft::new(options);
    for given in given {
        draft.add(given).map_err(|fault| ImportError {
            document: given.name.clone(),
            fault,
        })?;
    }
    let names: Vec<&str> = given.iter().map(|given| given.name.as_str()).collect();
    let documents = given.iter().map(|given| &given.document);
    let server = write::AnnouncedServer::new(options.name.as_deref(), documents);
    let toml = write::write(&names, &server, &draft.table, &draft.schemas.finish());
    Ok(ImportDraft {
        toml,
        report: draft.table.report,
    })
}

/// The routes so far.
struct ToolDraft<'o, 'd> {
    options: &'o ToolDraftOptions,
    table: Table,
    schemas: Schemas<'d>,
    claimed: ClaimedKeys,
    routes: UniqueNames,
    /// The names of tools, in lower case: clients may ignore case.
    tools: BTreeSet<String>,
    /// The last number of each wanted name that other tools have.
    numbers: BTreeMap<String, usize>,
}

impl<'o, 'd> ToolDraft<'o, 'd> {
    fn new(options: &'o ToolDraftOptions) -> ToolDraft<'o, 'd> {
        ToolDraft {
            options,
            table: Table::default(),
            schemas: Schemas::default(),
            claimed: ClaimedKeys::default(),
            routes: UniqueNames::default(),
            tools: BTreeSet::new(),
            numbers: BTreeMap::new(),
        }
    }

    fn add(&mut self, given: &'d SourceDocument) -> Result<(), DocumentFault> {
        if given.kind != DocumentKind::OpenApi {
            return Err(DocumentFault::Kind(
                "tools are drafted from OpenAPI documents only".to_owned(),
            ));
        }
        let Operations {
            rest,
            left_out,
            notes,
            ..
        } = openapi::read_for_tools(&given.document)?;
        let report: &mut ImportReport = &mut self.table.report;
        report.rest += rest.len() + left_out.len();
        report.left_out.extend(left_out);
        self.table.notes.extend(notes);
        self.schemas.begin(&given.document);
        let mut groups: BTreeMap<String, usize> = BTreeMap::new();
        for rest in &rest {
            *groups.entry(wanted_name(rest)).or_default() += 1;
        }
        for rest in &rest {
            self.add_operation(&given.document, rest, &groups);
        }
        Ok(())
    }

    fn add_operation(
        &mut self,
        document: &'d Value,
        rest: &RestOperation,
        groups: &BTreeMap<String, usize>,
    ) {
        let docs = OperationDocs::read(document, rest);
        let wanted = wanted_name(rest);
        if !self.is_chosen(rest, &wanted, &docs) {
            return;
        }
        let name = self.free_name(&wanted);
        let mut comments = rest.notes.clone();
        comments.retain(|note| !docs.says(note));
        if name != wanted {
            let count = groups.get(&wanted).copied().unwrap_or(1);
            comments.push(format!(
                "look: {count} operations are called `{wanted}`; this tool is `{name}`"
            ));
        } else if rest.id.as_ref().is_some_and(|id| *id != name) {
            let id = rest.id.as_deref().unwrap_or_default();
            comments.push(format!(
                "look: `{}` is not a valid name of a tool; it is `{name}`",
                shown(id)
            ));
        }
        let rpc = RpcOperation::invented(name, CallModel::Tool);
        let bindings = bind::rest_alone(rest);
        let mut drafted = route::assemble_tool(rest, &rpc, &bindings);
        comments.extend(bindings.notes.iter().cloned());
        drafted.comments = comments;
        drafted.refused = clash(&bindings);
        drafted.result = DraftedResult::ToolValue;
        let result = docs.result(&mut self.schemas);
        drafted.docs = Some(Box::new(DraftedDocs {
            params: Some(docs.params(CallModel::Tool, &drafted, &mut self.schemas)),
            result: result.schema.filter(|_| !result.may_be_empty),
            ..docs.texts()
        }));
        self.push(drafted, rest, &rpc);
    }

    fn push(&mut self, mut drafted: Drafted, rest: &RestOperation, rpc: &RpcOperation) {
        let keys = route::tool_keys(rest, rpc);
        // Only MCP clients call a tool; the configuration may have an RPC path where its REST server has this operation.
        if is_rpc_path(&keys.rest) {
            drafted.from = Some(RPC_ONLY);
        }
        if drafted.refused.is_none() {
            self.claimed.claim(&mut drafted, &keys);
        }
        drafted.name = self.routes.unique(&drafted.name);
        match &drafted.refused {
            Some(why) => self.table.report.left_out.push(LeftOut {
                what: keys.title,
                why: why.clone(),
            }),
            None => self.table.report.rest_alone += 1,
        }
        self.table.routes.push(drafted);
    }

    fn is_chosen(&self, rest: &RestOperation, name: &str, docs: &OperationDocs<'_>) -> bool {
        let title = rest.title();
        let names = [
            Some(name),
            rest.id.as_deref(),
            Some(&rest.path),
            Some(&title),
        ];
        let tags: Vec<String> = docs.tags().map(str::to_owned).collect();
        let names = names.into_iter().flatten();
        let names: Vec<&str> = names.chain(tags.iter().map(String::as_str)).collect();
        let fits = |globs: &[Glob]| {
            let mut globs = globs.iter();
            globs.any(|glob| names.iter().any(|name| glob.fits(name)))
        };
        let include = &self.options.include;
        (include.is_empty() || fits(include)) && !fits(&self.options.exclude)
    }

    /// Claims a name of a tool: the wanted one, or that with a number.
    fn free_name(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        while !self.tools.insert(name.to_ascii_lowercase()) {
            let number = self.numbers.entry(wanted.to_ascii_lowercase());
            let number = number.or_insert(1);
            *number += 1;
            let suffix = format!("_{number}");
            let kept = wanted.len().min(LONGEST_NAME - suffix.len());
            name = format!("{}{suffix}", &wanted[..kept]);
        }
        name
    }
}

/// Returns the reason why the arguments cannot be the members of one object, if there is one.
fn clash(bindings: &Bindings) -> Option<String> {
    for bound in &bindings.bounds {
        let name = match &bound.rpc {
            RpcLocation::Named(name) | RpcLocation::Inside(_, name) => name,
            RpcLocation::Position(_) | RpcLocation::Twin | RpcLocation::Equal => continue,
        };
        let is_unnamed =
            |place: &RpcLocation| matches!(place, RpcLocation::Named(name) if name == "...");
        let is_inside =
            matches!(&bound.rpc, RpcLocation::Inside(object, _) if is_unnamed(object.as_ref()));
        if is_inside || name == "..." {
            return Some("a pattern cannot name the argument `...`".to_owned());
        }
    }
    bindings.same_names()
}

/// Returns the name of an operation as a tool: its operationId, or the words of its path, in the allowed characters.
fn wanted_name(rest: &RestOperation) -> String {
    let id = rest.id.clone();
    let id = id.unwrap_or_else(|| name_words::invented_with_holes(rest));
    let mut name = String::new();
    for character in id.chars() {
        if character.is_ascii_alphanumeric() || "_.-".contains(character) {
            name.push(character);
        } else if !name.ends_with('_') {
            name.push('_');
        }
    }
    let trimmed = name.trim_matches('_');
    let name = if trimmed.is_empty() { "tool" } else { trimmed };
    name[..name.len().min(LONGEST_NAME)].to_owned()
}
