//! A server whose configuration a command drafts: `rest` and `mcp`.
//!
//! The configuration is written into a folder and served from there, as `run` does: the folder that `--save` names, or a
//! temporary one that is removed at the end. Secrets of a folder that stays are in files that only the user may read;
//! those of a temporary one are only in the memory of this process.
//!
//! Used by `cli::mcp`, `cli::rest` and `cli::stdio_bridge`.

mod fault;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use sha2::{Digest as _, Sha256};

use crate::cli::connection::{address, within};
use crate::cli::schema::{self, DescribedFile};
use crate::config::load::{Sources, environment};
use dualgauge_model::import::printable;
pub(super) use fault::DraftedServerFault;

/// The header with the API key.
pub(super) const KEY_HEADER: &str = "x-api-key";
/// The address for calls of any configuration.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
/// The main file of the configuration.
const MAIN: &str = "dualgauge.toml";
/// The longest wait for a connection to the server behind.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// The folder of the secrets.
const SECRETS: &str = "secrets";

/// The options of a command that drafts its configuration.
#[derive(Debug, Args)]
pub(super) struct ServeArguments {
    /// Address for calls, by default `127.0.0.1:8080`; beyond loopback it needs `--api-key` or `--no-auth`
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Serve only calls with this key, in `x-api-key`, as a bearer token or as the password of HTTP Basic; `{env:NAME}` and
    /// `{file:PATH}` are replaced
    #[arg(long, value_name = "KEY", conflicts_with = "no_auth")]
    api_key: Option<String>,
    /// Serve everybody who can reach the address
    #[arg(long)]
    no_auth: bool,
    /// Write the configuration into this folder and serve from there
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// Replace a configuration in the folder of `--save`
    #[arg(long, requires = "save")]
    force: bool,
    /// The name of the API; by default the title of the document or the name of the server
    #[arg(long, value_name = "TEXT")]
    pub(super) name: Option<String>,
    /// Serve only tools whose name matches, or with `mcp` also the operationId, path, `METHOD /path` or a tag; may be given
    /// several times, `*` matches any text
    #[arg(long, value_name = "GLOB")]
    pub(super) include: Vec<String>,
    /// Leave out tools that match in the same way; may be given several times
    #[arg(long, value_name = "GLOB")]
    pub(super) exclude: Vec<String>,
    /// A request header for the upstream server, `name: value`; `{env:NAME}` and `{file:PATH}` are replaced
    #[arg(long, value_name = "HEADER")]
    header: Vec<String>,
}

impl ServeArguments {
    /// Returns the key of callers, if they need one.
    ///
    /// # Errors
    /// An address that other machines can reach without `--api-key` or `--no-auth`; an unusable key.
    pub(super) fn key(&self) -> Result<Option<String>, DraftedServerFault> {
        let Some(key) = &self.api_key else {
            return match self.listen {
                Some(listen) if !listen.ip().is_loopback() && !self.no_auth => {
                    Err(DraftedServerFault::Open(listen))
                }
                Some(_) | None => Ok(None),
            };
        };
        let key = expanded("--api-key", key)?;
        let is_usable = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
        match is_usable {
            true => Ok(Some(key)),
            false => Err(DraftedServerFault::Key),
        }
    }

    /// Returns true if an option says who may call, and where.
    pub(super) fn has_access(&self) -> bool {
        self.listen.is_some() || self.has_key() || self.no_auth
    }

    /// Returns the address for calls. `default` replaces that of any configuration.
    pub(super) fn address(&self, default: Option<SocketAddr>) -> SocketAddr {
        self.listen.or(default).unwrap_or(DEFAULT_LISTEN)
    }

    /// Returns the address for calls, if it is a known one on loopback.
    pub(super) fn loopback(&self) -> Option<SocketAddr> {
        Some(self.address(None)).filter(|own| own.ip().is_loopback() && own.port() != 0)
    }

    /// Returns true if calls need the key of an option.
    pub(super) fn has_key(&self) -> bool {
        self.api_key.is_some()
    }

    /// Returns the headers for the upstream server, with their placeholders replaced.
    pub(super) fn headers(&self) -> Result<Vec<(String, String)>, DraftedServerFault> {
        headers(&self.header)
    }

    /// Returns the tables of the main file that say who may call, and from where.
    ///
    /// `more` are further keys of the listener. Without `--listen` and `default`, the address is that of any
    /// configuration.
    pub(super) fn access(
        &self,
        key: Option<&str>,
        default: Option<SocketAddr>,
        more: &str,
    ) -> String {
        let listen = self.listen.or(default);
        let address = listen.map_or(String::new(), |listen| format!("address = \"{listen}\"\n"));
        let mut text = format!("[listen]\n{address}{more}");
        if let Some(key) = key {
            let digest = Sha256::digest(key.as_bytes());
            let mut hash = String::new();
            for byte in digest {
                let _ = write!(hash, "{byte:02x}");
            }
            let _ = write!(
                text,
                "authentication = \"required\"\n\n[rollout.api_key]\nheader = \"{KEY_HEADER}\"\nauthorization = true\nbasic = true\n\n\
                 [[client]]\nname = \"key\"\nmatch = {{ api_key = \"sha256:{hash}\" }}\nkey = \"api_key\"\n"
            );
        }
        text
    }

    /// Returns whether a name is served.
    pub(super) fn serves(&self, name: &str) -> bool {
        let fits = |globs: &[String]| {
            let mut globs = globs.iter();
            globs.any(|glob| dualgauge_model::rollout::Glob::new(glob.as_str()).fits(name))
        };
        (self.include.is_empty() || fits(&self.include)) && !fits(&self.exclude)
    }

    /// Creates the folder of the configuration.
    pub(super) fn folder(&self) -> Result<ConfigFolder, DraftedServerFault> {
        let Some(path) = &self.save else {
            return ConfigFolder::temporary();
        };
        let main = path.join(MAIN);
        if main.exists() && !self.force {
            return Err(DraftedServerFault::Exists(main.display().to_string()));
        }
        fs::create_dir_all(path).map_err(unwritten(path))?;
        Ok(ConfigFolder {
            path: path.clone(),
            is_saved: true,
            variables: Vec::new(),
            new_schemas: Vec::new(),
        })
    }
}

/// The folder of a drafted configuration.
pub(super) struct ConfigFolder {
    path: PathBuf,
    /// True if the folder stays after the end of the command; otherwise it is removed on drop.
    is_saved: bool,
    /// Keys with secrets, as variables of the configuration: only the memory of this process contains them.
    variables: Vec<(String, String)>,
    /// The schemas that were not in the folder before.
    new_schemas: Vec<DescribedFile>,
}

impl ConfigFolder {
    fn temporary() -> Result<ConfigFolder, DraftedServerFault> {
        let path = std::env::temp_dir().join(format!("dualgauge-draft-{}", std::process::id()));
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path).map_err(unwritten(&path))?;
        Ok(ConfigFolder {
            path,
            is_saved: false,
            variables: Vec::new(),
            new_schemas: Vec::new(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if the folder stays after the end of the command.
    pub(super) fn is_saved(&self) -> bool {
        self.is_saved
    }

    /// Writes a file that the main file includes.
    pub(super) fn write(&mut self, name: &str, text: &str) -> Result<(), DraftedServerFault> {
        let path = self.path.join(name);
        let text = self.with_schema(DescribedFile::Routes, text)?;
        fs::write(&path, &*text).map_err(unwritten(&path))
    }

    /// Writes the main file, which only the user may read: it may contain credentials.
    pub(super) fn write_main(&mut self, text: &str) -> Result<(), DraftedServerFault> {
        let text = self.with_schema(DescribedFile::Config, text)?;
        write_private(&self.path.join(MAIN), &text)
    }

    /// Returns the text of a file with the name of its schema, and writes the schema. The text of a temporary folder stays
    /// as it is.
    fn with_schema<'t>(
        &mut self,
        file: DescribedFile,
        text: &'t str,
    ) -> Result<Cow<'t, str>, DraftedServerFault> {
        if !self.is_saved {
            return Ok(text.into());
        }
        let written = schema::write_schema(file, &self.path);
        if written.map_err(unwritten(&self.path.join(file.file_name())))? {
            self.new_schemas.push(file);
        }
        Ok(schema::name_schema(file, text).into())
    }

    /// Sets the headers for an upstream; returns the line of its table for them, if there is one. A folder that stays
    /// gets files that only the user may read. A temporary one has no secrets, because it stays after SIGKILL.
    pub(super) fn write_headers(
        &mut self,
        upstream: &str,
        headers: &[(String, String)],
    ) -> Result<String, DraftedServerFault> {
        if headers.is_empty() {
            return Ok(String::new());
        }
        if !self.is_saved() {
            let name = format!("DUALGAUGE_UPSTREAM__{}__HEADERS", upstream.to_uppercase());
            self.variables.push((name, inline_table(headers)));
            return Ok(IN_MEMORY.to_owned());
        }
        let folder = self.path.join(SECRETS);
        fs::create_dir_all(&folder).map_err(unwritten(&folder))?;
        let mut members = Vec::new();
        for (name, value) in headers {
            let path = folder.join(name);
            write_private(&path, &format!("{value}\n"))?;
            members.push(format!("{name} = {{ file = \"{SECRETS}/{name}\" }}"));
        }
        Ok(format!("headers = {{ {} }}\n", members.join(", ")))
    }

    /// Sets the headers that the listener adds to requests; returns the line of its table for them, if there is one.
    pub(super) fn set_headers(&mut self, headers: &[(String, String)]) -> String {
        if headers.is_empty() {
            return String::new();
        }
        // The values are templates.
        let escaped = |value: &String| value.replace('{', "{{").replace('}', "}}");
        let headers = headers.iter();
        let headers: Vec<(String, String)> = headers
            .map(|(name, value)| (name.clone(), escaped(value)))
            .collect();
        let table = inline_table(&headers);
        if self.is_saved() {
            return format!("set_headers = {table}\n");
        }
        let name = "DUALGAUGE_LISTEN__SET_HEADERS".to_owned();
        self.variables.push((name, table));
        IN_MEMORY.to_owned()
    }

    /// Returns the sources of the configuration. The options decide who may call, so the address, the credentials and the
    /// clients of the environment do not count. The admin listener takes any free port, so that several commands run side
    /// by side.
    pub(super) fn sources(&self, listen: SocketAddr) -> Sources {
        Sources {
            file: Some(self.path.join(MAIN)),
            listen: Some(listen.to_string()),
            admin: Some("127.0.0.1:0".to_owned()),
            environment: environment()
                .into_iter()
                .filter(|(name, _)| !decides_callers(name))
                .chain(self.variables.iter().cloned())
                .collect(),
        }
    }

    /// Removes the configuration of a command that failed.
    pub(super) fn discard(&self, names: &[&str]) {
        let schemas = self.new_schemas.iter().map(|file| file.file_name());
        for name in names.iter().copied().chain(schemas).chain([MAIN]) {
            // A leftover does no harm.
            let _ = fs::remove_file(self.path.join(name));
        }
    }
}

/// Returns true for a variable that could decide who may call.
fn decides_callers(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let Some(key) = name.strip_prefix("DUALGAUGE_") else {
        return false;
    };
    let keys = ["LISTEN__AUTHENTICATION", "ROLLOUT__API_KEY", "CLIENT__"];
    matches!(key, "LISTEN" | "ROLLOUT" | "CLIENT") || keys.iter().any(|one| key.starts_with(one))
}

impl Drop for ConfigFolder {
    fn drop(&mut self) {
        if !self.is_saved {
            // A leftover in the temporary folder does no harm.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// The line of a temporary configuration in place of headers.
const IN_MEMORY: &str = "# The headers of `--header` are not written here; `--save` writes them.\n";

/// Returns headers as an inline table of TOML.
fn inline_table(headers: &[(String, String)]) -> String {
    let members = headers.iter();
    let members =
        members.map(|(name, value)| format!("{} = {}", toml_string(name), toml_string(value)));
    let members: Vec<String> = members.collect();
    format!("{{ {} }}", members.join(", "))
}

/// Writes a file that only the user may read.
fn write_private(path: &Path, text: &str) -> Result<(), DraftedServerFault> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(unwritten(path))?;
    file.write_all(text.as_bytes()).map_err(unwritten(path))
}

fn unwritten(path: &Path) -> impl FnOnce(io::Error) -> DraftedServerFault {
    let path = path.to_path_buf();
    move |source| DraftedServerFault::Write { path, source }
}

/// Checks that a server accepts connections, so that a wrong address is reported at once.
///
/// # Errors
/// [`DraftedServerFault::Url`], [`DraftedServerFault::Unreachable`]
pub(super) fn probe(url: &str) -> Result<(), DraftedServerFault> {
    let wrong = || DraftedServerFault::Url(without_credentials(url));
    let uri: http::Uri = url.parse().map_err(|_| wrong())?;
    let usual = match uri.scheme_str() {
        Some("http") => 80,
        Some("https") => 443,
        Some(_) | None => return Err(wrong()),
    };
    let authority = uri.authority().ok_or_else(wrong)?;
    if authority.as_str().contains('@') {
        return Err(wrong());
    }
    let place = address(authority.as_str(), usual);
    let connected = within(CONNECT_LIMIT, tokio::net::TcpStream::connect(&*place));
    let fault = |source| DraftedServerFault::Unreachable {
        address: place.clone(),
        source,
    };
    match connected {
        Ok(Some(Ok(_))) => Ok(()),
        Ok(Some(Err(source))) | Err(source) => Err(fault(source)),
        Ok(None) => Err(fault(io::ErrorKind::TimedOut.into())),
    }
}

/// Checks that a program can be started.
///
/// # Errors
/// [`DraftedServerFault::Program`]
pub(super) fn probe_program(program: &str) -> Result<(), DraftedServerFault> {
    let is_file = |path: &Path| path.is_file();
    let is_known = match program.contains('/') {
        true => is_file(Path::new(program)),
        false => {
            let folders = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&folders).any(|folder| is_file(&folder.join(program)))
        }
    };
    match is_known {
        true => Ok(()),
        false => Err(DraftedServerFault::Program(program.to_owned())),
    }
}

/// Returns a URL without parts that may be secret.
pub(super) fn without_credentials(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
            printable(&format!("{scheme}://{rest}"))
        }
        None => printable(url),
    }
}

/// Returns the headers of `--header` options, with their placeholders replaced.
///
/// # Errors
/// [`DraftedServerFault`] for a text that is no header, or a placeholder that names nothing.
pub(super) fn headers(texts: &[String]) -> Result<Vec<(String, String)>, DraftedServerFault> {
    let headers = texts.iter().map(|header| {
        // The value may be a secret, so the message contains only the name.
        let name = header.split(':').next().unwrap_or_default().trim();
        let wrong = || DraftedServerFault::Header(name.to_owned());
        let (_, value) = header.split_once(':').ok_or_else(wrong)?;
        let value = expanded("--header", value.trim())?;
        let is_name = http::HeaderName::from_bytes(name.as_bytes()).is_ok();
        let is_value = !value.is_empty() && http::HeaderValue::from_str(&value).is_ok();
        match is_name && is_value {
            true => Ok((name.to_ascii_lowercase(), value)),
            false => Err(wrong()),
        }
    });
    headers.collect()
}

/// Replaces `{env:NAME}` and `{file:PATH}`.
fn expanded(option: &'static str, text: &str) -> Result<String, DraftedServerFault> {
    let mut found = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find('{') {
        let (before, after) = rest.split_at(begin);
        found.push_str(before);
        let inside = after
            .split_once('}')
            .map(|(inside, rest)| (&inside[1..], rest));
        let known = inside.and_then(|(inside, rest)| {
            let (kind, name) = inside.split_once(':')?;
            matches!(kind, "env" | "file").then_some((kind, name, rest))
        });
        let Some((kind, name, more)) = known else {
            found.push('{');
            rest = &after[1..];
            continue;
        };
        if kind == "env" {
            let known = environment().into_iter().find(|(own, _)| own == name);
            let (_, value) = known.ok_or_else(|| DraftedServerFault::Variable {
                option,
                name: name.to_owned(),
            })?;
            found.push_str(&value);
        } else {
            let value = fs::read_to_string(name).map_err(|source| DraftedServerFault::File {
                option,
                path: PathBuf::from(name),
                source,
            })?;
            found.push_str(value.trim_end_matches(['\r', '\n']));
        }
        rest = more;
    }
    found.push_str(rest);
    Ok(found)
}

/// Returns a text as a TOML string.
pub(super) fn toml_string(text: &str) -> String {
    // JSON strings are TOML basic strings, apart from DEL, which TOML wants escaped.
    serde_json::Value::from(text)
        .to_string()
        .replace('\u{7f}', "\\u007F")
}
