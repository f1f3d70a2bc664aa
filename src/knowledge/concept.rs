//! Decides by words alone whether a keyword and an answer are about the same concept.
//!
//! A keyword need not be a word of the answer: an abbreviation (`co2`, `eeg`), a compound (`heatpump`, `warmepumpe` in
//! `warmepumpenforderung`), another form (`pollinating`) or another spelling (`fertilizer`) means the same. Each is
//! a rule here, and `tests` hold them against a measured set of good keywords and of unrelated ones.

use super::tokenize;
use std::cell::OnceCell;
use std::collections::BTreeSet;

/// Minimum common initial letters of two forms of one word.
const SHARED_LETTERS: usize = 4;
/// Minimum letters of the shorter word of a compound.
const COMPOUND: usize = 5;
/// Lengths from which words that differ by one edit, or by two, are spellings of one word.
const SPELLING: [usize; 2] = [6, 9];
/// Minimum letters of a root.
const ROOT: usize = 3;
/// Endings removed to find a root, longest first.
const ENDS: [&str; 9] = ["ations", "ation", "ings", "ing", "ers", "er", "ed", "ment", "s"];
/// Maximum words that are one word without their spaces.
const JOINED: usize = 6;
/// Letters of an abbreviation.
const ABBREVIATION: std::ops::RangeInclusive<usize> = 3..=6;

/// The words of an answer, in order and stemmed.
#[derive(Debug, Clone)]
pub(crate) struct Concepts<'t> {
    texts: Vec<&'t str>,
    stems: BTreeSet<String>,
    /// Built on demand, for a keyword that repeats none of the stems.
    close: OnceCell<Close>,
}

/// Index for other forms and spellings.
#[derive(Debug, Clone)]
struct Close {
    stems: Vec<Stem>,
    words: Vec<Vec<String>>,
}

impl<'t> Concepts<'t> {
    /// The words of several texts.
    pub(crate) fn of(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let texts: Vec<&str> = texts.into_iter().collect();
        let stems = texts.iter().flat_map(|text| tokenize::stems(text)).collect();
        Self { texts, stems, close: OnceCell::new() }
    }

    /// Whether a word of `keyword` is one of these, in another form or spelling, or an abbreviation of several; or the
    /// other way round.
    pub(crate) fn share(&self, keyword: &str) -> bool {
        let stems = tokenize::stems(keyword);
        // Most keywords repeat a word of their answer, which is found without comparing letters.
        if stems.iter().any(|stem| self.stems.contains(stem)) {
            return true;
        }
        let close = self.close.get_or_init(|| Close {
            stems: self.stems.iter().cloned().map(Stem::of).collect(),
            words: self.texts.iter().map(|text| tokenize::words(text)).collect(),
        });
        let words = tokenize::words(keyword);
        let stems: Vec<Stem> = stems.into_iter().map(Stem::of).collect();
        stems.iter().any(|stem| close.stems.iter().any(|concept| is_one_word(stem, concept)))
            || words.iter().any(|word| close.words.iter().any(|text| is_made_of(word, text)))
            || close.words.iter().flatten().any(|word| is_made_of(word, &words))
    }
}

/// A stem, with precomputed data for comparisons.
#[derive(Debug, Clone)]
struct Stem {
    text: String,
    /// Number of letters.
    length: usize,
    root: String,
    /// Its letters as a bit set; letters of other alphabets may share a bit.
    letters: u64,
}

impl Stem {
    fn of(text: String) -> Self {
        let letters = text.chars().fold(0, |letters, letter| letters | 1 << (u32::from(letter) % u64::BITS));
        Self { length: text.chars().count(), root: root(&text), letters, text }
    }

    /// A lower bound on the number of edits between two words: an edit removes and adds at most one letter.
    fn least_edits(&self, other: &Self) -> usize {
        let missing = |one: u64, other: u64| (one & !other).count_ones() as usize;
        let letters = missing(self.letters, other.letters).max(missing(other.letters, self.letters));
        letters.max(self.length.abs_diff(other.length))
    }
}

/// A word without its ending and with normalised spelling: `dim` for "dimming", `sulfur` for "sulphur".
fn root(word: &str) -> String {
    let mut root = word.replace("ph", "f");
    let end = ENDS.iter().find(|end| root.ends_with(**end) && root.chars().count() >= end.len() + ROOT);
    if let Some(end) = end {
        root.truncate(root.len() - end.len());
    }
    let mut letters = root.chars().rev();
    if matches!((letters.next(), letters.next()), (Some(one), Some(other)) if one == other)
        && root.chars().count() > ROOT
    {
        root.pop();
    }
    root
}

/// Equal stems, two forms of one word, a compound and its part, or two spellings.
fn is_one_word(one: &Stem, other: &Stem) -> bool {
    let (short, long) = if one.length <= other.length { (one, other) } else { (other, one) };
    let common = short.text.chars().zip(long.text.chars()).take_while(|(one, other)| one == other).count();
    let spelling = SPELLING.iter().filter(|least| short.length >= **least).count();
    one.text == other.text
        || (short.length >= ROOT && one.root == other.root)
        || (common >= SHARED_LETTERS && common * 4 >= short.length * 3)
        || (short.length >= COMPOUND && long.text.contains(&short.text))
        || (spelling > 0
            && one.least_edits(other) <= spelling
            && strsim::damerau_levenshtein(&one.text, &other.text) <= spelling)
}

/// Whether `word` stands for several consecutive words of `text`: their initials (`eeg`), initials with a number
/// (`co2` for "carbon dioxide", whose second word implies the number), or the words without spaces.
fn is_made_of(word: &str, text: &[String]) -> bool {
    let length = word.chars().count();
    // Whichever it is, the first of those words begins as the whole does.
    let Some(first) = word.chars().next() else { return false };
    let places = text.iter().enumerate().filter(|(_, text)| text.starts_with(first)).map(|(place, _)| &text[place..]);
    places.into_iter().any(|words| {
        (ABBREVIATION.contains(&length) && are_initials(word, length, words))
            || (length >= COMPOUND && are_joined(word, words))
            || matches!(words, [first, second, ..] if is_formula(word, first, second))
    })
}

/// Whether the initials of the first `length` of `words` are the letters of `word`.
fn are_initials(word: &str, length: usize, words: &[String]) -> bool {
    words.get(..length).is_some_and(|words| words.iter().filter_map(|word| word.chars().next()).eq(word.chars()))
}

/// Whether the first two to [`JOINED`] of `words`, without spaces, are `word`.
fn are_joined(word: &str, words: &[String]) -> bool {
    let mut rest = word;
    for (place, word) in words.iter().take(JOINED).enumerate() {
        match rest.strip_prefix(word.as_str()) {
            Some("") => return place > 0,
            Some(left) => rest = left,
            None => return false,
        }
    }
    false
}

/// `co2` of "carbon dioxide": letters of the first word, then the initial or the rest of the second and its number.
fn is_formula(word: &str, first: &str, second: &str) -> bool {
    let numbers = [("mono", ""), ("di", "2"), ("tri", "3"), ("tetra", "4"), ("penta", "5"), ("hexa", "6")];
    numbers.iter().any(|(prefix, digit)| {
        let Some(element) = second.strip_prefix(prefix).and_then(|rest| rest.chars().next()) else { return false };
        let Some(head) = word.strip_suffix(digit).and_then(|rest| rest.strip_suffix(element)) else { return false };
        !head.is_empty() && head.chars().count() <= 2 && first.starts_with(head)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares_concept<'a>(keyword: &str, texts: impl IntoIterator<Item = &'a str>) -> bool {
        Concepts::of(texts).share(keyword)
    }

    /// Answers, keywords that a person would store for them without copying a word, and keywords of other answers.
    const MEASURED: &[(&str, &[&str], &[&str])] = &[
        (
            "Growers enrich carbon dioxide to 800 ppm by day; the exposure limit at work is 5,000 ppm.",
            &["co2", "co2 enrichment", "workplace limits", "enriching", "growing"],
            &["hail insurance", "frost guard", "parcel strike", "neem oil", "lamp driver"],
        ),
        (
            "The Renewable Energy Sources Act fixes the feed-in tariff for solar surplus of small roofs for 20 years.",
            &["resa", "feedin", "renewables", "rooftop solar", "tarrif", "solarsurplus", "photovoltaics tariff"],
            &["tomato virus", "booster pump", "peat ban", "greenhouse glass", "whitefly"],
        ),
        (
            "Brightleaf G2 lamps flicker when an external controller dims them below 20 percent; firmware 7.3 helps.",
            &["flickering", "dimming", "lamp", "controllers", "bright leaf", "firmwares"],
            &["drip irrigation", "rainwater", "warranty regions", "co2", "humidity"],
        ),
        (
            "Die Wärmepumpenförderung beträgt 35 Prozent; der Antrag gilt für Wohngebäude.",
            &["wärmepumpe", "förderung", "wohngebäude", "gebäude", "wärme pumpen förderung"],
            &["hagelversicherung", "garantie", "tomatenvirus", "paketstreik", "torf"],
        ),
        (
            "The colour of the fertiliser tells the neighbours nothing; analyse the programme's catalogue instead.",
            &["fertilizer", "color chart", "neighbors", "analyze", "catalog", "program"],
            &["solar roof", "recall notice", "bus length", "lithium", "door locks"],
        ),
        (
            "A heat pump with a coefficient of performance of 4 needs an air-to-water heat exchanger.",
            &["heatpump", "cop", "heat exchange", "air water", "performance figure", "exchangers"],
            &["neem", "grid fee", "port ellery", "hosepipe", "serial number"],
        ),
        (
            "Parasitic wasps are released weekly against whitefly; sprays of soap harm them.",
            &["white fly", "whiteflies", "wasp release", "parasites", "soapy spray", "weekly releases"],
            &["energy screens", "tarn grant", "hourly price", "plume bridge", "building permit"],
        ),
        (
            "Sulfur trioxide and nitrogen dioxide are measured by the air quality network of the city.",
            &["so3", "no2", "measurement", "sulphur", "air network", "cities"],
            &["co3", "irrigation valve", "seedling", "insurance", "members"],
        ),
        (
            "Ordinary mail: letters need a stamp of 95 cents, registered ones 3.60; the post office sells them.",
            &["postage stamps", "registered letter", "post office", "mailing", "lettres"],
            &["greenhouse", "pollination", "pump", "vents", "lux"],
        ),
        (
            "The application programming interface returns JavaScript Object Notation over Hypertext Transfer Protocol.",
            &["api", "json parsing", "http", "applications", "interfaces", "java script"],
            &["ftp", "grpc", "sql", "tomatoes", "csv"],
        ),
    ];

    /// An answer, keywords of it, and keywords of something else.
    type Measured = (&'static str, &'static [&'static str], &'static [&'static str]);

    fn refused(pick: fn(&Measured) -> &'static [&'static str]) -> (Vec<&'static str>, usize) {
        let all: Vec<(&str, &str)> =
            MEASURED.iter().flat_map(|row| pick(row).iter().map(|keyword| (row.0, *keyword))).collect();
        let refused = all.iter().filter(|(answer, keyword)| !shares_concept(keyword, [*answer]));
        (refused.map(|(_, keyword)| *keyword).collect(), all.len())
    }

    #[test]
    fn of_the_measured_set_all_but_three_good_keywords_pass_and_no_unrelated_one() {
        let (good, all) = refused(|row| row.1);
        // A letter that is doubled in the wrong place, and abbreviations that are not made of first letters.
        assert_eq!((good, all), (vec!["tarrif", "json parsing", "http"], 58));
        let (unrelated, all) = refused(|row| row.2);
        assert_eq!(unrelated.len(), all, "an unrelated keyword passes");
    }

    #[test]
    fn abbreviations_count_both_ways_and_a_formula_needs_its_number() {
        assert!(shares_concept("carbon dioxide", ["CO2 is enriched by day."]));
        assert!(shares_concept("renewable energy act", ["The REA pays for roofs."]));
        assert!(!shares_concept("co3", ["Carbon dioxide is enriched by day."]));
        assert!(!shares_concept("cat", ["Carbon dioxide."]), "initials are those of all its words");
    }

    #[test]
    fn short_words_are_no_spellings_of_each_other() {
        assert!(!shares_concept("lamb", ["A lamp."]) && !shares_concept("port", ["A post."]));
        assert!(!shares_concept("", ["A lamp."]) && !shares_concept("lamp", [""]));
    }
}
