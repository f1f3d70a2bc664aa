//! Detects answers that state that they cannot answer: that they, or what they searched, know, have or found nothing.
//!
//! A list of phrases in some twenty-five languages, matched in the normalised text. A phrase needs a subject and an object
//! that is missing, so that "there is no doubt" and "you do not have to worry" are not refusals. The list is
//! incomplete: a case that expects a refusal can give phrases instead (`answer.contains`, `answer.matches`).

use super::citations::numbers_of;
use super::normalise::normalise;
use regex::{Regex, RegexSet};
use std::borrow::Cow;
use std::sync::LazyLock;

/// Objects that can be missing.
const MISSING: &str = "(?:information|answer|source|data|documentation|document|record|mention|entry|entries|result|evidence|detail|knowledge|passage|match|hit)(?:e?s)?";

static PHRASES: LazyLock<Option<RegexSet>> = LazyLock::new(|| {
    let not = r"(?:not|never|n't)";
    let sources = r"(?:documentation|documents?|docs|manuals?|knowledge base|sources?|search(?:es)?|results?|passages?|context|material|excerpts?)";
    let say = r"(?:answer|help|find|say|tell|confirm|determine|provide|locate|verify|give)";
    let english = [
        format!(r"\b(?:i|we) (?:\w+ ){{0,2}}?(?:do|did|could|can|would|will|wo|am|are|have|was|were) ?{not} (?:\w+ ){{0,2}}?(?:know|find|found|answer|say|tell|help|confirm|determine|locate|verify|see|aware|sure|able)\b"),
        format!(r"\b(?:i|we) (?:\w+ ){{0,2}}?(?:do|did|could) ?{not} (?:\w+ )?have (?:\w+ ){{0,3}}?{MISSING}\b"),
        format!(r"\b{sources} (?:\w+ ){{0,4}}?(?:do|does|did|could|can|would|have|has) ?{not} (?:\w+ )?(?:say|mention|contain|cover|include|provide|answer|give|have|list|state|tell|address|reveal)"),
        format!(r"\b(?:cannot|can not|can't|could not|couldn't|unable to|not able to) (?:\w+ )?{say}\b"),
        format!(r"\bthere (?:is|are|was|were) no (?:\w+ ){{0,3}}?{MISSING}\b"),
        format!(r"\b(?:i|we|search(?:es)?|{sources}) (?:\w+ ){{0,2}}?(?:found|have|had|has|gave|returned|got|contains?|holds?) no (?:\w+ ){{0,3}}?{MISSING}\b"),
        r"\b(?:found|find|know|have|has|say|says|contains?|returned|gave) nothing(?: (?:about|on|for|in|that|relevant|of|to|here)\b|[.,;:!]|$)".into(),
        format!(r"\bno (?:\w+ ){{0,3}}?{MISSING} (?:\w+ ){{0,4}}?(?:was|were|is|are|could be|has been|have been) (?:\w+ )?(?:found|available|given|known|there)\b"),
        format!(r"\bthere (?:is|was) nothing (?:(?:relevant|more|at all|written|said) )?(?:(?:about|on|regarding) (?:this|that|it) )?(?:in|on|about) (?:\w+ ){{0,2}}?{sources}\b"),
        r"^(?:\w+ )?not found[.!]?$".into(),
        r"\b(?:i'm|we're) not (?:\w+ )?(?:sure|able|aware|certain)\b".into(),
        r"\b(?:this|that|it|the answer|that information|this information) (?:is|was)(?: not|n't) (?:\w+ )?(?:known|documented|covered|mentioned|in the)\b".into(),
        r"\bnothing (?:\w+ ){0,3}?(?:was|is|could be) (?:found|known|documented)\b".into(),
        r"\b(?:i|we)(?:'d| would| will|'ll| do|) ?(?:rather not|prefer not to|not|n't want to|not want to|decline to) (?:guess|speculate|make (?:it|that|things|something|anything) up)\b".into(),
        format!(r"\bnothing (?:in|on) (?:\w+ ){{0,3}}?{sources} (?:answers?|says?|mentions?|covers?|tells?|addresses)\b"),
        r"\b(?:beyond|outside) (?:of )?(?:(?:my|our|the) (?:knowledge|scope|documentation)|what (?:i|we) (?:can|know))\b".into(),
    ];
    let others = [
        // German
        r"\b(?:weiss|wissen) (?:\w+ ){0,4}?nicht\b|\bnicht (?:\w+ )?(?:beantworten|bekannt|dokumentiert|finden|sagen)\b",
        r"\b(?:nichts|keine?n?) (?:\w+ ){0,6}?(?:gefunden|bekannt|finden)\b|\bkeine?n? (?:\w+ )?(?:information(?:en)?|angaben?|quellen?|hinweise?|antwort|daten)\b|\b(?:steht|geht) (?:\w+ ){0,3}?nicht (?:in|aus) (?:\w+ )?(?:unterlagen|dokument\w*|handbuch|quellen|wissensdatenbank|wissensbasis)\b|\b(?:dazu|hierzu|darueber|darüber) finden? (?:ich|wir) (?:\w+ ){0,3}?(?:nichts|keine)\b",
        // French
        r"\bne (?:le |la )?(?:sais|savons|peux|pouvons) pas\b|\bn'ai (?:rien|pas|aucune?)\b|\bn'a (?:rien|pas|ete) trouve|\baucune? (?:information|source|reponse|réponse|donnee|donnée|resultat|résultat)|\brien trouve",
        // Spanish and Portuguese
        r"\bno (?:lo )?sé\b|\bno lo se\b|\bno se[.,;!]|\bno se$|\bno (?:he |se |hemos )?(?:encontr|hall)|\bno (?:tengo|hay|puedo|existe) (?:\w+ ){0,2}?(?:informaci|respuesta|respond|datos|fuente)|\bn[aã]o (?:sei|h[aá]|tenho|posso)\b|\bn[aã]o (?:\w+ )?encontr",
        // Italian and Dutch
        r"\bnon (?:lo )?(?:so|trov|ho trovato|posso rispondere|ho informazioni|ci sono informazioni)|\bweet (?:\w+ ){0,3}?niet\b|\b(?:niets|geen) (?:\w+ ){0,4}?(?:gevonden|bekend|informatie)\b",
        // Finnish, Hungarian, Romanian, Czech, Greek, Ukrainian
        r"\ben (?:tiedä|löytänyt)\b|\bnem (?:tudom|találtam)\b|\bnu (?:[sș]tiu|am g[aă]sit)\b|\bneví[m]e?\b|\bnena[sš]el\b|δεν (?:ξέρω|γνωρίζω|βρήκα)|не знайшов",
        // Swedish, Norwegian, Danish, Polish
        r"\bvet (?:\w+ )?(?:inte|ikke)\b|\bved (?:\w+ )?ikke\b|\b(?:inget|ingenting|ingen|intet) (?:\w+ ){0,4}?(?:hitta|funn|fund|information|informasjon)|\bnie (?:wiem|znalaz|mog[eę] odpowiedz)",
        // Japanese, Chinese, Korean
        r"見つかりません|見つから(?:ない|ず)|[わ分]かりません|情報[はが](?:ありません|ない)|お?答え(?:でき|られ)ません|不知道|[没沒]有(?:找到|.{0,8}信息)|找不到|[无無]法回答|찾을 수 없|알 수 없|모르겠|정보가 없",
        // Arabic, Russian, Turkish
        r"لا أعرف|لا اعرف|لم أجد|لم يتم العثور|لا توجد معلومات|لا يمكنني|не знаю|не наш[её]л|не найден|нет (?:\w+ ){0,3}?(?:информации|данных)|не могу ответить|bilmiyorum|bulamad|bilgi yok",
    ];
    RegexSet::new(english.iter().map(String::as_str).chain(others)).ok()
});

/// What others cannot do, which is no refusal: "You cannot find it in shops".
static OF_OTHERS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let others = "(?:you|they|he|she|one|users?|customers?|members?|guests?|people|children|nobody)";
    let unable = "(?:cannot|can not|can't|could not|couldn't|(?:is|are) (?:unable|not able) to|will not|won't)";
    Regex::new(&format!(r"\b{others} (?:(?:also|still|just|simply|often|usually|then) )?{unable}\b")).ok()
});

/// A limit, which is a refusal unless something is claimed beside it: "I cannot say more".
static NO_MORE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let verbs = "(?:know|find|found|say|tell|help|confirm|provide|give|see|have)";
    let whom = "(?:(?:you|us|me) )?(?:any |anything |much |nothing |something )?";
    Regex::new(&format!(r"\b{verbs} {whom}(?:more|further|else)\b(?:[.,;:!]|$)")).ok()
});

/// A belief, up to the end of its sentence, which is a claim beside any refusal: "I don't know, but I think it is blue".
static BELIEF: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let held = r"(?:i|we)(?:'d| would)? (?:(?:do|still|would|also|just|really|personally) )?(?:believe|think|guess|assume|suspect|reckon|(?:say|expect) (?:the|its?|it's|this|that|they|there))";
    let others = "(?:ich|wir) (?:glaube|denke|vermute)n?|(?:glaube|denke|vermute)n? (?:ich|wir)|je (?:crois|pense|suppose) que?|(?:creo|pienso|supongo) que|(?:credo|penso) che";
    let likely =
        "(?:its?|this|that|they|these|those)(?:'s|'re| is| are) (?:probably|likely|most likely|very likely|presumably)";
    Regex::new(&format!(r"\b(?:{held}|{others}|{likely})\b[^.!?;\n]*")).ok()
});

/// What parts a refusal from what is said all the same: "I don't know the date, but the warranty is two years".
static CONTRASTS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i), *(?:but|however|although|though|aber|mais|pero|mas|ma|maar|men)\b").ok());

/// Whether a normalised text holds a belief that neither refuses nor advises.
fn believes(normal: &str, refuses: impl Fn(&str) -> bool) -> bool {
    // Advice, and what is believed of the documents or of the question, answers nothing.
    let advises = |part: &str| {
        let words = [
            "best", "better", "worth", "check", "look", "reach", "reaching", "contact", "ask", "call", "reception",
            "team", "vendor", "manufacturer", "website", "document", "documents", "documentation", "question",
            "something", "not", "no", "fragen", "wenden", "demander", "preguntar",
        ];
        part.split_whitespace().any(|word| words.contains(&word.trim_matches(|letter: char| !letter.is_alphanumeric())))
    };
    let beliefs = BELIEF.iter().flat_map(|belief| belief.find_iter(normal));
    // "I think so" says nothing.
    let says = |part: &str| !part.ends_with(" so");
    beliefs.map(|found| found.as_str()).any(|part| says(part) && !refuses(part) && !advises(part))
}

/// Characters that end a sentence.
pub(crate) const SENTENCE_ENDS: [char; 6] = ['.', '!', '?', ';', '\n', '。'];

/// Sentences that regret, normalised, and say nothing else.
static REGRETS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"^(?:(?:i'm|i am|we are)? ?(?:very |so )?sorry|unfortunately not|(?:es )?tut mir (?:sehr )?leid|leider nein|entschuldigung|(?:je suis )?(?:vraiment )?désolée?|pardon|lo siento(?: mucho)?|mi dispiace|sinto muito|申し訳(?:ありません|ございません)|抱歉|对不起|죄송합니다)$",
    )
    .ok()
});

/// Whether `text` states a refusal.
pub(crate) fn says_that_it_cannot_answer(text: &str) -> bool {
    let normal = normalise(text);
    let own = OF_OTHERS.as_ref().map_or(Cow::Borrowed(&*normal), |others| others.replace_all(&normal, "."));
    let refuses = |text: &str| PHRASES.as_ref().is_some_and(|phrases| phrases.is_match(text));
    let unlimited = NO_MORE.as_ref().map_or(Cow::Borrowed(&*own), |limit| limit.replace_all(&own, "."));
    refuses(&own) && !believes(&own, refuses) && (refuses(&unlimited) || !claims_beside(text, &unlimited, refuses))
}

/// Whether a text claims something beside a limit: it has a number, or a sentence that neither has the limit nor regrets.
fn claims_beside(text: &str, unlimited: &str, refuses: impl Fn(&str) -> bool) -> bool {
    let mut sentences = text.split(SENTENCE_ENDS).filter(|part| part.contains(char::is_alphanumeric));
    let claims = |sentence: &str| {
        let words = normalise(sentence.trim_matches(|letter: char| !letter.is_alphanumeric()));
        !refuses(&words) && !regrets(&words)
    };
    unlimited.contains(|letter: char| letter.is_ascii_digit()) || sentences.any(claims)
}

/// Whether a normalised sentence regrets, and says nothing else.
fn regrets(sentence: &str) -> bool {
    REGRETS.as_ref().is_some_and(|known| known.is_match(sentence))
}

/// Whether `text` refuses to answer `asked` and does nothing else: each of its sentences says that it cannot answer, or regrets it; it cites
/// nothing, and has no word with a digit that was not asked about.
pub(crate) fn only_refuses(text: &str, asked: &str) -> bool {
    let (normal, asked) = (normalise(text), normalise(asked));
    let word = |one: &'_ str| one.trim_matches(|letter: char| !letter.is_alphanumeric()).to_owned();
    let known =
        |one: String| !one.contains(char::is_numeric) || asked.split_whitespace().any(|there| word(there) == one);
    let sentences = text.split(SENTENCE_ENDS).flat_map(|sentence| match &*CONTRASTS {
        Some(contrasts) => contrasts.split(sentence).collect(),
        None => vec![sentence],
    });
    says_that_it_cannot_answer(text)
        && sentences.filter(|part| part.contains(char::is_alphanumeric)).all(|sentence| {
            let words = sentence.trim_matches(|letter: char| !letter.is_alphanumeric());
            says_that_it_cannot_answer(sentence) || regrets(&normalise(words))
        })
        && numbers_of(text).is_empty()
        && normal.split_whitespace().map(word).all(known)
}

/// Whether a text is exactly these words, apart from capitals, spaces, apostrophes and marks around them.
pub(crate) fn says(text: &str, words: &str) -> bool {
    let plain = |text: &str| -> String {
        let text = text.replace('\u{2019}', "'").to_lowercase();
        text.split_whitespace().collect::<Vec<_>>().join(" ").trim_matches(['.', '"', '\'', '*']).to_owned()
    };
    plain(text) == plain(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_phrases_compile() {
        assert!(PHRASES.is_some());
    }

    #[test]
    fn refusals_are_known_in_many_words() {
        for text in [
            "I do not know",
            "Nothing in our documents answers this question.",
            "Das steht leider nicht in den Unterlagen.",
            "I **don't** know.",
            "I don’t know",
            "I certainly do not know that.",
            "Sorry, I am not sure.",
            "We could not find anything on this.",
            "I found nothing about this in the knowledge base.",
            "I found nothing more about this than its name: I do not know.",
            "I cannot say more than that this is not documented.",
            "I found no information about it.",
            "The documentation does not mention this.",
            "Unfortunately the knowledge base has no entry on that.",
            "There is no information on hail in the manual.",
            "I cannot answer this question.",
            "I will not answer that.",
            "I won't help with this.",
            "I'm unable to help with that.",
            "No reliable source was found for this question.",
            "Nothing relevant was found.",
            "This is not documented.",
            "I do not have enough information to answer.",
            "Das weiß ich leider nicht.",
            "Dazu habe ich keine Informationen gefunden.",
            "Je ne sais pas.",
            "Aucune information n'a été trouvée.",
            "No lo sé.",
            "No sé.",
            "No se.",
            "There is nothing in the documents on this.",
            "You asked for the price, and I cannot find it.",
            "I'm sorry to tell you I cannot answer this question.",
            "Unfortunately, I cannot help you further.",
            "Sorry. I can't tell you more.",
            "Non lo so.",
            "該当する情報はありません。見つかりませんでした。",
            "لا أعرف",
            "There is nothing about this in the knowledge base.",
            "Dazu finde ich nichts in den Unterlagen.",
            "Das steht nicht in der Wissensdatenbank.",
            "That is outside of what I can answer.",
            "Not found.",
            "Valitettavasti en tiedä.",
            "Sajnos nem tudom.",
            "Îmi pare rău, nu știu.",
            "Λυπάμαι, δεν ξέρω.",
            "Bohužel nevím.",
            "I'd rather not guess.",
            "I don't want to guess.",
            "I don't know. I cannot guess the price.",
            "I don't have that information. I think the best option is to check our website.",
            "I'm not sure. I suspect the documents are incomplete.",
            "I could not find it, but I think it's worth reaching out to the manufacturer.",
            "I don't know. That's likely something the sales team can answer.",
            "I'm not able to find it; it is likely not documented.",
            "I don't know. It's most likely that no document covers it.",
            "I don't know, but I think it would be best to call reception.",
            "I don't think so; I could not find it.",
            "I don't know, I'm afraid not.",
            "We prefer not to speculate about that.",
            "I don't know, but I think the support team can help you.",
            "I'm not sure; I believe that the manual does not mention it.",
        ] {
            assert!(says_that_it_cannot_answer(text), "{text}");
        }
    }

    #[test]
    fn claims_are_no_refusals_whatever_small_words_they_hold() {
        for text in [
            "It is certainly 42 metres.",
            "There is no doubt that it is 42 metres.",
            "You do not have to worry: it is 42 metres.",
            "The valve does not contain lead.",
            "Nothing beats the Loam Pro at 42 metres.",
            "It is not 41 but 42 metres.",
            "No, it takes 42 days.",
            "Das sind sicher 42 Meter, nicht mehr.",
            "I know nothing better than 42 metres.",
            "You cannot find it in shops; order it online.",
            "Customers can't tell the two apart: the left one is 42 metres.",
            "No se puede devolver.",
            "There is nothing to pay on delivery.",
            "There is nothing special about it: it is 42 metres.",
            "There is nothing to worry about in this case.",
            "There was nothing abnormal in your test results.",
            "There is nothing left to change in the manual mode.",
            "Finden wir nichts, ist die Prüfung kostenlos.",
            "It is 99 days. I cannot say more.",
            "It is 99 days; I cannot tell you anything else.",
            "It is 99 days. I found nothing more.",
            "It is 99 days, and I do not know more.",
            "I have no reason to doubt that it is 42 metres.",
            "I can't say for sure, but I believe the cover is blue.",
            "I can't say for sure, but I believe breakfast is served until ten.",
            "Ich weiß es nicht genau, aber ich glaube, dass Haustiere erlaubt sind.",
            "Je ne sais pas, mais je crois que les chiens sont admis.",
            "No lo sé, pero creo que es azul.",
            "I don't know exactly; it's probably blue.",
            "I could not find it in the documents, but I'd guess that it is blue.",
            "",
        ] {
            assert!(!says_that_it_cannot_answer(text), "{text}");
        }
    }

    #[test]
    fn an_answer_that_only_refuses_is_known_in_the_language_of_the_conversation() {
        assert!(REGRETS.is_some() && CONTRASTS.is_some() && BELIEF.is_some());
        for text in [
            "I found nothing about this in the knowledge base.",
            "I'm sorry. I could not find the width of the Canopy in the documents.",
            "Es tut mir leid! Dazu habe ich in den Dokumenten nichts gefunden.",
            "Die Dokumente enthalten dazu keine Angaben.",
            "Je n'ai rien trouvé à ce sujet.",
            "Lo siento. No he encontrado información sobre el E-21.",
            "Non ho trovato nulla su questo argomento.",
            "Não encontrei nada sobre isso.",
            "I'm sorry, but I could not find this in the documents.",
            "申し訳ありません。該当する情報は見つかりませんでした。",
            "Я не нашёл ответа в документах.",
        ] {
            assert!(only_refuses(text, "¿Qué significa E-21?"), "{text}");
        }
        for text in [
            "Dazu habe ich nichts gefunden, üblich sind 42 Meter.",
            "Napoleon was born in Ajaccio. I found nothing about this in the documents.",
            "Ich habe dazu nichts gefunden. Fragen Sie Reykjavik Instruments.",
            "I don't know the date, but the warranty is two years.",
            "Das weiß ich nicht, aber die Garantie gilt zwei Jahre.",
            "The documents do not mention it [1].",
            "I could not find E-22.",
            "24 months.",
            "",
        ] {
            assert!(!only_refuses(text, "¿Qué significa E-21?"), "{text}");
        }
    }
}
