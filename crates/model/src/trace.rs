//! W3C Trace Context (Recommendation, level 1): the trace and span of a call.
//!
//! Laws: parsing reverses writing; a client's values pass unchanged unless this proxy has a span of its own; an unknown
//! later version is read as this one (§3.2.4); an invalid header starts a new trace without the old `tracestate`
//! (§3.3).
//!
//! Used by `app`, `config`, `model`, `gateway` and `telemetry`.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::headers::first_value;
use crate::rollout::Percent;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The flag of a recorded trace (§3.2.2.5.1).
const SAMPLED: u8 = 1;

/// A position in a trace: the content of `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace id; never zero.
    pub trace: u128,
    /// The span id; never zero.
    pub span: u64,
    /// `trace-flags`.
    pub flags: u8,
}

impl TraceContext {
    /// Parses a `traceparent`.
    ///
    /// ```
    /// use dualgauge_model::trace::TraceContext;
    /// let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    /// let context = TraceContext::parse(text).unwrap();
    /// assert_eq!(context.to_string(), text);
    /// assert!(context.is_sampled());
    /// assert!(TraceContext::parse(&text.to_uppercase()).is_none());
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<TraceContext> {
        let (version, rest) = (text.get(..2)?, text.get(2..)?);
        let version = u8::try_from(hex(version)?).ok()?;
        let (body, more) = (rest.get(..53)?, rest.get(53..)?);
        let is_known = match version {
            0 => more.is_empty(),
            // Version 255 is invalid (§3.2.2.1).
            255 => false,
            // Later versions may append fields after a dash (§3.2.4).
            1..=254 => more.is_empty() || more.starts_with('-'),
        };
        let mut parts = body.strip_prefix('-')?.split('-');
        let (trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?);
        let shaped = (trace.len(), span.len(), flags.len()) == (32, 16, 2);
        if !is_known || !shaped || parts.next().is_some() {
            return None;
        }
        let context = TraceContext {
            trace: hex(trace)?,
            span: u64::try_from(hex(span)?).ok()?,
            flags: u8::try_from(hex(flags)?).ok()?,
        };
        (context.trace != 0 && context.span != 0).then_some(context)
    }

    /// Returns the context of a request; `None` if the header is missing, repeated or invalid.
    #[must_use]
    pub fn from_headers(headers: &HeaderMap) -> Option<TraceContext> {
        let value = first_value(headers, &TRACEPARENT)?;
        match headers.get_all(TRACEPARENT).iter().count() {
            1 => TraceContext::parse(value.to_str().ok()?),
            _ => None,
        }
    }

    /// Writes the context to request headers, replacing the former one. A trace that begins here drops the
    /// `tracestate`.
    pub fn write_headers(self, headers: &mut HeaderMap, from: TraceOrigin) {
        if let Ok(value) = HeaderValue::try_from(self.to_string()) {
            headers.insert(TRACEPARENT, value);
        }
        if from == TraceOrigin::Here {
            headers.remove(TRACESTATE);
        }
    }

    /// Returns another span of the same trace.
    #[must_use]
    pub fn with_span(self, span: u64) -> TraceContext {
        TraceContext { span, ..self }
    }

    /// Returns whether the caller records the trace.
    #[must_use]
    pub fn is_sampled(self) -> bool {
        self.flags & SAMPLED != 0
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "00-{:032x}-{:016x}-{:02x}",
            self.trace, self.span, self.flags
        )
    }
}

/// The origin of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceOrigin {
    /// The caller, or an earlier hop.
    Caller,
    /// This call.
    Here,
}

/// The tracing configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracePlan {
    /// The share of traces begun here that are recorded.
    pub sample: Percent,
    /// The collector of spans; without it, upstreams see the spans of the callers.
    pub export: Option<ExportPlan>,
}

/// A collector that takes OTLP over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportPlan {
    /// `http://host:port/v1/traces`
    pub endpoint: String,
    /// The name of this proxy there: `service.name`.
    pub service: String,
}

/// The trace of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    /// The context that upstreams get.
    pub context: TraceContext,
    /// The span of the caller, if any.
    pub parent: Option<u64>,
    /// The origin of the trace.
    pub from: TraceOrigin,
}

impl Trace {
    /// Returns the trace of a call with these headers, if it has one.
    #[must_use]
    pub fn new(
        plan: Option<&TracePlan>,
        headers: &HeaderMap,
        ids: &mut IdGenerator,
    ) -> Option<Trace> {
        match (TraceContext::from_headers(headers), plan) {
            (Some(received), Some(plan)) if plan.export.is_some() => Some(Trace {
                context: received.with_span(ids.span()),
                parent: Some(received.span),
                from: TraceOrigin::Caller,
            }),
            (Some(received), _) => Some(Trace {
                context: received,
                parent: None,
                from: TraceOrigin::Caller,
            }),
            (None, Some(plan)) => Some(Trace {
                context: ids.begin(plan.sample),
                parent: None,
                from: TraceOrigin::Here,
            }),
            (None, None) => None,
        }
    }

    /// Writes the context to request headers, unless the caller's own headers already contain it.
    pub fn propagate(&self, headers: &mut HeaderMap) {
        if self.parent.is_some() || self.from == TraceOrigin::Here {
            self.context.write_headers(headers, self.from);
        }
    }
}

/// A generator of ids that look random but are not for secrets (SplitMix64).
#[derive(Debug, Clone)]
pub struct IdGenerator {
    state: u64,
}

impl IdGenerator {
    /// Returns a generator with a seed.
    #[must_use]
    pub const fn new(seed: u64) -> IdGenerator {
        IdGenerator { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a span id.
    pub fn span(&mut self) -> u64 {
        self.next().max(1)
    }

    /// Returns the first span of a trace.
    fn begin(&mut self, sample: Percent) -> TraceContext {
        let trace = u128::from(self.span()) << 64 | u128::from(self.next());
        let is_sampled =
            self.next() % u64::from(Percent::ALL.thousandths()) < u64::from(sample.thousandths());
        TraceContext {
            trace,
            span: self.span(),
            flags: if is_sampled { SAMPLED } else { 0 },
        }
    }
}

/// Parses a number of lower-case hexadecimal digits.
fn hex(text: &str) -> Option<u128> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
    let digits = text.bytes().all(is_digit);
    digits
        .then(|| u128::from_str_radix(text, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RECEIVED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    const KEPT: TracePlan = TracePlan {
        sample: Percent::ALL,
        export: None,
    };

    fn exported() -> TracePlan {
        TracePlan {
            sample: Percent::ALL,
            export: Some(ExportPlan {
                endpoint: "http://127.0.0.1:4318/v1/traces".into(),
                service: "dualgauge".into(),
            }),
        }
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter();
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn what_is_no_context_is_refused() {
        let wrong = [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",
        ];
        for text in wrong {
            assert_eq!(TraceContext::parse(text), None, "{text}");
        }
        let later = format!("cc{}-more", &RECEIVED[2..]);
        assert_eq!(TraceContext::parse(&later), TraceContext::parse(RECEIVED));
    }

    #[test]
    fn a_repeated_header_gives_no_context() {
        assert!(TraceContext::from_headers(&headers(&[("traceparent", RECEIVED)])).is_some());
        let twice = headers(&[("traceparent", RECEIVED), ("traceparent", RECEIVED)]);
        assert_eq!(TraceContext::from_headers(&twice), None);
    }

    #[test]
    fn the_headers_of_the_caller_pass_unless_the_proxy_has_a_span() {
        let received = headers(&[("traceparent", RECEIVED), ("tracestate", "a=b")]);
        for plan in [None, Some(KEPT)] {
            let mut out = received.clone();
            let trace = Trace::new(plan.as_ref(), &received, &mut IdGenerator::new(1)).unwrap();
            trace.propagate(&mut out);
            assert_eq!(out, received);
        }
        let mut out = received.clone();
        let trace = Trace::new(Some(&exported()), &received, &mut IdGenerator::new(1)).unwrap();
        trace.propagate(&mut out);
        assert_eq!(trace.parent, Some(0x00f0_67aa_0ba9_02b7));
        let sent = TraceContext::from_headers(&out).unwrap();
        assert_eq!(sent, trace.context);
        assert_eq!(
            (sent.trace, sent.flags),
            (0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, 1)
        );
        assert_ne!(Some(sent.span), trace.parent);
        assert_eq!(out["tracestate"], "a=b");
    }

    #[test]
    fn a_trace_begins_where_there_is_none_or_no_readable_one() {
        for received in [
            headers(&[]),
            headers(&[("traceparent", "x"), ("tracestate", "a=b")]),
        ] {
            assert_eq!(Trace::new(None, &received, &mut IdGenerator::new(1)), None);
            let mut out = received.clone();
            let trace = Trace::new(Some(&KEPT), &received, &mut IdGenerator::new(1)).unwrap();
            trace.propagate(&mut out);
            assert_eq!(TraceContext::from_headers(&out), Some(trace.context));
            assert!(trace.context.is_sampled());
            assert!(!out.contains_key("tracestate"));
        }
    }

    #[test]
    fn so_many_of_the_traces_that_begin_here_are_recorded() {
        let mut ids = IdGenerator::new(7);
        let tenth = Percent::from_thousandths(10_000).unwrap();
        let sampled = (0..10_000)
            .filter(|_| ids.begin(tenth).is_sampled())
            .count();
        assert!((900..1100).contains(&sampled), "{sampled}");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(trace in 1..u128::MAX, span in 1..u64::MAX, flags: u8) {
            let context = TraceContext { trace, span, flags };
            prop_assert_eq!(TraceContext::parse(&context.to_string()), Some(context));
        }

        #[test]
        fn no_text_brings_it_down(text in "[0-9a-f-]{0,60}|.{0,60}") {
            let read = TraceContext::parse(&text);
            prop_assert!(read.is_none_or(|read| text[2..].starts_with(&read.to_string()[2..])));
        }
    }
}
