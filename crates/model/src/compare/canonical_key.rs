//! A canonical text for all values that the rules treat as equal, so that lists can be compared by sorting.
//!
//! Laws: two values have the same text exactly if no difference would be found between them. Numbers with a tolerance
//! are the exception: they are stored separately, in order. Ignored places are left out.
//!
//! Used by `compare::diff` and `compare::parts`.

use super::decimal::Decimal;
use super::rules::{Active, Rules};
use dualgauge_patterns::json::{JsonKind, Spelled, Value};

/// The sort key of a value.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CanonicalKey<'a> {
    /// The text of everything except the numbers with a tolerance.
    pub(super) text: Vec<u8>,
    /// Those numbers, in the order of the text.
    pub(super) numbers: Vec<Decimal<'a>>,
}

/// The number of bytes that may still be sorted.
#[derive(Debug)]
pub(super) struct KeyBudget(usize);

/// The error that the budget is exhausted.
#[derive(Debug)]
pub(super) struct BudgetExhausted;

impl KeyBudget {
    /// Creates a budget of a multiple of the size of the responses: nested lists are read again at each level.
    pub(super) fn from_bytes(bytes: usize) -> KeyBudget {
        const TIMES: usize = 8;
        const LEAST: usize = 4096;
        KeyBudget(bytes.saturating_mul(TIMES).saturating_add(LEAST))
    }

    fn spend(&mut self, bytes: usize) -> Result<(), BudgetExhausted> {
        self.0 = self.0.checked_sub(bytes).ok_or(BudgetExhausted)?;
        Ok(())
    }
}

/// The treatment of the order of a list: it matters, or it is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyOrder {
    Matters,
    Free,
}

/// The writer of keys.
pub(super) struct CanonicalKeys<'k> {
    pub(super) rules: &'k Rules,
    pub(super) budget: &'k mut KeyBudget,
}

impl CanonicalKeys<'_> {
    /// Returns the keys of the elements of a list.
    pub(super) fn elements<'a>(
        &mut self,
        list: &Value<'a>,
        active: &Active,
        order: KeyOrder,
    ) -> Result<Vec<CanonicalKey<'a>>, BudgetExhausted> {
        self.budget.spend(list.value().len())?;
        let each = self.rules.any_element(active);
        let elements = list.children().enumerate().map(|(index, element)| {
            let mut key = CanonicalKey::default();
            match order {
                KeyOrder::Free => self.write(&element, &each, &mut key)?,
                KeyOrder::Matters => {
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
        value: &Value<'a>,
        active: &Active,
        key: &mut CanonicalKey<'a>,
    ) -> Result<(), BudgetExhausted> {
        if self.rules.ignores(active) {
            key.text.push(b'_');
            return Ok(());
        }
        let text = value.value();
        match value.kind() {
            JsonKind::Null | JsonKind::Boolean => key.text.push(text[0]),
            JsonKind::String => write_text(&Spelled::read(text), &mut key.text),
            JsonKind::Number if self.rules.tolerance(active).is_some() => {
                key.text.push(b'~');
                key.numbers.push(Decimal::read(text));
            }
            JsonKind::Number => {
                Decimal::read(text).write(&mut key.text);
                key.text.push(b';');
            }
            JsonKind::Object => self.members(value, active, key)?,
            JsonKind::Array => self.list(value, active, key)?,
        }
        Ok(())
    }

    fn members<'a>(
        &mut self,
        object: &Value<'a>,
        active: &Active,
        key: &mut CanonicalKey<'a>,
    ) -> Result<(), BudgetExhausted> {
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
        list: &Value<'a>,
        active: &Active,
        key: &mut CanonicalKey<'a>,
    ) -> Result<(), BudgetExhausted> {
        key.text.push(b'[');
        if self.rules.is_unordered(active) {
            let mut elements = self.elements(list, active, KeyOrder::Free)?;
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

/// Writes a text with its length in front, so that the boundary to the next one is unambiguous.
fn write_text(text: &Spelled<'_>, out: &mut Vec<u8>) {
    let (mark, bytes) = match text {
        Spelled::Text(text) => ('"', text.as_bytes()),
        Spelled::Raw(spelling) => ('\'', *spelling),
    };
    out.extend_from_slice(format!("{mark}{}:", bytes.len()).as_bytes());
    out.extend_from_slice(bytes);
}
