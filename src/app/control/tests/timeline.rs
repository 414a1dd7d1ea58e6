//! The timeline over a shared store that is reached only later, and the overview when the clock is set back.

use super::{Folder, at};
use crate::app::control::ReportCounts;
use crate::app::control::overview::OverviewCache;
use crate::server::admin::Readiness;
use crate::store::{Reports, Versioned};
use dualgauge_model::compare::Mismatches;
use dualgauge_model::lifecycle::{ClientUsage, Usage};
use dualgauge_model::rollout::Way;
use dualgauge_model::time::Timestamp;
use dualgauge_patterns::side::Side;

/// Returns the usage of one route by one client, with calls that the old side served.
fn called(count: u64) -> Usage {
    let (mut usage, mut seen) = (Usage::default(), ClientUsage::default());
    for _ in 0..count {
        seen.add(Some(Way::Old), Timestamp::from_unix(1));
    }
    usage.note("tools.call", "ios-app", Side::Rest, &seen);
    usage
}

fn counts(count: u64) -> ReportCounts {
    ReportCounts {
        usage: called(count),
        ..ReportCounts::default()
    }
}

#[tokio::test]
async fn calls_of_others_before_the_first_report_are_no_new_calls() {
    let folder = Folder::new();
    // Nobody listens there.
    let store = "[rollout.store]\nurl = 'redis://127.0.0.1:1/0'\n[[client]]";
    folder.write("main.toml", &super::MAIN.replace("[[client]]", store));
    let mut control = folder.open().await;
    control.report(counts(1), at(0)).await;

    let usage: serde_json::Value = serde_json::from_str(&called(1000).to_json()).unwrap();
    let archive = Versioned {
        revision: 1,
        text: serde_json::json!({ "usage": usage }).to_string(),
    };
    let reports = Reports {
        archive,
        reports: Vec::new(),
    };
    control.take_reports(reports, 5_000).await;
    control.report(counts(3), at(10)).await;
    control.report(counts(7), at(20)).await;
    let intervals = control.timeline.intervals().iter();
    assert_eq!(intervals.map(|one| one.old).collect::<Vec<_>>(), [4]);
    assert_eq!(control.totals(Usage::add_by_client)["ios-app"].old, 1007);
}

#[tokio::test]
async fn an_overview_is_shared_for_a_moment_but_not_after_the_clock_steps_back() {
    let control = Folder::new().open().await;
    let view = control.overview(Readiness::default(), &Mismatches::default());
    let mut cache = OverviewCache::default();
    let page = cache.keep(&control, &view, at(100));
    assert_eq!(cache.fresh(&control, at(100)), Some(page));
    assert_eq!(cache.fresh(&control, at(101)), None);
    assert_eq!(cache.fresh(&control, at(60)), None);
}
