//! Invented prose: the same words for the same name, however often and in whatever order it is asked for.

use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use sha2::{Digest, Sha256};

const SYLLABLES: [&str; 20] = [
    "ba", "ro", "lin", "te", "mo", "sar", "ve", "nu", "dor", "ki", "pel", "ga", "shi", "or", "cu", "fen", "zo", "wy",
    "hal", "jus",
];
/// Different words that texts are made of.
const VOCABULARY: f64 = 3_000.0;

/// A source of words.
pub struct Words(ChaCha8Rng);

impl Words {
    /// The words that belong to `name`.
    pub fn of(name: &str) -> Self {
        Self(ChaCha8Rng::from_seed(Sha256::digest(name.as_bytes()).into()))
    }

    /// One word; a few are common and most are rare, as in any language.
    pub fn word(&mut self) -> String {
        let rank = (self.0.random::<f64>().powi(2) * VOCABULARY) as usize;
        let syllable = |place: usize| SYLLABLES[place % SYLLABLES.len()];
        [syllable(rank), syllable(rank / 20), syllable(rank / 400), syllable(rank / 7)].concat()
    }

    /// `count` words in a row.
    pub fn words(&mut self, count: usize) -> String {
        (0..count).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }

    /// Sentences of at least `bytes` bytes in all.
    pub fn text(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 80);
        while text.len() < bytes {
            if !text.is_empty() {
                text.push(' ');
            }
            let length = self.0.random_range(6..14);
            let sentence = self.words(length);
            text.push_str(&sentence[..1].to_uppercase());
            text.push_str(&sentence[1..]);
            text.push('.');
        }
        text
    }

    /// A number of the range.
    pub fn number(&mut self, range: std::ops::Range<u64>) -> u64 {
        self.0.random_range(range)
    }
}
