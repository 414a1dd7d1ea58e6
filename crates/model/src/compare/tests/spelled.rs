//! Values that can be spelled in many ways.

use proptest::prelude::*;

/// A value without its spelling.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Word(&'static str),
    /// A whole number, in units of a hundredth.
    Hundredths(i32),
    Text(String),
    List(Vec<Value>),
    Table(Vec<(String, Value)>),
}

pub(super) fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        prop::sample::select(vec!["null", "true", "false"]).prop_map(Value::Word),
        (-300_i32..300).prop_map(Value::Hundredths),
        "[ab/*~\"\\\\ä\u{1f600}\n]{0,3}".prop_map(Value::Text),
    ];
    leaf.prop_recursive(4, 24, 4, |value| {
        let name = "[ab/*~ä]{0,2}";
        prop_oneof![
            prop::collection::vec(value.clone(), 0..4).prop_map(Value::List),
            prop::collection::btree_map(name, value, 0..4)
                .prop_map(|members| Value::Table(members.into_iter().collect())),
        ]
    })
}

/// Choices of spelling, used in turn and repeated.
pub(super) struct Choices(Vec<u8>, usize);

impl Choices {
    pub(super) fn new(choices: Vec<u8>) -> Choices {
        Choices(choices, 0)
    }

    pub(super) fn next(&mut self, of: usize) -> usize {
        self.1 += 1;
        let chosen = self.0.get(self.1 % self.0.len().max(1));
        chosen.map_or(0, |chosen| usize::from(*chosen) % of)
    }
}

impl Value {
    pub(super) fn spell(&self, choices: &mut Choices) -> String {
        let white = ["", " ", "\n\t"][choices.next(3)];
        let text = match self {
            Value::Word(word) => (*word).to_owned(),
            Value::Hundredths(number) => spell_number(*number, choices),
            Value::Text(text) => spell_text(text, choices),
            Value::List(items) => {
                let items: Vec<_> = items.iter().map(|item| item.spell(choices)).collect();
                format!("[{}]", items.join(","))
            }
            Value::Table(members) => {
                let mut members: Vec<_> = members.iter().collect();
                if !members.is_empty() {
                    let turn = choices.next(members.len());
                    members.rotate_left(turn);
                }
                let members: Vec<_> = members
                    .into_iter()
                    .map(|(name, value)| {
                        format!(
                            "{}{white}:{}",
                            spell_text(name, choices),
                            value.spell(choices)
                        )
                    })
                    .collect();
                format!("{{{white}{}}}", members.join(","))
            }
        };
        format!("{white}{text}{white}")
    }
}

fn spell_number(hundredths: i32, choices: &mut Choices) -> String {
    let sign = if hundredths < 0 { "-" } else { "" };
    let (whole, part) = (hundredths.abs() / 100, hundredths.abs() % 100);
    match choices.next(5) {
        0 => format!("{hundredths}e-2"),
        1 => format!("{sign}{whole}.{part:02}"),
        2 => format!("{sign}{whole}.{part:02}000E0"),
        3 if hundredths != 0 => format!("{hundredths}0.0e-03"),
        _ => format!("{hundredths}E-002"),
    }
}

fn spell_text(text: &str, choices: &mut Choices) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        let must = matches!(character, '"' | '\\' | '\n');
        if must || choices.next(3) == 0 {
            for unit in character.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04X}"));
            }
        } else {
            out.push(character);
        }
    }
    out.push('"');
    out
}
