//! The laws of the inspector, over generated requests and over any bytes.

use proptest::collection::vec;
use proptest::sample::select;

use super::*;

/// A header that frames nothing.
fn field() -> impl Strategy<Value = String> {
    let name = "[A-Za-z!#$%&'*+.^_`|~-][A-Za-z0-9-]{0,12}";
    (
        name,
        "[ \t]{0,2}",
        "([!-~]([ -~\t]{0,20}[!-~])?)?",
        "[ \t]{0,2}",
    )
        .prop_filter("framing and upgrade are generated apart", |(name, ..)| {
            ![
                "host",
                "te",
                "upgrade",
                "content-length",
                "transfer-encoding",
            ]
            .contains(&name.to_ascii_lowercase().as_str())
        })
        .prop_map(|(name, before, value, after)| format!("{name}:{before}{value}{after}\r\n"))
}

fn request_line() -> impl Strategy<Value = String> {
    let target = prop_oneof![
        4 => "/[a-zA-Z0-9/._~!$&'()*+,;=:@%-]{0,20}(\\?[a-zA-Z0-9/?._~!$&'()*+,;=:@%-]{0,20})?",
        1 => "http://h\\.example(:80)?(/[a-z]{0,5})?(\\?[a-z]{0,5})?",
    ];
    ("(\r\n){0,2}", "[A-Z!#a-z0-9-]{1,9}", target)
        .prop_filter("CONNECT is refused", |(_, method, _)| method != "CONNECT")
        .prop_map(|(empty, method, target)| format!("{empty}{method} {target} HTTP/1.1\r\n"))
}

fn chunked() -> impl Strategy<Value = Vec<u8>> {
    let extension = prop_oneof![
        4 => "",
        1 => "[ \t]?;[ \t]?[a-z]{1,4}([ \t]?=[ \t]?([a-z0-9]{1,4}|\"[a-z ;=,]{0,4}(\\\\[\"a])?\"))?",
    ];
    let chunk = (vec(any::<u8>(), 1..40), extension.clone());
    let trailers = vec("x-[a-z]{1,5}: [a-z]{0,5}\r\n", 0..3);
    (vec(chunk, 0..5), extension, trailers).prop_map(|(chunks, last, trailers)| {
        let mut body = Vec::new();
        for (data, extension) in chunks {
            body.extend(format!("{:X}{extension}\r\n", data.len()).into_bytes());
            body.extend(data);
            body.extend(b"\r\n");
        }
        body.extend(format!("000{last}\r\n{}\r\n", trailers.concat()).into_bytes());
        body
    })
}

/// A framing field, and the body that it announces.
fn body() -> impl Strategy<Value = (String, Vec<u8>)> {
    prop_oneof![
        Just((String::new(), Vec::new())),
        vec(any::<u8>(), 0..60)
            .prop_map(|data| (format!("Content-Length: {}\r\n", data.len()), data)),
        chunked().prop_map(|data| ("transfer-encoding: chunked\r\n".to_owned(), data)),
    ]
}

/// A request that the grammar and the limits allow.
fn request() -> impl Strategy<Value = Vec<u8>> {
    let host = "(Host|HOST|host): ?H\\.example\r\n";
    (
        request_line(),
        vec(field(), 0..4),
        host,
        vec(field(), 0..4),
        body(),
    )
        .prop_map(|(line, before, host, after, (framing, body))| {
            let head = [line, before.concat(), host, framing, after.concat()].concat();
            [head.as_bytes(), b"\r\n", &body].concat()
        })
}

/// Pieces of requests, right and wrong, that any byte soup would find too rarely.
fn soup() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => select(vec![
            "GET / HTTP/1.1\r\n", "POST /a HTTP/1.1\r\nHost: a\r\n", "Host: a\r\n", "Host: b\r\n", "\r\n",
            "Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\n", "\r\n3\r\nabc\r\n", "0\r\n\r\n", "\n",
            "\r", "TE: trailers\r\n", "Upgrade: x\r\n", "5;a=b\r\n", "x: y\r\n", " ", "GET /x#y HTTP/1.1\r\n",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..6),
        1 => request(),
    ];
    vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// Pipelined requests, most of them spoiled in one byte.
fn spoiled() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![select(b"\r\n \t:;,#\0=0".to_vec()), any::<u8>()];
    (vec(request(), 1..3), any::<prop::sample::Index>(), byte).prop_map(|(requests, at, byte)| {
        let mut input = requests.concat();
        let at = at.index(input.len());
        input[at] = byte;
        input
    })
}

proptest! {
    #[test]
    fn a_valid_pipeline_is_never_refused(requests in vec(request(), 1..4)) {
        let input = requests.concat();
        let trace = whole(&input);
        prop_assert_eq!(trace.refused, None);
        prop_assert_eq!(trace.passed, input.len());
        prop_assert_eq!(trace.message, requests.len() as u64);
    }

    #[test]
    fn the_cut_of_a_spoiled_request_changes_nothing(input in spoiled()) {
        check_any_cut(&input);
    }

    #[test]
    fn the_cut_of_a_soup_changes_nothing(
        input in soup(),
        pieces in vec(1_usize..30, 1..20),
    ) {
        check_any_cut(&input);
        let limits = HeadLimits { head: 200, target: 10 };
        let uncut = follow(limits, &input, &[usize::MAX]);
        prop_assert_eq!(follow(limits, &input, &pieces), uncut);
    }

    #[test]
    fn any_bytes_get_one_verdict(input in vec(any::<u8>(), 0..200)) {
        check_any_cut(&input);
    }

    #[test]
    fn what_is_passed_after_a_shorter_input_is_a_prefix_of_what_is_passed_after_a_longer_one(
        input in soup(),
        at in any::<prop::sample::Index>(),
    ) {
        let shorter = whole(&input[..at.index(input.len() + 1)]);
        let longer = whole(&input);
        prop_assert!(shorter.passed <= longer.passed);
        if shorter.refused.is_some() {
            prop_assert_eq!(shorter, longer);
        }
    }

    #[test]
    fn a_target_that_passes_is_a_uri_and_keeps_its_text(
        target in vec(prop_oneof![select(b"/?#%[]@:*http1".to_vec()), any::<u8>()], 1..12),
        start in select(vec!["", "/", "/?", "http://h", "http://h/", "http://[", "http://[1:2:3:4:5:6:7::]:1"]),
    ) {
        let target = [start.as_bytes(), &target].concat();
        let line = [b"OPTIONS ", &target[..], b" HTTP/1.1\r\n"].concat();
        if whole(&line).refused.is_none() {
            let text = &*encode_raw(std::str::from_utf8(&target).unwrap());
            let uri = http::Uri::try_from(text).unwrap();
            let tail = uri.path_and_query().unwrap().as_str();
            prop_assert!(text.ends_with(tail) || (tail == "/" && !text.starts_with(tail)), "{} {}", text, tail);
            prop_assert!(!text.starts_with('/') || text == tail);
            prop_assert_eq!(uri.authority().is_some(), text.starts_with("http://"));
        }
    }
}

#[test]
fn every_ascii_byte_that_a_uri_accepts_passes() {
    for byte in 0..=0x7F {
        for start in ["/a", "/a?"] {
            let target = [start.as_bytes(), &[byte]].concat();
            let line = [b"GET ", &target[..], b" HTTP/1.1\r\n"].concat();
            let passes = whole(&line).refused.is_none();
            let taken = http::Uri::try_from(encode_raw(std::str::from_utf8(&target).unwrap()));
            let taken = taken.is_ok() && byte != b'#';
            assert_eq!(passes, taken, "{:?}", char::from(byte));
        }
    }
}

#[test]
fn every_header_name_that_passes_is_one() {
    for byte in 0..=255 {
        let name = [b'a', byte, b'a'];
        let line = [b"GET / HTTP/1.1\r\n", &name[..], b": x\r\n"].concat();
        // `a:a: x` is the name `a`, and `a\na` is two lines.
        let passes = whole(&line).refused.is_none() && byte != b':';
        assert_eq!(
            passes,
            http::HeaderName::from_bytes(&name).is_ok(),
            "{byte}"
        );
    }
}

#[test]
fn every_header_value_that_passes_is_one_wherever_the_byte_stands() {
    for byte in (0..=255).filter(|byte| *byte != b'\n') {
        for at in 0..20 {
            let mut value = [b'\x80'; 20];
            value[at] = byte;
            let line = [b"GET / HTTP/1.1\r\nA: ", &value[..], b"\r\n"].concat();
            let passes = whole(&line).refused.is_none();
            let taken = http::HeaderValue::from_bytes(&value).is_ok();
            assert_eq!(passes, taken, "{byte} at {at}");
        }
    }
}
