//! The embedded search over many passages: what a search takes at p99 on one core, and what indexing adds to memory.
//!
//! `cargo bench --bench knowledge [-- PASSAGES]`: searches 100,000 passages (or as many as are named) for words that were not
//! asked for before and for words that were, then indexes 100,000 and 1,000,000 passages, each in a process of its own, and
//! prints the most memory that each took beyond its passages. Words follow Zipf's law, so that some stand in almost every
//! passage. The budget is 10 ms at p99 and, for ten times as many passages, 64 MiB of memory more.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a bench prints, and measures the machine's time")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "measured figures"
)]

use ragcheck::internals::knowledge::{Corpus, Embedded, KnowledgeBase, Passage};
use ragcheck::internals::platform::clock::{VirtualClock, block_on};
use std::process::Command;
use std::time::{Duration, Instant};

/// Words that there are.
const WORDS: usize = 60_000;
/// Words of a passage.
const LENGTH: usize = 60;
/// Searches of one measurement.
const SEARCHES: usize = 1_000;
/// What a search may take at p99.
const BUDGET: Duration = Duration::from_millis(10);
/// KiB that ten times as many passages may add to what indexing takes.
const FLAT: u64 = 64 << 10;

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn share(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A word: the nth most frequent one stands as often as 1/n.
    fn word(&mut self) -> usize {
        ((WORDS as f64).powf(self.share()) as usize).min(WORDS - 1)
    }
}

/// A word of letters alone, different for each number.
fn spelled(mut number: usize) -> String {
    let mut word = String::from("w");
    for _ in 0..4 {
        word.push(char::from(b'a' + (number % 26) as u8));
        number /= 26;
    }
    word + "x"
}

fn passages(count: usize) -> Vec<Passage> {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let text = |dice: &mut Dice| (0..LENGTH).map(|_| spelled(dice.word())).collect::<Vec<_>>().join(" ");
    let passage =
        |n: usize| Passage { id: format!("d{}#{}", n / 20, n % 20), title: spelled(n % WORDS), text: text(&mut dice) };
    (0..count).map(passage).collect()
}

/// The most memory that this process had so far, in KiB; `None` where the system does not say.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find(|line| line.starts_with("VmHWM"))?.split_whitespace().nth(1)?.parse().ok()
}

fn index(count: usize) {
    let corpus = Corpus::of("many", passages(count));
    let folder = tempfile::tempdir().expect("a folder");
    let before = peak().unwrap_or_default();
    let began = Instant::now();
    let base = Embedded::open(corpus, Some(folder.path())).expect("opens");
    let took = began.elapsed();
    println!("{count} {} {}", peak().unwrap_or_default().saturating_sub(before), took.as_millis());
    drop(base);
}

fn percentile(sorted: &[Duration], share: f64) -> Duration {
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}

fn search(count: usize) -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    let base = Embedded::open(Corpus::of("many", passages(count)), Some(folder.path())).expect("opens");
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let mut dice = Dice(42);
    // What people ask for: seven words, most of them rarer than those that stand everywhere.
    let queries: Vec<String> =
        (0..SEARCHES).map(|_| (0..7).map(|_| spelled(dice.word().max(30))).collect::<Vec<_>>().join(" ")).collect();
    let mut within = true;
    for asked in ["words not asked for before", "words asked for before"] {
        let mut times: Vec<Duration> = queries
            .iter()
            .map(|query| {
                let began = Instant::now();
                let found = block_on(&clock, base.search(query, 5)).expect("no deadlock").result.expect("searches");
                assert!(!found.is_empty());
                began.elapsed()
            })
            .collect();
        times.sort();
        let of = |share| percentile(&times, share).as_secs_f64() * 1e3;
        println!("{count} passages, {asked}: p50 {:.2} ms, p95 {:.2} ms, p99 {:.2} ms", of(0.5), of(0.95), of(0.99));
        within &= percentile(&times, 0.99) <= BUDGET;
    }
    within
}

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    if std::env::args().any(|argument| argument == "--index") {
        return index(numbers[0]);
    }
    let within = search(numbers.first().copied().unwrap_or(100_000));
    let indexed = |count: usize| -> u64 {
        let program = std::env::current_exe().expect("this program");
        let output = Command::new(program).args(["--index", &count.to_string()]).output().expect("runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let told: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let seconds = told[2] as f64 / 1e3;
        println!("{count} passages indexed in {seconds:.1} s, {} MiB at most beyond the passages", told[1] >> 10);
        told[1]
    };
    let (few, many) = (indexed(100_000), indexed(1_000_000));
    assert!(within, "a search takes longer than {BUDGET:?} at p99");
    assert!(many <= few + FLAT, "indexing takes more memory the more passages there are");
}
