//! Loading of the configuration: the only reader of configuration files and of the environment.
//!
//! Three layers, each overriding the one before: files, `DUALGAUGE_` variables, command-line arguments. The table of
//! keys has the defaults.
//!
//! Used by `app`, `cli` and `configuration`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use figment::value::{Dict, Value};

use crate::config::decode;
use crate::config::digest::Digests;
use crate::config::include;
use crate::config::layer::{Layer, Merged, element, join};
use crate::config::other_files;
use crate::config::problem::{Problem, Problems, SourceLocation};
use crate::config::raw::{RawConfig, RawServer, RawStdio};
use crate::config::replica::read_password;
use crate::config::schema;
use crate::config::secret_files;
use crate::config::table_reader;
use crate::config::toml::{KeyPath, TomlDocument, parse_value};
use dualgauge_patterns::side::Side;

/// The prefix of all environment variables.
const PREFIX: &str = "DUALGAUGE_";

/// The admin token of commands, which is not a configuration key.
const TOKEN: &str = "TOKEN";

/// Variables that child processes inherit: the search path, home, temporary files, language and time zone.
const INHERITED: [&str; 9] = [
    "PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE", "TZ",
];

/// Variables of systemd's protocols (sd_listen_fds(3), sd_notify(3), sd_watchdog_enabled(3)), and the open-file limit
/// of the process that this one replaces.
const SUPERVISION: [&str; 3] = ["LISTEN_FDNAMES", "NOTIFY_SOCKET", SOFT_NOFILE];

/// The variable that passes the original soft limit of open files to the successor process.
pub const SOFT_NOFILE: &str = "PREDECESSOR_SOFT_NOFILE";

/// The sources of a configuration.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The main file; without one, only defaults and variables apply.
    pub file: Option<PathBuf>,
    /// `--listen`
    pub listen: Option<String>,
    /// `--admin`
    pub admin: Option<String>,
    /// Environment variables, including unrelated ones; [`environment`] returns those of the process.
    pub environment: Vec<(String, String)>,
}

/// Returns the variables of the process. Invalid UTF-8 is replaced, so that it shows in the problem that it causes.
#[must_use]
pub fn environment() -> Vec<(String, String)> {
    let text = |part: OsString| part.to_string_lossy().into_owned();
    std::env::vars_os()
        .map(|(name, value)| (text(name), text(value)))
        .collect()
}

/// Returns the variables of a service manager, or of the process that this one replaces: inherited sockets, and where
/// and how often to report the state.
#[must_use]
pub fn supervision() -> Vec<(String, String)> {
    let variables = SUPERVISION.iter().filter_map(|name| {
        let value = std::env::var_os(name)?;
        Some(((*name).to_owned(), value.to_string_lossy().into_owned()))
    });
    variables.collect()
}

/// Returns whether every child process inherits a variable.
pub(super) fn is_inherited(name: &str) -> bool {
    INHERITED.contains(&name)
}

/// Returns whether a variable is for this process only: its configuration, and the protocols of a service manager.
fn is_reserved(name: &str) -> bool {
    name.starts_with(PREFIX)
        || name.starts_with("LISTEN_")
        || name.starts_with("WATCHDOG_")
        || SUPERVISION.contains(&name)
}

/// Reads, merges and decodes all sources.
///
/// # Errors
/// Every problem of reading and decoding. If the main file cannot be read or is not TOML, that and the problems that do
/// not depend on it.
pub fn load(sources: &Sources) -> Result<RawConfig, Problems> {
    load_noting(sources, &mut Digests::new())
}

/// Does the same as [`load`], and records the digests of the files.
///
/// # Errors
/// Those of [`load`].
pub fn load_noting(sources: &Sources, digests: &mut Digests) -> Result<RawConfig, Problems> {
    let Loaded { config, problems } = load_parts(sources, digests)?;
    match config {
        Some(config) => Problems::unless(problems, config),
        None => Err(Problems::new(problems)),
    }
}

/// The readable part of a configuration, with every problem of reading and decoding.
#[derive(Debug)]
pub(super) struct Loaded {
    /// The list elements that could be decoded, with defaults in place of invalid single values. `None` if that makes
    /// no configuration.
    pub(super) config: Option<RawConfig>,
    pub(super) problems: Vec<Problem>,
}

/// Reads, merges and decodes as much as possible, and records the digests of the files.
///
/// # Errors
/// Fails when the main file cannot be read or is not TOML.
pub(super) fn load_parts(sources: &Sources, digests: &mut Digests) -> Result<Loaded, Problems> {
    let mut problems = Vec::new();
    let (files, paths) = match &sources.file {
        Some(file) => read_files(file, digests, &mut problems)
            .map_err(|unreadable| without_main(unreadable, file, sources))?,
        None => (Layer::new("files"), Vec::new()),
    };
    let variables = variables(&sources.environment, &mut problems);
    let mut merged = Merged::new(vec![files, variables, arguments(sources)])?;

    let mut decoded = table_reader::read(&merged, &mut problems, decode::config);
    if decoded.is_none() {
        for problem in &problems {
            remove(&mut merged.values, single(&problem.key));
        }
        // Its problems are already reported.
        decoded = table_reader::read(&merged, &mut Vec::new(), decode::config);
    }
    let Some(mut config) = decoded else {
        let config = None;
        return Ok(Loaded { config, problems });
    };
    config.places = merged.into_source_map(&["route", "outcomes", "event"]);
    if let Some(file) = &sources.file {
        config.resolve(file.parent().unwrap_or(Path::new("")));
    }
    let inherited = sources.environment.iter();
    config.inherited = inherited
        .filter(|(name, _)| !is_reserved(name))
        .cloned()
        .collect();
    config.file.clone_from(&sources.file);
    config.files = paths;
    if let Some(store) = &mut config.rollout.store {
        let folder = sources.file.as_deref().and_then(Path::parent);
        problems.extend(read_password(store, folder.unwrap_or(Path::new(""))).err());
    }
    let schemas = schema::read_files(&mut config, &mut problems);
    config.files.extend(schemas);
    let keys = secret_files::read_files(&mut config, &mut problems);
    config.files.extend(keys);
    config.default_rpc_paths();
    let config = Some(config);
    Ok(Loaded { config, problems })
}

/// Returns the problems that do not depend on the main file, which is unreadable or not TOML: those of other files and
/// of variables.
fn without_main(unreadable: Problem, main: &Path, sources: &Sources) -> Problems {
    let mut problems = vec![unreadable];
    problems.extend(other_files::problems(main));
    variables(&sources.environment, &mut problems);
    Problems::new(problems)
}

/// Lists of tables: an invalid element is omitted.
const LISTS: [&str; 6] = ["route", "outcomes", "client", "stream", "event", "local"];

/// Returns the key of the single value that a problem concerns: the list, for an element of a list of values. It is
/// empty for elements that are omitted on their own.
fn single(key: &str) -> &str {
    let key = key.split('[').next().unwrap_or(key);
    let root = key.split('.').next().unwrap_or(key);
    if LISTS.contains(&root) { "" } else { key }
}

/// Removes a value, so that its default holds.
fn remove(values: &mut Dict, key: &str) {
    let (name, rest) = match key.split_once('.') {
        Some((name, rest)) => (name, Some(rest)),
        None => (key, None),
    };
    if let (Some(Value::Dict(_, table)), Some(rest)) = (values.get_mut(name), rest) {
        return remove(table, rest);
    }
    values.remove(name);
}

/// The RPC path of a proxy without an RPC upstream, unless the configuration names others.
const LONE_RPC_PATH: &str = "/rpc";

impl RawConfig {
    /// Keeps one path of the default of `rpc.paths` if there is no RPC upstream: the others are often paths of a REST
    /// server.
    fn default_rpc_paths(&mut self) {
        let mut upstreams = self.upstreams.iter();
        if upstreams.any(|upstream| upstream.side.value == Side::Rpc) {
            return;
        }
        let paths = &mut self.rpc.paths;
        if paths
            .iter()
            .all(|path| path.place == SourceLocation::Default)
        {
            paths.retain(|path| path.value == LONE_RPC_PATH);
        }
    }

    /// Resolves relative paths against the folder of the main file, regardless of their source.
    fn resolve(&mut self, folder: &Path) {
        let rollout = &mut self.rollout;
        rollout.state.value = folder.join(&rollout.state.value);
        if let Some(flags) = &mut rollout.flags {
            flags.value = folder.join(&flags.value);
        }
        if let Some(record) = &mut self.record {
            record.directory.value = folder.join(&record.directory.value);
        }
        for upstream in &mut self.upstreams {
            if let RawServer::Command(child) = &mut upstream.server {
                resolve_child(child, folder);
            }
        }
        for file in secret_files::all(self) {
            file.path.value = folder.join(&file.path.value);
        }
    }
}

/// Resolves the program of a child process. A name without a `/` is looked up in `PATH`.
fn resolve_child(child: &mut RawStdio, folder: &Path) {
    if let Some(directory) = &mut child.directory {
        directory.value = folder.join(&directory.value);
    }
    let program = child.command.first_mut();
    if let Some(program) = program.filter(|program| program.value.contains('/')) {
        let path = folder.join(&program.value);
        program.value = path.to_string_lossy().into_owned();
    }
}

/// Reads the main file and its includes as one layer; returns it with their paths.
fn read_files(
    main: &Path,
    digests: &mut Digests,
    problems: &mut Vec<Problem>,
) -> Result<(Layer, Vec<PathBuf>), Problem> {
    let mut layer = Layer::new("files");
    problems.extend(TomlDocument::read(main, digests)?.add_to(&mut layer, KeyPath::Main)?);
    let mut paths = vec![main.to_path_buf()];
    for path in included(main, &layer, problems) {
        if paths.contains(&path) {
            continue;
        }
        let part = KeyPath::Included(include::ROUTE_TABLES);
        match TomlDocument::read(&path, digests).and_then(|read| read.add_to(&mut layer, part)) {
            Ok(found) => problems.extend(found),
            Err(unreadable) => problems.push(unreadable),
        }
        paths.push(path);
    }
    Ok((layer, paths))
}

/// Returns the files that the main file includes, pattern by pattern. Decoding checks that `include` is a list of
/// strings.
fn included(main: &Path, layer: &Layer, problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    let Some(Value::Array(_, patterns)) = layer.values.get("include") else {
        return Vec::new();
    };
    let folder = main.parent().unwrap_or(Path::new(""));
    let mut found = Vec::new();
    for (index, pattern) in patterns.iter().enumerate() {
        let Some(pattern) = pattern.as_str() else {
            continue;
        };
        let key = element("include", index);
        match include::matching(folder, pattern) {
            Ok(paths) => found.extend(paths),
            Err(message) => problems.push(Problem {
                place: layer.location(&key).unwrap_or(SourceLocation::Default),
                key,
                message,
                hint: None,
            }),
        }
    }
    found
}

/// Reads the variables: `DUALGAUGE_LISTEN__ADDRESS` sets `listen.address`. A value that begins like a TOML list, table
/// or string is parsed as one; any other is text, and the type of the key decides.
fn variables(environment: &[(String, String)], problems: &mut Vec<Problem>) -> Layer {
    let mut layer = Layer::new("variables");
    let mut ours: Vec<_> = environment
        .iter()
        .filter_map(|(name, value)| Some((name, name.strip_prefix(PREFIX)?, value)))
        .filter(|(_, rest, _)| !is_service_link(rest) && *rest != TOKEN)
        .collect();
    ours.sort();
    for (name, rest, text) in ours {
        let place = SourceLocation::Variable(Arc::from(name.as_str()));
        let path: Vec<String> = rest.split("__").map(str::to_lowercase).collect();
        let key = path
            .iter()
            .fold(String::new(), |key, name| join(&key, name));
        if key == "include" {
            let message = "only the main file can include others";
            problems.push(Problem {
                place,
                key,
                message: message.to_owned(),
                hint: None,
            });
            continue;
        }
        let value = if text.trim_start().starts_with(['[', '{', '"', '\'']) {
            parse_value(text, &key, &place, &mut layer)
        } else {
            Ok(Value::from(text.as_str()))
        };
        match value {
            Ok(value) => layer.put(&path, value, &place),
            Err(wrong) => problems.extend(wrong),
        }
    }
    layer
}

/// Returns whether a variable is a service link. Kubernetes and Docker set them in every container: with a service
/// called `dualgauge` there are `DUALGAUGE_PORT`, `DUALGAUGE_SERVICE_HOST` and `DUALGAUGE_PORT_8080_TCP_ADDR`.
fn is_service_link(rest: &str) -> bool {
    let port = rest.strip_prefix("PORT");
    rest == "SERVICE_HOST"
        || rest == "SERVICE_PORT"
        || rest.starts_with("SERVICE_PORT_")
        || port.is_some_and(|port| port.is_empty() || port.starts_with('_'))
}

fn arguments(sources: &Sources) -> Layer {
    let mut layer = Layer::new("arguments");
    let addresses = [
        ("listen", "--listen", &sources.listen),
        ("admin", "--admin", &sources.admin),
    ];
    for (table, argument, text) in addresses {
        if let Some(text) = text {
            let path = [table.to_owned(), "address".to_owned()];
            layer.put(
                &path,
                Value::from(text.as_str()),
                &SourceLocation::Argument(argument),
            );
        }
    }
    layer
}
