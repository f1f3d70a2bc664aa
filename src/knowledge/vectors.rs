//! The vectors of a base's passages, in one file beside its folder, and the exact search over them.
//!
//! The file is `<folder>.<model>.vectors`: a line of JSON (version, model, numbers of a vector, and of each passage its id
//! with a digest of its title and text), then the numbers as little-endian 32-bit floats, one passage after the other,
//! each vector of length 1. A passage whose title or text changed has another digest, so its vector is not taken for its
//! own; the others are kept when the base is indexed again.

use super::KnowledgeError;
use super::documents::{Corpus, Passage, hash_of};
use crate::platform::bounds::Bound;
use crate::platform::files;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Version of the file; another one is not read.
const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
struct Head {
    version: u32,
    model: String,
    dimensions: usize,
    /// Id and digest, in the order of the vectors.
    passages: Vec<(String, String)>,
}

/// Why a vector cannot be a passage's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VectorError {
    /// Another length than those before.
    #[error("a vector has {given} numbers, but the earlier ones have {before}")]
    Length { given: usize, before: usize },
    /// All its numbers are 0.
    #[error("the vector of `{passage}` has no direction: all its numbers are 0")]
    NoDirection { passage: String },
}

/// The vectors of passages by one model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Vectors {
    dimensions: usize,
    /// By digest of title and text.
    known: BTreeMap<String, Vec<f32>>,
}

/// The vectors of a corpus, one for each passage in its order.
#[derive(Debug, Clone, PartialEq)]
pub struct PassageVectors {
    dimensions: usize,
    numbers: Vec<f32>,
    hash: String,
}

/// The file of a base's vectors by a model.
pub fn file_of(folder: &Path, model: &str) -> PathBuf {
    let plain: String = model.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!("{name}.{plain}.vectors"))
}

/// What of a passage is turned into a vector: its title and its text.
pub fn text_of(passage: &Passage) -> String {
    if passage.title.is_empty() { passage.text.clone() } else { format!("{}\n{}", passage.title, passage.text) }
}

fn digest(passage: &Passage) -> String {
    hash_of([passage.title.as_str(), &passage.text], 8)
}

impl Vectors {
    /// Those in a file; none where there is no file.
    ///
    /// # Errors
    /// When there is one that cannot be read, or that is of another version or model.
    pub fn read(file: &Path, model: &str) -> Result<Self, KnowledgeError> {
        let unreadable = |error| KnowledgeError::Read { path: file.to_owned(), error };
        let wrong = |why: String| KnowledgeError::Vectors { path: file.to_owned(), why };
        let bound = Bound::VectorsSize;
        let bytes = match files::read_at_most(file, bound.most()) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => {
                return Err(wrong(format!("larger than {}; {}", bound.shown(), bound.advice())));
            }
            other => other.map_err(unreadable)?,
        };
        let end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(|| wrong("it has no first line".into()))?;
        let head: Head =
            serde_json::from_slice(&bytes[..end]).map_err(|why| wrong(format!("its first line: {why}")))?;
        if head.version != VERSION {
            return Err(wrong(format!("it has version {}, this build knows {VERSION}", head.version)));
        }
        if head.model != model {
            return Err(wrong(format!("its vectors are by `{}`, and `{model}` is declared", head.model)));
        }
        let (numbers, rest) = bytes[end + 1..].as_chunks::<4>();
        let all = head.dimensions.checked_mul(head.passages.len());
        if !rest.is_empty() || head.dimensions == 0 || all != Some(numbers.len()) {
            return Err(wrong("it is cut, or longer than its first line says".into()));
        }
        let rows = head.passages.into_iter().zip(numbers.chunks_exact(head.dimensions));
        let numbers = |row: &[[u8; 4]]| row.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        let known = rows.map(|((_, digest), row)| (digest, numbers(row))).collect();
        Ok(Self { dimensions: head.dimensions, known })
    }

    /// The places of the passages that have no vector yet.
    pub fn missing(&self, corpus: &Corpus) -> Vec<usize> {
        let all = corpus.passages.iter().enumerate();
        all.filter(|(_, passage)| !self.known.contains_key(&digest(passage))).map(|(place, _)| place).collect()
    }

    /// Takes the vector of a passage, brought to length 1.
    ///
    /// # Errors
    /// When it has another number of numbers than those before, or no direction.
    pub fn add(&mut self, passage: &Passage, vector: &[f32]) -> Result<(), VectorError> {
        if self.known.is_empty() {
            self.dimensions = vector.len();
        }
        if vector.len() != self.dimensions {
            return Err(VectorError::Length { given: vector.len(), before: self.dimensions });
        }
        let unit = unit(vector).ok_or_else(|| VectorError::NoDirection { passage: passage.id.clone() })?;
        self.known.insert(digest(passage), unit);
        Ok(())
    }

    /// Those of a corpus, in its order; `Err` with how many passages have none.
    pub fn of(&self, corpus: &Corpus) -> Result<PassageVectors, usize> {
        let mut numbers = Vec::with_capacity(corpus.passages.len() * self.dimensions);
        let mut missing = 0;
        for passage in &corpus.passages {
            match self.known.get(&digest(passage)) {
                Some(vector) => numbers.extend_from_slice(vector),
                None => missing += 1,
            }
        }
        if missing > 0 {
            return Err(missing);
        }
        let mut hasher = Sha256::new();
        for number in &numbers {
            hasher.update(number.to_le_bytes());
        }
        let hash = hex::encode(&hasher.finalize()[..4]);
        Ok(PassageVectors { dimensions: self.dimensions, numbers, hash })
    }

    /// Writes those that passages of `corpus` have so far, and no others, whole or not at all, and returns their number. If
    /// there are none, it writes nothing. [`Vectors::of`] refuses them until the others are added.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, file: &Path, model: &str, corpus: &Corpus) -> Result<usize, KnowledgeError> {
        let unwritable = |error| KnowledgeError::Write { path: file.to_owned(), error };
        let (mut passages, mut numbers) = (Vec::new(), Vec::new());
        for passage in &corpus.passages {
            let digest = digest(passage);
            if let Some(vector) = self.known.get(&digest) {
                passages.push((passage.id.clone(), digest));
                numbers.extend(vector.iter().flat_map(|number| number.to_le_bytes()));
            }
        }
        let count = passages.len();
        if count > 0 {
            let head = Head { version: VERSION, model: model.to_owned(), dimensions: self.dimensions, passages };
            let mut text = serde_json::to_vec(&head).map_err(|why| unwritable(why.into()))?;
            text.push(b'\n');
            text.extend(numbers);
            files::replace(file, text).map_err(unwritable)?;
        }
        Ok(count)
    }
}

/// That passages have no vector.
pub(crate) fn lacking(count: usize) -> String {
    let passages = if count == 1 { "1 passage has".to_owned() } else { format!("{count} passages have") };
    format!("{passages} no vector")
}

impl PassageVectors {
    /// Numbers of a vector.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// 8 hex digits over all numbers.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The vectors, one passage after the other.
    pub fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.numbers.chunks_exact(self.dimensions.max(1))
    }

    /// The places of the `most` passages nearest to `query` by cosine, nearest first, with the cosine; ties in the order
    /// of the corpus. Every passage is compared. Sums are made in one order, so that they are the same on every machine.
    pub fn nearest(&self, query: &[f32], most: usize) -> Vec<(usize, f64)> {
        let Some(query) = unit(query) else { return Vec::new() };
        let cosine = |row: &[f32]| row.iter().zip(&query).map(|(one, other)| f64::from(*one) * f64::from(*other)).sum();
        let mut all: Vec<(usize, f64)> = self.rows().map(cosine).enumerate().collect();
        let order = |(one, a): &(usize, f64), (other, b): &(usize, f64)| b.total_cmp(a).then(one.cmp(other));
        if all.len() > most && most > 0 {
            all.select_nth_unstable_by(most - 1, order);
        }
        all.truncate(most);
        all.sort_by(order);
        all
    }
}

/// The vector of that direction and of length 1; `None` of one without a direction.
fn unit(vector: &[f32]) -> Option<Vec<f32>> {
    let length = vector.iter().map(|number| f64::from(*number) * f64::from(*number)).sum::<f64>().sqrt();
    (length.is_finite() && length > 0.0).then(|| vector.iter().map(|one| (f64::from(*one) / length) as f32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn corpus(texts: &[&str]) -> Corpus {
        let passage = |(n, text): (usize, &&str)| Passage {
            id: format!("doc#{n}"),
            title: "Doc".into(),
            text: (*text).to_owned(),
        };
        Corpus::of("desk", texts.iter().enumerate().map(passage).collect())
    }

    fn filled(corpus: &Corpus, rows: &[[f32; 2]]) -> Vectors {
        let mut vectors = Vectors::default();
        for (passage, row) in corpus.passages.iter().zip(rows) {
            vectors.add(passage, row).expect("fits");
        }
        vectors
    }

    #[test]
    fn the_nearest_stand_first_and_equal_ones_in_the_order_of_the_corpus() {
        let corpus = corpus(&["a", "b", "c", "d"]);
        let rows = filled(&corpus, &[[0.0, 1.0], [3.0, 3.0], [2.0, 0.0], [9.0, 9.0]]).of(&corpus).expect("all");
        let places =
            |query: &[f32], most| rows.nearest(query, most).into_iter().map(|(place, _)| place).collect::<Vec<_>>();
        assert_eq!(places(&[1.0, 0.9], 3), [1, 3, 2]);
        assert_eq!(places(&[0.0, 5.0], 9), [0, 1, 3, 2]);
        assert!(places(&[0.0, 0.0], 2).is_empty() && places(&[1.0, 0.0], 0).is_empty());
    }

    #[test]
    fn a_file_gives_back_what_was_written_and_keeps_the_vectors_of_what_did_not_change() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = file_of(&folder.path().join("desk"), "org/model-1.5");
        assert!(file.ends_with("desk.org-model-1-5.vectors"));
        let before = corpus(&["a", "b"]);
        let vectors = filled(&before, &[[1.0, 0.0], [0.6, 0.8]]);
        vectors.save(&file, "m", &before).expect("saves");
        assert_eq!(Vectors::read(&file, "m").expect("reads"), vectors);
        let after = corpus(&["b", "new", "a"]);
        let mut kept = Vectors::read(&file, "m").expect("reads");
        assert_eq!(kept.missing(&after), [1]);
        assert_eq!(kept.of(&after), Err(1));
        let part = folder.path().join("part.vectors");
        assert_eq!(kept.save(&part, "m", &after).expect("saves"), after.passages.len() - 1);
        let part = Vectors::read(&part, "m").expect("reads");
        assert_eq!(
            (part.missing(&after), part.of(&after)),
            (vec![1], Err(1)),
            "what is there is kept and not searched"
        );
        assert!(kept.add(&after.passages[1], &[1.0]).expect_err("is too short").to_string().contains("has 1 numbers"));
        assert!(
            kept.add(&after.passages[1], &[0.0, 0.0]).expect_err("is nothing").to_string().contains("no direction")
        );
        kept.add(&after.passages[1], &[0.0, 2.0]).expect("fits");
        let rows = kept.of(&after).expect("all");
        assert_eq!(rows.rows().map(<[f32]>::to_vec).collect::<Vec<_>>(), [[0.6, 0.8], [0.0, 1.0], [1.0, 0.0]]);
        assert_ne!(rows.hash(), vectors.of(&before).expect("all").hash());
    }

    #[test]
    fn a_file_of_another_model_or_one_that_is_cut_is_refused_and_none_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("desk.m.vectors");
        assert_eq!(Vectors::read(&file, "m").expect("none"), Vectors::default());
        let corpus = corpus(&["a"]);
        filled(&corpus, &[[1.0, 0.0]]).save(&file, "m", &corpus).expect("saves");
        let why = |model: &str| Vectors::read(&file, model).expect_err("is refused").to_string();
        assert!(why("other").contains("by `m`, and `other` is declared"), "{}", why("other"));
        let whole = std::fs::read(&file).expect("reads");
        let endless = |passages: &str| {
            format!("{{\"version\":1,\"model\":\"m\",\"dimensions\":18446744073709551615,\"passages\":[{passages}]}}\n")
        };
        let (none, two) = (endless(""), endless("[\"a\",\"1\"],[\"b\",\"2\"]") + "....");
        for (bytes, words) in [
            (&whole[..whole.len() - 4], "is cut"),
            (b"{", "no first line"),
            (b"{}\n", "first line"),
            (two.as_bytes(), "is cut"),
        ] {
            std::fs::write(&file, bytes).expect("written");
            assert!(why("m").contains(words), "{}", why("m"));
        }
        std::fs::write(&file, none).expect("written");
        assert!(Vectors::read(&file, "m").expect("holds none").known.is_empty());
    }

    proptest! {
        #[test]
        fn the_few_nearest_are_the_beginning_of_all_by_distance(
            rows in prop::collection::vec(prop::array::uniform2(1_i8..20), 1..40),
            query in prop::array::uniform2(1_i8..20),
            most in 1_usize..10,
        ) {
            let texts: Vec<String> = (0..rows.len()).map(|n| n.to_string()).collect();
            let corpus = corpus(&texts.iter().map(String::as_str).collect::<Vec<_>>());
            let rows: Vec<[f32; 2]> = rows.iter().map(|row| row.map(f32::from)).collect();
            let vectors = filled(&corpus, &rows).of(&corpus).expect("all");
            let query = query.map(f32::from);
            let all = vectors.nearest(&query, usize::MAX);
            prop_assert_eq!(all.len(), rows.len());
            let order = |a: &(usize, f64), b: &(usize, f64)| b.1.partial_cmp(&a.1).map(|nearer| nearer.then(a.0.cmp(&b.0)));
            prop_assert!(all.windows(2).all(|pair| order(&pair[0], &pair[1]) == Some(std::cmp::Ordering::Less)));
            prop_assert_eq!(&vectors.nearest(&query, most)[..], &all[..most.min(all.len())]);
        }
    }
}
