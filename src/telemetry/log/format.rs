//! Formatting of an event as one line. Spans are not shown: a call has one line with all its fields.
//!
//! Used by `log::call`.

use std::cell::Cell;
use std::fmt::{self, Debug, Display, Write};
use std::marker::PhantomData;
use std::time::{Duration, SystemTime};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::escape;
use super::writer::Queue;
use crate::telemetry::clock::TimestampCache;
use dualgauge_model::log_format::LogFormat;

const MESSAGE: &str = "message";

/// The buffer capacity that a thread keeps for the next line.
const MAX_RETAINED: usize = 8 * 1024;

thread_local! {
    /// The line buffer of a thread. It is taken while in use, so that a value may log while it is formatted.
    static BUFFER: Cell<LineBuffer> = Cell::default();
}

/// A buffer for formatting lines.
#[derive(Default)]
pub(super) struct LineBuffer {
    line: String,
    timestamp: TimestampCache,
}

/// A subscriber layer that formats events as lines and queues them.
pub(super) struct LogLayer {
    pub(super) format: LogFormat,
    pub(super) wall: fn() -> SystemTime,
    pub(super) queue: Queue,
}

/// The content of a line.
pub(super) trait LogFields {
    /// Writes the fields.
    fn write<L: LineFormat>(&self, fields: &mut Fields<'_, L>);
}

impl LogFields for Event<'_> {
    fn write<L: LineFormat>(&self, fields: &mut Fields<'_, L>) {
        self.record(fields);
    }
}

/// A line format, known at compile time, as most of a line's text is.
pub(super) trait LineFormat {
    /// The text before and after the name of a field.
    const NAME: (&'static str, &'static str);
    /// The text around a value that needs no escaping.
    const WORD: &'static str;
    /// The end of a line.
    const END: &'static str;

    /// Returns a label in this format.
    fn label(label: FieldLabel) -> &'static str;
    /// Writes the beginning of a line, up to its first field.
    fn begin(buffer: &mut LineBuffer, time: SystemTime, level: Level, target: &str);
    /// Writes a value that may come from outside.
    fn escaped(line: &mut String, value: &str) -> fmt::Result;
    /// Writes the message of an event, if the format treats it differently from other fields.
    fn message(line: &mut String, value: &str) -> Option<fmt::Result>;
}

/// The format for people.
pub(super) struct Text;

impl LineFormat for Text {
    const NAME: (&'static str, &'static str) = (" ", "=");
    const WORD: &'static str = "";
    const END: &'static str = "\n";

    fn label(label: FieldLabel) -> &'static str {
        label.text
    }

    fn begin(
        LineBuffer { line, timestamp }: &mut LineBuffer,
        time: SystemTime,
        level: Level,
        target: &str,
    ) {
        timestamp.push(time, line);
        for word in [level.as_str(), target] {
            line.push(' ');
            line.push_str(word);
        }
    }

    fn escaped(line: &mut String, value: &str) -> fmt::Result {
        escape::word(line, value)
    }

    fn message(line: &mut String, value: &str) -> Option<fmt::Result> {
        line.push(' ');
        Some(escape::message(line, value))
    }
}

/// The format for machines.
pub(super) struct Json;

impl LineFormat for Json {
    const NAME: (&'static str, &'static str) = (",\"", "\":");
    const WORD: &'static str = "\"";
    const END: &'static str = "}\n";

    fn label(label: FieldLabel) -> &'static str {
        label.json
    }

    fn begin(
        LineBuffer { line, timestamp }: &mut LineBuffer,
        time: SystemTime,
        level: Level,
        target: &str,
    ) {
        line.push_str(r#"{"time":""#);
        timestamp.push(time, line);
        line.push_str(r#"","level":""#);
        line.push_str(level.as_str());
        line.push_str(r#"","target":""#);
        line.push_str(target);
        line.push('"');
    }

    fn escaped(line: &mut String, value: &str) -> fmt::Result {
        escape::json(line, value)
    }

    fn message(_: &mut String, _: &str) -> Option<fmt::Result> {
        None
    }
}

impl<S: Subscriber> Layer<S> for LogLayer {
    fn on_event(&self, event: &Event<'_>, _spans: Context<'_, S>) {
        let about = event.metadata();
        self.write(*about.level(), about.target(), event);
    }
}

impl LogLayer {
    /// Formats one line and queues it.
    pub(super) fn write(&self, level: Level, target: &str, content: &impl LogFields) {
        match self.format {
            LogFormat::Text => self.write_as::<Text>(level, target, content),
            LogFormat::Json => self.write_as::<Json>(level, target, content),
        }
    }

    fn write_as<L: LineFormat>(&self, level: Level, target: &str, content: &impl LogFields) {
        let mut buffer = BUFFER.take();
        L::begin(&mut buffer, (self.wall)(), level, target);
        let mut fields = Fields::<L> {
            line: &mut buffer.line,
            written: Ok(()),
            format: PhantomData,
        };
        content.write(&mut fields);
        // A line with a value that cannot be formatted is dropped: an error cannot be reported here.
        if fields.written.is_ok() {
            buffer.line.push_str(L::END);
            self.queue.queue_line(&buffer.line);
        }
        buffer.line.clear();
        if buffer.line.capacity() <= MAX_RETAINED {
            BUFFER.set(buffer);
        }
    }
}

/// The text before the value of a field, in either format.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldLabel {
    pub(super) text: &'static str,
    pub(super) json: &'static str,
}

/// Creates a label from a literal name at compile time.
macro_rules! label {
    ($name:literal) => {
        $crate::telemetry::log::format::FieldLabel {
            text: concat!(" ", $name, "="),
            json: concat!(",\"", $name, "\":"),
        }
    };
}
pub(super) use label;

/// Writes the fields of one line and records the first failure.
pub(super) struct Fields<'l, L> {
    line: &'l mut String,
    written: fmt::Result,
    format: PhantomData<L>,
}

impl<L: LineFormat> Fields<'_, L> {
    /// Writes a text that may come from outside.
    #[inline]
    pub(super) fn text(&mut self, label: FieldLabel, value: &str) {
        self.line.push_str(L::label(label));
        self.escaped(value);
    }

    /// Writes a word of the program itself, of letters, digits and `_`, which needs no escaping.
    #[inline]
    pub(super) fn word(&mut self, label: FieldLabel, value: &str) {
        self.line.push_str(L::label(label));
        self.line.push_str(L::WORD);
        self.line.push_str(value);
        self.line.push_str(L::WORD);
    }

    /// Writes an integer.
    #[inline]
    pub(super) fn integer(&mut self, label: FieldLabel, value: impl itoa::Integer) {
        self.line.push_str(L::label(label));
        self.line.push_str(itoa::Buffer::new().format(value));
    }

    /// Writes a time in milliseconds, with at most three decimals.
    #[inline]
    pub(super) fn milliseconds(&mut self, label: FieldLabel, time: Duration) {
        self.line.push_str(L::label(label));
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Millis(micros).push_to(self.line);
    }

    /// Writes the name of an event's field.
    fn name(&mut self, field: &Field) {
        let (before, after) = L::NAME;
        self.line.push_str(before);
        self.line.push_str(field.name());
        self.line.push_str(after);
    }

    /// Writes a number or a boolean, which look the same in both formats.
    fn plain(&mut self, field: &Field, value: impl Display) {
        self.name(field);
        let written = write!(self.line, "{value}");
        self.written = self.written.and(written);
    }

    fn escaped(&mut self, value: &str) {
        let written = L::escaped(self.line, value);
        self.written = self.written.and(written);
    }
}

/// A number in thousandths. Formatting it with integers takes a tenth of the time of `f64` formatting.
struct Millis(u64);

impl Millis {
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

/// Returns the last digit of a number.
fn digit(number: u64) -> char {
    char::from(b'0' + u8::try_from(number % 10).unwrap_or_default())
}

impl<L: LineFormat> Visit for Fields<'_, L> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        if value.is_finite() {
            self.plain(field, value);
        } else {
            // JSON has no infinities and no NaN.
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
        if field.name() == MESSAGE
            && let Some(written) = L::message(self.line, value)
        {
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

    use super::Millis;

    proptest! {
        #[test]
        fn thousandths_are_formatted_like_floats(micros in 0..10_u64.pow(12)) {
            let mut text = String::new();
            Millis(micros).push_to(&mut text);
            prop_assert_eq!(text, (micros as f64 / 1000.0).to_string());
        }
    }
}
