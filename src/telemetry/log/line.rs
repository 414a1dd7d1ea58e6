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
            LogFormat::Json => write!(
                writer,
                r#"{{"time":"{time}","level":"{level}","target":"{target}""#
            )?,
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
        self.write(|writer, format| match format {
            LogFormat::Text => write!(writer, " {name}={value}"),
            LogFormat::Json => write!(writer, r#","{name}":{value}"#),
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
                write!(writer, " {name}=")?;
                escape::word(writer, value)
            }
            LogFormat::Json => {
                write!(writer, r#","{name}":"#)?;
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

impl Visit for Fields<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        if value.is_finite() {
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
