//! Runs the body of each fuzz target over its corpus, on the stable compiler.

#![expect(
    clippy::unwrap_used,
    reason = "a corpus that cannot be read fails the test"
)]

use std::fs;
use std::path::Path;

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let files = fs::read_dir(root.join(target)).unwrap();
    let found: Vec<_> = files
        .map(|file| fs::read(file.unwrap().path()).unwrap())
        .collect();
    assert!(!found.is_empty(), "the corpus of {target} is empty");
    found
}

#[test]
fn wire() {
    for input in corpus("wire") {
        dualgauge_transport::wire::check_any_cut(&input);
        for end in 0..input.len() {
            dualgauge_transport::wire::check_any_cut(&input[..end]);
        }
    }
}

#[test]
fn sse() {
    for input in corpus("sse") {
        dualgauge_model::sse::check_any_cut(&input);
        for end in 0..input.len() {
            dualgauge_model::sse::check_any_cut(&input[..end]);
        }
    }
}

#[test]
fn response_stream() {
    for input in corpus("response_stream") {
        for end in 0..=input.len() {
            dualgauge_model::response_stream::check_any_stream(&input[..end]);
        }
    }
}

#[test]
fn single_event() {
    for input in corpus("single_event") {
        for end in 0..=input.len() {
            dualgauge_model::response_stream::check_any_complete(&input[..end]);
        }
    }
}

#[test]
fn tool_list() {
    for input in corpus("tool_list") {
        dualgauge_model::import::check_any_list(&input);
        for end in 0..input.len() {
            dualgauge_model::import::check_any_list(&input[..end]);
        }
    }
}

#[test]
fn import() {
    for input in corpus("import") {
        dualgauge_model::import::check_any_document(&input);
        for end in 0..input.len() {
            dualgauge_model::import::check_any_document(&input[..end]);
        }
    }
}

#[test]
fn mismatch_report() {
    let is_toml = |text: &str| toml::from_str::<toml::Table>(text).is_ok();
    for input in corpus("mismatch_report") {
        dualgauge_model::proposal::check_any_report(&input, is_toml);
        for end in 0..input.len() {
            dualgauge_model::proposal::check_any_report(&input[..end], is_toml);
        }
    }
}

#[test]
fn form() {
    for input in corpus("form") {
        dualgauge_model::form::check_any_bytes(&input);
        for end in 0..input.len() {
            dualgauge_model::form::check_any_bytes(&input[..end]);
        }
    }
}

#[test]
fn agent_card() {
    for input in corpus("agent_card") {
        dualgauge_model::agent_card::check_any_card(&input);
        for end in 0..input.len() {
            dualgauge_model::agent_card::check_any_card(&input[..end]);
        }
    }
}

#[test]
fn metadata() {
    for input in corpus("metadata") {
        dualgauge_model::mcp::check_any_metadata(&input);
        for end in 0..input.len() {
            dualgauge_model::mcp::check_any_metadata(&input[..end]);
        }
    }
}

#[test]
fn endpoint() {
    for input in corpus("endpoint") {
        dualgauge_model::mcp::check_any_endpoint(&input);
        for end in 0..input.len() {
            dualgauge_model::mcp::check_any_endpoint(&input[..end]);
        }
    }
}

#[test]
fn subscription() {
    for input in corpus("subscription") {
        for end in 0..=input.len() {
            dualgauge_model::subscription::check_any_notification(&input[..end]);
        }
    }
}

#[test]
fn message_parameter() {
    for input in corpus("message_parameter") {
        for end in 0..=input.len() {
            dualgauge_model::route::check_any_query(&input[..end]);
        }
    }
}

#[test]
fn socket_message() {
    for input in corpus("socket_message") {
        for end in 0..=input.len() {
            dualgauge_model::frame::check_any_message(&input[..end]);
        }
    }
}

#[test]
fn content_length() {
    for input in corpus("content_length") {
        for end in 0..=input.len() {
            dualgauge_model::content_length::check_any_cut(&input[..end]);
        }
    }
}

#[test]
fn notation() {
    for input in corpus("notation") {
        for end in 0..=input.len() {
            dualgauge_patterns::pattern::check_any_notation(&input[..end]);
        }
    }
}

#[test]
fn recording() {
    for input in corpus("recording") {
        dualgauge_recording::recording::check_any_cut(&input);
        for end in (0..input.len()).step_by(7) {
            dualgauge_recording::recording::check_any_cut(&input[..end]);
        }
    }
}

#[test]
fn har() {
    for input in corpus("har") {
        dualgauge_recording::har::check_any_file(&input);
        for end in (0..input.len()).step_by(7) {
            dualgauge_recording::har::check_any_file(&input[..end]);
        }
    }
}

#[test]
fn access_log() {
    for input in corpus("access_log") {
        for end in 0..=input.len() {
            dualgauge_recording::access_log::check_any_line(&input[..end]);
        }
    }
}

#[test]
fn ofrep() {
    for input in corpus("ofrep") {
        for end in 0..=input.len() {
            dualgauge_model::ofrep::check_any_request(&input[..end]);
        }
    }
}

#[test]
fn ofrep_source() {
    for input in corpus("ofrep_source") {
        for end in 0..=input.len() {
            dualgauge_model::ofrep::check_any_response(&input[..end]);
        }
    }
}
