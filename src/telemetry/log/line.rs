//! How an event becomes one line. Spans are not shown: a call has one line, and that has all fields.

use std::cell::Cell;
use std::fmt::{self, Debug, Display, Write};
use std::time::{Duration, SystemTime};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::queue::Queue;
use super::{LogFormat, escape};
use crate::telemetry::clock::Stamp;

const MESSAGE: &str = "message";

/// What a thread keeps of the room that its lines were made in.
const ROOM: usize = 8 * 1024;

thread_local! {
    /// Where a thread makes its lines. Who makes one takes it, so that a value which logs while it is shown harms nobody.
    static DESK: Cell<Desk> = Cell::default();
}

/// What a thread makes its lines with.
#[derive(Default)]
struct Desk {
    line: String,
    stamp: Stamp,
}

/// Makes lines of events, and queues them.
pub(super) struct Lines {
    pub(super) format: LogFormat,
    pub(super) wall: fn() -> SystemTime,
    pub(super) queue: Queue,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _spans: Context<'_, S>) {
        let about = event.metadata();
        self.write(about.level(), about.target(), |fields| event.record(fields));
    }
}

impl Lines {
    /// Makes one line, and queues it.
    pub(super) fn write(&self, level: &Level, target: &str, fill: impl FnOnce(&mut Fields<'_>)) {
        let mut desk = DESK.take();
        self.begin(&mut desk, level, target);
        let mut fields = Fields {
            line: &mut desk.line,
            format: self.format,
            written: Ok(()),
        };
        fill(&mut fields);
        // A value that cannot be shown leaves the line out: there is nowhere to say so.
        if fields.written.is_ok() {
            desk.line.push_str(match self.format {
                LogFormat::Text => "\n",
                LogFormat::Json => "}\n",
            });
            self.queue.offer(&desk.line);
        }
        desk.line.clear();
        if desk.line.capacity() <= ROOM {
            DESK.set(desk);
        }
    }

    fn begin(&self, Desk { line, stamp }: &mut Desk, level: &Level, target: &str) {
        let time = (self.wall)();
        match self.format {
            LogFormat::Text => {
                stamp.push(time, line);
                for word in [level.as_str(), target] {
                    line.push(' ');
                    line.push_str(word);
                }
            }
            LogFormat::Json => {
                line.push_str(r#"{"time":""#);
                stamp.push(time, line);
                line.push_str(r#"","level":""#);
                line.push_str(level.as_str());
                line.push_str(r#"","target":""#);
                line.push_str(target);
                line.push('"');
            }
        }
    }
}

/// What stands before the value of a field, in either format.
#[derive(Debug, Clone, Copy)]
pub(super) struct Label {
    pub(super) text: &'static str,
    pub(super) json: &'static str,
}

/// The label of a name that is written down: it is made when the program is.
macro_rules! label {
    ($name:literal) => {
        $crate::telemetry::log::line::Label {
            text: concat!(" ", $name, "="),
            json: concat!(",\"", $name, "\":"),
        }
    };
}
pub(super) use label;

/// Writes the fields of one line, and remembers the first failure.
pub(super) struct Fields<'l> {
    line: &'l mut String,
    format: LogFormat,
    written: fmt::Result,
}

impl Fields<'_> {
    /// A text that others may have written.
    pub(super) fn text(&mut self, label: Label, value: &str) {
        self.begin(label);
        self.escaped(value);
    }

    /// A word of the program itself, of letters, digits and `_`: there is nothing in it to escape.
    pub(super) fn word(&mut self, label: Label, value: &str) {
        self.begin(label);
        match self.format {
            LogFormat::Text => self.line.push_str(value),
            LogFormat::Json => {
                self.line.push('"');
                self.line.push_str(value);
                self.line.push('"');
            }
        }
    }

    /// A whole number; its digits are most of what a line has of numbers.
    pub(super) fn whole(&mut self, label: Label, value: impl itoa::Integer) {
        self.begin(label);
        self.line.push_str(itoa::Buffer::new().format(value));
    }

    /// A time in milliseconds, with at most three decimals.
    pub(super) fn milliseconds(&mut self, label: Label, time: Duration) {
        self.begin(label);
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Thousandths(micros).push_to(self.line);
    }

    fn begin(&mut self, label: Label) {
        self.line.push_str(match self.format {
            LogFormat::Text => label.text,
            LogFormat::Json => label.json,
        });
    }

    /// The same for a field of any event.
    fn name(&mut self, field: &Field) {
        let (before, after) = match self.format {
            LogFormat::Text => (" ", "="),
            LogFormat::Json => (",\"", "\":"),
        };
        self.line.push_str(before);
        self.line.push_str(field.name());
        self.line.push_str(after);
    }

    /// A number or a truth value, which look the same in both formats.
    fn plain(&mut self, field: &Field, value: impl Display) {
        self.name(field);
        let written = write!(self.line, "{value}");
        self.written = self.written.and(written);
    }

    fn escaped(&mut self, value: &str) {
        let written = match self.format {
            LogFormat::Text => escape::word(self.line, value),
            LogFormat::Json => escape::json(self.line, value),
        };
        self.written = self.written.and(written);
    }
}

/// A number of thousandths, whose text is that of the number itself, made from integers, which takes a tenth of the time.
struct Thousandths(u64);

impl Thousandths {
    fn push_to(&self, line: &mut String) {
        let (whole, part) = (self.0 / 1000, self.0 % 1000);
        line.push_str(itoa::Buffer::new().format(whole));
        if part > 0 {
            line.push('.');
            line.push(digit(part / 100));
        }
        if part % 100 > 0 {
            line.push(digit(part / 10));
        }
        if part % 10 > 0 {
            line.push(digit(part));
        }
    }
}

/// The last digit of a number.
fn digit(number: u64) -> char {
    char::from(b'0' + u8::try_from(number % 10).unwrap_or_default())
}

impl Visit for Fields<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        if value.is_finite() {
            self.plain(field, value);
        } else {
            // JSON has no such numbers.
            self.record_str(field, &value.to_string());
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.plain(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.plain(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.plain(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if self.format == LogFormat::Text && field.name() == MESSAGE {
            self.line.push(' ');
            let written = escape::message(self.line, value);
            self.written = self.written.and(written);
        } else {
            self.name(field);
            self.escaped(value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Thousandths;

    proptest! {
        #[test]
        fn whole_thousandths_look_as_numbers_do(micros in 0..10_u64.pow(12)) {
            let mut text = String::new();
            Thousandths(micros).push_to(&mut text);
            prop_assert_eq!(text, (micros as f64 / 1000.0).to_string());
        }
    }
}
