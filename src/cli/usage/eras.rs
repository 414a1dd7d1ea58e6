//! The eras of MCP clients, as text and as JSON. Used by `cli::usage`.

use std::io::{self, Write as _};
use std::process::ExitCode;

use super::{labelled, line};
use crate::cli::command_error::CommandError;
use crate::cli::format::Format;
use dualgauge_model::lifecycle::{
    EraClientReport, EraReport, EraVerdict, ProgramReport, UsageReport, span,
};

/// Prints the report of eras; the exit code says if the era with a handshake can be switched off.
pub(super) fn print(report: &UsageReport, format: Format) -> Result<ExitCode, CommandError> {
    let Some(eras) = &report.eras else {
        let text =
            "error: the running proxy is older than this program and counts no eras; upgrade it\n";
        io::stderr().lock().write_all(text.as_bytes())?;
        return Ok(ExitCode::FAILURE);
    };
    let mut out = io::stdout().lock();
    match format {
        Format::Json => {
            serde_json::to_writer_pretty(&mut out, eras).map_err(io::Error::from)?;
            out.write_all(b"\n")?;
        }
        Format::Human => {
            let mut text = human(eras);
            verdict(&mut text, eras, report.idle_seconds);
            out.write_all(text.as_bytes())?;
        }
    }
    Ok(match eras.verdict {
        EraVerdict::Unused => ExitCode::SUCCESS,
        EraVerdict::InUse | EraVerdict::Unknown => ExitCode::FAILURE,
    })
}

/// Formats a paragraph for each client, era and revision.
pub(super) fn human(eras: &EraReport) -> String {
    let mut text = String::new();
    for client in &eras.clients {
        paragraph(&mut text, client);
    }
    text
}

fn paragraph(text: &mut String, client: &EraClientReport) {
    let EraClientReport {
        client: name,
        era,
        revision,
        calls,
        last,
        programs,
    } = client;
    line(text, &format!("{name}: {era}, revision {revision}"));
    let last = last.as_deref().unwrap_or("never");
    labelled(text, "calls", &format!("{calls}, last {last}"));
    for ProgramReport {
        name,
        version,
        last,
    } in programs
    {
        let declared = format!("{name} {version}");
        labelled(
            text,
            "program",
            &format!("{}, last {last}", declared.trim_end()),
        );
    }
}

fn verdict(text: &mut String, eras: &EraReport, idle: u64) {
    let answer = match eras.verdict {
        EraVerdict::Unused => "yes, the era with a handshake can be switched off",
        EraVerdict::InUse => "no, the era with a handshake is in use",
        EraVerdict::Unknown => "unknown, keep the era with a handshake",
    };
    line(text, answer);
    for reason in &eras.reasons {
        labelled(text, "because", reason);
    }
    let watched = eras.watched_since.as_ref();
    let watched = watched.map_or("not at all".to_owned(), |since| {
        let length = span(eras.watched_seconds);
        format!("for {length} without a break, since {since}")
    });
    labelled(text, "watched", &watched);
    labelled(
        text,
        "required",
        &format!("{} without such a call", span(idle)),
    );
}
