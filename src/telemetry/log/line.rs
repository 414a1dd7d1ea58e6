//! How an event becomes one line. Spans are not shown: a call has one line, and that has all fields.

use std::fmt::{self, Debug, Display};
use std::time::SystemTime;

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::{LogFormat, escape};
use crate::telemetry::clock::Rfc3339;

const MESSAGE: &str = "message";

/// Writes events as lines.
pub(super) struct Lines {
    format: LogFormat,
    wall: fn() -> SystemTime,
}

impl Lines {
    pub(super) fn new(format: LogFormat, wall: fn() -> SystemTime) -> Lines {
        Lines { format, wall }
    }
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _spans: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let (level, target) = (event.metadata().level(), event.metadata().target());
        let time = Rfc3339((self.wall)());
        match self.format {
            LogFormat::Text => write!(writer, "{time} {level} {target}")?,
            LogFormat::Json => {
                writer.write_str(r#"{"time":""#)?;
                write!(writer, "{time}")?;
                writer.write_str(r#"","level":""#)?;
                writer.write_str(level.as_str())?;
                writer.write_str(r#"","target":""#)?;
                writer.write_str(target)?;
                writer.write_char('"')?;
            }
        }
        let mut fields = Fields {
            writer,
            format: self.format,
            written: Ok(()),
        };
        event.record(&mut fields);
        fields.written?;
        fields.writer.write_str(match self.format {
            LogFormat::Text => "\n",
            LogFormat::Json => "}\n",
        })
    }
}

/// Writes the fields of one event, and remembers the first failure.
struct Fields<'w> {
    writer: Writer<'w>,
    format: LogFormat,
    written: fmt::Result,
}

impl Fields<'_> {
    /// A number or a truth value, which look the same in both formats.
    fn plain(&mut self, field: &Field, value: impl Display) {
        let name = field.name();
        self.write(|writer, format| {
            begin(writer, format, name)?;
            write!(writer, "{value}")
        });
    }

    fn text(&mut self, field: &Field, value: &str) {
        let name = field.name();
        self.write(|writer, format| match format {
            LogFormat::Text if name == MESSAGE => {
                writer.write_char(' ')?;
                escape::message(writer, value)
            }
            LogFormat::Text => {
                begin(writer, format, name)?;
                escape::word(writer, value)
            }
            LogFormat::Json => {
                begin(writer, format, name)?;
                escape::json(writer, value)
            }
        });
    }

    fn write(&mut self, with: impl FnOnce(&mut Writer<'_>, LogFormat) -> fmt::Result) {
        if self.written.is_ok() {
            self.written = with(&mut self.writer, self.format);
        }
    }
}

/// What stands before the value of a field.
fn begin(writer: &mut Writer<'_>, format: LogFormat, name: &str) -> fmt::Result {
    let (before, after) = match format {
        LogFormat::Text => (" ", "="),
        LogFormat::Json => (",\"", "\":"),
    };
    writer.write_str(before)?;
    writer.write_str(name)?;
    writer.write_str(after)
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

impl Display for Thousandths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / 1000, self.0 % 1000);
        Display::fmt(&whole, f)?;
        let digits = [part / 100, part / 10 % 10, part % 10];
        let shown = digits.iter().rposition(|digit| *digit != 0);
        for (place, digit) in digits
            .iter()
            .take(shown.map_or(0, |last| last + 1))
            .enumerate()
        {
            if place == 0 {
                f.write_str(".")?;
            }
            Display::fmt(digit, f)?;
        }
        Ok(())
    }
}

impl Visit for Fields<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        if let Some(exact) = thousandths(value) {
            self.plain(field, exact);
        } else if value.is_finite() {
            self.plain(field, value);
        } else {
            // JSON has no such numbers.
            self.text(field, &value.to_string());
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

    proptest! {
        #[test]
        fn whole_thousandths_look_as_numbers_do(micros in 0..10_u64.pow(12)) {
            let value = micros as f64 / 1000.0;
            let text = thousandths(value).map(|own| own.to_string());
            prop_assert_eq!(text, Some(value.to_string()));
        }

        #[test]
        fn a_number_that_is_written_in_thousandths_is_one(value in any::<f64>()) {
            if let Some(own) = thousandths(value) {
                prop_assert_eq!(own.to_string(), value.to_string());
            }
        }
    }
}
