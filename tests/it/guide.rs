//! Pages whose commands are run as they stand there, before a real proxy, and print what stands below them.
//!
//! Numbers (times, tags, counts, ports) are others each time, and blanks are of no account.

mod api;
mod commands;
#[cfg(feature = "demo")]
mod first_call;
mod migrate;
mod one_command;
mod readme;
mod tutorial;

use std::fs;
use std::path::Path;

/// A page of the documentation.
fn page(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    fs::read_to_string(docs.join(name)).unwrap()
}

/// A block of a page: what stands behind its fence, and what is in it.
struct Block<'p> {
    kind: &'p str,
    text: &'p str,
}

/// The blocks of a page, in order.
fn blocks(page: &str) -> Vec<Block<'_>> {
    let fenced = page.split("\n```").skip(1).step_by(2);
    let blocks = fenced.filter_map(|block| {
        let (kind, text) = block.split_once('\n')?;
        Some(Block { kind, text })
    });
    blocks.collect()
}

/// A command of a console, and what it prints.
#[derive(Debug)]
struct Shown<'p> {
    command: String,
    output: Vec<&'p str>,
}

/// The commands of a block; a line that ends in a backslash goes on in the next one.
fn shown(text: &str) -> Vec<Shown<'_>> {
    let mut all: Vec<Shown<'_>> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        let begins = line.strip_prefix("$ ");
        if let Some(more) = begins.or(goes_on.then_some(line)) {
            let (more, again) = match more.strip_suffix('\\') {
                Some(more) => (more, true),
                None => (more, false),
            };
            match all.last_mut().filter(|_| goes_on) {
                Some(last) => last.command.push_str(more),
                None => all.push(Shown {
                    command: more.to_owned(),
                    output: Vec::new(),
                }),
            }
            goes_on = again;
        } else if let Some(last) = all.last_mut() {
            last.output.push(line);
        }
    }
    all
}

/// The words of a command, as a shell tells them apart.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in command.chars() {
        match (c, quote) {
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, Some(open)) if c == open => quote = None,
            (' ', None) => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// A line with what is another one each time as `#`: numbers, also those of a hash, and how long ago something was.
fn plain(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in line.split_whitespace().map(numberless) {
        let is_time = ["second", "seconds", "minute", "minutes"].contains(&&*word);
        // `1 minute 5 seconds` is as long as `59 seconds`.
        match (is_time, &words[..]) {
            (true, [.., ago, number]) if ago == "time" && number == "#" => drop(words.pop()),
            (true, _) => words.push("time".to_owned()),
            (false, _) => words.push(word),
        }
    }
    // Files may have been looked at before they were asked for.
    words.join(" ").replace("unchanged:", "swapped:")
}

fn numberless(word: &str) -> String {
    let mut plain = String::new();
    let mut run = String::new();
    for c in word.chars().chain([' ']) {
        if matches!(c, '0'..='9' | 'a'..='f') {
            run.push(c);
            continue;
        }
        let is_number = run.contains(|c: char| c.is_ascii_digit());
        plain.push_str(if is_number { "#" } else { &run });
        run.clear();
        plain.push(c);
    }
    plain.trim_end().to_owned()
}

fn plain_lines<'l>(lines: impl IntoIterator<Item = &'l str>) -> Vec<String> {
    let lines = lines.into_iter().map(plain);
    lines.filter(|line| !line.is_empty()).collect()
}

/// What curl was asked for.
#[derive(Debug, Default)]
struct Curl {
    method: Option<String>,
    url: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Curl {
    fn read(words: &[String]) -> Curl {
        let mut curl = Curl::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut next = || words.next().unwrap().clone();
            match word.as_str() {
                "-X" => curl.method = Some(next()),
                "-d" => curl.body = next(),
                "-H" => {
                    let header = next();
                    let (name, value) = header.split_once(": ").unwrap();
                    curl.headers.push((name.to_owned(), value.to_owned()));
                }
                "-s" | "-si" => {}
                url => {
                    assert_eq!(curl.url, "", "{word}");
                    curl.url = url.to_owned();
                }
            }
        }
        curl
    }

    fn method(&self) -> &str {
        let usual = if self.body.is_empty() { "GET" } else { "POST" };
        self.method.as_deref().unwrap_or(usual)
    }

    /// Port and target of the address.
    fn target(&self) -> (&str, &str) {
        let behind = self.url.strip_prefix("http://127.0.0.1:").unwrap();
        let slash = behind.find('/').unwrap();
        behind.split_at(slash)
    }
}
