//! Numbers of texts, and which agree.

use super::behind::labels;
use super::quantity::*;

fn agrees(answer: &str, source: &str) -> bool {
    quantities(source).iter().any(|other| quantities(answer)[0].agrees(other))
}

#[test]
fn numbers_agree_by_value_after_locale_scale_and_unit() {
    for (answer, source) in [
        ("1,234", "1.234"),
        ("1 234", "1234"),
        ("1.234,50", "1,234.5"),
        ("3 km", "3000 m"),
        ("2.5 million", "2,500,000"),
        ("$160 million", "$ 160 million"),
        ("24 months", "2 years"),
        ("48 ohms", "48 Ω"),
        ("50%", "50 percent"),
        ("3.14", "3.14159"),
        ("180,000", "181,674"),
        ("5 GB", "5000 MB"),
        ("12 s", "12"),
        ("€5", "5 euros"),
        ("500 µg", "500 mcg"),
        ("500 μg", "0.5 mg"),
        ("US$300", "$300"),
        ("USD 300", "300 dollars"),
        ("CHF 5", "5 CHF"),
        ("-40 °C", "minus 40 °C"),
        ("40 °C", "-40 °C"),
        ("−450 euros", "-450 euros"),
        ("6:30 pm", "18:30"),
        ("6:30", "6:30 p.m."),
        ("100 km/h", "100 kilometres per hour"),
        ("20 m²", "20 square metres"),
        ("100%", "99.6%"),
        ("1000 kg", "999.7 kg"),
        ("5 - 10 V", "5 to 10 V"),
        ("-40 °C", "\u{2013}40 °C to +85 °C"),
        ("-40 °C", "40 degrees below zero"),
        ("-40", "|-40|85|"),
        ("20 %", "the price minus 20 % discount"),
        ("9:00 am", "9 am"),
        ("5:00 pm", "9 am to 5 pm"),
        ("18:30", "18.30 Uhr"),
        ("10:15", "2024-05-03T10:15:20Z"),
        ("2.5 mm²", "2.5mm²"),
        ("120 Km/h", "120 km pro Stunde"),
        ("A$300", "$300"),
        ("1,25 kg", "Es wiegt 1.25 kg."),
        ("It weighs 1250 kg", "It weighs 1,250 kg"),
        ("It weighs 1.25 kg", "Het gewicht is 1,250 kg"),
        ("1,25 t", "Das sind 1,250 t."),
        ("1,25 kg", "Das Gerät der IT-Abteilung wiegt 1,250 kg"),
        ("15 Nm", "15 N·m"),
        ("15 Nm", "15 N m"),
        ("500 kWh", "500 kW h"),
        ("10 MPa", "10 N/mm²"),
        ("5 million", "5.4 million"),
        ("0.5 kWh", "500Wh"),
        ("1 MW", "1000 kW"),
        ("2 bar", "200 kPa"),
        ("9 am", "Open 9–17 h"),
        ("5 pm", "9 am to 5 pm"),
        ("8:30pm", "20.30"),
        ("20.30", "8:30pm"),
        ("20:00", "8 Uhr abends"),
        ("12 pm", "closed at noon"),
        ("8 am", "8-10 am"),
        ("9 am", "9 o'clock"),
        ("30 jours", "30 days"),
        ("6 miesięcy", "6 months"),
        ("24か月", "24 months"),
        ("保証は24か月です", "保証期間は24か月間です"),
        ("ใน30วันครับ", "ภายใน 30 วัน"),
        ("120 × 80 × 15 cm", "120x80x15 cm"),
        ("1299 euros", "price: 1299 euros"),
        ("30日間有効です", "30 days"),
        ("2 anni", "24 mesi"),
        ("30 cents", "$0.30"),
        ("50 cents", "0,50 €"),
        ("500 kr", "500 SEK"),
        ("30 EUR/month", "30 € pro Monat"),
        ("$30 a month", "$30"),
        ("30 l/min", "1800 l/h"),
        ("100 Mbps", "100 Mbit/s"),
        ("48 hours", "2 days"),
        ("$30m", "$30 million"),
        ("CHF 12.50 am Tag", "CHF 12.50 pro Tag"),
        ("8 pm", "Wir schließen abends um 8 Uhr."),
        ("7:30 pm", "at 07:30 in the evening"),
        ("0 Uhr", "bis 24 Uhr"),
        ("15 Euro", "Beginn 20 Uhr\n15 Euro Eintritt"),
        ("500gです", "0.5 kg以下"),
        ("120 Md€", "120 milliards d'euros"),
        ("120 M€", "120 Mio. €"),
        ("5 Mio€", "4,8 Mio. €"),
        ("5 Mrd€", "4,8 Mrd. Euro"),
        ("5Mio€", "5.000.000 €"),
        ("5 M€", "5 000 k€"),
        ("12 Mio€", "12 Mio."),
        ("120 K€", "120 000 euros"),
        ("T-Shirt 38 M €25", "38"),
        ("3000 milligrammes", "3 g"),
        ("3000 miligramos", "3 g"),
        ("500 Milligramm", "0,5 g"),
        ("15 quilômetros", "15 km"),
        ("15 litri al giorno", "15 l pro Tag"),
        ("20 metro lines", "20 lines"),
        ("20グラム入り", "20 g"),
        ("20 mètres carrés", "20 m²"),
        ("20 metri quadri", "20 m²"),
        ("1 metro quadro", "1 m²"),
        ("20 m³", "20 metros cúbicos"),
        ("3 millions de mètres carrés", "3 km²"),
        ("15 €/mètre carré", "15 € al metro quadrato"),
        ("120 kilómetros por hora", "120 km/h"),
        ("50 to 60 km an hour", "50–60 km/h"),
        ("20 km a day", "20 km"),
        ("3-monatige Frist", "3 Monate"),
        ("14-tägiges Recht", "2 Wochen"),
        ("3-Monats-Frist", "3 Monate"),
        ("16-stellige Nummer", "16 Stellen"),
        ("10 ºC", "10 °C"),
        ("1234567890", "1234567890"),
        ("1,234,567,890 euros", "1234567890"),
        ("1,400,000,000", "1,412,600,000"),
        ("8,045,311,000 people", "8,045,311,447"),
        ("4294967296 bytes", "4.294967296 GB"),
        ("100 megabits", "100 Mbit"),
        ("3 megagrams", "3 tonnes"),
        ("2.4 gigahertz", "2400 MHz"),
        ("2.4 GHz", "2400 mHz"),
        ("500 MB", "500 mb"),
        ("100 MBps", "100 MB/s"),
        ("1 MPa", "10 bar"),
        ("4.7 kΩ", "4700 ohms"),
        ("45 US dollars", "$45"),
        ("45 dollars", "45 Canadian dollars"),
        ("CAD 45", "45 Canadian dollars"),
        ("3.5 % per year", "3.5% p.a."),
        ("30 € monatlich", "30 € pro Monat"),
        ("$30/mo.", "$30 per month"),
        ("9:00", "9 o'clock"),
        ("version 2.10", "Version 2.10"),
        ("Version 1.5", "version 1,5"),
        ("GPA 3.5", "GPA 3.48"),
        ("The Score 3.5 applies", "The Score 3.50 applies"),
        ("Score 1.5", "Score 1,5"),
        ("die Note 2.3", "die Note 2,30"),
        ("€1.749", "1,749 € per litre"),
    ] {
        assert!(agrees(answer, source), "{answer} | {source}");
    }
    for (answer, source) in [
        ("38 ohms", "48 ohms"),
        ("5 V", "5 A"),
        ("1,234", "1,235"),
        ("1 million", "1,400,000"),
        ("2.5", "25"),
        ("30 days", "30 hours"),
        ("1999", "1998"),
        ("3.15", "3.14159"),
        ("20 %", "25 %"),
        ("450", "45"),
        ("45 euros", "see form DOC-45"),
        ("保証は36か月です", "保証期間は24か月間です"),
        ("90 × 15 cm", "120x80x15 cm"),
        ("500 mg", "500 µg"),
        ("US$300", "US$200"),
        ("A$300", "US$300"),
        ("R$300", "no prices"),
        ("HK$300", "US$300"),
        ("-40 °C", "40 °C"),
        ("a balance of -$450", "$450"),
        ("6:30 pm", "5:30 pm"),
        ("6:30 am", "18:30"),
        ("18:30", "17:30"),
        ("CHF 5", "CHF 4"),
        ("100 km/h", "100 km"),
        ("100 m²", "100 m"),
        ("100%", "99.4%"),
        ("1000 kg", "600 kg"),
        ("It costs 1.25 euros", "The bike costs 1,250 euros, and its bag 20 euros"),
        ("2.4 kg", "the limit is 2,400 kg"),
        ("2 bar", "2.4 bar"),
        ("5 kWh", "5.4 kWh"),
        ("5 km", "5.4 km"),
        ("500 mWh", "500 MWh"),
        ("500 kWh", "500 Wh"),
        ("36 kV", "36 V"),
        ("65 bar", "65 psi"),
        ("15 A", "15 mA"),
        ("500 W", "500 Wh"),
        ("1 MW", "1 mW"),
        ("9 pm", "9 am"),
        ("21:00", "The shop opens at 9 am."),
        ("20:00 Uhr", "8 Uhr"),
        ("00:00", "12 pm"),
        ("05:00", "8 am to 5 pm"),
        ("30 mois", "30 jours"),
        ("30 meses", "30 días"),
        ("30 месяцев", "30 дней"),
        ("30 cents", "30 euros"),
        ("30 pence", "£30"),
        ("$30", "R$ 30"),
        ("30 EUR/year", "30 EUR/month"),
        ("$30 a day", "$30 a month"),
        ("30 l/h", "30 l/min"),
        ("30 MB/s", "30 Mbit/s"),
        ("30 ‰", "30 %"),
        ("24か月", "24年間"),
        ("99유로", "80유로"),
        ("$120 a year", "The plan costs $10."),
        ("$10", "$120 a year"),
        ("8 hours", "The train arrives at 20:00."),
        ("$99m", "$30m"),
        ("99seats", "80 seats"),
        ("99руб", "80 руб"),
        ("500gです", "成人は500mgまで"),
        ("500g입니다", "무게는 500kg입니다"),
        ("120 Mio.", "120 Mrd. €"),
        ("120 Mio. €", "120 Mrd."),
        ("120 M€", "120 Md€"),
        ("120 k€", "120 M€"),
        ("12 Mio€", "12 Mrd"),
        ("12 Mrd€", "12 Mio"),
        ("500 grammes", "500 mg"),
        ("8 kilomètres", "5 km"),
        ("20 mètres carrés", "20 m"),
        ("120 kilomètres par heure", "120 km"),
        ("3-monatige Frist", "3 Wochen"),
        ("2-Jahres-Garantie", "2 Monate"),
        ("10 ºC", "8 ºC"),
        ("1234567890", "1234567891"),
        ("12345678901234567890", "12345678901234567891"),
        ("0800123456789", "0800123456780"),
        ("1,234,567,891 euros", "1,234,567,892 euros"),
        ("100 megabytes", "100 megabits"),
        ("100 kilobytes", "100 kilobits"),
        ("100 milligrams", "100 megagrams"),
        ("100 MBps", "100 Mbps"),
        ("100 mPa", "100 MPa"),
        ("100 mΩ", "100 MΩ"),
        ("45 US dollars", "45 Canadian dollars"),
        ("45 Australian dollars", "US$45"),
        ("3.5 % per month", "3.5% p.a."),
        ("30 € monatlich", "30 € jährlich"),
        ("$30/mo.", "$30/yr."),
        ("30 € weekly", "30 € a month"),
        ("10 o'clock", "9 o'clock"),
        ("version 2.1", "version 2.10"),
        ("Python 3.10", "Python 3.1"),
        ("Python 3.1", "Python 3.14"),
        ("Firmware 2.1", "firmware 2.10"),
        ("1749 €", "€1.749 per litre"),
        ("1749 €", "1,749 €/l"),
    ] {
        assert!(!agrees(answer, source), "{answer} | {source}");
    }
}

#[test]
fn a_unit_behind_adjectives_is_the_unit_of_its_number() {
    for (answer, source) in [
        ("9 business days", "9 days"),
        ("30-day window", "30 calendar days"),
        ("30 days", "a 30-calendar-day window"),
        ("9 Business Days", "9 working days"),
        ("2 full weeks", "14 days"),
        ("**9** days", "9 days"),
        ("30+ days", "30 days"),
        ("30 days", "thirty (30) days"),
        ("30 days", "30 (thirty) business days"),
        ("30 or more days", "30 days"),
        ("3 days", "3 to 5 working days"),
        ("9 Werktage", "9 Tage"),
        ("9 volle Tage", "9 days"),
        ("9 рабочих дней", "9 дней"),
        ("9 pełnych dni", "9 days"),
        ("9 iş günü", "9 gün"),
        ("5営業日", "5 days"),
        ("5个工作日", "5天"),
        ("30 degrees Celsius", "30 °C"),
        ("5 million euros", "5.000.000 €"),
        ("5 millions d'euros", "5 million euros"),
        ("2 crore rupees", "₹20,000,000"),
        ("2 lakh", "2,00,000"),
        ("5万円", "50,000円"),
        ("3 mil millones de euros", "€3 billion"),
        ("5 Mio. Euro", "5 million euros"),
        ("450 million euros", "Revenue (in millions) 450"),
        ("30 pounds", "£30"),
        ("EUR120", "120 euros"),
        ("١٢٠ euros", "120 euros"),
        ("24 days", "24"),
        ("24 days", "Accepted within\n24. Later is too late."),
        ("24 years", "Mindestalter?\n24. Ausnahmen gibt es nicht."),
        ("24 days", "Frist (Tage):\n24"),
        ("24 Tage", "die Art: 24"),
        ("30 Euro", "Gebühr dieser Art 30"),
        ("30 days", "30. That is the number of days."),
        ("14 days", "14) days"),
        ("3 Tage", "3. Tag: Abreise"),
        ("15 euros", "Prices\n14. Adult\n15. Child"),
        ("24 days", "3. Within 24 days"),
        ("24 euros", "Absatz 24 €"),
    ] {
        assert!(agrees(answer, source), "{answer} | {source}");
    }
    for (answer, source) in [
        ("9 business weeks", "9 working days"),
        ("30 weeks", "30 working days"),
        ("30 years", "Reply within 30 working days."),
        ("30 years", "The claim is on page 30."),
        ("30 years", "see § 30 and No. 30"),
        ("30 years", "Rule 30, Art. 30, Abs. 30 and Ziffer 30"),
        ("30年", "第30条"),
        ("30 years", "It is so:\n28. Wait.\n29. Go.\n30. Come."),
        ("2 years", "1. Wait.\n2. Come."),
        ("1 year", "1. Wait."),
        ("30 years", "It is so.\n\n## 30. Coming"),
        ("30 years", "thirty (30) days"),
        ("30 years", "**30** days"),
        ("5 million euros", "3 to 5 working days"),
        ("2 lakh rupees", "2 crore rupees"),
        ("5万円", "5円"),
        ("100 square feet", "100 feet"),
        ("9 Arbeitstage", "9 Wochen"),
        ("30 Kalendertage", "30 Monate"),
        ("30 дней", "30 календарных месяцев"),
    ] {
        assert!(!agrees(answer, source), "{answer} | {source}");
    }
}

#[test]
fn what_an_amount_is_per_agrees_if_both_say_it_by_measure_and_by_time() {
    for (answer, source) in [
        ("18 euros a night", "18 euros per day"),
        ("126 Euro pro Woche", "18 Euro pro Nacht"),
        ("25 € je kg", "25 euros a kilo"),
        ("9 €/m²", "9 € per m2"),
        ("1 g/cm³", "1000 kg/m³"),
        ("10 mg a day", "10 mg/kg/day"),
        ("10 mg a day per kg", "10 mg/kg per day"),
        ("60 euros a night per person", "60 euros per person per night"),
        ("60 euros a night", "60 euros per person"),
        ("$5/m", "$5 a month"),
        ("60 euros as a flat rate", "60 euros per night"),
        ("30 euros am Abend", "30 euros pro Nacht"),
        ("3 Euro pro Person und Nacht", "3 Euro pro Nacht und Person"),
        ("3 euros per person, per night", "3 euros per night"),
        ("20 mg per kg daily", "20 mg per day and kg"),
        ("25 euros per kg", "25 euros per day and kilo"),
        ("5 euros a bit", "5 euros a month"),
    ] {
        assert!(agrees(answer, source), "{answer} | {source}");
    }
    for (answer, source) in [
        ("18 euros a week", "18 euros a night"),
        ("18 euros an hour", "18 euros per kilo"),
        ("60 euros per person a week", "60 euros per person per night"),
        ("25 euros per gram", "25 euros per kilo"),
        ("$3 a gallon", "$3 a litre"),
        ("0.30 € per MWh", "0.30 €/kWh"),
        ("5 mg/ml", "5 mg/dl"),
        ("15 € a la semana", "15 € al mes"),
        ("15 € de l'heure", "15 € par jour"),
        ("9 €/m²", "9 € per mile"),
    ] {
        assert!(!agrees(answer, source), "{answer} | {source}");
    }
}

#[test]
fn a_unit_behind_other_words_is_not_that_of_a_number() {
    for text in [
        "2 meals a day", "30 per day", "5 stores this week", "2 of those days", "3 half days", "100 square inches",
        "5 percentage points", "1) Days of rest", "2 Montage", "3 snack bar", "5 de cada 7", "in 2020 last year",
    ] {
        assert_eq!(quantities(text)[0].unit, None, "{text}");
    }
}

#[test]
fn every_currency_code_is_a_unit_before_and_behind_a_number() {
    for code in crate::trace::text::CURRENCY_CODES {
        let code = if code.len() > 2 { code.to_uppercase() } else { code.to_owned() };
        for text in [format!("{code} 45"), format!("{code}45"), format!("45 {code}")] {
            assert!(quantities(&text)[0].unit.is_some(), "{text}");
        }
    }
}

proptest::proptest! {
    #[test]
    fn quantities_stand_in_order_in_any_text(text in "[0-9a-zµ:.,T$€% °²–½⅓/-]{0,40}") {
        let found = quantities(&text);
        for pair in found.windows(2) {
            proptest::prop_assert!(pair[0].start < pair[0].end && pair[0].end <= pair[1].start, "{:?}", found);
        }
        for one in &found {
            proptest::prop_assert!(text.get(one.start..one.end).is_some(), "{:?}", one);
        }
    }
}

#[test]
fn a_code_before_a_number_makes_a_label_of_it_and_a_unit_or_a_letter_does_not() {
    for (before, is_label) in
        [("page ", true), ("§ ", true), ("No. ", true), ("DOC-", true), ("kW-", false), ("X-", false), ("-", false)]
    {
        assert_eq!(labels(before), is_label, "{before}");
    }
}

#[test]
fn numbers_within_words_are_none() {
    for text in ["AB12", "3rd", "B2B", "v2beta"] {
        assert_eq!(quantities(text), [], "{text}");
    }
    assert_eq!(quantities("7f3abc12, 12abc34, 20ème and 20º"), []);
    assert_eq!(quantities("in the 1990s").len(), 1);
}

#[test]
fn numbers_in_words_are_those_in_digits() {
    for (words, digits) in [
        ("two hundred and five", "205"),
        ("three million", "3,000,000"),
        ("within thirty business days of it", "30 days"),
        ("at six pm", "18:00"),
        ("minus forty degrees Celsius", "-40 °C"),
        ("thirty euros a month", "30 € / month"),
    ] {
        let (words, digits) = (quantities(words), quantities(digits));
        assert!(words.len() == 1 && digits[0].agrees(&words[0]) && words[0].agrees(&digits[0]), "{words:?}");
    }
    assert!(!quantities("30 years")[0].agrees(&quantities("thirty business days")[0]));
    assert!(!quantities("20 € per month")[0].agrees(&quantities("twenty euros a year")[0]));
}
