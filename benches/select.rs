//! Placeholder until the translation exists.
fn main() {}
