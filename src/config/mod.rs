//! Files, environment and command line → what they say, or every problem at once.
//!
//! ```text
//! load      lays defaults, files, variables and arguments over each other (figment), the only reader of them
//!   toml, include, layer    TOML 1.1 with the place of each key; files joined; which layer said what
//! decode    walks the merged tree by reader and kind
//! replica   what a shared store needs of the machine: a name, the file of a password
//! beside    problems of other files while the main file is no TOML
//! schema    files of schemas that routes name
//! keys      files of keys and certificates
//! regular   reads files: regular ones alone, and so much of them at most
//! progress  the file that a thread works on
//! raw       what the files say
//! flags     the flags file, a document of its own
//! compile   what that means: a plan, or every problem
//! configuration  all of it in one step
//! problem   where, which key, what was found, what is allowed
//! ```
//!
//! Nothing but `compile` knows what a pattern, a flag or a limit is for.

mod beside;
pub mod compile;
pub mod configuration;
mod decode;
mod digest;
pub mod flags;
mod include;
mod layer;
pub mod load;
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

pub use digest::{Digest, Digests};
