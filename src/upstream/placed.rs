//! A value that is made in the box where it stays.
//!
//! `Box::new` takes a value that is there already, and should there be no memory, drops it: so it is made on the stack and
//! copied whole, which for the room of a call is more than 4 KB of which little is in use yet.

use std::pin::Pin;

/// Makes a value in a box of its own.
#[must_use]
#[inline]
pub fn placed<T>(make: impl FnOnce() -> T) -> Box<T> {
    Box::write(Box::new_uninit(), make())
}

/// The same, for what must not be moved.
#[must_use]
#[inline]
pub fn pinned<T>(make: impl FnOnce() -> T) -> Pin<Box<T>> {
    Box::into_pin(placed(make))
}
