//! Detects refusals: answers that say that the agent or its sources do not know, have or find anything.
//!
//! Matches phrases of some twenty-five languages in the normalised text. A phrase needs a subject and a missing object:
//! "there is no doubt" is no refusal. The list is incomplete; a case that expects a refusal can use `answer.contains` or
//! `answer.matches` instead.

use super::citations::numbers_of;
use super::normalise::normalise;
use regex::{Regex, RegexSet};
use std::borrow::Cow;
use std::sync::LazyLock;

/// Objects that can be missing.
const OBJECTS: &str = "(?:information|answer|source|data|documentation|document|record|mention|entry|entries|result|detail|knowledge|passage|match|hit)(?:e?s)?";

/// What stands behind such an object, unless it begins a compound, as in "no entry fee".
const BEHIND: &str = r"(?:[.,;:!?)]|$| (?:about|on|of|in|for|to|at|from|with|as|regarding|concerning|that|which|whether|what|how|when|where|who|why|i|was|were|is|are|and|or|here|there|yet|now|right|before|after|past|beyond|available|given|found|provided|relevant|related|matching|specific|describing|explaining|mentioning|answering)\b)";

static PHRASES: LazyLock<Option<RegexSet>> = LazyLock::new(|| {
    let not = r"(?:not|never|n't)";
    let sources = r"(?:documentation|documents?|docs|manuals?|knowledge base|sources?|search(?:es)?|results?|passages?|context|material|excerpts?)";
    let missing = format!("{OBJECTS}{BEHIND}");
    // The end of what is missing, without a claim in the same sentence.
    let end = r"(?:[.;!]|$)";
    let say = r"(?:answer|help|find|say|tell|confirm|determine|provide|locate|verify|give)";
    let english = [
        format!(r"\b(?:i|we) (?:\w+ ){{0,2}}?(?:do|did|could|can|would|will|wo|am|are|have|was|were) ?{not} (?:\w+ ){{0,2}}?(?:be(?:en)? able to )?(?:know|find|found|answer|say|tell|help|assist|confirm|determine|locate|verify|see|aware|sure)\b"),
        format!(r"\b(?:i|we) (?:\w+ ){{0,2}}?(?:do|did|could) ?{not} (?:\w+ )?have (?:\w+ ){{0,3}}?{missing}"),
        format!(r"\b{sources} (?:\w+ ){{0,4}}?(?:do|does|did|could|can|would|have|has) ?{not} (?:\w+ )?(?:say|mention|contain|cover|include|provide|answer|give|have|list|state|tell|address|reveal)"),
        format!(r"\b(?:cannot|can not|can't|could not|couldn't|unable to|not able to) (?:\w+ )?{say}\b"),
        format!(r"\bthere(?: is| are| was| were|'s) no (?:\w+ ){{0,3}}?(?:{missing}|evidence (?:\w+ ){{0,5}}?in (?:\w+ ){{0,2}}?{sources}\b)"),
        format!(r"\b(?:i|we|search(?:es)?|{sources}) (?:\w+ ){{0,2}}?(?:found|have|had|has|gave|returned|got|contains?|holds?) no (?:\w+ ){{0,3}}?{missing}"),
        r"\b(?:found|find|know|have|has|say|says|contains?|returned|gave) nothing(?: (?:about|on|for|in|that|relevant|of|to|here)\b|[.,;:!]|$)".into(),
        format!(r"\bno (?:\w+ ){{0,3}}?{OBJECTS} (?:\w+ ){{0,4}}?(?:was|were|is|are|could be|has been|have been) (?:\w+ )?(?:found|available|given|known|there)\b"),
        format!(r"\bthere(?: is| was|'s) nothing (?:(?:relevant|more|at all|written|said) )?(?:(?:about|on|regarding) (?:\w+ ){{1,5}}?)?(?:in|on|about) (?:\w+ ){{0,2}}?(?:{sources}|polic(?:y|ies))\b"),
        r"^(?:\w+ )?not found[.!]?$".into(),
        r"\b(?:i'm|i am|we're|we are) not (?:\w+ )?(?:sure|able|aware|certain)\b".into(),
        r"\b(?:this|that|it|the answer|that information|this information) (?:is|was)(?: not|n't) (?:\w+ )?(?:known|documented|covered|mentioned|in the)\b".into(),
        r"\bnothing (?:\w+ ){0,3}?(?:was|is|could be) (?:found|known|documented)\b".into(),
        r"\b(?:i|we)(?:'d| would| will|'ll| do|) ?(?:rather not|prefer not to|not|n't want to|not want to|decline to) (?:guess|speculate|make (?:it|that|things|something|anything) up)\b".into(),
        format!(r"\bnothing (?:in|on) (?:\w+ ){{0,3}}?{sources} (?:answers?|says?|mentions?|covers?|tells?|addresses)\b"),
        format!(r"\b(?:beyond|outside) (?:of )?(?:my (?:\w+ ){{0,3}}?expertise\b|(?:my|our|the) (?:knowledge|documentation)\b|(?:my|our) scope\b|the scope(?: of (?:my|our|this|these|what)\b|{end})|what (?:i|we) (?:can|know)\b)"),
        format!(r"\bi(?: (?:cannot|can not|can't|could not|couldn't|am unable to|am not able to)|'m (?:unable|not able) to) (?:\w+ )?(?:assist|diagnose|discuss|comment|(?:offer|share) (?:\w+ ){{0,3}}?(?:advice|opinions?|guidance))\b"),
        r"\bi (?:can|am able to) only (?:answer|respond to|discuss|(?:help|assist)(?: you)? with) (?:\w+ ){0,2}?(?:questions?|topics?|requests?|matters)\b".into(),
        r"\bnot something (?:that )?i (?:can|could|am able to) (?:\w+ )?(?:answer|help|assist|discuss|comment|advise)\b".into(),
        r"\bi(?:'m| am) not (?:\w+ )?(?:qualified|allowed|permitted|authori[sz]ed|licensed) to (?:\w+ )?(?:answer|give|provide|offer|share|discuss|advise|diagnose|comment)\b".into(),
        format!(r"\bi (?:\w+ )?do ?{not} (?:\w+ )?have (?:\w+ )?access to [^.,:;!?]+{end}"),
        format!(r"\b(?:that|this|the requested) (?:information|data|answer) (?:is|are)(?: not|n't) (?:\w+ )?available(?: to (?:me|us)| in (?:\w+ ){{0,3}}?{sources})?{end}"),
        format!(r"\b{sources}\b[^.!?;]* but (?:they|it) do(?:es)? ?{not} (?:\w+ )?(?:mention|say|specify|state|address|discuss)\b"),
    ];
    let unterlagen = r"(?:unterlagen|dokument\w*|handbuch|quellen|wissens(?:datenbank|basis))";
    let documents = r"(?:documents?|documentation|manuels?|extraits?|base de connaissances)";
    let documentos = r"(?:documentos?|documentación|manual(?:es)?|base de conocimientos?)";
    let european = [
        format!(
            r"\b{unterlagen} (?:\w+ ){{0,5}}?nicht hervor{end}|\b{unterlagen} (?:\w+ ){{0,2}}?(?:erwähn|nenn)(?:en|t) (?:\w+ ){{0,5}}?(?:nicht(?:[.,;!]|$)|keine?[nrs]?\b)"
        ),
        format!(
            r"\b{documents} (?:\w+ ){{0,3}}?(?:ne |n')(?:mentionn|précis|indiqu|évoqu|contien|fourni)\w* (?:pas|rien|aucune?)\b"
        ),
        format!(
            r"\b(?:cette|ces) informations? (?:ne figur\w+ pas|(?:n'est|ne sont) pas (?:disponible|mentionnée|précisée|indiquée)s?)(?: dans [^.,:;!?]*{documents})?{end}"
        ),
        format!(r"\b{documentos} (?:\w+ ){{0,3}}?no (?:mencion|especific|indic|contien|proporcion)\w+\b"),
        format!(
            r"\b(?:es[ae]|est[ae]|dicha) información no (?:está disponible|aparece|figura|consta|se encuentra)(?: en [^.,:;!?]*{documentos})?{end}"
        ),
    ];
    let others = [
        // German
        r"\b(?:(?:kann|darf) ich|ich (?:\w+ )?(?:kann|darf)) (?:\w+ ){0,5}?keine?n? (?:\w+ )?(?:auskunft|auskünfte|aussagen?|\w*beratung|diagnosen?|ratschläge) (?:geben|stellen|erteilen|anbieten|treffen|machen)\b|\b(?:diagnosen?|\w*beratung|auskunft|auskünfte) (?:kann|darf) ich (?:\w+ ){0,4}?nicht (?:geben|stellen|erteilen|anbieten)\b|\b(?:weiss ich|ich weiss) (?:\w+ ){0,3}?nichts(?: (?:dazu|davon|darüber|über)\b|[.;!]|$)|\b(?:kann ich|ich kann) (?:\w+ ){0,4}?nicht (?:weiter)?helfen(?:[.;!]|$)",
        r"\b(?:weiss|wissen) (?:\w+ ){0,4}?nicht\b|\bnicht (?:\w+ )?(?:beantworten|bekannt|dokumentiert|finden|sagen)\b",
        r"\b(?:nichts|keine?n?) (?:\w+ ){0,6}?(?:gefunden|bekannt|finden)\b|\bkeine?n? (?:\w+ )?(?:information(?:en)?|angaben?|quellen?|hinweise?|antwort|daten (?:zu|dazu|über|darüber|vor|gefunden|verfügbar|vorhanden))\b|\bkeine daten(?:[.,;!]|$)|\b(?:steht|geht) (?:\w+ ){0,3}?nicht (?:in|aus) (?:\w+ )?(?:unterlagen|dokument\w*|handbuch|quellen|wissensdatenbank|wissensbasis)\b|\b(?:dazu|hierzu|darueber|darüber) finden? (?:ich|wir) (?:\w+ ){0,3}?(?:nichts|keine)\b",
        // French
        r"\bne (?:le |la )?(?:sais|savons|peux|pouvons) pas\b|\bn'ai (?:rien|pas|aucune?)\b|\bn'a (?:rien|pas|ete) trouve|\baucune? (?:information|source|reponse|réponse|donnee|donnée|resultat|résultat)|\brien trouve",
        r"\b(?:je|nous) ne (?:(?:trouv|dispos|poss[eèé]d)(?:e|ons) pas (?:\w+[ ']){0,3}?(?:information|r[eé]ponse)|trouv(?:e|ons) rien(?: (?:à ce|à son|dans|sur|concernant)\b|[.,;!]|$)|(?:suis|sommes) pas (?:en mesure|capables?) (?:\w+[ ']){1,3}?(?:r[eé]pond|aider|trouver|dire|fournir|confirmer))|\bn'avons (?:rien|pas) trouv",
        // Spanish and Portuguese
        r"\bno (?:lo )?sé\b|\bno lo se\b|\bno se[.,;!]|\bno se$|\bno (?:se |(?:he|hemos) (?:podido )?)?(?:encontr|hall)|\bno (?:tengo|tenemos|hay|puedo|existe|dispon(?:go|emos) de|(?:cuento|contamos) con) (?:\w+ ){0,3}?(?:informaci|respuesta|respond|(?:datos|fuentes?)(?: (?:sobre|al respecto|acerca|que|suficientes|disponibles|fiables?)\b|[.,;!]|$))",
        r"\bno (?:puedo|podemos|poder|me es posible) (?:\w+ )?(?:ayudar|contestar|responder(?: (?:a|es[ao]|[st]u)\b|[.,]|$))|\bn[aã]o (?:sei|h[aá]|tenho|posso)\b|\bn[aã]o (?:\w+ )?encontr",
        r"\bno puedo (?:\w+ )?(?:ofrec|d[ae]r|brind|proporcion)\w* (?:\w+ ){0,2}?(?:asesor|consejo|diagn[oó]stic)",
        // Italian and Dutch
        r"\bnon (?:lo )?(?:so|trovo|troviamo)\b|\bnon trova (?:nulla|niente)(?: (?:nei|in|su)\b|[.!]|$)|(?:^|informazion[ei] |risposta )non trovat[oaie]\b|\bnon trovat[oaie](?:[.!]|$)|\bnon (?:(?:ho|abbiamo) trovato|sono riuscit[oa] a trovare)|\bnon (?:ho|abbiamo|dispon(?:go|iamo) di) (?:\w+ ){0,3}?(?:informazion|risposta|dati(?: (?:su|sul|sulla|al riguardo|in merito|disponibili|sufficienti)\b|[.,;!]|$))|\bnon ci sono informazioni|\bnon (?:posso|sono in grado di) (?:\w+ )?risponder|\bnon (?:posso|possiamo|sono in grado di) (?:\w+ )?aiutar\w+(?: (?:con|su|ulteriormente|oltre|in (?:quest\w|merito))\b|[.,;!]|$)|\bweet (?:\w+ ){0,3}?niet\b|\b(?:niets|geen) (?:\w+ ){0,4}?(?:gevonden|bekend|informatie)\b",
        // Finnish, Hungarian, Romanian, Czech, Greek, Ukrainian
        r"\ben (?:tiedä|löytänyt)\b|\bnem (?:tudom|találtam)\b|\bnu (?:[sș]tiu|am g[aă]sit)\b|\bneví[m]e?\b|\bnena[sš]el\b|δεν (?:ξέρω|γνωρίζω|βρήκα)|не знайшов",
        // Swedish, Norwegian, Danish, Polish
        r"\bvet (?:\w+ ){0,2}?(?:inte|ikke)\b|\bved (?:\w+ )?ikke\b|\b(?:inget|ingenting|ingen|intet) (?:\w+ ){0,4}?(?:hitta|funn|fund|information|informasjon)|\b(?:jag|vi) hitta(?:r|de) (?:\w+ )?(?:ing(?:et|en|enting)\b|inte (?:det|något|svar|information))|\b(?:(?:jag|vi) (?:kan|kunde)|(?:det|detta|tyvärr) (?:kan|kunde) (?:jag|vi)) (?:\w+ )?inte (?:svara(?: på(?: (?:det|den|detta|din|frågan)\b|[.,;!]|$)|[.,;!]|$)|hjälpa (?:dig|er|till)(?: (?:med|vidare|mer)\b|[.,;!]|$)|hitta (?:det|svar|(?:någon )?information|något om))|\b(?:(?:jag|vi) har|har (?:jag|vi)) (?:\w+ )?inte (?:den |någon )?information(?:en)?(?: om\b|[.,;!]|$)|\b(?:jag|vi) saknar information",
        r"\bnie (?:wiem|znalaz|(?:(?:mam|posiadam)y?|znam|dysponuj(?:[eę]|emy)) (?:\w+ ){0,3}?(?:informacj(?:i|ami)|odpowiedzi\b|danych (?:na|o)\b)|(?:mog[eę]|mo[zż]emy|uda[lł]o (?:mi|nam) si[eę]|jeste(?:m|[sś]my) w stanie) (?:\w+ ){0,2}?(?:odpowiedzi(?:e[cć])?\b|pom[oó]c(?: (?:w tym|w tej|z tym|ci|panu|pani)\b|[.,;!]|$)|znale[zź][cć] (?:\w+ ){0,2}?(?:informacji|tego)))|\bbrak informacji (?:na|o|w)\b",
        // Japanese, Chinese, Korean
        r"(?:件|詳細|ご質問|点)[^。]{0,10}把握して(?:い|おり)ません|(?:医療|医学|法律|法的|投資|税務)[^。、]{0,8}(?:アドバイス|助言|診断)[はを]?(?:でき(?:ません|かねます)|(?:いた|致)?しかねます)(?:[。.]|$)",
        r"見つかりません|見つから(?:ない|ず)|[わ分]かり(?:ません|かねます)|情報[はがを](?:ありません|ない|ございません|持って(?:い|おり)ません|持ち合わせて)|お?答え(?:(?:する(?:こと)?[はが])?でき(?:ません|かねます)|られません|(?:いた|致)?しかねます)|(?:^|関する|ついての|該当[^。、]{0,3}|[。、])記載[はが](?:あり|ござい)ません|(?:資料|文書|マニュアル|ドキュメント|説明書)[^。、]{0,12}記載(?:[はが](?:あり|ござい)ません|されて(?:い|おり)ません)|お役に立てません",
        r"不知道|[没沒]有(?:找到|[^,。]{0,8}(?:信息|资料|資訊|資料)(?:[.!?。哦呢]|$|[来來](?:回答|判[断斷])|可[供以])|[这這该該此关關相任更足具][^,。]{0,8}(?:信息|资料|資訊|資料)(?:[,.!?。哦呢显顯存能在来來说說表]|$|可[供以]))|我(?:们|們)?[没沒]有[^,。]{0,8}(?:信息|资料|資訊|資料),|找不到|(?:未能?|[无無]法)[找查]到(?:[.!。]|$|[^,。]{0,8}(?:信息|资料|資訊|資料|内容|答案))|[暂暫][无無]相[关關](?:信息|资料|資訊|資料|内容)|[无無]法回答|(?:我(?:们|們)?|^|[,。] ?)[无無]法提供[这這该該此相任更有具准][^,。]{0,8}(?:信息|资料|資訊|資料)(?:[.!。]|$)|我(?:们|們)?不太?清楚(?:[,.!。]|$|[这這该該您相具])|[帮幫]不上忙|(?:文[档件檔]|资料|資料|手册|手冊)[^,。]{0,4}(?:[没沒]有|未)提[到及](?:[^的]|$)",
        r"찾을 수 없|알 수 없|모르겠|정보[가는] (?:\S+에 )?없|(?:^|[.,!] |(?:관련|관련된|해당|대한|관한|\S+하신|\S+에서) )(?:(?:정보|내용|답변?|자료)[를을] (?:\S+ )?찾지 못(?:했|하였)[습어다네]|(?:정보|내용)[은는이가] 확인되지 않습|정보를 (?:가지고|갖고|보유하고) 있지 않)|(?:답변|도움|도와)[을를]? ?드(?:릴 수 없|리기 어렵)|답변(?:하기 어렵|할 수 없)|(?:문서|자료|설명서|매뉴얼)에 (?:\S+ ){0,2}?(?:나와|언급되어|기재되어) 있지 않",
        // Arabic, Russian, Turkish
        r"لا أعرف|لا اعرف|لم أجد|لم يتم العثور|لا توجد معلومات|لا يمكنني|لا (?:أستطيع|استطيع|أعلم|اعلم)|لم [أا]تمكن من (?:العثور|[إا]يجاد|ال[إا]جابة|الرد|تحديد|معرفة)|(?:ليست? (?:لدي|لدينا|عندي|هناك)|لا (?:تتوفر|[تي]وجد|[أا]ملك|نملك))(?: (?:لدي|لدينا|هناك|حاليا|[أا]ي|[أا]ية|هذه|تلك)){0,2} (?:ال)?معلومات|не знаю|не наш[её]л|не найден|нет (?:\w+ ){0,3}?(?:информации|данных)|не могу ответить|bilmiyorum|bulamad|bilgi yok|(?:^|[^l] )bilgi(?:m|miz|ye|si)?(?: \w+)? (?:yok|bulunm(?:am|uy)|bulunamad|yer alm(?:iyor|amakta)|mevcut değil|sahip değil)|(?:yardimci ol|(?:yanit|cevap)(?: ver|la))y?[ae]m(?:iyoru[mz]|[ae](?:m|yiz))\b",
    ];
    RegexSet::new(english.iter().chain(&european).map(String::as_str).chain(others)).ok()
});

/// Inability of others, on a condition, or what nobody must give, which is no refusal: "You cannot find it in shops".
static OF_OTHERS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let others = "(?:you|they|he|she|one|users?|customers?|members?|guests?|people|children|nobody)";
    let unable = "(?:cannot|can not|can't|could not|couldn't|(?:is|are) (?:unable|not able) to|will not|won't)";
    let conditions = r"\b(?:if|when|whenever|unless|until) (?:i|we) (?:do not|don't|did not|didn't|cannot|can't|could not|couldn't|am not able to)\b|\b(?:müssen|musst|brauchen|brauchst) (?:\w+ ){0,3}?keine?n?\b|如果[^,。]*,|إذا لم \w+";
    Regex::new(&format!(r"\b{others} (?:(?:also|still|just|simply|often|usually|then) )?{unable}\b|{conditions}")).ok()
});

/// A limit, which is a refusal only without a claim beside it: "I cannot say more".
static NO_MORE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let verbs = "(?:know|find|found|say|tell|help|confirm|provide|give|see|have)";
    let whom = "(?:(?:you|us|me) )?(?:any |anything |much |nothing |something )?";
    Regex::new(&format!(r"\b{verbs} {whom}(?:more|further|else)\b(?:[.,;:!]|$)")).ok()
});

/// A belief or a consequence, up to the end of its sentence, which is a claim: "I don't know, but I think it is blue", "They do
/// not mention a fee, so it is free".
static BELIEF: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let held = r"(?:i|we)(?:'d| would)? (?:(?:do|still|would|also|just|really|personally) )?(?:believe|think|guess|assume|suspect|reckon|(?:say|expect) (?:the|its?|it's|this|that|they|there))";
    let others = "(?:ich|wir) (?:glaube|denke|vermute)n?|(?:glaube|denke|vermute)n? (?:ich|wir)|je (?:crois|pense|suppose) que?|(?:creo|pienso|supongo) que|(?:credo|penso) che";
    let likely =
        "(?:its?|this|that|they|these|those)(?:'s|'re| is| are) (?:probably|likely|most likely|very likely|presumably)";
    let thus = "(?:, so (?:it|they)(?:'s|'re| is| are)|(?:ist|sind) (?:also|daher|somit)|, also (?:ist|sind))";
    Regex::new(&format!(r"(?:\b(?:{held}|{others}|{likely})|{thus})\b[^.!?;\n]*")).ok()
});

/// Contrasts between a refusal and a claim: "I don't know the date, but the warranty is two years".
static CONTRASTS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i), *(?:but|however|although|though|aber|ma(?:is|s|ar)?|pero|men|ale|но)\b").ok());

/// Whether a normalised text contains a belief that neither refuses nor advises.
fn believes(normal: &str, refuses: impl Fn(&str) -> bool) -> bool {
    // Advice and beliefs about the documents or the question do not answer.
    let advises = |part: &str| {
        let words = [
            "best", "better", "worth", "check", "look", "reach", "reaching", "contact", "ask", "call", "reception",
            "team", "vendor", "manufacturer", "website", "document", "documents", "documentation", "question",
            "something", "not", "no", "unclear", "unknown", "uncertain", "impossible", "hard", "difficult", "nicht",
            "unklar", "unbekannt", "offen", "fragen", "wenden", "demander", "preguntar",
        ];
        part.split_whitespace().any(|word| words.contains(&word.trim_matches(|letter: char| !letter.is_alphanumeric())))
    };
    let beliefs = BELIEF.iter().flat_map(|belief| belief.find_iter(normal));
    // "I think so" says nothing.
    let says = |part: &str| !part.ends_with(" so");
    beliefs.map(|found| found.as_str()).any(|part| says(part) && !refuses(part) && !advises(part))
}

/// Characters that end a sentence.
pub(crate) const SENTENCE_ENDS: [char; 9] = ['.', '!', '?', ';', '\n', '。', '！', '？', '؟'];

/// Normalised sentences that only regret, thank, wish, offer help or refer to someone who helps.
static POLITE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    // The words after a courtesy are few: a long tail can hold a claim.
    let some = r"(?: [\w'-]+){0,6}";
    let few = r"(?: [\w'-]+){0,4}";
    let team = r"(?:us|me|(?:(?:our|the|your|customer) (?:\w+ ){0,2}?)?(?:team|support|service|desk|staff|agents?|colleagues?))";
    let wish = r"if (?:you(?:'d)? (?:\w+ )?(?:(?:have|need|want|like|require) (?:any|anything|more|further|other|another|additional|help|assistance|a (?:question|specific|particular|different)|me|to (?:know|learn|ask|discuss|talk|speak))|(?:share|provide|give|tell|clarify|specify))\b|there (?:is|are|'s) any\w*|i can)(?: [\w'-]+){0,6}";
    let purpose = r"(?:about|regarding|with (?:any|further|more|this|that|your question)|for (?:further|more|additional|assistance|help|support|details|information|any|this|that|your (?:question|request|case)|the (?:answer|latest|exact))|to (?:ask|check|clarify|confirm|discuss|find out|learn|verify|get (?:help|assistance|more|further))|so (?:that )?(?:they|we) can (?:help|assist)|or (?:check|visit|see) (?:our|the) (?:\w+ )?(?:website|site|page))";
    let trouble = r"(?:for|about) (?:this|that|(?:the|any|your) (?:inconvenience|confusion|delay|trouble|misunderstanding|wait)(?: caused| this (?:may|has) caused?)?)";
    let english = [
        format!(r"(?:(?:i'm|i am|we are)? ?(?:very |so )?sorry|(?:i|we) apologi[sz]e)(?: (?:{trouble}|for not (?:being able|having|finding){few}))?|unfortunately not"),
        format!(r"(?:hello|hi)(?: there)?|(?:many )?thank(?:s| you)(?: (?:so|very) much)?(?: for (?:your|the question|asking|waiting|reaching|contacting|getting)\b{few})?|(?:good|great|interesting) question"),
        r"(?:have|enjoy) (?:a|your) (?:\w+ ){0,3}?(?:day|evening|weekend|week)(?: ahead)?|i hope (?:this|that) helps|we appreciate your \w+".to_owned(),
        format!(r"(?:is there (?:any|some)thing (?:else|more|specific|i|you)|(?:can|could|would) you (?:please )?(?:rephrase|clarify|specify|tell|give|share|provide)|do you (?:have|need) (?:any|other|more)|would you like (?:me|us|help|to (?:know|ask))|(?:(?:how|what) )?(?:else )?(?:can|may|could) (?:i|we) (?:\w+ )?(?:help|assist|do))\b{some}"),
        format!(r"i(?:'m| am|'d be| would be|'ll be)(?: always)? (?:happy|glad|here) to (?:help|assist){some}|i can help (?:you )?with (?:anything else|other (?:questions?|topics?|things|matters|issues))\b{few}"),
        format!(r"(?:{wish}, )?(?:(?:please|just|you can|you may|feel free to|(?:do not|don't) hesitate to|i(?:'d| would)? (?:recommend|suggest)) )*(?:let (?:me|us) know(?: {wish}| (?:how|what|where|whether|more|your|if (?:it|this|that))\b{few})?|(?:ask|try)(?: me| us)? (?:again|a(?:ny|nother)? (?:\w+ )?question|anything else|something else){few}|rephrase your question|(?:reach out|(?:contact(?:ing)?|reach(?:ing)?(?: out to)?|call(?:ing)?|ask|get in touch with) {team})(?: (?:directly|at any ?time|{wish}|{purpose}\b{few})){{0,2}})"),
        // German, French, Spanish, Italian
        format!(r"(?:es )?tut mir (?:sehr )?leid|leider nein|entschuldigung|guten tag|(?:vielen )?danke?(?: für (?:ihre?n?|deine?n?|die|das) (?:\w*frage|nachricht|interesse|geduld|verständnis|vertrauen){few})?|(?:womit )?kann ich (?:ihnen|dir) (?:\w+ ){{0,5}}helfen|(?:bitte )?(?:wenden sie sich|wende dich) (?:bitte )?an (?:\w+ ){{0,3}}?(?:support|kunden\w+|team)|(?:(?:ich|wir|haben|hab) (?:\w+ ){{0,3}})?einen? schönen? (?:tag|abend)(?: noch)?"),
        format!(r"(?:je suis )?(?:vraiment )?désolée?|pardon|bonjour|merci(?: (?:pour|de) (?:votre|ta|ton)\b{few})?|puis-je vous aider{some}|bonne journée|n'hésitez pas à (?:(?:me|nous) )?(?:demander|contacter|poser|préciser|reformuler)\b{some}|veuillez contacter (?:notre|le) (?:service|support|équipe){few}"),
        format!(r"lo siento(?: mucho)?|sinto muito|hola|(?:muchas )?gracias(?: por (?:tu|su|la|contact\w+|pregunt\w+)\b{few})?|(?:en qué más )?(?:te |le )?puedo ayudar\w*{few}|hay algo más en{some}|que tengas? un buen día|(?:por favor,? )?contact[ae] (?:con |a )?(?:nuestro|el) (?:equipo|servicio|soporte){few}"),
        format!(r"mi dispiace|(?:molte )?grazie(?: per (?:la|il|tua|aver\w*)\b{few})?|posso aiutar\w+{some}|buona giornata|(?:ti|la) (?:prego|invito) di contattare (?:[\w']+ ){{0,3}}?(?:supporto|assistenza)"),
    ];
    let others = [
        r"申し訳(?:ありません|ございません)|(?:他|ほか)に[^、]{0,16}か|[^、]{0,16}ありがとうございます|[^、]{0,8}(?:サポート|窓口)[^、]{0,8}お問い合わせください",
        r"(?:很)?抱歉|对不起|(?:感谢|谢谢|祝您|(?:请问)?还有什么|请联系(?:我们|客服))[^,]{0,12}|죄송합니다|감사합니다|다른 (?:질문|도움)[^,]{0,16}|고객센터[^,]{0,8}문의[^,]{0,8}|좋은 하루 \S+",
    ];
    let forms: Vec<&str> = english.iter().map(String::as_str).chain(others).collect();
    Regex::new(&format!("^(?:(?:{})(?:,? (?:and )?|$))+$", forms.join("|"))).ok()
});

/// Reasons, deadlines and alternatives: a courtesy that has one claims something.
static CLAUSES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let english = r"because|since|which|while|when|within|until|unless|before|after|by \w+ing|or (?:the|its?|your?|you'll|we|they|else)";
    let others = "weil|oder|innerhalb|binnen|parce|sinon|porque|perch[eé]|entro";
    Regex::new(&format!(r"\b(?:{english}|{others})\b|以内|ので|ため|因为|之内|否则|이내|때문")).ok()
});

/// Whether `text` states a refusal.
pub(crate) fn says_that_it_cannot_answer(text: &str) -> bool {
    let normal = normalise(text);
    let own = OF_OTHERS.as_ref().map_or(Cow::Borrowed(&*normal), |others| others.replace_all(&normal, "."));
    let refuses = |text: &str| PHRASES.as_ref().is_some_and(|phrases| phrases.is_match(text));
    let unlimited = NO_MORE.as_ref().map_or(Cow::Borrowed(&*own), |limit| limit.replace_all(&own, "."));
    refuses(&own) && !believes(&own, refuses) && (refuses(&unlimited) || !claims_beside(text, &unlimited, refuses))
}

/// Whether a text claims something beside a limit: a number, or a sentence without the limit that is not polite.
fn claims_beside(text: &str, unlimited: &str, refuses: impl Fn(&str) -> bool) -> bool {
    let mut sentences = text.split(SENTENCE_ENDS).filter(|part| part.contains(char::is_alphanumeric));
    let claims = |sentence: &str| {
        let words = normalise(sentence.trim_matches(|letter: char| !letter.is_alphanumeric()));
        !refuses(&words) && !is_polite(&words)
    };
    unlimited.contains(|letter: char| letter.is_ascii_digit()) || sentences.any(claims)
}

/// Whether a normalised sentence is polite and says nothing else.
fn is_polite(sentence: &str) -> bool {
    let has_clause = CLAUSES.as_ref().is_some_and(|clauses| clauses.is_match(sentence));
    !has_clause && POLITE.as_ref().is_some_and(|known| known.is_match(sentence))
}

/// Whether `text` only refuses to answer `asked`: each sentence refuses or is polite, nothing is cited, and each word with
/// a digit is in the question.
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
            says_that_it_cannot_answer(sentence) || is_polite(&normalise(words))
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
mod tests;
