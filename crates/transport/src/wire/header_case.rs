//! The letter case of header names. HTTP ignores it, but some servers and clients do not.
//!
//! HTTP parsers convert names to lower case; this module records the original names and restores them in the forwarded
//! head. Laws: restoring changes only the case of names; if all names arrived in title case, as most do, each line gets
//! title case; otherwise the n-th line of a name gets the spelling of the n-th received one, and further lines stay
//! unchanged.
//!
//! Used by `wire`.

use std::mem;
use std::rc::Rc;

use memchr::memchr;
use wide::u8x32;

use super::class::trimmed;
use super::field::{BLOCK, ByteClasses, within};
use dualgauge_patterns::simd::first_bits;
use dualgauge_patterns::swar::{lowered, overlapping};

/// The buffer capacity that is kept from one head to the next.
const ROOM: usize = 256;

/// The case of a head's names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderCase(HeaderNames);

#[derive(Debug, Clone, PartialEq, Eq)]
enum HeaderNames {
    /// Title case: `X-Request-Id`.
    Title,
    /// The names in order, each after its length; see [`split`].
    Listed(Rc<Vec<u8>>),
}

/// The reader of a head's names. It keeps only names that restoring needs.
#[derive(Debug, Default)]
pub(super) struct HeaderCaseReader {
    names: Vec<u8>,
    /// The number of bytes of inspected lines whose names are not kept.
    inspected: usize,
    cases: CaseBits,
}

/// The cases that some name violates: a bit is set where a byte contradicts.
#[derive(Debug, Default, Clone, Copy)]
struct CaseBits {
    not_lower: u32,
    not_title: u32,
}

impl CaseBits {
    fn are_others(self) -> bool {
        self.not_lower != 0 && self.not_title != 0
    }
}

impl HeaderCaseReader {
    /// Begins the next head.
    pub(super) fn begin(&mut self) {
        self.names.clear();
        self.names.shrink_to(ROOM);
        self.inspected = 0;
        self.cases = CaseBits::default();
    }

    /// Reads the next line, at the start of `rest`: `size` bytes with its end, and a name of `length` bytes.
    pub(super) fn read(&mut self, rest: &[u8], length: usize, size: usize) {
        match rest.first_chunk() {
            // Fast path: nearly every name is this short and has bytes after it.
            Some(block) if length < BLOCK => self.read_at(ByteClasses::new(block), length, size),
            _ => self.read_long(&rest[..length], size),
        }
    }

    /// Reads a line whose letters are classified, with a name shorter than a block.
    #[inline]
    pub(super) fn read_at(&mut self, letters: ByteClasses, length: usize, size: usize) {
        self.inspected += size;
        self.part(letters, length, FIRST);
    }

    /// Reads a longer name, or one at the end of the input.
    #[inline(never)]
    fn read_long(&mut self, name: &[u8], size: usize) {
        self.inspected += size;
        let mut begins = FIRST;
        for part in name.chunks(BLOCK - 1) {
            let mut block = [0; BLOCK];
            block[..part.len()].copy_from_slice(part);
            begins = self.part(ByteClasses::new(&block), part.len(), begins);
        }
    }

    /// Reads a part of a name, `length` bytes long. `begins` is 1 if the part begins a word; the result is the same for
    /// the next part.
    #[inline(always)]
    fn part(&mut self, letters: ByteClasses, length: usize, begins: u32) -> u32 {
        let ByteClasses {
            upper,
            lower,
            dashes,
        } = letters;
        let inside = !(u32::MAX << length);
        let begin = dashes << 1 | begins;
        self.cases.not_lower |= upper & inside;
        self.cases.not_title |= ((upper & !begin) | (lower & begin)) & inside;
        begin >> length & FIRST
    }

    /// Returns whether there are lines whose names may have to be kept.
    pub(super) fn has_names_to_keep(&self) -> bool {
        self.inspected > 0
    }

    /// Keeps the names of the inspected lines at the end of `passed`, unless the head is whole and the case flags
    /// describe them completely.
    pub(super) fn store(&mut self, passed: &[u8], is_whole: bool) {
        let inspected = mem::take(&mut self.inspected);
        if inspected == 0 || (is_whole && !self.cases.are_others()) {
            return;
        }
        let lines = &passed[passed.len().saturating_sub(inspected)..];
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let name = trimmed(&line[..memchr(b':', line).unwrap_or(0)]);
            // A longer name cannot be in an accepted head.
            let length = u32::try_from(name.len()).unwrap_or(u32::MAX);
            self.names.extend_from_slice(&length.to_le_bytes());
            self.names.extend_from_slice(name);
        }
    }

    /// Returns the case of the names; `None` if a parser would produce it anyway.
    pub(super) fn header_case(&self) -> Option<HeaderCase> {
        if self.cases.not_lower == 0 {
            return None;
        }
        Some(HeaderCase(match self.cases.not_title {
            0 => HeaderNames::Title,
            _ => HeaderNames::Listed(Rc::new(self.names.clone())),
        }))
    }
}

/// The bit of the first byte of a block.
const FIRST: u32 = 1;

impl HeaderCase {
    /// Restores the names of a head, which begins with its first line.
    pub fn apply(&self, head: &mut [u8]) {
        match &self.0 {
            HeaderNames::Title => each_field(head, title),
            HeaderNames::Listed(names) => {
                let mut left = RemainingNames { names, taken: 0 };
                each_field(head, |rest| {
                    if let Some(name) = left.take(rest) {
                        rest[..name.len()].copy_from_slice(name);
                    }
                });
            }
        }
    }
}

/// Calls `spell` with the rest of a head from each field on.
#[inline(always)]
fn each_field(head: &mut [u8], mut spell: impl FnMut(&mut [u8])) {
    for block in (0..head.len()).step_by(64) {
        let mut ends = first_bits(&head[block..], |bytes| bytes.simd_eq(b'\n'));
        while ends != 0 {
            let line = block + ends.trailing_zeros() as usize + 1;
            ends &= ends - 1;
            let rest = &mut head[line..];
            if rest.first() == Some(&b'\r') {
                return;
            }
            spell(rest);
        }
    }
}

/// Converts the name at the start to title case.
#[inline(always)]
fn title(rest: &mut [u8]) {
    if let Some(block) = rest.first_chunk_mut::<BLOCK>() {
        let bytes = u8x32::new(*block);
        let ends = bytes.simd_eq(b':').to_bitmask();
        if ends != 0 {
            let before = ends.wrapping_sub(1) & !ends;
            let begin = bytes.simd_eq(b'-').to_bitmask() << 1 | FIRST;
            let mut raised = begin & before & within::<b'a', b'z'>(bytes);
            while raised != 0 {
                block[raised.trailing_zeros() as usize] ^= 0x20;
                raised &= raised - 1;
            }
            return;
        }
    }
    title_bytes(rest);
}

/// Converts a longer name, or one at the end of a head.
#[inline(never)]
fn title_bytes(rest: &mut [u8]) {
    let mut begins = true;
    for byte in rest.iter_mut().take_while(|byte| **byte != b':') {
        if begins {
            byte.make_ascii_uppercase();
        }
        begins = *byte == b'-';
    }
}

/// The recorded names that no line has used yet.
struct RemainingNames<'a> {
    /// The names after the last one before which all are used.
    names: &'a [u8],
    /// A bit for each of them that is used; a head has fewer lines than bits.
    taken: u128,
}

impl<'a> RemainingNames<'a> {
    /// Takes the first unused name that equals the name of a line.
    fn take(&mut self, line: &[u8]) -> Option<&'a [u8]> {
        let (mut names, mut bit) = (self.names, 1);
        loop {
            let (name, behind) = split(names)?;
            if self.taken & bit == 0 && begins(line, name) {
                self.taken |= bit;
                self.skip_used();
                return Some(name);
            }
            (names, bit) = (behind, bit << 1);
        }
    }

    /// Skips used names. Most lines keep their order, so the next one is found at once.
    fn skip_used(&mut self) {
        while self.taken & 1 == 1
            && let Some((_, behind)) = split(self.names)
        {
            self.names = behind;
            self.taken >>= 1;
        }
    }
}

/// Returns whether a line has this name, in any case: a partial write repeats the conversion, so a line may be
/// converted already.
fn begins(line: &[u8], name: &[u8]) -> bool {
    line.get(name.len()) == Some(&b':') && is_same(name, &line[..name.len()])
}

/// Compares two names of one length, ignoring case, word by word; the last word overlaps the one before.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    if let (Some(end), Some(other_end)) = (one.last_chunk(), other.last_chunk()) {
        let pairs = one.as_chunks().0.iter().zip(other.as_chunks().0);
        let is_pair = |(one, other): (&[u8; 8], &[u8; 8])| {
            lowered(u64::from_le_bytes(*one)) == lowered(u64::from_le_bytes(*other))
        };
        return pairs.chain([(end, other_end)]).all(is_pair);
    }
    if let (Some(start), Some(end)) = (one.first_chunk(), one.last_chunk())
        && let (Some(other_start), Some(other_end)) = (other.first_chunk(), other.last_chunk())
    {
        return lowered(overlapping(*start, *end))
            == lowered(overlapping(*other_start, *other_end));
    }
    one.eq_ignore_ascii_case(other)
}

/// Splits off the first name.
fn split(names: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = names.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(in crate::wire) fn spelled(names: &[&str]) -> Option<HeaderCase> {
        let lines: Vec<String> = names.iter().map(|name| format!("{name}: 1\r\n")).collect();
        let mut read = HeaderCaseReader::default();
        read.begin();
        for (line, name) in lines.iter().zip(names) {
            read.read(line.as_bytes(), name.len(), line.len());
        }
        read.store(lines.concat().as_bytes(), true);
        read.header_case()
    }

    /// Returns a name in title case.
    fn titled(name: &str) -> String {
        let parts = name.split('-').map(|part| {
            let mut part = part.to_ascii_lowercase();
            part.get_mut(..1).map(str::make_ascii_uppercase);
            part
        });
        parts.collect::<Vec<_>>().join("-")
    }

    fn laid_over(names: &[&str], head: &str) -> String {
        let mut head = head.as_bytes().to_vec();
        if let Some(spelling) = spelled(names) {
            spelling.apply(&mut head);
        }
        String::from_utf8(head).unwrap()
    }

    #[test]
    fn received_names_keep_their_case_and_others_stay() {
        let names = ["Host", "X-A", "x-a", "TE", "X-a", "ACCEPT"];
        let head = "GET /host:x HTTP/1.1\r\nhost: HOST: a\r\nx-a: 1\r\nx-a: 2\r\nx-a: 3\r\nx-a: 4\r\naccept: x-a\r\n\
                    via: 1.1 x\r\n\r\nhost: body\r\n";
        let expected = "GET /host:x HTTP/1.1\r\nHost: HOST: a\r\nX-A: 1\r\nx-a: 2\r\nX-a: 3\r\nx-a: 4\r\nACCEPT: x-a\r\n\
                    via: 1.1 x\r\n\r\nhost: body\r\n";
        assert_eq!(laid_over(&names, head), expected);
    }

    #[test]
    fn reordered_names_are_found() {
        let head = "GET / HTTP/1.1\r\nc: 1\r\na: 2\r\nb: 3\r\na: 4\r\n\r\n";
        let expected = "GET / HTTP/1.1\r\nC: 1\r\nA: 2\r\nB: 3\r\na: 4\r\n\r\n";
        assert_eq!(laid_over(&["A", "B", "a", "C"], head), expected);
    }

    #[test]
    fn names_in_lower_case_are_not_stored() {
        assert_eq!(spelled(&["host", "x-1_a"]), None);
    }

    #[test]
    fn the_buffer_of_a_large_head_is_released() {
        let mut read = HeaderCaseReader::default();
        let name = [b'A'; 10 * ROOM];
        let line = [&name[..], b": 1\r\n"].concat();
        read.read(&line, name.len(), line.len());
        read.store(&line, true);
        assert!(read.names.capacity() >= 10 * ROOM);
        read.begin();
        assert!(read.names.capacity() < 2 * ROOM);
        assert_eq!(read.header_case(), None);
    }

    proptest! {
        #[test]
        fn equality_of_names_agrees_with_a_check_of_each_byte(
            one in prop::collection::vec(prop_oneof![Just(b'A'), Just(b'a'), Just(b'['), any::<u8>()], 0..20),
            changed in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
            swapped in prop::collection::vec(any::<bool>(), 20),
        ) {
            let mut other = one.clone();
            for (byte, is_swapped) in other.iter_mut().zip(swapped) {
                if is_swapped && byte.is_ascii_alphabetic() {
                    *byte ^= 0x20;
                }
            }
            if let (Some((at, byte)), false) = (changed, other.is_empty()) {
                let at = at.index(other.len());
                other[at] = byte;
            }
            prop_assert_eq!(is_same(&one, &other), one.eq_ignore_ascii_case(&other));
        }

        #[test]
        fn if_all_names_have_title_case_every_line_gets_it(
            names in prop::collection::vec("[a-zA-Z0-9_-]{0,20}|[a-zA-Z-]{28,70}", 1..9),
            lines in prop::collection::vec("[a-z0-9_-]{0,20}|[a-z-]{28,70}", 0..9),
            value in "[a-z:-]{0,9}",
        ) {
            let head = |lines: &[String]| {
                let lines: String = lines.iter().map(|name| format!("{name}: {value}\r\n")).collect();
                format!("GET /a-b HTTP/1.1\r\n{lines}\r\na-body: a")
            };
            let all = |names: &[String]| names.iter().map(|name| titled(name)).collect::<Vec<_>>();
            let received = all(&names);
            let received: Vec<&str> = received.iter().map(String::as_str).collect();
            let expected = match spelled(&received) {
                None => head(&lines),
                Some(_) => head(&all(&lines)),
            };
            prop_assert_eq!(laid_over(&received, &head(&lines)), expected);
            let is_title = names.iter().all(|name| titled(name) == *name);
            let is_lower = names.iter().all(|name| name.to_ascii_lowercase() == *name);
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let expected_case = match (is_lower, is_title) {
                (true, _) => None,
                (false, is_title) => Some(is_title),
            };
            prop_assert_eq!(spelled(&names).map(|case| case == HeaderCase(HeaderNames::Title)), expected_case);
        }

        #[test]
        fn each_name_is_spelled_as_the_one_of_the_same_rank(
            names in prop::collection::vec("[aAbB]{1,2}|[aAbB]{2}-[aA]{6}b?", 0..99),
            lines in prop::collection::vec("[abc]{1,2}|[abc]{2}-a{6}b?", 0..99),
        ) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            prop_assume!(names.iter().any(|name| titled(name) != *name));
            let head = |lines: &[String]| {
                let lines: String = lines.iter().map(|name| format!("{name}: {name}\r\n")).collect();
                format!("GET / HTTP/1.1\r\n{lines}\r\n")
            };
            let mut received = names.clone();
            let mut expected = "GET / HTTP/1.1\r\n".to_owned();
            for line in &lines {
                let found = received.iter().position(|name| name.eq_ignore_ascii_case(line));
                let name = found.map_or(line.as_str(), |found| received.remove(found));
                expected.push_str(&format!("{name}: {line}\r\n"));
            }
            prop_assert_eq!(laid_over(&names, &head(&lines)), expected + "\r\n");
        }
    }
}
