//! Maps by names that the route table gives: only their owner chooses what falls together in them, so that a hash
//! which is cheap and no secret will do.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// What a route table says under each name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ByName<T> {
    entries: Vec<(String, T)>,
    places: HashMap<String, usize, BuildHasherDefault<NameHasher>>,
}

/// So many names are sooner compared than hashed.
const FEW: usize = 4;

impl<T> ByName<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    #[inline]
    pub(super) fn get(&self, name: &str) -> Option<&T> {
        if self.entries.len() > FEW {
            return self.hashed(name);
        }
        let found = self.entries.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value)
    }

    #[inline(never)]
    fn hashed(&self, name: &str) -> Option<&T> {
        let place = self.places.get(name)?;
        self.entries.get(*place).map(|(_, value)| value)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|(_, value)| value)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().map(|(_, value)| value)
    }
}

impl<T: Default> ByName<T> {
    /// What stands under a name; nothing yet, where the name is new.
    pub(super) fn under(&mut self, name: &str) -> &mut T {
        let next = self.entries.len();
        let place = *self.places.entry(name.to_owned()).or_insert(next);
        if place == next {
            self.entries.push((name.to_owned(), T::default()));
        }
        &mut self.entries[place].1
    }
}

impl<T> Default for ByName<T> {
    fn default() -> Self {
        ByName {
            entries: Vec::new(),
            places: HashMap::default(),
        }
    }
}

/// Eight bytes at a time, each upon those before it.
#[derive(Debug, Default)]
struct NameHasher(u64);

impl NameHasher {
    fn mix(&mut self, word: u64) {
        /// Any odd number with ones all over it.
        const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(SPREAD);
    }
}

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, last) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        let last = last
            .iter()
            .fold(1, |word, byte| (word << 8) | u64::from(*byte));
        self.mix(last);
    }

    /// Names come alone, so that nothing needs to mark their ends.
    fn write_u8(&mut self, _: u8) {}

    fn finish(&self) -> u64 {
        // Maps take the lowest bits and the highest ones; the product mixes the highest best.
        self.0 ^ (self.0 >> 32)
    }
}
