//! Pairs of patterns of JSON that share their holes: what one side names `m0`, the other names `n0`.

use super::dice::Dice;
use super::json::Json;
use super::pattern::{Absence, Hole, Holes, Part, Pattern, Place, Shape};
use super::route::Side;

/// Makes patterns of one pair; it knows what the pair loses.
pub(crate) struct Maker<'d> {
    pub(crate) dice: &'d mut Dice,
    pub(crate) holes: Holes,
    /// The sides whose messages do not come back as they were.
    pub(crate) loses: Vec<Side>,
    prefix: &'static str,
    made: usize,
}

/// A value as the REST side and as the RPC side spells it.
pub(crate) type Pair = (Pattern, Pattern);

impl<'d> Maker<'d> {
    pub(crate) fn of(dice: &'d mut Dice, prefix: &'static str) -> Maker<'d> {
        Maker {
            dice,
            holes: Holes::default(),
            loses: Vec::new(),
            prefix,
            made: 0,
        }
    }

    fn name(&mut self) -> String {
        self.made += 1;
        format!("{}{}", self.prefix, self.made)
    }

    /// A hole that both sides may now name.
    pub(crate) fn hole(&mut self, shape: Shape, absence: Absence, place: Place) -> String {
        let name = self.name();
        self.holes.add(Hole {
            name,
            shape,
            absence,
            rpc_absence: None,
            place,
        })
    }

    fn required(&mut self, shape: Shape, place: Place) -> String {
        self.hole(shape, Absence::Required, place)
    }

    /// Any of the four, with a default that fits.
    pub(crate) fn absence(&mut self, shape: &Shape) -> Absence {
        let default = match shape {
            Shape::Integer | Shape::Number | Shape::Status | Shape::Code => Json::number(5),
            Shape::Boolean => Json::Boolean(true),
            Shape::Enum => Json::text("r"),
            Shape::Object => Json::object([]),
            Shape::Array => Json::List(Vec::new()),
            Shape::Any | Shape::Text => Json::text("d"),
            Shape::Encoded => return Absence::Required,
            Shape::Repeated(_) | Shape::Separated(_) => {
                return self.dice.pick(&[Absence::Required, Absence::Optional]);
            }
        };
        match self.dice.below(6) {
            0 | 1 => Absence::Required,
            2 | 3 => Absence::Optional,
            4 => Absence::Default(default),
            _ => Absence::OmittedDefault(default),
        }
    }

    fn plain(&mut self) -> Pair {
        let shapes = [
            Shape::Any,
            Shape::Text,
            Shape::Integer,
            Shape::Number,
            Shape::Boolean,
            Shape::Object,
            Shape::Array,
            Shape::Enum,
        ];
        let shape = self.dice.pick(&shapes);
        let absence = self.absence(&shape);
        let name = self.hole(shape, absence, Place::Json);
        self.differ(&name);
        (Pattern::Hole(name.clone()), Pattern::Hole(name))
    }

    /// The RPC side may have a default of its own.
    pub(crate) fn differ(&mut self, name: &str) {
        let hole = self.holes.find(name);
        let (Absence::Default(value) | Absence::OmittedDefault(value)) = &hole.absence else {
            return;
        };
        let value = match (&hole.shape, self.dice.once_in(2)) {
            (Shape::Integer | Shape::Number, true) => Json::number(7),
            (Shape::Any | Shape::Text, true) => Json::text("a"),
            (_, _) => value.clone(),
        };
        let own = match self.dice.below(4) {
            0 => Absence::Default(value),
            1 => Absence::OmittedDefault(value),
            _ => return,
        };
        if let Some(hole) = self.holes.all.get_mut(name) {
            hole.rpc_absence = Some(own);
        }
    }

    /// Something that is never absent.
    fn solid(&mut self) -> Pair {
        let name = match self.dice.below(4) {
            0 => {
                let name = self.required(Shape::Any, Place::Mixed);
                let one = vec![Part::Text("a ".to_owned()), Part::Hole(name.clone())];
                let other = vec![Part::Hole(name), Part::Text(" {z}".to_owned())];
                return (Pattern::Mixed(one), Pattern::Mixed(other));
            }
            1 => {
                let text = self.required(Shape::Any, Place::Mixed);
                let number = self.required(Shape::Integer, Place::Mixed);
                let mixed = vec![
                    Part::Hole(text.clone()),
                    Part::Text("-".to_owned()),
                    Part::Hole(number.clone()),
                ];
                let list = vec![Pattern::Hole(text), Pattern::Hole(number)];
                return (Pattern::Mixed(mixed), Pattern::List(list, None));
            }
            2 => {
                let name = self.required(Shape::Encoded, Place::Json);
                return (Pattern::Hole(name.clone()), Pattern::Encoded(name));
            }
            _ => self.required(Shape::Any, Place::Json),
        };
        (Pattern::Hole(name.clone()), Pattern::Hole(name))
    }

    fn forgotten(&mut self, side: Side) -> Pair {
        self.loses.push(side);
        let (here, there) = match self.dice.below(2) {
            0 => (Pattern::Forgotten(None), Pattern::Literal(Json::number(1))),
            _ => {
                let value = Json::text("v");
                (
                    Pattern::Forgotten(Some(value)),
                    Pattern::Literal(Json::Null),
                )
            }
        };
        placed(side, here, there)
    }

    fn only_written(&mut self, side: Side) -> Pair {
        self.loses.push(side);
        let name = self.required(Shape::Text, Place::Json);
        let twice = vec![
            ("v".to_owned(), Pattern::Hole(name.clone())),
            ("w".to_owned(), Pattern::Written(name.clone())),
        ];
        placed(side, Pattern::Object(twice, None), Pattern::Hole(name))
    }

    fn each(&mut self) -> Pair {
        let group = format!("{}g", self.name());
        let (name, more) = (self.name(), self.name());
        let hole = |name: &str, shape, absence| Hole {
            name: name.to_owned(),
            shape,
            absence,
            rpc_absence: None,
            place: Place::Json,
        };
        let absence = self.dice.pick(&[Absence::Required, Absence::Optional]);
        let holes = vec![
            hole(&name, Shape::Any, Absence::Required),
            hole(&more, Shape::Integer, absence),
        ];
        self.holes.groups.insert(group.clone(), holes);
        let element = |one: &str, other: &str| {
            let members = vec![
                (one.to_owned(), Pattern::Hole(name.clone())),
                (other.to_owned(), Pattern::Hole(more.clone())),
            ];
            Pattern::Each(group.clone(), Box::new(Pattern::Object(members, None)))
        };
        (element("k", "n"), element("key", "count"))
    }

    fn list(&mut self) -> Pair {
        let (one, other) = self.solid();
        let rest = self.dice.once_in(2);
        let rest = rest.then(|| self.required(Shape::Array, Place::Json));
        let list = |first| Pattern::List(vec![first], rest.clone());
        (list(one), list(other))
    }

    fn value(&mut self, depth: usize) -> Pair {
        let side = self.dice.pick(&[Side::Rest, Side::Rpc]);
        match self.dice.below(if depth == 0 { 12 } else { 18 }) {
            0 => self.forgotten(side),
            1 => self.only_written(side),
            2..=4 => self.turned(Maker::solid),
            5 => (
                Pattern::Literal(Json::text("{x}")),
                Pattern::Literal(Json::Boolean(true)),
            ),
            6..=11 => self.plain(),
            12 | 13 => self.each(),
            14 => self.list(),
            _ => self.object(depth - 1),
        }
    }

    /// A pair whose sides may change places.
    fn turned(&mut self, make: fn(&mut Self) -> Pair) -> Pair {
        let (one, other) = make(self);
        match self.dice.once_in(2) {
            true => (other, one),
            false => (one, other),
        }
    }

    /// An object whose members have other names on the other side; with one of them at least.
    pub(crate) fn object(&mut self, depth: usize) -> Pair {
        let (mut one, mut other) = (Vec::new(), Vec::new());
        for index in 0..1 + self.dice.below(4) {
            let (here, there) = self.value(depth);
            one.push((format!("m{index}"), here));
            other.push((format!("n{index}"), there));
        }
        let rest = self.dice.once_in(5);
        let rest = rest.then(|| self.required(Shape::Object, Place::Json));
        (
            Pattern::Object(one, rest.clone()),
            Pattern::Object(other, rest),
        )
    }
}

fn placed(side: Side, here: Pattern, there: Pattern) -> Pair {
    match side {
        Side::Rest => (here, there),
        Side::Rpc => (there, here),
    }
}
