//! A value in a box of its own, for what each call makes and is large.
//!
//! `Box::new` has its value before it has the room, and drops it where there is no room: so the value lies on the stack as a
//! whole and is copied as a whole, which for a call that has just begun is more than 4 KB of which little is in use yet.
//! Here the room comes first, so that an optimized program can make the value where it stays, and mostly does.

use std::pin::Pin;

/// Makes a value in a box.
#[must_use]
#[inline]
pub fn boxed<T>(make: impl FnOnce() -> T) -> Box<T> {
    Box::write(Box::new_uninit(), make())
}

/// The same, for what must not be moved.
#[must_use]
#[inline]
pub fn pinned<T>(make: impl FnOnce() -> T) -> Pin<Box<T>> {
    Box::into_pin(boxed(make))
}
