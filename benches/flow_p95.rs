//! The real time that our own code adds to a trial, against a saved baseline: `cargo bench --bench flow_p95`.
//!
//! A replayed trial waits for nobody, so its wall time is what flow, tools, knowledge, matching and cassette take. A
//! figure is that time as a multiple of hashing one mebibyte, measured between the trials of the same run, so that it
//! holds on faster and slower machines. `UPDATE=1` saves the figures as the new baseline; without it, a p50 or p95 of
//! more than [`TOLERANCE`] times the baseline's ends with an error.

#![allow(clippy::disallowed_methods, reason = "it makes and reads files of its own")]

mod ground;

use ground::Ground;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Distinct trials.
const TRIALS: usize = 100;
/// How often each is replayed, after a first time that does not count.
const ROUNDS: usize = 20;
/// What other work on the same machine may add.
const TOLERANCE: f64 = 1.5;

/// Multiples of the time to hash one mebibyte.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Figures {
    p50: f64,
    p95: f64,
    p99: f64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let ground = Ground::new(TRIALS);
    let mebibyte = vec![0x5a_u8; 1 << 20];
    let (mut samples, mut hashing) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        for trial in 0..TRIALS {
            let took = time(|| ground.replay(trial));
            if round > 0 {
                samples.push(took);
            }
            if trial % 10 == 0 {
                hashing.push(time(|| Sha256::digest(black_box(&mebibyte))));
            }
        }
    }
    samples.sort_unstable();
    hashing.sort_unstable();
    let unit = quantile(&hashing, 0.5);
    let figure = |p: f64| (quantile(&samples, p).as_secs_f64() / unit.as_secs_f64() * 1e3).round() / 1e3;
    let figures = Figures { p50: figure(0.50), p95: figure(0.95), p99: figure(0.99) };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/baselines/flow_p95.json");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(file.with_file_name(""))?;
        std::fs::write(&file, format!("{}\n", serde_json::to_string_pretty(&figures)?))?;
    }
    let saved =
        std::fs::read(&file).map_err(|why| format!("{}: {why}: save a baseline with UPDATE=1", file.display()))?;
    let baseline: Figures = serde_json::from_slice(&saved)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{} trials; one unit is {unit:?}, the median time to hash 1 MiB", samples.len())?;
    let rows = [
        ("p50", 0.50, figures.p50, baseline.p50),
        ("p95", 0.95, figures.p95, baseline.p95),
        ("p99", 0.99, figures.p99, baseline.p99),
    ];
    for (name, p, now, before) in rows {
        let took = quantile(&samples, p);
        writeln!(out, "{name}  {took:>10.1?}  {now:.3} units, baseline {before:.3}, ratio {:.2}", now / before)?;
    }
    let slower = rows.iter().take(2).find(|(_, _, now, before)| *now > before * TOLERANCE);
    match slower {
        Some((name, ..)) => Err(format!("{name} is more than {TOLERANCE} times its baseline").into()),
        None => Ok(()),
    }
}

#[expect(clippy::disallowed_methods, reason = "real time is what is measured")]
fn time<T>(work: impl FnOnce() -> T) -> Duration {
    let began = Instant::now();
    black_box(work());
    began.elapsed()
}

/// The smallest sample with at least that share at or below it.
fn quantile(sorted: &[Duration], p: f64) -> Duration {
    let rank = (sorted.len() as f64 * p).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}
