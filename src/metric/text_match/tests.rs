//! Which texts contain which parts.

use super::*;
use proptest::prelude::*;

#[test]
fn what_looks_the_same_is_the_same_on_both_sides() {
    for (text, part) in [
        ("The warranty is 24\u{a0}months.", "24 months"),
        ("24\nmonths", "24 months"),
        ("24 months", "24\u{202f}months"),
        ("cafe\u{301}", "café"),
        ("café", "cafe\u{301}"),
        ("HAUPTSTRASSE 5", "straße"),
        ("İSTANBUL", "istanbul"),
        ("η οδος", "ΟΔΟΣ"),
        ("the sec\u{200b}ret", "secret"),
        ("the ｓｅｃｒｅｔ", "secret"),
        ("ﬁlter", "Filter"),
        ("I do **not** know", "do not know"),
        ("I do _not_ know", "do not know"),
        ("I do ***not*** `know`", "do not know"),
        ("I don’t know", "don't know"),
        ("a non\u{2011}return valve", "non-return valve"),
        ("call `index_keywords` now", "index_keywords"),
        ("**un**believable", "unbelievable"),
        ("営業時間は9時～18時です。", "9時〜18時"),
        ("価格は￥1,550です。", "¥1,550"),
        ("ﾊﾞｯｸﾞと￡5", "バッグと£5"),
    ] {
        assert!(contains(text, part), "{text:?} has {part:?}");
    }
}

#[test]
fn what_differs_for_a_reader_differs() {
    for (text, part) in [
        ("index_keywords", "indexkeywords"),
        ("2*3", "23"),
        ("a * b", "a b"),
        ("the word", "sword"),
        ("anything", ""),
        ("anything", "**"),
    ] {
        assert!(!contains(text, part), "{text:?} has no {part:?}");
    }
}

#[test]
fn a_number_matches_as_a_number() {
    for (text, part) in [
        ("it is 45.", "45"),
        ("it is 45, or 46", "45"),
        ("45km", "45"),
        ("E-21 means", "E-21"),
        ("E-21 means", "21"),
        ("3-5 days", "5"),
        ("1,450 metres", "1450"),
        ("1450 metres", "1,450 metres"),
        ("4.50 euro", "4.5 euro"),
        ("1,5 bar", "1.5 bar"),
        ("it is −5 degrees", "-5 degrees"),
        ("on 2026-03-01", "2026"),
        ("firmware 7.3.1", "7.3.1"),
        ("**24** months", "24 months"),
        ("$120, (120), [120] or 120.", "120"),
        ("120€", "120"),
        ("120 %", "120"),
        ("120-day pass", "120"),
        ("2-120", "120"),
        ("EUR120", "120"),
        ("共120席", "120"),
        ("3x4 m, 1h30", "4"),
        ("3x4 m, 1h30", "30"),
        ("firmware v7.3.1", "7.3.1"),
        ("QX120", "QX120"),
        ("120k", "120k"),
        ("-$123.45", "-$123.45"),
        ("- $120 deposit", "$120"),
        ("5%-10% or 100€-120€ or 5 %–10 %", "10%"),
        ("5%-10% or 100€-120€ or 5 %–10 %", "120€"),
        ("1 120 seats", "1120 seats"),
        ("1,120 seats", "1\u{202f}120"),
        ("1'120.50", "1,120.5"),
        ("1.120,50 Euro", "1120.5"),
        ("call 555 123 4567", "123"),
        ("rooms: 3\n120 seats", "120"),
        ("2 100ml bottles", "100ml"),
        ("on 2026-03-11 120 trains", "120"),
        ("order A-1042.", "A-1042"),
        ("order A-1042-B", "A-1042"),
        ("(a-1042)", "A-1042"),
        ("order A-1042 is", "A-1042 i"),
        ("two ESP32s", "ESP32"),
        ("120€A-1042", "A-1042"),
        ("EUR120k", "EUR120k"),
        ("3x4m", "3x4"),
        ("7 days", "7 day"),
        ("it holds 50 %", "50%"),
        ("it holds 50%", "50 %"),
        ("5km", "5 km"),
        ("5 km", "5km"),
        ("for 120 €", "120€"),
        ("for $ 120", "$120"),
        ("for $120", "$ 120"),
        ("-20 °C", "-20°C"),
        ("order A-1042 m", "A-1042"),
        ("reorder A-1042", "order A-1042"),
        ("EUR120b", "EUR120b"),
        ("120b", "120"),
        ("1 120 m", "1120m"),
        ("it takes 45 minutes", "45 min"),
        ("24 hours", "24 h"),
        ("5 metres", "5 m"),
        ("5 minutes", "5 m"),
        ("5 jours ouvrés", "5 j"),
        ("5 mètres", "5 m"),
        ("$5 million", "$5 m"),
        ("120 million", "120 mil"),
        ("3 hrs", "3 h"),
        ("5 lbs", "5 lb"),
        ("230 VAC", "230 V"),
        ("5 kgs", "5 kg"),
        ("12 months", "12 mon"),
        ("it is .5 or 0.5", "0.5"),
        ("firmware v7 is new", "v7"),
        ("firmware v7.3 is new", "v7.3"),
        ("firmware v7.3 is new", "7.3"),
        ("3 Minuten", "3 min"),
        ("5 kilograms", "5 kilo"),
        ("2 uur, 3 ukene", "3 uke"),
        ("w 24 godzinach", "24 godzin"),
        ("3 aylık", "3 ay"),
        ("30日間有効", "30日"),
        ("500gです", "500g"),
        ("It takes 10 – 20 days.", "10–20 days"),
        ("It takes 10-20 days.", "10 – 20 days"),
        ("It takes 10 to 20 days.", "10–20 days"),
        ("It takes 10–20 days.", "10 to 20 days"),
        ("Es dauert 10 bis 20 Tage.", "10–20 Tage"),
        ("It takes 10 to 20 days.", "to 20 days"),
        ("$10 – $20", "$10–$20"),
        ("It costs US$120.", "$120"),
        ("It costs USD$120.", "$120"),
        ("It costs $120 USD.", "$120"),
        ("It costs AU$120.", "AU$120"),
        ("It costs CA$120.", "120"),
    ] {
        assert!(contains(text, part), "{text:?} has {part:?}");
    }
    for (text, part) in [
        ("it is 1450 metres", "45"),
        ("5 million", "5 m"),
        ("5 mm", "5 m"),
        ("5mm", "5m"),
        ("4 hundred", "4 h"),
        ("42 kmh", "42 km"),
        ("5 min", "5 m"),
        ("5 lbs", "5 l"),
        ("100 kWh", "100 kW"),
        ("5 GB", "5 g"),
        ("145", "45"),
        ("450", "45"),
        ("45.5", "45"),
        ("3.45", "45"),
        ("1,450", "450"),
        ("it is -5 degrees", "5 degrees"),
        ("it is -5 degrees", "5"),
        ("firmware 7.3.1", "7.3"),
        ("124 months", "24 months"),
        ("code 007", "7"),
        ("-$123.45", "$123.45"),
        ("$-123.45", "$123.45"),
        ("a balance of −US$123.45", "123.45"),
        ("-EUR 120", "120"),
        ("QX120", "120"),
        ("order AA-1042", "A-1042"),
        ("order A-1042b", "A-1042"),
        ("order A-1042sx", "A-1042"),
        ("- $ 120", "-$120"),
        ("5 m", "5 k"),
        ("BQX120", "QX120"),
        ("7A-1042", "A-1042"),
        ("QX120b", "QX120"),
        ("call_120", "120"),
        ("3fa120", "120"),
        ("0x120", "120"),
        ("120k", "120"),
        ("120bn", "120"),
        ("120e3", "120"),
        ("1.2e-3", "1.2"),
        ("120½", "120"),
        ("1 120", "120"),
        ("1\u{a0}120kg", "120"),
        ("1\u{202f}120", "120"),
        ("1’120", "120"),
        ("1'120", "1"),
        ("12 345 120", "345"),
        ("it is .5", "5"),
        ("1.120", "120"),
        ("firmware v7b", "v7"),
        ("3 minor issues", "3 min"),
        ("5 members", "5 m"),
        ("3 large boxes", "3 l"),
        ("4 weekly visits", "4 week"),
        ("10 percentage points", "10 percent"),
        ("20 eurozone countries", "20 euro"),
        ("5 kilometres", "5 kilo"),
        ("10 – 25 days", "10–20 days"),
        ("10 to 20 days", "10-20 weeks"),
        ("It costs AU$120.", "$120"),
        ("It costs US$120.", "S$120"),
        ("It costs CA$120.", "A$120"),
        ("It costs R$120.", "$120"),
        ("It costs $120 CAD.", "$120"),
    ] {
        assert!(!contains(text, part), "{text:?} has no {part:?}");
    }
}

proptest! {
    #[test]
    fn a_whole_number_is_equal_to_itself_in_every_spelling_and_in_no_other_number(
        number in 1_000_u32..10_000_000, other in 1_u32..10_000_000, spelling in 0..7_usize, frame in 0..5_usize,
    ) {
        let separator = ["", ",", " ", "\u{a0}", "\u{202f}", "'", "’"][spelling];
        let digits = number.to_string();
        let spelt: String = digits.char_indices().flat_map(|(at, digit)| {
            let border = at > 0 && (digits.len() - at) % 3 == 0;
            border.then_some(separator).into_iter().flat_map(str::chars).chain([digit]).collect::<Vec<_>>()
        }).collect();
        let (before, after) = [("it is ", "."), ("$", ""), ("(", ")"), ("", " %"), ("about **", "** km")][frame];
        let text = format!("{before}{spelt}{after}");
        prop_assert!(contains(&text, &digits), "{:?}", text);
        prop_assert!(contains(&format!("{before}{digits}{after}"), &spelt), "{:?}", text);
        prop_assert_eq!(contains(&text, &other.to_string()), number == other, "{:?} {}", text, other);
        for changed in [format!("-{spelt}"), format!("-${spelt}"), format!("QX{spelt}"), format!("{spelt}k"), format!("{spelt}e3")] {
            prop_assert!(!contains(&changed, &digits), "{:?}", changed);
        }
    }

    #[test]
    fn a_part_without_digits_is_found_as_number_by_number(
        text in "[ab1ke$½ .,-]{0,12}", part in "[abke$½ _*]{1,4}", start in 0..12_usize, length in 1..4_usize,
    ) {
        let own = text.get(start..(start + length).min(text.len())).unwrap_or("a");
        for part in [part.as_str(), own] {
            prop_assert_eq!(contains(&text, part), has_tokens(&normalise(&text), &normalise(part)), "{:?}", part);
        }
    }

    #[test]
    fn a_text_has_itself_and_what_is_normalised_stays_as_it_is(text in "[ a-zÄßİς0-9.,*_`~\u{a0}\u{200b}-]{0,40}") {
        let once = normalise(&text);
        prop_assume!(!once.is_empty());
        prop_assert!(contains(&text, &text), "{:?}", text);
        let within = format!("before {text} after");
        prop_assert!(contains(&within, &text) || once.contains(['*', '_', '~', '-']));
    }
}

#[test]
fn what_multiplies_a_number_makes_another_of_it() {
    for text in ["It costs $120M.", "It costs $120B.", "USD 120m", "It is 120*10^3.", "It is 120⁄7."] {
        assert!(!contains(text, "120") && !contains(text, "$120"), "{text}");
    }
    assert!(contains("It is $120 million.", "$120M"));
    for text in [
        "It is $120 million.", "It is 60×120 cm.", "It is 120×100 cm.", "It is 120m high.", "It costs $120.",
        "It takes 120 t",
    ] {
        assert!(contains(text, "120"), "{text}");
    }
}

#[test]
fn a_square_and_a_speed_are_other_units_than_a_length_and_a_size() {
    for (text, part) in [
        ("an area of 2 m²", "2 m"),
        ("an area of 2 m2", "2 m"),
        ("at 5 km/h", "5 km"),
        ("5 m/s", "5 m"),
        ("at 5 km per hour", "5 km"),
        ("at 100 MB/s", "100 MB"),
        ("at 100 Mbps", "100 MB"),
    ] {
        assert!(!contains(text, part), "{text:?} has no {part:?}");
    }
    for (text, part) in [
        ("an area of 2 m²", "2 m²"),
        ("at 5 km/h", "5 km/h"),
        ("It walks 5 km a day.", "5 km"),
        ("It is 5 m / 16 feet long.", "5 m"),
        ("It is 2 m, 3 times.", "2 m"),
        ("It costs 30 EUR/month.", "30 EUR"),
    ] {
        assert!(contains(text, part), "{text:?} has {part:?}");
    }
}

#[test]
fn marks_of_emphasis_alone_are_looked_for_as_they_are_written() {
    for (text, marks) in
        [("This is **bold**.", "**"), ("__bold__", "__"), ("~~gone~~", "~~"), ("`code`", "`"), ("* one", "* ")]
    {
        assert!(contains(text, marks), "{text:?} has {marks:?}");
    }
    assert!(!contains("This is *plain*.", "**") && !contains("2 * 3", "**") && !contains("", "*"));
}

#[test]
fn codes_of_currencies_and_digits_of_other_scripts_hide_no_amount() {
    for text in ["kr120", "kr 120", "Rs120", "CZK120", "BRL120", "١٢٠ ريال", "۱۲۰", "１２０円", "१२० रुपये"]
    {
        assert!(contains(text, "120"), "{text}");
    }
    assert!(contains("١٬٤٥٠٫٥", "1450.5"));
    assert!(!contains("١١٢٠", "120") && !contains("kr1200", "120") && !contains("okr120", "120"));
    assert!(!contains("kr120m", "120"), "it is 120 million");
}

#[test]
fn a_letter_behind_a_number_of_law_belongs_to_it_and_the_space_before_the_number_is_optional() {
    for (text, part) in [
        ("Das steht in §622 BGB.", "§ 622"),
        ("Das steht in § 622 BGB.", "§622"),
        ("Das steht in § 312g BGB.", "§ 312g"),
        ("Das steht in § 312g BGB.", "§312g BGB"),
        ("Das steht in §§ 312f. BGB", "§ 312"),
        ("Rechtsgrundlage ist Art.6 Abs.1 DSGVO.", "Art. 6 Abs. 1"),
        ("Selon l’article L.221-18 du Code.", "L. 221-18"),
        ("Nr.5 m", "Nr. 5"),
        ("Art. 5 g", "Art. 5"),
        ("It takes five. 5 people", "5 people"),
        ("the part 5m long", "5"),
        ("chart 5a", "5"),
    ] {
        assert!(contains(text, part), "{text:?} has {part:?}");
    }
    for (text, part) in [
        ("Das steht in § 312g BGB.", "§ 312"),
        ("Das steht in §312g BGB.", "312"),
        ("Das steht in § 312g BGB.", "§ 312 BGB"),
        ("nach Art. 6a", "Art. 6"),
        ("l'article 4a", "article 4"),
        ("see section 5b", "section 5"),
        ("§ 622", "§ 62"),
    ] {
        assert!(!contains(text, part), "{text:?} has no {part:?}");
    }
}

#[test]
fn indices_are_digits_on_the_line() {
    for (text, part) in [
        ("120 g of CO₂ per km", "CO2"),
        ("120 g of CO2 per km", "CO₂"),
        ("C₁₂H₂₂O₁₁", "C12H22O11"),
        ("Ca(OH)₂ and PM₂.₅", "Ca(OH)2"),
        ("Ca(OH)₂ and PM₂.₅", "PM2.5"),
        ("log₂8 is 3", "8"),
        ("101₂ is 5", "101"),
        ("Ein Teil CO₂.", "CO2."),
    ] {
        assert!(contains(text, part), "{text:?} has {part:?}");
    }
    for (text, part) in [("CO₂", "CO3"), ("CO₂", "2"), ("101₂ is 5", "1012"), ("CO", "CO2"), ("m²", "m2")] {
        assert!(!contains(text, part), "{text:?} has no {part:?}");
    }
}

#[test]
fn a_point_before_three_digits_is_between_thousands_beside_an_euro_sign_and_twice_in_a_number() {
    for (text, part) in [
        ("Das kostet 12500 €.", "12.500 €"),
        ("Das kostet 12.500,00 €.", "12.500 €"),
        ("Das kostet 12 500 €.", "12.500 €"),
        ("Das kostet 12.500 €.", "12.500 €"),
        ("Das kostet 12.500 €.", "12500 €"),
        ("Nehmen Sie 4000 mg.", "4.000 mg"),
        ("1.234.567 Menschen", "1234567"),
        ("bei -1.500 €", "-1500 €"),
        ("a rod of 1.125 inches", "1.125 inches"),
        ("a rod of 12.5 mm", "12.500 mm"),
        ("0,125 l", "0.125 l"),
        ("Das kostet 1.500 Euro.", "1500 Euro"),
        ("ab €1.500", "1500"),
        ("EUR 1.500", "EUR 1500"),
        ("X1.5 und 1.250.000.000 €, 1.234,56 € oder 1,25 €", "1250000000 €"),
        ("Det koster 1.500 kr.", "1500 kr"),
        ("1.250.000 Stück, 19,99 €", "1250000"),
        ("**1.500** €, also 0,5 %", "1500 €"),
        ("It is 0.5 % of 1500 €", "1.500 €"),
        ("It is €1.749 per litre.", "€1.749"),
        ("It is 1,749 € per litre.", "1,749 €"),
        ("It is 1,749 € per litre.", "1.7490"),
        ("Das sind 1,749 € und 12,50 €.", "1,749 €"),
        ("Die Miete ist 1.749 € pro Monat.", "1749 €"),
        ("1,749 € for options 1.5 and 2", "1749 €"),
        ("See sections 4,5. The fee is $1,749.", "1749"),
        ("See sections 4,5. The fee is $1,749.", "$1749"),
        ("Steps 4,5 and 6 take 1,749 seconds.", "1749 seconds"),
        ("Das sind 1,749 € und 0,5 %.", "1.7490"),
        ("Das sind 1,749 kg und 4,5 Mio. Euro.", "1.7490 kg"),
    ] {
        assert!(contains(text, part), "{text:?} has {part:?}");
    }
    for (text, part) in [
        ("Das kostet 12,50 €.", "12.500 €"),
        ("Das kostet 12.500 €.", "12,50 €"),
        ("Das kostet 12,00 €.", "12.000 €"),
        ("a rod of 1.125 inches", "125"),
        ("0.125", "125"),
        ("bei -1.500 €", "1500 €"),
        ("1.2345", "12345"),
        ("10.100.2", "101002"),
        ("12.500", "1250"),
        ("pi is about 3.142", "3142"),
        ("a fee of 1.125 %", "1125"),
        ("$1.500 per gallon", "$1500"),
        ("$4.000 per gallon", "$4000"),
        ("at 192.168.100.200", "192168100200"),
        ("CHF 1.500", "1500"),
        ("It is €1.500, or 0.5 % of 300", "1500"),
        ("It is €1.500 of 1,234.50", "1500"),
        ("It is €1.125 a litre and 1,234 litres", "1125"),
        ("a tank of 1500 litres", "1.500 litres"),
        ("It takes 3142 steps.", "3.142"),
        ("It is €1.749 per litre.", "1749"),
        ("Es sind 1,749 € pro Liter.", "1749"),
        ("Es sind 1,749 €/l.", "1749 €"),
        ("It is 1,749 €.", "1.749 €"),
        ("It is 1.749 €.", "1,749 €"),
        ("Das sind 1,749 € und 12,50 €.", "1749 €"),
        ("Das sind 1,749 € und 0,5 %.", "1749"),
        ("Das sind 1,749 kg und 4,5 Mio. Euro.", "1749 kg"),
    ] {
        assert!(!contains(text, part), "{text:?} has no {part:?}");
    }
}
