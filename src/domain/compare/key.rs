//! One text for all values that the rules hold for equal, so that lists are compared by sorting.
//!
//! Laws: two values have the same text exactly when no difference would be found between them, but for numbers with a
//! tolerance: those are kept apart, in order. What is ignored is left out.

use super::decimal::Decimal;
use super::rules::{Active, Rules};
use crate::domain::json::{Branch, Kind, Spelled};

/// What a value is sorted by.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key<'a> {
    /// Everything but the numbers with a tolerance.
    pub(super) text: Vec<u8>,
    /// Those numbers, in the order of the text.
    pub(super) numbers: Vec<Decimal<'a>>,
}

/// How many bytes may still be brought into order.
#[derive(Debug)]
pub(super) struct Budget(usize);

/// The budget is spent.
#[derive(Debug)]
pub(super) struct Spent;

impl Budget {
    /// A few times what the answers have: lists within lists are read again at each level.
    pub(super) fn of(bytes: usize) -> Budget {
        const TIMES: usize = 8;
        const LEAST: usize = 4096;
        Budget(bytes.saturating_mul(TIMES).saturating_add(LEAST))
    }

    fn spend(&mut self, bytes: usize) -> Result<(), Spent> {
        self.0 = self.0.checked_sub(bytes).ok_or(Spent)?;
        Ok(())
    }
}

/// Whether the elements of a list have indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Matters,
    Free,
}

/// Writes keys.
pub(super) struct Keys<'k> {
    pub(super) rules: &'k Rules,
    pub(super) budget: &'k mut Budget,
}

impl Keys<'_> {
    /// The keys of the elements of a list.
    pub(super) fn elements<'a>(
        &mut self,
        list: &Branch<'a>,
        active: &Active,
        order: Order,
    ) -> Result<Vec<Key<'a>>, Spent> {
        self.budget.spend(list.value().len())?;
        let each = self.rules.any_element(active);
        let elements = list.children().enumerate().map(|(index, element)| {
            let mut key = Key::default();
            match order {
                Order::Free => self.write(&element, &each, &mut key)?,
                Order::Matters => {
                    let active = self.rules.element(active, index);
                    self.write(&element, &active, &mut key)?;
                }
            }
            Ok(key)
        });
        elements.collect()
    }

    fn write<'a>(
        &mut self,
        value: &Branch<'a>,
        active: &Active,
        key: &mut Key<'a>,
    ) -> Result<(), Spent> {
        if self.rules.ignores(active) {
            key.text.push(b'_');
            return Ok(());
        }
        let text = value.value();
        match value.kind() {
            Kind::Null | Kind::Boolean => key.text.push(text[0]),
            Kind::String => write_text(&Spelled::read(text), &mut key.text),
            Kind::Number if self.rules.tolerance(active).is_some() => {
                key.text.push(b'~');
                key.numbers.push(Decimal::read(text));
            }
            Kind::Number => {
                Decimal::read(text).write(&mut key.text);
                key.text.push(b';');
            }
            Kind::Object => self.members(value, active, key)?,
            Kind::Array => self.list(value, active, key)?,
        }
        Ok(())
    }

    fn members<'a>(
        &mut self,
        object: &Branch<'a>,
        active: &Active,
        key: &mut Key<'a>,
    ) -> Result<(), Spent> {
        key.text.push(b'{');
        for (name, member) in object.sorted() {
            let inside = self.rules.of(active, &name);
            if !self.rules.ignores(&inside) {
                write_text(&name, &mut key.text);
                self.write(&member, &inside, key)?;
            }
        }
        key.text.push(b'}');
        Ok(())
    }

    fn list<'a>(
        &mut self,
        list: &Branch<'a>,
        active: &Active,
        key: &mut Key<'a>,
    ) -> Result<(), Spent> {
        key.text.push(b'[');
        if self.rules.is_unordered(active) {
            let mut elements = self.elements(list, active, Order::Free)?;
            elements.sort();
            for element in elements {
                key.text.extend_from_slice(&element.text);
                key.numbers.extend(element.numbers);
            }
        } else {
            for (index, element) in list.children().enumerate() {
                let inside = self.rules.element(active, index);
                self.write(&element, &inside, key)?;
            }
        }
        key.text.push(b']');
        Ok(())
    }
}

/// A text with its length before it, so that none runs into what follows.
fn write_text(text: &Spelled<'_>, out: &mut Vec<u8>) {
    let (mark, bytes) = match text {
        Spelled::Text(text) => ('"', text.as_bytes()),
        Spelled::Raw(spelling) => ('\'', *spelling),
    };
    out.extend_from_slice(format!("{mark}{}:", bytes.len()).as_bytes());
    out.extend_from_slice(bytes);
}
