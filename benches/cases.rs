//! What the benches measure, by name: `case("one hole", 200)` is a call that can be run again and again.
//!
//! `serde_json …` and `matchit` are what the other cases are held against, over the same bytes and paths. The last
//! number of a case is the size of its body in bytes, or the number of elements or members for `… many`.

mod compare;
mod select;
mod shapes;
mod translate;

/// One piece of work; what it returns keeps the compiler from leaving it out.
pub(crate) type Case = Box<dyn Fn() -> usize>;

/// The case of a name, at a size.
pub(crate) fn case(name: &str, size: usize) -> Option<Case> {
    translate::case(name, size)
        .or_else(|| select::case(name, size))
        .or_else(|| compare::case(name, size))
}
