//! The reasons why a drafted configuration cannot be served. Used by `cli::drafted_server`.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The reason why no configuration can be served.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum DraftedServerFault {
    /// Other machines can reach the address, and nothing says who may call.
    #[error(
        "other machines can reach `--listen {0}`: add `--api-key KEY` to serve only calls with this key, or `--no-auth` to serve everybody"
    )]
    Open(SocketAddr),
    /// The folder has a configuration.
    #[error(
        "`{0}` already exists; serve it with `dualgauge run --config {0}`, write to another folder, or replace it with `--force`"
    )]
    Exists(String),
    /// A file cannot be written.
    #[error("`{path}` cannot be written")]
    Write {
        /// The path.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
    /// A placeholder names an unset variable.
    #[error("`{option}`: the environment variable `{name}` is not set")]
    Variable {
        /// The option with the placeholder.
        option: &'static str,
        /// The variable.
        name: String,
    },
    /// A placeholder names an unreadable file.
    #[error("`{option}`: `{path}` cannot be read")]
    File {
        /// The option with the placeholder.
        option: &'static str,
        /// The path.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
    /// The address is no URL of a server.
    #[error(
        "`{0}` is not the URL of a server; write `http://host[:port]/path` or `https://…`, pass credentials with `--header`"
    )]
    Url(String),
    /// The server accepts no connection.
    #[error("no connection to `{address}`")]
    Unreachable {
        /// Its host and port.
        address: String,
        /// The system error.
        source: io::Error,
    },
    /// The program does not exist.
    #[error("the program `{0}` is not in `PATH`, or is no file")]
    Program(String),
    /// A child process gets no headers.
    #[error(
        "`--header` is for `--mcp URL`; a program reads its credentials from the environment, which it inherits"
    )]
    ChildHeader,
    /// The value is no header.
    #[error("`--header`: `{0}` cannot be sent; write `name: value` in visible ASCII")]
    Header(String),
    /// The key is empty or no header value.
    #[error("`--api-key`: the key must be visible ASCII without spaces")]
    Key,
}
