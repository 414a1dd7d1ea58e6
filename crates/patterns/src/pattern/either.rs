//! Alternatives: `["{|}", p1, p2]` pairs by position with the alternatives of the other side; `["{/}", p1, p2]` has
//! several forms of the same holes on one side. A form other than the first one may lack holes that may be absent.
//!
//! Reading chooses the most specific alternative that matches. Laws: every two alternatives are ordered by
//! specificity or have no value in common; a written value is read by the alternative that wrote it.

use super::compare::{Intersection, MemberPolicy, reads, search, within};
use super::nodes::AlternativePlan;
use super::{BoundValue, EitherPattern, MatchError, Pattern, PatternError, PatternReader, Slot};
use super::{PatternWriter, ValuePresence};
use crate::json::{Json, same_ignoring_case};
use crate::rope::RopeWriter;

/// The policy for comparisons. Whatever matches with closed objects matches with open ones.
const POLICY: MemberPolicy = MemberPolicy::Open;
/// The most errors of alternatives in one message.
const SHOWN: usize = 4;

impl EitherPattern {
    /// Creates resolved alternatives. `choice` is the hole for the number of the one that is read; without it, they are
    /// forms of the same holes.
    ///
    /// # Errors
    ///
    /// Fails if two alternatives have values in common, and neither is more specific.
    pub fn understood(
        choice: Option<Slot>,
        alternatives: Vec<Pattern>,
    ) -> Result<EitherPattern, PatternError> {
        let mut either = EitherPattern {
            choice: choice.map(Box::new),
            alternatives,
            plans: Vec::new(),
            order: Vec::new(),
        };
        either.refuse_absence()?;
        let count = either.alternatives.len();
        let mut plans = vec![AlternativePlan::default(); count];
        for (one, other, relation) in either.separate() {
            match relation {
                Relation::Narrower => plans[other].narrower.push(one),
                Relation::Wider => plans[one].narrower.push(other),
                Relation::Apart => {}
                Relation::Same | Relation::Common(_) | Relation::Unknown => {
                    return Err(overlap(one, other, &relation));
                }
            }
        }
        // More specific ones first: each is narrower than those that it is within.
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|index| plans[*index].narrower.len());
        either.order = order;
        either.plans = plans;
        either.find_holes();
        either.find_absent()?;
        Ok(either)
    }

    /// Returns the same alternatives with other patterns in their places.
    #[must_use]
    pub fn with(&self, alternatives: Vec<Pattern>) -> EitherPattern {
        let mut either = EitherPattern {
            alternatives,
            ..self.clone()
        };
        either.find_holes();
        either
    }

    /// Changes the patterns of the alternatives.
    pub fn change(&mut self, change: impl FnMut(&mut Pattern)) {
        self.alternatives.iter_mut().for_each(change);
        self.find_holes();
    }

    /// Returns the alternative that matches a value, if members that it does not name do not matter.
    #[must_use]
    pub fn matching(&self, value: &Json) -> Option<&Pattern> {
        let mut order = self.order.iter().map(|index| &self.alternatives[*index]);
        order.find(|alternative| reads(alternative, value, POLICY))
    }

    /// Returns the holes of the first form that another form lacks, with the values of their absence.
    #[must_use]
    pub fn lacked(&self, form: usize) -> Vec<(usize, Option<Json>)> {
        let absent = self
            .plans
            .get(form)
            .into_iter()
            .flat_map(|plan| &plan.absent);
        let values = absent.map(|(hole, bound)| {
            let value = match bound {
                BoundValue::Value(value) => Some(value.clone()),
                BoundValue::Members(members) => Some(members.whole()),
                BoundValue::Unbound | BoundValue::Absent | BoundValue::Each(_) => None,
            };
            (*hole, value)
        });
        values.collect()
    }

    fn find_holes(&mut self) {
        for (plan, alternative) in self.plans.iter_mut().zip(&self.alternatives) {
            plan.holes.clear();
            alternative.slots(&mut |slot| plan.holes.extend(slot.binds()));
            plan.holes.sort_unstable();
            plan.holes.dedup();
        }
    }

    fn refuse_absence(&self) -> Result<(), PatternError> {
        for (index, alternative) in self.alternatives.iter().enumerate() {
            let absent = match alternative {
                Pattern::Hole(_) | Pattern::Text(_) => alternative.may_be_absent(),
                Pattern::Literal(_)
                | Pattern::Object(_)
                | Pattern::List(_)
                | Pattern::Each(_)
                | Pattern::Either(_) => false,
            };
            if absent {
                let what = "an alternative is a value, so it cannot be absent";
                return Err(PatternError::new(what).under(&format!("[{}]", index + 1)));
            }
        }
        Ok(())
    }

    /// Returns the relation of each two alternatives. Before, alternatives that overlap only in part are made to refuse
    /// the member names of each other.
    fn separate(&mut self) -> Vec<(usize, usize, Relation)> {
        let before = self.alternatives.clone();
        let pairs = (0..before.len())
            .flat_map(|one| (one + 1..before.len()).map(move |other| (one, other)));
        let relations =
            pairs.map(|(one, other)| (one, other, relation(&before[one], &before[other])));
        let mut relations: Vec<_> = relations.collect();
        let mut changed = vec![false; before.len()];
        for (one, other, relation) in &relations {
            if matches!(relation, Relation::Common(_) | Relation::Unknown) {
                self.alternatives[*one].refuse_names_of(&before[*other]);
                self.alternatives[*other].refuse_names_of(&before[*one]);
                (changed[*one], changed[*other]) = (true, true);
            }
        }
        for (one, other, known) in &mut relations {
            if changed[*one] || changed[*other] {
                *known = relation(&self.alternatives[*one], &self.alternatives[*other]);
            }
        }
        relations
    }

    /// Finds, for each other form, the holes of the first form that it lacks. The first form is the one that is written.
    fn find_absent(&mut self) -> Result<(), PatternError> {
        if self.choice.is_some() {
            return Ok(());
        }
        let Some((first, others)) = self.plans.split_first_mut() else {
            return Ok(());
        };
        let mut values = Vec::new();
        self.alternatives[0].values_of_absence(&mut values);
        for (index, plan) in others.iter_mut().enumerate() {
            let known = |hole: &usize| first.holes.contains(hole);
            let lacked = first
                .holes
                .iter()
                .filter(|hole| !plan.holes.contains(*hole));
            let absent: Option<Vec<_>> = lacked
                .map(|hole| values.iter().find(|(absent, _)| absent == hole).cloned())
                .collect();
            match absent {
                Some(absent) if plan.holes.iter().all(known) => plan.absent = absent,
                Some(_) | None => {
                    let what = "every form has the holes of the first one, and may lack only those that may be absent; this one has other holes, or lacks a required one";
                    return Err(PatternError::new(what).under(&format!("[{}]", index + 2)));
                }
            }
            let is_narrower = first.narrower.contains(&(index + 1));
            if is_narrower && shortens(&self.alternatives[index + 1], &self.alternatives[0]) {
                let what = "the first form reads all values of this one; remove it";
                return Err(PatternError::new(what).under(&format!("[{}]", index + 2)));
            }
        }
        Ok(())
    }

    /// Forgets the holes that forms lack, before holes get other numbers.
    pub(super) fn forget_absent(&mut self) {
        for plan in &mut self.plans {
            plan.absent.clear();
        }
    }

    pub(super) fn read(&self, value: &Json, reading: &mut PatternReader) -> Result<(), MatchError> {
        let (dropped, pages) = (reading.dropped, reading.pages.len());
        let mut faults = Vec::new();
        for index in &self.order {
            let holes = &self.plans[*index].holes;
            let before: Vec<BoundValue> = holes
                .iter()
                .map(|hole| reading.bindings.get(*hole).clone())
                .collect();
            match self.alternatives[*index].read(Some(value), reading) {
                Ok(()) => {
                    return match &self.choice {
                        Some(choice) => reading.bind(choice, BoundValue::Value(number(*index))),
                        None => self.plans[*index].bind_absent(reading),
                    };
                }
                Err(fault) => faults.push((*index, fault)),
            }
            reading.dropped = dropped;
            reading.pages.truncate(pages);
            for (hole, value) in holes.iter().zip(before) {
                reading.bindings.set(*hole, value);
            }
        }
        faults.sort_by_key(|(index, _)| *index);
        let shown = faults.iter().take(SHOWN).map(|(index, fault)| {
            let place = match fault.location.as_str() {
                "" => String::new(),
                location => format!(" {location}:"),
            };
            format!("{}:{place} {}", index + 1, fault.what)
        });
        let shown = shown.collect::<Vec<_>>().join("; ");
        Err(MatchError::here(format!(
            "it matches none of {} alternatives ({shown})",
            self.alternatives.len()
        )))
    }

    pub(super) fn write(
        &self,
        writing: &PatternWriter<'_>,
        out: &mut RopeWriter,
    ) -> Result<ValuePresence, MatchError> {
        let index = match &self.choice {
            Some(choice) => match choice.bound(writing).as_ref() {
                BoundValue::Value(value) => self.index_of(value),
                BoundValue::Unbound
                | BoundValue::Absent
                | BoundValue::Members(_)
                | BoundValue::Each(_) => None,
            },
            None => Some(0),
        };
        let index = index.ok_or_else(|| MatchError::here("no alternative was read"))?;
        let narrower = &self.plans[index].narrower;
        if narrower.is_empty() {
            return self.alternatives[index].write(writing, out);
        }
        let mut own = RopeWriter::with_capacity(64);
        let presence = self.alternatives[index].write(writing, &mut own)?;
        let value = Json::sent(own.finish());
        let mut narrower = narrower.iter();
        if let Some(other) =
            narrower.find(|other| reads(&self.alternatives[**other], &value, POLICY))
        {
            return Err(MatchError::here(format!(
                "alternative {} would write it, but alternative {} would read it",
                index + 1,
                other + 1
            )));
        }
        if presence == ValuePresence::Present {
            out.value(&value);
        }
        Ok(presence)
    }

    fn index_of(&self, value: &Json) -> Option<usize> {
        let text = std::str::from_utf8(value.as_bytes()).ok()?;
        let number: usize = text.trim_matches('"').parse().ok()?;
        number
            .checked_sub(1)
            .filter(|index| *index < self.plans.len())
    }
}

impl AlternativePlan {
    /// Binds the holes that this form lacks to the values of their absence.
    fn bind_absent(&self, reading: &mut PatternReader) -> Result<(), MatchError> {
        for (hole, value) in &self.absent {
            let bound = reading.bind_hole(*hole, value.clone());
            bound.map_err(|()| {
                MatchError::here("a value that this form leaves out is given elsewhere")
            })?;
        }
        Ok(())
    }
}

/// Returns true if a pattern is another one without some of the values that may be absent.
fn shortens(short: &Pattern, whole: &Pattern) -> bool {
    match (short, whole) {
        (Pattern::List(short), Pattern::List(whole)) => {
            let mut pairs = short.items.iter().zip(&whole.items);
            let mut others = whole.items.iter().skip(short.items.len());
            short.items.len() <= whole.items.len()
                && short.rest == whole.rest
                && pairs.all(|(short, whole)| shortens(short, whole))
                && others.all(Pattern::may_be_absent)
        }
        (Pattern::Object(short), Pattern::Object(whole)) => {
            let member = |name: &str| {
                let mut members = short.members.iter();
                members.find(|(known, _)| known == name)
            };
            let kept = whole
                .members
                .iter()
                .filter(|(name, _)| member(name).is_some());
            let mut members = whole.members.iter();
            short.rest == whole.rest
                && kept.count() == short.members.len()
                && members.all(|(name, whole)| match member(name) {
                    Some((_, short)) => shortens(short, whole),
                    None => whole.may_be_absent(),
                })
        }
        (
            Pattern::Literal(_)
            | Pattern::Hole(_)
            | Pattern::Text(_)
            | Pattern::Object(_)
            | Pattern::List(_)
            | Pattern::Each(_)
            | Pattern::Either(_),
            _,
        ) => short == whole,
    }
}

/// Returns the value of the choice.
fn number(index: usize) -> Json {
    Json::string(&(index + 1).to_string())
}

/// The values of an alternative, compared with those of another one.
#[derive(Debug)]
enum Relation {
    /// All of its values match the other one.
    Narrower,
    /// It matches all values of the other one.
    Wider,
    /// Both match the same values.
    Same,
    /// Both match this value, among others.
    Common(Json),
    /// They have no value in common.
    Apart,
    /// The search for a common value ended at its limit.
    Unknown,
}

fn relation(one: &Pattern, other: &Pattern) -> Relation {
    match (within(one, other, POLICY), within(other, one, POLICY)) {
        (true, false) => Relation::Narrower,
        (false, true) => Relation::Wider,
        (true, true) => Relation::Same,
        (false, false) => match search(one, other, POLICY) {
            Intersection::Value(value) => Relation::Common(value),
            Intersection::Empty => Relation::Apart,
            Intersection::Unknown => Relation::Unknown,
        },
    }
}

fn overlap(one: usize, other: usize, relation: &Relation) -> PatternError {
    let (one, other) = (one + 1, other + 1);
    PatternError::new(match relation {
        Relation::Common(common) => format!(
            "the alternatives {one} and {other} both match `{}`, and neither is more specific; name a literal or a member that distinguishes them",
            String::from_utf8_lossy(common.as_bytes())
        ),
        Relation::Unknown => format!(
            "the alternatives {one} and {other} have too many alternatives and repeated holes inside to find out that no value matches both; name a literal or a member that distinguishes them"
        ),
        Relation::Narrower | Relation::Wider | Relation::Same | Relation::Apart => format!(
            "the alternatives {one} and {other} match the same values, so {other} would never be read; remove one"
        ),
    })
}

impl Pattern {
    /// Finds the holes that may be absent, with the values that they have then.
    fn values_of_absence(&self, found: &mut Vec<(usize, BoundValue)>) {
        match self {
            Pattern::Literal(_) | Pattern::Each(_) => {}
            Pattern::Hole(_) | Pattern::Text(_) => self.slots(&mut |slot| {
                if let (Some(hole), Ok(value)) = (slot.binds(), slot.read_absent()) {
                    found.push((hole, value));
                }
            }),
            Pattern::Object(object) => {
                for (_, member) in &object.members {
                    member.values_of_absence(found);
                }
                // Without other members, the captured ones are an empty object.
                let rest = object
                    .rest
                    .iter()
                    .filter_map(|rest| Some((rest.binds()?, rest)));
                found.extend(rest.filter_map(|(hole, rest)| Some((hole, rest.no_members().ok()?))));
            }
            Pattern::List(list) => {
                for item in &list.items {
                    item.values_of_absence(found);
                }
            }
            Pattern::Either(either) => {
                let forms = either.alternatives.iter().take(1);
                let forms = forms.filter(|_| either.choice.is_none());
                forms.for_each(|form| form.values_of_absence(found));
            }
        }
    }

    /// Lets the objects of this pattern refuse members that another pattern requires at the same place. Members that an
    /// object names stay allowed; the rule also holds for objects that receive unnamed members.
    fn refuse_names_of(&mut self, twin: &Pattern) {
        let (Pattern::Object(object), Pattern::Object(twin)) = (self, twin) else {
            return;
        };
        for (name, _) in twin
            .members
            .iter()
            .filter(|(_, member)| !member.may_be_absent())
        {
            let mut known = object.members.iter().map(|(known, _)| known);
            if !known.any(|known| same_ignoring_case(known, name)) {
                object.overlapping_names.push(name.clone());
            }
        }
        object.overlapping_names.sort();
        object.overlapping_names.dedup();
        for (name, member) in &mut object.members {
            if let Some((_, twin)) = twin.members.iter().find(|(known, _)| known == name) {
                member.refuse_names_of(twin);
            }
        }
    }
}
