//! The configuration: files, environment and command line, read into a plan, or every problem at once.
//!
//! ```text
//! load                    merges files, variables and arguments (figment); their only reader
//!   toml, include, layer  TOML 1.1 with the location of each key; included files; the origin of each key
//! decode                  decodes the merged tree with `table_reader`; declares the keys of each table
//!   key, kind, value      a key with its default and meaning; a kind of values; their decoders
//! json_schema             JSON Schemas of the files, from the same keys
//! replica                 the machine-dependent part of a shared store: a name, the password file
//! other_files             problems of other files while the main file is not valid TOML
//! schema                  schema files that routes name
//! secret_files            files of keys, certificates and header values
//! regular                 reads regular files up to a size limit
//! progress                the file that a thread is working on
//! raw                     the decoded values
//! flags                   the flags file, a separate document
//! outcome_document        outcome sets that a command has drafted
//! compile                 compiles the raw configuration into a plan, or every problem
//! configuration           all steps in one
//! problem                 location, key, value found, allowed values
//! ```
//!
//! Only `compile` interprets patterns, flags and limits.
//!
//! Used by `app`, `compile`, `decode` and `table_reader`.

pub mod compile;
pub mod configuration;
mod decode;
mod digest;
pub mod flags;
mod include;
pub mod json_schema;
mod key;
mod kind;
mod layer;
pub mod load;
mod other_files;
pub mod outcome_document;
pub mod problem;
pub mod progress;
pub mod raw;
pub mod regular;
mod replica;
mod schema;
mod secret_files;
mod table_reader;
#[cfg(test)]
mod tests;
mod toml;
mod value;

pub use compile::docs_page;
pub use digest::{Digest, Digests};
