//! The simulated embeddings model: a vector counts the words of a text, each at the index of its hash.
//!
//! Words with the same beginning share an index, so that forms of a word do too. The similarity of two texts is that of
//! their bags of words.

use super::behaviour::EmbeddingsBehaviour;
use super::dice::Dice;
use super::sentences::content_words;
use std::time::Duration;

/// Number of letters of a word that count.
const LETTERS: usize = 5;

/// The vectors of texts, and the response time.
pub(super) fn embed(
    behaviour: &EmbeddingsBehaviour,
    seed: u64,
    caller: &str,
    texts: &[String],
) -> (Vec<Vec<f32>>, Duration) {
    let first = texts.first().map_or("", String::as_str);
    let latency = behaviour.latency.draw(&Dice::new(seed, &["embeddings", caller, first]));
    (texts.iter().map(|text| vector(text, behaviour.dimensions)).collect(), latency)
}

fn vector(text: &str, dimensions: usize) -> Vec<f32> {
    let mut numbers = vec![0.0_f32; dimensions];
    for word in content_words(text) {
        let root: String = word.to_lowercase().chars().take(LETTERS).collect();
        // FNV-1a, 64 bits.
        let hash = root
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let place = usize::try_from(hash % dimensions as u64).unwrap_or_default();
        if let Some(number) = numbers.get_mut(place) {
            *number += 1.0;
        }
    }
    if numbers.iter().all(|number| *number == 0.0) {
        // A text without words still needs a direction.
        numbers.fill(1.0);
    }
    let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt();
    numbers.iter().map(|number| number / length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_share_words_are_nearer_and_every_vector_has_length_one() {
        let near = |one: &str, other: &str| -> f32 {
            vector(one, 64).iter().zip(vector(other, 64)).map(|(one, other)| one * other).sum()
        };
        let warranty = "How long is the warranty of the controller?";
        assert!(near(warranty, "The warranty of a controller") > near(warranty, "Roof vents close in wind"));
        assert!((near("batteries", "battery") - 1.0).abs() < 1e-6, "they begin alike");
        assert!((near("?", "?") - 1.0).abs() < 1e-6);
    }
}
