//! Hash maps with names of the route table as keys. Only the owner of the table can cause collisions, so a fast hash
//! without a secret suffices.
//!
//! Used by `route::overlaps`, `route::path` and `route::table`.

/// A map from names of the route table to values.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NameMap<T> {
    entries: Vec<(String, T)>,
    /// An open-addressing index into the entries. Its length is a power of two, and at least half of it is [`FREE`].
    slots: Vec<usize>,
}

/// Up to this many names are compared without hashing.
const FEW: usize = 4;
/// Marks an empty place of the index.
const FREE: usize = usize::MAX;

impl<T> NameMap<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the only entry, if there is exactly one.
    #[inline]
    pub(super) fn only(&self) -> Option<(&str, &T)> {
        match &self.entries[..] {
            [(name, value)] => Some((name, value)),
            [] | [_, _, ..] => None,
        }
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
        let mut at = hash(name);
        loop {
            let slot = self.slots.get(at & self.slots.len().wrapping_sub(1))?;
            let (known, value) = self.entries.get(*slot)?;
            if known == name {
                return Some(value);
            }
            at += 1;
        }
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|(_, value)| value)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().map(|(_, value)| value)
    }
}

impl<T: Default> NameMap<T> {
    /// Returns the value of a name, inserting the default for a new name.
    pub(super) fn under(&mut self, name: &str) -> &mut T {
        if self.entries.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let slot = self.slot_of(name);
        if self.slots[slot] == FREE {
            self.slots[slot] = self.entries.len();
            self.entries.push((name.to_owned(), T::default()));
        }
        &mut self.entries[self.slots[slot]].1
    }

    /// Returns the slot of a name in the index, or a free slot for it.
    fn slot_of(&self, name: &str) -> usize {
        let last = self.slots.len() - 1;
        let mut at = hash(name) & last;
        while let Some((known, _)) = self.entries.get(self.slots[at])
            && known != name
        {
            at = (at + 1) & last;
        }
        at
    }

    /// Doubles the index.
    fn grow(&mut self) {
        let capacity = (self.slots.len() * 2).max(2 * FEW);
        self.slots = vec![FREE; capacity];
        for index in 0..self.entries.len() {
            let slot = self.slot_of(&self.entries[index].0);
            self.slots[slot] = index;
        }
    }
}

impl<T> Default for NameMap<T> {
    fn default() -> Self {
        NameMap {
            entries: Vec::new(),
            slots: Vec::new(),
        }
    }
}

/// Hashes eight bytes at a time. The last eight may overlap those before them.
fn hash(name: &str) -> usize {
    let bytes = name.as_bytes();
    let (words, _) = bytes.as_chunks::<8>();
    let last = match bytes.last_chunk::<8>() {
        Some(word) => u64::from_le_bytes(*word),
        None => bytes
            .iter()
            .fold(0, |word, byte| (word << 8) | u64::from(*byte)),
    };
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let hash = words.fold(bytes.len() as u64, mix);
    mix(hash, last) as usize
}

/// Folds both halves of a product, so that each bit of the word affects all bits.
fn mix(hash: u64, word: u64) -> u64 {
    /// An odd number with ones spread over it.
    const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
    let product = u128::from(hash.rotate_left(23) ^ word) * u128::from(SPREAD);
    product as u64 ^ (product >> 64) as u64
}
