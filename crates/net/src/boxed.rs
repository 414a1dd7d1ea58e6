//! Large values constructed directly in a heap allocation.
//!
//! `Box::new` takes its value before it allocates, and must drop the value if allocation fails. So the value is built
//! on the stack and then copied whole: more than 4 KB for a new call, little of it in use yet. Here the allocation
//! comes first, so that an optimized build can construct the value in place, and mostly does.
//!
//! Used by `body`, `connection_pool`, `http1`, `outgoing_request`, and the program's `gateway`.

use std::pin::Pin;

/// Constructs a value in a new box.
#[must_use]
#[inline]
pub fn boxed<T>(make: impl FnOnce() -> T) -> Box<T> {
    Box::write(Box::new_uninit(), make())
}

/// Constructs a value in a new pinned box.
#[must_use]
#[inline]
pub fn pinned<T>(make: impl FnOnce() -> T) -> Pin<Box<T>> {
    Box::into_pin(boxed(make))
}
