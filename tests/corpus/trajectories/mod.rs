//! Trajectories of other people's benchmarks, imported and judged: tau-bench's published rates, and the arguments
//! that the Berkeley function-calling leaderboard accepts.

mod arguments;
mod rewards;

use flate2::read::GzDecoder;
use std::fs::File;
use std::io::Read;

/// The text of a gzip file of the corpus.
pub fn unzipped(file: &str) -> String {
    let path = crate::part(file);
    let packed = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    GzDecoder::new(packed).read_to_string(&mut text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text
}
