//! Which facts are found, and what supports them.

use super::*;
use crate::metric::Outcome;
use crate::metric::sample::{Story, observe};
use crate::trace::SourceRef;

const SOURCE: &str = "The Canopy heater (model CH-240) draws 2,400 W. Its resistance is 48 to 56 ohms. Returns are accepted \
                      within 30 days. It was first sold on 3 May 2019 by Fernlight of Oslo. \"Never cover the grille\", says the manual.";

fn missing(answer: &str) -> Vec<String> {
    let (_, places) = unsupported(answer, SOURCE);
    places.into_iter().map(|place| answer[place].to_owned()).collect()
}

#[test]
fn what_stands_in_the_source_in_other_spellings_is_supported() {
    for answer in [
        "It draws 2.4 kW.",
        "The resistance is between 48 and 56 Ω.",
        "You have 30 days, which is about a month.",
        "It came out on May 3rd, 2019.",
        "It was sold in 2019.",
        "The model is CH240.",
        "The manual says \"never cover the grille\".",
        "It is made by Fernlight.",
        "There are 3 steps:\n1. Unplug it.\n2. Wait.\n3. Send it to Oslo.",
        "This is the 2nd of them.",
        "**Return Window:** you have 30 days\n- **Terms & Conditions:** see the manual\n1. **Return Period** – you have 30 days",
        "| Return Window | you have 30 days |\n|---|---|\n| Start Date | in 2019 |",
        "**Delivery Address:** you have 30 days\n**Order Status:** Fernlight\n**Return Process:** Oslo\n**Shipping Costs:** none",
        "Important Note: returns are accepted within 30 days.",
    ] {
        assert_eq!(missing(answer), [""; 0], "{answer}");
    }
}

#[test]
fn what_stands_nowhere_is_named() {
    for (answer, expected) in [
        ("It draws 2.6 kW.", "2.6 kW"),
        ("The resistance is 38 ohms.", "38 ohms"),
        ("It is 48 volts.", "48 volts"),
        ("You have 60 days.", "60 days"),
        ("You have 9 business days.", "9 business days"),
        ("You have **9** days.", "9** days"),
        ("It costs EUR120.", "EUR120"),
        ("Its port is RS232.", "RS232"),
        ("It was sold on 4 May 2019.", "4 May 2019"),
        ("It was sold in 2018.", "2018"),
        ("Its firmware is 15.2.1.", "15.2.1"),
        ("It draws -2,400 W.", "-2,400 W"),
        ("Returns are open until 6:30 pm.", "6:30 pm"),
        ("It costs CHF 5.", "CHF 5"),
        ("The model is CH-250.", "CH-250"),
        ("The manual says \"always cover the grille\".", "always cover the grille"),
        ("According to Napoleon it is.", "Napoleon"),
        ("It is Fernlight vs. Napoleon.", "Napoleon"),
        ("**Return Window:** 60 days", "60 days"),
        ("- **Anna Keller:** ask her for it", "Keller"),
        ("**Canopy Lite:** you have 30 days", "Lite"),
        ("**Delivery Napoleon Time:** it is soon", "Napoleon"),
        ("Uw bestelling wordt door Napoleon verzonden.", "Napoleon"),
        ("Bestillingen din sendes av Napoleon.", "Napoleon"),
    ] {
        assert_eq!(missing(answer), [expected], "{answer}");
    }
}

#[test]
fn the_first_word_of_a_sentence_is_no_name_behind_a_source_or_an_emoji() {
    for before in ["[manual] ", "(manual.pdf) ", "[Source: manual] ", "🚲 "] {
        let answer = format!("You have 30 days. {before}Bring it back.");
        assert_eq!(missing(&answer), [""; 0], "{answer}");
    }
    for answer in
        ["You have 30 days.【4:0†manual】 Bring it.", "You have 30 days.¹ Bring it.", "✅ Yes, you have 30 days."]
    {
        assert_eq!(missing(answer), [""; 0], "{answer}");
    }
    for answer in ["The shop (manual.pdf) Napoleon has 30 days.", "(By the way) Napoleon has 30 days."] {
        assert!(missing(answer).contains(&"Napoleon".to_owned()), "{answer}");
    }
}

#[test]
fn a_name_an_address_and_an_id_support_no_amount() {
    let left = |answer: &str, source: &str| unsupported(answer, source).1.len();
    for (answer, source) in [
        ("It costs 45 euros.", "See https://shop.example/faq/45 for it."),
        ("It costs 45 euros.", r#"{"order_id": 45, "text": "It is low."}"#),
        ("It costs 45 euros.", r#"{"docId":"45"}"#),
        ("It costs 45 euros.", "See form DOC-45."),
        ("It costs 45 euros.", r#""metadata.loc.pageNumber": 45"#),
        ("It costs 45 euros.", r#""page_label": "45""#),
        ("It costs 45 euros.", r#"{"hits": [], "estimatedTotalHits": 45}"#),
        ("It costs 45 euros.", r#"{"found": 45, "out_of": 4}"#),
        ("It costs 45 euros.", r#"{"hits": {"total": {"value": 45, "relation": "eq"}}}"#),
        ("It costs 45 euros.", r#"{"_distance": 45}"#),
        ("It costs 45 euros.", r#""processingTimeMS": 45"#),
        ("It costs 45 euros.", "It is in s3://kb/docs/45.md."),
        ("It takes 14 days.", "発売は2026年12月14日です。"),
        ("发布于2026年12月14日。", "It was sold on 2026-12-24, and you have 14 days."),
        ("Call +49 30 12345.", "Telephone: +49 30 1234567"),
        ("It is 120X90 cm.", "It is 120 x 80 cm."),
        ("The register is 0x10.", "The register is 0x80."),
        ("The total is 90 euros.", "DOC-45 is 45 euros."),
    ] {
        assert_eq!(left(answer, source), 1, "{answer} by {source}");
    }
    for (answer, source) in [
        ("It costs 45 euros.", r#"{"order_id": 12, "paid": 45}"#),
        ("It is form DOC-45.", "See form DOC-45."),
        ("Dilute it 1:10.", "Dilute it 1 to 10."),
        ("It is sold in the United Kingdom.", "It is sold in the UK."),
        ("It is made by the NGA.", "It is made by the National Gadget Association."),
        ("In total it is 20 %.", "It sold 10 of 50."),
        ("It is 120x80 cm.", "It is 120 by 80 cm."),
        ("It is order 4711.", r#"{"order_id": 4711}"#),
        ("It costs 1299 EUR.", "\"price\": 1299\n\"currency\": \"EUR\""),
        ("发布于2026年5月3日。", "It was sold on May 3rd, 2026."),
        ("Die Frist ist der 5. März 2027.", "2027-03-05"),
        ("I am an AI assistant. It costs 45 euros.", "45 euros"),
        ("It is +25 - 30 °C.", "It is +25 to +30 °C."),
        ("It is +10 000 000 kroner.", "It is 10 million kroner."),
        ("Call +47 22334455 / 22334466.", "Telephone: +47 22334455 or 22334466"),
        ("Call +49 30 1234567.", "Telephone: +49 (0)30 1234567"),
        ("Take 2 x 250 g.", "A double pack of 250 g each."),
        ("表１ 2024年度の料金は30ユーロです。", "表１ 2024年度の料金は30ユーロです。"),
        ("It ends on December 24, 2026, at 18:00.", "It ends 2026-12-24T18:00:00Z."),
        ("It ended on 2026-12-24.", "It ends 2026-12-24T18:00:00+01:00."),
        ("Call +47 22 33 44 55.", "Telephone: +4722334455"),
        ("Call +49 (30) 1234567.", "Telephone: +49 30 1234567, from 9"),
        ("型番はRS232です。", "型番: RS232"),
    ] {
        assert_eq!(left(answer, source), 0, "{answer} by {source}");
    }
    assert_eq!(left("Die Frist ist der 5. März 2027.", "2027-03-03"), 1);
    assert_eq!(left("The office is in **Madrid**.", "The office is in Oslo."), 1);
    assert_eq!(left("Call +47 22 33 44 56.", "Telephone: +47 22 33 44 55"), 1);
}

#[test]
fn code_addresses_citations_and_nouns_of_german_are_no_facts() {
    for answer in [
        "Run `reset --level 99`.",
        "See [1] and [14].",
        "See https://shop.example/p/123456 for it.",
        "Ihre Bestellung wurde versandt.",
        "Ihre Bestellung wurde via Post versandt.",
        "Der Versand erfolgt via Post.",
        "Hallo, Ihr Paket kommt bald.",
        "Bitte senden Sie Ihr Paket zurück.",
        "Die Heizung ist nicht für das Bad, und der Stecker ist von der Wand entfernt.",
    ] {
        assert!(places(answer).is_empty(), "{answer}");
    }
}

#[test]
fn a_computed_number_is_not_checked_where_the_statement_says_so() {
    assert_eq!(missing("The difference is 8 ohms, or 8 in total; the sum is 104 ohms."), [""; 0]);
    assert_eq!(missing("It is 104 ohms."), ["104 ohms"]);
}

#[test]
fn a_statement_that_cites_is_looked_up_in_what_it_cites() {
    let mut known = Known::default();
    known.asked.add("Is it 15 kg?");
    known.add("a#1", [].into_iter(), ("It weighs 20 kg.", &[]), true);
    known.add("b#1", [].into_iter(), ("It costs 99 euros.", &[]), false);
    let found = |text: &str| {
        let answer = Answer { text: text.into(), ..Answer::default() };
        let found = known.look_up(&answer, &[0, 1], &[]);
        (found.unsupported.into_iter().map(|(_, note)| note).collect::<Vec<_>>(), found.unseen.is_some())
    };
    assert_eq!(found("It weighs 20 kg [1]. It costs 99 euros. [2]"), (vec![], false));
    for behind in
        ["It weighs 20 kg. [1] It costs 99 euros. [2]", "It weighs 20 kg.[[1]](/a) It costs 99 euros.[[2]](/b)"]
    {
        assert_eq!(found(behind), (vec![], false), "{behind}");
    }
    for wrong in [
        "It costs 99 euros. [1]",
        "It costs 99 euros. [1]\nSo it is.",
        "It costs 99 euros.[[1]](/a)\n",
        "It costs 99 euros.\n\n[1]",
    ] {
        assert_eq!(found(wrong).0, ["“99 euros” is not in a#1, which is cited; it is in b#1"], "{wrong:?}");
    }
    assert_eq!(found("It weighs 20 kg [1]. [2] says 99 euros."), (vec![], false));
    assert_eq!(found("It weighs 15 kg [1]."), (vec![], false), "the user said so");
    assert_eq!(
        found("It costs 99 euros [1]."),
        (vec!["“99 euros” is not in a#1, which is cited; it is in b#1".into()], false)
    );
    assert_eq!(
        found("It costs 98 euros [2].").0,
        ["“98 euros” is in nothing that was retrieved; the nearest passage is b#1"]
    );
    assert!(found("It costs 98 euros [2].").1, "the whole text of b#1 is not known");
}

#[test]
fn what_is_said_after_a_result_that_is_not_shown_is_not_measured() {
    let of = |tell: fn(Story) -> Story| {
        let tell = |story: Story| tell(story.turn("q")).deliver("It costs 99 euros.", &[], 1);
        let outcomes = observe("grounded", "[{case: a, ask: q}]", tell).into_iter().map(|unit| unit.outcome);
        outcomes.collect::<Vec<_>>()
    };
    assert_eq!(of(|s| s.search(&["d#1"])), [Outcome::Failure], "its text is short, so it is whole");
    assert_eq!(of(|s| s.unseen("knowledge_base_search")), []);
    assert_eq!(of(|s| s.unseen("lookup")), [Outcome::Failure], "the answer was not written from it");
    assert_eq!(of(|s| s.unseen("lookup").completion_shown(&[])), []);
}

#[test]
fn a_number_stands_for_a_source_of_the_answer_and_a_services_text_for_each_of_its_pages() {
    let page = "https://example.org/lamps";
    let mut known = Known::default();
    known.add("lighting#3", [].into_iter(), ("Lamps come up over twelve minutes.", &[]), true);
    known.add("result-1", [page].into_iter(), ("Firmware 7.3 came out in 2025.", &[]), true);
    let source = |id: &str| SourceRef { kind: "internal".into(), id: id.into(), title: String::new(), number: None };
    let found = |text: &str, sources: &[&str]| {
        let sources = sources.iter().map(|id| source(id)).collect();
        let answer = Answer { text: text.into(), sources, ..Answer::default() };
        known.look_up(&answer, &[0], &["Note: 71360 tokens."]).unsupported.len()
    };
    assert_eq!(found("Firmware 7.3 came out in 2025 [2].", &["lighting#3", page]), 0);
    assert_eq!(found("Firmware 7.3 came out in 2025 [1].", &[page]), 0, "the source, and not the first passage");
    assert_eq!(found("Firmware 7.3 came out in 2025 [1].", &["lighting#3", page]), 2);
    assert_eq!(found("It lasts 20 hours [1].", &["lighting#3"]), 1);
    assert_eq!(found("It lasts twelve minutes. Note: 71360 tokens.", &[]), 0, "a notice is the flow's own");
}

#[test]
fn a_number_stands_for_its_entry_in_the_answers_own_list_of_sources() {
    let mut known = Known::default();
    for (id, title, url, text) in [
        ("kb-0001", "Opening hours", "https://example.org/hours", "Open for 9 hours."),
        ("kb-0002", "Shipping", "https://example.org/shipping", "Shipping takes 3 days."),
        ("kb-0003", "Returns policy", "https://example.org/returns", "Returns are free for 30 days."),
    ] {
        let place = known.add(id, [url].into_iter(), (text, &[title]), true);
        known.evidence[place].shown = id;
    }
    let wrong = |text: &str| {
        let answer = Answer { text: text.into(), ..Answer::default() };
        known.look_up(&answer, &[0, 1, 2], &[]).unsupported.len()
    };
    for list in [
        "Sources:\n[1] Returns policy\n[2] https://example.org/shipping",
        "Sources: [1] kb-0003, [2] kb-0002",
        "[^1]: Returns policy, 2nd edition\n[^2]: Shipping",
        "**References**\n1. [Returns](https://example.org/returns/)\n2. Shipping",
    ] {
        assert_eq!(
            wrong(&format!("Returns are free for 30 days [1]. Shipping takes 3 days [2].\n\n{list}")),
            0,
            "{list}"
        );
        assert_eq!(
            wrong(&format!("Returns are free for 3 days [1]. Shipping takes 3 days [2].\n\n{list}")),
            1,
            "{list}"
        );
    }
    assert_eq!(
        wrong("Returns are free for 30 days [1].\n\n[1] Our terms"),
        0,
        "an entry may name a source in other words"
    );
    assert_eq!(wrong("Returns are free for 31 days [1].\n\n[1] Our terms"), 1);
    let steps = "Opening takes 9 hours [1]. So:\n1. See the returns policy, then shipping.\n2. Send it";
    assert_eq!(wrong(steps), 0, "steps are no sources");
    assert_eq!(wrong(&steps.replace("9 hours", "30 days")), 1, "steps are no sources");
}

#[test]
fn amounts_in_words_and_in_two_units_are_looked_up() {
    for (answer, source, wrong) in [
        ("You have forty days.", "30 days", 1),
        ("You have thirty days.", "30 days", 0),
        ("You have thirty (30) days.", "30 days", 0),
        ("Es dauert drei Tage.", "3 Tage", 0),
        ("Cela coûte vingt-cinq euros pour trente-six mois.", "25 €, 36 mois", 0),
        ("It is between one hundred and two hundred euros.", "100–200 euros", 0),
        ("It costs a hundred and fifty euros.", "€150", 0),
        ("It costs five dollars and fifty cents.", "$5.50", 0),
        ("It came in nineteen eighty-four, at three point five percent.", "1984, 3.5 %", 0),
        ("Come on the twenty-second of May at twenty past seven.", "22 May, 7:20", 0),
        ("It takes twenty-five days.", "within twenty-\nfive days", 0),
        ("You have 30 days.", "Clause 4\nThirty days' notice", 0),
        ("It lasts 2 weeks, 5 days per week.", "2 weeks (5 days/week)", 0),
        ("It is for 1 year and 6 months.", "1 year / 6 months", 0),
        ("It takes 24 hours.", "24 h\n30 rooms", 0),
        ("It takes 45 minutes more.", "1 h 45 min", 0),
        ("价格为199元。", "价格为99，199，299元。", 0),
        ("Write &#8364; for it.", "Write &#8364; for it.", 0),
        ("We close on Sunday.", "Sun cream is sold here.", 1),
        ("It takes two to three days.", "2–3 days", 0),
        ("It takes one day, or so.", "Soon.", 0),
        ("One of the twelve shops has two floors.", "Many shops.", 0),
        ("A garantia vale a partir dos meses de inverno.", "A garantia.", 0),
        ("It takes 1 h 45 min.", "105 minutes", 0),
        ("It takes 105 minutes.", "1 hour and 45 minutes", 0),
        ("It takes 45 minutes more.", "1 hour and 45 minutes", 0),
        ("It takes 1 hour 15 minutes.", "105 minutes", 1),
        ("It is valid for 18 months.", "1 year 6 months", 0),
        ("Come on Monday.", "Mon–Fri", 0),
        ("Come on Sunday.", "Mon–Fri", 1),
        ("We are in Malaga and in São Paulo.", "Málaga, Sao Paulo", 0),
        ("We close on Tuesdays.", "Tue", 0),
        ("It takes nine hundred and ninety-nine dollars.", "$999", 0),
        ("We open at six pm.", "18:00", 0),
        ("We open at six pm.", "17:00", 1),
        ("Ouvert dès 9h30, 1h45 de film.", "9:30, 105 min", 0),
        ("It takes 1h 45m.", "105 min", 0),
        ("It needs 45 m of rope.", "1 h, 45 m", 0),
        ("He won for seven years.", "He won for the seventh year.", 0),
        ("The second week is free.", "Free.", 0),
        ("It is 1234 EUR.", "It is 1\u{2009}234 EUR.", 0),
        ("It is 234 EUR.", "It is 1\u{2009}234 EUR.", 1),
        ("234円です。", "１，２３４円", 1),
        ("It is -40 °C in München.", "&minus;40&nbsp;&deg;C, M&uuml;nchen", 0),
        ("It is 234 EUR.", "1&nbsp;234 EUR", 1),
        ("内存为16G内存，宽带为100M宽带。", "16GB内存, 100Mbps宽带", 0),
        ("内存为16G内存，存储为128GB存储。", "16GB内存和128G存储", 0),
        ("4K動画です。", "4K video", 0),
        ("18Kゴールドです。", "素材: 18金", 0),
        ("这是5A级景区。", "国家AAAAA级旅游景区", 0),
        ("5Gスマホに対応しています。", "５Ｇ対応", 0),
        ("It ends on 2026/12/03.", "3-Dec-2026", 0),
        ("It ends on 2026/12/04.", "3 December 2026", 1),
        ("Contact Zur Rose via Napoleon.", "Zur Rose", 1),
        ("Hotel Zur Post offers breakfast with Napoleon.", "Zur Post", 1),
        ("Gasthof zum Adler is run by Napoleon.", "zum Adler", 1),
        ("Ask Napoleon, our Bitte representative.", "Bitte", 1),
        ("Die Grenze liegt bei 120 Mio. €.", "120 Mrd. €", 1),
        ("Die Grenze liegt bei 120 Mio. Euro.", "120 Millionen Euro", 0),
        ("Der Umsatz war 120 Mio. Dann kam Rom.", "120 Mio.", 0),
    ] {
        assert_eq!(unsupported(answer, source).1.len(), wrong, "{answer} {source}");
    }
}

#[test]
fn days_that_share_a_month_are_dates_of_it() {
    for (answer, source) in [
        ("25 December", "Closed on 24, 25, and 26 December 2025."),
        ("24 December", "We are closed on the 24th and the 25th of December."),
        ("March 5", "between 5 and 7 March"),
        ("7 March", "It comes March 5–7, 2025."),
        ("7 March", "| March 5-7 | closed |"),
        ("December 25", "Closed December 24 and 25."),
        ("24. Dezember", "Am 24. und 31. Dezember geschlossen."),
        ("24. Dezember", "24.-26.12.2025"),
        ("le 24 décembre", "Fermé les 24 et 25 décembre."),
        ("20 euros", "Adults pay 20 and 25 December is free."),
        ("15 %", "Discount: 10, 15 and 20 May."),
        ("1 de agosto", "Cerrado del 1 al 15 de agosto."),
    ] {
        assert!(unsupported(&format!("It is {answer}."), source).1.is_empty(), "{answer} by {source}");
    }
    for (answer, source) in [
        ("23 December", "Closed on 24, 25 and 26 December."),
        ("24 January", "Closed on 24, 25 and 26 December."),
        ("17 December", "Open 9 to 17, 24 and 25 December."),
        ("5 December", "It weighs 5 kg and 7 December is the day."),
        ("3 December", "See chapter 3 and 24 December."),
        ("9 December", "Open at 9 and 24 December."),
        ("20 December", "The fee is €20 and 24 December is free."),
        ("1 December", "Closed on January 1 and 25 December."),
        ("28 March", "Closed from 28 to 3 March."),
        ("March 7", "On March 5 and 7 people came."),
        ("March 7", "On March 5 - 7 pm it opens."),
        ("March 7", "On March 5-7pm it opens."),
        ("March 12", "Open March 5, 10 to 12."),
        ("30 May", "We sold 30 and 31 May is the last day."),
        ("2 May", "The course costs 2 or 3 May be added."),
    ] {
        assert_eq!(unsupported(&format!("It is {answer}."), source).1.len(), 1, "{answer} by {source}");
    }
}

#[test]
fn small_numbers_in_the_words_of_other_languages_are_numbers() {
    for (answer, source) in
        [("La garantía es de 2 años.", "dos años"), ("C'est 2 ans.", "deux ans"), ("Het duurt 3 weken.", "drie weken")]
    {
        assert!(unsupported(answer, source).1.is_empty(), "{answer}");
    }
    assert_eq!(unsupported("It takes 2 days.", "It is due to arrive once.").1.len(), 1, "words of English are none");
}

#[test]
fn facts_of_an_imported_trace_that_lists_no_search_are_unsupported_and_one_without_the_list_is_no_unit() {
    use crate::metric::sample::{metric, plan, story, viewed};
    use crate::trace::{Member, Mode};
    let plan = plan("[{case: a, ask: q}]", "[]", 1);
    let of = |mode: Mode, absent: Option<Vec<Member>>| {
        let mut trace = story(&plan, 0).turn("How heavy is it?").deliver("It weighs 160 kg.", &[], 1).done();
        (trace.evidence.mode, trace.absent) = (mode, absent);
        for event in &mut trace.events {
            if let What::TurnEnded(ended) = &mut event.what
                && let crate::trace::TurnOutcome::Answered(answer) = &mut ended.outcome
            {
                answer.unseen = vec![USED_INTERNAL_KB.to_owned()];
            }
        }
        viewed(&plan, &trace, |view| (metric("grounded").observe)(&view).len())
    };
    assert_eq!(of(Mode::Imported, Some(Vec::new())), 1, "`searches` and `calls` are there, and empty");
    for lacks in [Member::Passages, Member::Calls] {
        assert_eq!(of(Mode::Imported, Some(vec![lacks])), 0, "{lacks:?}");
    }
    assert_eq!(of(Mode::Imported, None), 0, "messages do not show what the agent's code retrieved");
    assert_eq!(of(Mode::Live, Some(Vec::new())), 0, "spans beside traffic may leave a search out");
}
