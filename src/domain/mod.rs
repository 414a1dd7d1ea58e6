//! The pure floor: values and total functions over them.
//!
//! Nothing here knows a clock, a socket, a file, a lock or a log; time, keys and ids come in as
//! arguments. Everything that decides what happens to a call is here and can be tested without I/O.

pub mod failure;
pub mod side;
pub mod wire;
