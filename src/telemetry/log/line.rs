//! How an event becomes one line. Spans are not shown: a call has one line, and that has all fields.

use std::cell::Cell;
use std::fmt::{self, Debug, Display, Write};
use std::time::SystemTime;

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::queue::Queue;
use super::{LogFormat, escape};
use crate::telemetry::clock::Rfc3339;

const MESSAGE: &str = "message";

/// What a thread keeps of the room that its lines were made in.
const ROOM: usize = 8 * 1024;

thread_local! {
    /// Where a thread makes its lines. Who makes one takes it, so that a value which logs while it is shown harms nobody.
    static MADE: Cell<String> = const { Cell::new(String::new()) };
}

/// Makes lines of events, and queues them.
pub(super) struct Lines {
    pub(super) format: LogFormat,
    pub(super) wall: fn() -> SystemTime,
    pub(super) queue: Queue,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _spans: Context<'_, S>) {
        let mut line = MADE.take();
        // A value that cannot be shown leaves the line out: there is nowhere to say so.
        if self.write(&mut line, event).is_ok() {
            self.queue.offer(&line);
        }
        line.clear();
        if line.capacity() <= ROOM {
            MADE.set(line);
        }
    }
}

impl Lines {
    fn write(&self, line: &mut String, event: &Event<'_>) -> fmt::Result {
        let (level, target) = (event.metadata().level(), event.metadata().target());
        let time = Rfc3339((self.wall)());
        match self.format {
            LogFormat::Text => write!(line, "{time} {level} {target}")?,
            LogFormat::Json => {
                line.push_str(r#"{"time":""#);
                time.push_to(line);
                line.push_str(r#"","level":""#);
                line.push_str(level.as_str());
                line.push_str(r#"","target":""#);
                line.push_str(target);
                line.push('"');
            }
        }
        let mut fields = Fields {
            line,
            format: self.format,
            written: Ok(()),
        };
        event.record(&mut fields);
        fields.written?;
        line.push_str(match self.format {
            LogFormat::Text => "\n",
            LogFormat::Json => "}\n",
        });
        Ok(())
    }
}

/// Writes the fields of one event, and remembers the first failure.
struct Fields<'l> {
    line: &'l mut String,
    format: LogFormat,
    written: fmt::Result,
}

impl Fields<'_> {
    /// A number or a truth value, which look the same in both formats.
    fn plain(&mut self, field: &Field, value: impl Display) {
        self.begin(field.name());
        let written = write!(self.line, "{value}");
        self.written = self.written.and(written);
    }

    fn text(&mut self, field: &Field, value: &str) {
        let name = field.name();
        let written = match self.format {
            LogFormat::Text if name == MESSAGE => {
                self.line.push(' ');
                escape::message(self.line, value)
            }
            LogFormat::Text => {
                self.begin(name);
                escape::word(self.line, value)
            }
            LogFormat::Json => {
                self.begin(name);
                escape::json(self.line, value)
            }
        };
        self.written = self.written.and(written);
    }

    /// What stands before the value of a field.
    fn begin(&mut self, name: &str) {
        let (before, after) = match self.format {
            LogFormat::Text => (" ", "="),
            LogFormat::Json => (",\"", "\":"),
        };
        self.line.push_str(before);
        self.line.push_str(name);
        self.line.push_str(after);
    }

    /// A whole number; its digits are most of what a line has of numbers.
    fn whole(&mut self, field: &Field, value: impl itoa::Integer) {
        self.begin(field.name());
        self.line.push_str(itoa::Buffer::new().format(value));
    }
}

/// A number of whole thousandths, such as all times of the log are; none where it is another.
///
/// Its text is that of the number itself, made from integers, which takes a tenth of the time.
fn thousandths(value: f64) -> Option<Thousandths> {
    const MOST: f64 = 1e12;
    let count = (value * 1000.0).round();
    let exact = (0.0..MOST).contains(&count) && count / 1000.0 == value && value.is_sign_positive();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is whole, positive and small"
    )]
    exact.then_some(Thousandths(count as u64))
}

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
        if let Some(exact) = thousandths(value) {
            self.begin(field.name());
            exact.push_to(self.line);
        } else if value.is_finite() {
            self.plain(field, value);
        } else {
            // JSON has no such numbers.
            self.text(field, &value.to_string());
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.whole(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.whole(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.plain(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.text(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::thousandths;

    fn shown(value: f64) -> Option<String> {
        let mut text = String::new();
        thousandths(value)?.push_to(&mut text);
        Some(text)
    }

    proptest! {
        #[test]
        fn whole_thousandths_look_as_numbers_do(micros in 0..10_u64.pow(12)) {
            let value = micros as f64 / 1000.0;
            prop_assert_eq!(shown(value), Some(value.to_string()));
        }

        #[test]
        fn a_number_that_is_written_in_thousandths_is_one(value in any::<f64>()) {
            if let Some(own) = shown(value) {
                prop_assert_eq!(own, value.to_string());
            }
        }
    }
}
