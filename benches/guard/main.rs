//! How often the guard trips for nothing, and how soon it does for something: `cargo bench --bench guard`.
//!
//! A thousand seeded runs of each case, a hundred of the long ones, or as many as the argument behind `--` says; those
//! whose name holds the word behind `--only`. No figure is a time of this machine: they are the same everywhere.

#![expect(clippy::print_stdout, reason = "it prints a table")]
#![expect(clippy::expect_used, reason = "fixed values")]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "draws of chance, and shares of small counts"
)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

mod simulation;

use simulation::{Course, Scenario, Wanted};

fn courses(scenario: &Scenario, runs: u64) -> Vec<Course> {
    let next = AtomicU64::new(0);
    let some = || {
        let seeds = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
        let seeds = seeds.take_while(|seed| *seed < runs);
        seeds
            .map(|seed| simulation::run(scenario, seed))
            .collect::<Vec<_>>()
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(some)).collect();
        let each = threads
            .into_iter()
            .map(|thread| thread.join().expect("no run panics"));
        each.flatten().collect()
    })
}

fn quantile(sorted: &[u64], share: f64) -> String {
    let place = ((sorted.len() as f64 * share).ceil() as usize).saturating_sub(1);
    sorted
        .get(place)
        .map_or_else(|| "-".to_owned(), |n| n.to_string())
}

fn share(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / (whole.max(1)) as f64
}

fn main() {
    let runs = std::env::args().filter_map(|word| word.parse().ok()).next();
    let only = std::env::args().skip_while(|word| word != "--only").nth(1);
    let runs: u64 = runs.unwrap_or(1_000);
    let picked = |scenario: &Scenario| {
        only.as_ref()
            .is_none_or(|o| scenario.name.contains(o.as_str()))
    };
    println!("| nothing wrong with the new way | hours | runs | trips | content, % of the time |");
    println!("|---|---|---|---|---|");
    for scenario in simulation::quiet().into_iter().filter(picked) {
        let runs = runs.div_ceil(scenario.rarely);
        let courses = courses(&scenario, runs);
        let trips = courses
            .iter()
            .filter(|course| course.trip.is_some())
            .count();
        let content: u64 = courses.iter().map(|course| course.content).sum();
        let all: u64 = courses.iter().map(|c| c.content + c.inconclusive).sum();
        let hours = scenario.until / simulation::HOUR;
        println!(
            "| {} | {hours} | {runs} | {trips} | {:.1} |",
            scenario.name,
            share(content, all)
        );
    }
    println!();
    println!(
        "| fault | runs | trips | too soon | median, s | 95 %, s | longest, s | calls hurt, median |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for scenario in simulation::faulty().into_iter().filter(picked) {
        let runs = runs.div_ceil(scenario.rarely);
        let courses = courses(&scenario, runs);
        let mut delays: Vec<u64> = courses.iter().filter_map(|c| c.delay(&scenario)).collect();
        let mut hurt: Vec<u64> = courses.iter().map(|course| course.hurt).collect();
        delays.sort_unstable();
        hurt.sort_unstable();
        let trips = courses
            .iter()
            .filter(|course| course.trip.is_some())
            .count();
        println!(
            "| {} | {runs} | {trips} | {} | {} | {} | {} | {} |",
            scenario.name,
            trips - delays.len(),
            quantile(&delays, 0.5),
            quantile(&delays, 0.95),
            quantile(&delays, 1.0),
            quantile(&hurt, 0.5),
        );
        debug_assert!(scenario.wanted == Wanted::Trip);
    }
}
