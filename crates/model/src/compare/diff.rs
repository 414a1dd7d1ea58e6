//! The walk over two JSON values that records their differences.
//!
//! Laws: equal texts have no difference; the result does not depend on white space, member order or the spelling of
//! strings and numbers; the cost is that of reading both values and of sorting members and lists.
//!
//! Used by `compare::parts`.

use super::canonical_key::{BudgetExhausted, CanonicalKey, CanonicalKeys, KeyBudget, KeyOrder};
use super::comparison::{Comparison, DIFFERENCES, Difference, Kind, Terms};
use super::decimal::Decimal;
use super::pointer::{PointerBuilder, PointerPart, PointerStep};
use super::redacted::{RedactedValue, Visibility};
use super::rules::{Active, Rules};
use dualgauge_patterns::json::{self, Spelled, Value};

/// The depth from which values are compared as text. No response reaches it: it is the maximum of `limits.depth`.
const DEEPEST: usize = 512;

/// The differences found so far: one for each field and kind, with the number of occurrences, and the number of those
/// that were not stored.
#[derive(Debug, Default)]
pub(super) struct DifferenceList(Comparison);

impl DifferenceList {
    pub(super) fn add(&mut self, found: Difference) {
        let same = |known: &&mut Difference| known.kind == found.kind && known.field == found.field;
        if let Some(known) = self.0.differences.iter_mut().find(same) {
            known.times += 1;
        } else if self.0.differences.len() < DIFFERENCES {
            self.0.differences.push(found);
        } else {
            self.0.more += 1;
        }
    }

    pub(super) fn ignore(&mut self) {
        self.0.ignored += 1;
    }

    pub(super) fn fall_back(&mut self) {
        self.0.fallen_back += 1;
    }

    pub(super) fn finish(self) -> Comparison {
        self.0
    }
}

/// Two values at one place.
#[derive(Clone, Copy)]
struct ValuePair<'a> {
    control: Value<'a>,
    candidate: Value<'a>,
}

/// The state of a walk over two responses.
pub(super) struct Differ<'a, 'r> {
    pub(super) rules: &'r Rules,
    pub(super) terms: &'r Terms,
    pub(super) budget: KeyBudget,
    pub(super) pointer_path: PointerBuilder<'a>,
    pub(super) differences: DifferenceList,
}

impl<'a> Differ<'a, '_> {
    /// Compares two values that may be absent.
    pub(super) fn maybe(
        &mut self,
        control: Option<Value<'a>>,
        candidate: Option<Value<'a>>,
        active: &Active,
    ) {
        match (control, candidate) {
            (None, None) => {}
            (Some(control), Some(candidate)) => {
                self.values(ValuePair { control, candidate }, active);
            }
            (control, candidate) if self.rules.ignores(active) => {
                debug_assert!(control.is_some() || candidate.is_some());
                self.differences.ignore();
            }
            (Some(control), None) => {
                let shown = self.visibility().value(&control);
                self.note(Kind::Missing, shown, RedactedValue::absent());
            }
            (None, Some(candidate)) => {
                let shown = self.visibility().value(&candidate);
                self.note(Kind::Extra, RedactedValue::absent(), shown);
            }
        }
    }

    /// Compares two values at the current place.
    fn values(&mut self, pair: ValuePair<'a>, active: &Active) {
        let ValuePair { control, candidate } = pair;
        if control.value() == candidate.value() {
            return;
        }
        if self.rules.ignores(active) {
            if !equal(&control, &candidate) {
                self.differences.ignore();
            }
            return;
        }
        if self.pointer_path.depth() > DEEPEST {
            self.differ(Kind::Value, pair);
            return;
        }
        match (control.kind(), candidate.kind()) {
            (json::JsonKind::Object, json::JsonKind::Object) => self.objects(pair, active),
            (json::JsonKind::Array, json::JsonKind::Array) if self.rules.is_unordered(active) => {
                self.unordered(pair, active);
            }
            (json::JsonKind::Array, json::JsonKind::Array) => self.ordered(pair, active),
            (json::JsonKind::Number, json::JsonKind::Number) => self.numbers(pair, active),
            (json::JsonKind::String, json::JsonKind::String) => {
                if Spelled::read(control.value()) != Spelled::read(candidate.value()) {
                    self.differ(Kind::Value, pair);
                }
            }
            (one, two) if one == two => self.differ(Kind::Value, pair),
            (_, _) => self.differ(Kind::Type, pair),
        }
    }

    fn numbers(&mut self, pair: ValuePair<'a>, active: &Active) {
        let one = Decimal::read(pair.control.value());
        let two = Decimal::read(pair.candidate.value());
        if one == two {
            return;
        }
        match self.rules.tolerance(active) {
            Some(tolerance) if one.is_near(&two, tolerance.decimal()) => self.differences.ignore(),
            Some(_) | None => self.differ(Kind::Value, pair),
        }
    }

    /// Compares members by name; repeated names are compared in their order.
    fn objects(&mut self, pair: ValuePair<'a>, active: &Active) {
        let mut control = pair.control.sorted().into_iter().peekable();
        let mut candidate = pair.candidate.sorted().into_iter().peekable();
        loop {
            let order = match (control.peek(), candidate.peek()) {
                (None, None) => return,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(one), Some(two)) => one.0.cmp(&two.0),
            };
            let one = if order.is_le() { control.next() } else { None };
            let two = if order.is_ge() {
                candidate.next()
            } else {
                None
            };
            let (one_name, one) = one.unzip();
            let (two_name, two) = two.unzip();
            let Some(name) = one_name.or(two_name) else {
                return;
            };
            let inside = self.rules.of(active, &name);
            self.pointer_path.enter(PointerStep::Name(name));
            self.maybe(one, two, &inside);
            self.pointer_path.leave();
        }
    }

    /// Compares elements by index. The same elements in another order count as a single difference.
    fn ordered(&mut self, pair: ValuePair<'a>, active: &Active) {
        let control: Vec<_> = pair.control.children().collect();
        let candidate: Vec<_> = pair.candidate.children().collect();
        if control.len() != candidate.len() {
            self.lengths(control.len(), candidate.len());
            return;
        }
        if self.is_permuted(pair, active) {
            self.differ(Kind::Order, pair);
            return;
        }
        let pairs = control.into_iter().zip(candidate);
        for (index, (control, candidate)) in pairs.enumerate() {
            let inside = self.rules.element(active, index);
            self.pointer_path.enter(PointerStep::Element(index, index));
            self.values(ValuePair { control, candidate }, &inside);
            self.pointer_path.leave();
        }
    }

    fn is_permuted(&mut self, pair: ValuePair<'a>, active: &Active) -> bool {
        let Ok((control, candidate)) = self.keys(pair, active, KeyOrder::Matters) else {
            return false;
        };
        if control == candidate {
            return false;
        }
        let sorted = |mut keys: Vec<CanonicalKey<'a>>| {
            keys.sort();
            keys
        };
        sorted(control) == sorted(candidate)
    }

    fn keys(
        &mut self,
        pair: ValuePair<'a>,
        active: &Active,
        order: KeyOrder,
    ) -> Result<(Vec<CanonicalKey<'a>>, Vec<CanonicalKey<'a>>), BudgetExhausted> {
        let mut keys = CanonicalKeys {
            rules: self.rules,
            budget: &mut self.budget,
        };
        let control = keys.elements(&pair.control, active, order)?;
        Ok((control, keys.elements(&pair.candidate, active, order)?))
    }

    /// Compares elements regardless of order: equal ones are paired first, then the others in sorted order.
    fn unordered(&mut self, pair: ValuePair<'a>, active: &Active) {
        let Ok((control, candidate)) = self.keys(pair, active, KeyOrder::Free) else {
            self.differences.fall_back();
            self.ordered(pair, active);
            return;
        };
        if control.len() != candidate.len() {
            self.lengths(control.len(), candidate.len());
            return;
        }
        let inside = self.rules.any_element(active);
        let controls: Vec<_> = pair.control.children().collect();
        let candidates: Vec<_> = pair.candidate.children().collect();
        for (one, two) in paired(&control, &candidate) {
            self.pointer_path.enter(PointerStep::Element(one, two));
            let (control, candidate) = (controls[one], candidates[two]);
            self.values(ValuePair { control, candidate }, &inside);
            self.pointer_path.leave();
        }
    }

    fn lengths(&mut self, control: usize, candidate: usize) {
        self.note(
            Kind::Length,
            RedactedValue::count(control),
            RedactedValue::count(candidate),
        );
    }

    fn differ(&mut self, kind: Kind, pair: ValuePair<'a>) {
        let visibility = self.visibility();
        let (control, candidate) = (
            visibility.value(&pair.control),
            visibility.value(&pair.candidate),
        );
        self.note(kind, control, candidate);
    }

    /// Records a difference at the current place.
    pub(super) fn note(&mut self, kind: Kind, control: RedactedValue, candidate: RedactedValue) {
        let of = match kind {
            Kind::Extra => PointerPart::Candidate,
            Kind::Missing
            | Kind::Type
            | Kind::Value
            | Kind::Length
            | Kind::Order
            | Kind::Status
            | Kind::Header
            | Kind::Code => PointerPart::Control,
        };
        let (pointer, field) = self.pointer_path.render(of);
        self.differences.add(Difference {
            pointer,
            field,
            kind,
            control,
            candidate,
            times: 1,
        });
    }

    /// Returns the visibility of values at the current place.
    pub(super) fn visibility(&self) -> Visibility<'_> {
        Visibility {
            show: self.rules.source().show,
            salt: &self.terms.salt,
            is_secret: self.pointer_path.is_secret(&self.rules.source().redaction),
        }
    }
}

/// Returns true if both are the same value, regardless of the rules.
pub(super) fn equal(one: &Value<'_>, two: &Value<'_>) -> bool {
    if one.value() == two.value() {
        return true;
    }
    match (one.kind(), two.kind()) {
        (json::JsonKind::Number, json::JsonKind::Number) => {
            Decimal::read(one.value()) == Decimal::read(two.value())
        }
        (json::JsonKind::String, json::JsonKind::String) => {
            Spelled::read(one.value()) == Spelled::read(two.value())
        }
        (json::JsonKind::Array, json::JsonKind::Array) => {
            let (mut one, mut two) = (one.children(), two.children());
            loop {
                match (one.next(), two.next()) {
                    (None, None) => return true,
                    (Some(one), Some(two)) if equal(&one, &two) => {}
                    (Some(_), _) | (None, _) => return false,
                }
            }
        }
        (json::JsonKind::Object, json::JsonKind::Object) => {
            let (one, two) = (one.sorted(), two.sorted());
            let mut pairs = one.iter().zip(&two);
            one.len() == two.len()
                && pairs.all(|(one, two)| one.0 == two.0 && equal(&one.1, &two.1))
        }
        (_, _) => false,
    }
}

/// Returns the indexes of paired elements of two lists of the same length.
fn paired(control: &[CanonicalKey<'_>], candidate: &[CanonicalKey<'_>]) -> Vec<(usize, usize)> {
    let (one, two) = (ranked(control), ranked(candidate));
    let mut pairs = Vec::with_capacity(one.len());
    let (mut only_one, mut only_two) = (Vec::new(), Vec::new());
    let (mut one, mut two) = (one.into_iter().peekable(), two.into_iter().peekable());
    loop {
        let order = match (one.peek(), two.peek()) {
            (None, None) => break,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(one), Some(two)) => control[*one].text.cmp(&candidate[*two].text),
        };
        match order {
            std::cmp::Ordering::Less => only_one.extend(one.next()),
            std::cmp::Ordering::Greater => only_two.extend(two.next()),
            std::cmp::Ordering::Equal => pairs.extend(one.next().zip(two.next())),
        }
    }
    pairs.extend(only_one.into_iter().zip(only_two));
    pairs
}

/// Returns the indexes of the keys, sorted by key.
fn ranked(keys: &[CanonicalKey<'_>]) -> Vec<usize> {
    let mut indexes: Vec<usize> = (0..keys.len()).collect();
    indexes.sort_by(|one, two| keys[*one].cmp(&keys[*two]));
    indexes
}
