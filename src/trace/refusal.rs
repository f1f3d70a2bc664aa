//! Detects refusals: answers that say that the agent or its sources do not know, have or find anything.
//!
//! Matches phrases of some twenty-five languages in the normalised text. A phrase needs a subject and a missing object:
//! "there is no doubt" is no refusal. The list is incomplete; a case that expects a refusal can use `answer.contains` or
//! `answer.matches` instead.

use super::citations::numbers_of;
use super::normalise::normalise;
use regex::{Regex, RegexSet, RegexSetBuilder};
use std::borrow::Cow;
use std::sync::LazyLock;

/// Objects that can be missing.
const MISSING: &str = "(?:information|answer|source|data|documentation|document|record|mention|entry|entries|result|evidence|detail|knowledge|passage|match|hit)(?:e?s)?";

static PHRASES: LazyLock<Option<RegexSet>> = LazyLock::new(|| {
    let not = r"(?:not|never|n't)";
    let sources = r"(?:documentation|documents?|docs|manuals?|knowledge base|sources?|search(?:es)?|results?|passages?|context|material|excerpts?)";
    let say = r"(?:answer|help|assist|find|say|tell|confirm|determine|provide|locate|verify|give)";
    let english = [
        format!(r"\b(?:i|we) (?:\w+ ){{0,2}}?(?:do|did|could|can|would|will|wo|am|are|have|was|were) ?{not} (?:\w+ ){{0,2}}?(?:know|find|found|answer|say|tell|help|assist|confirm|determine|locate|verify|see|aware|sure|able)\b"),
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
        r"\b(?:kann|können) (?:ich|wir) (?:\w+ ){0,4}?(?:nicht (?:weiter ?)?helfen|nichts (?:\w+ )?sagen)\b|\b(?:ich|wir) (?:kann|können) (?:\w+ ){0,4}?nicht (?:weiter ?)?helfen\b",
        // French
        r"\bne (?:le |la )?(?:sais|savons|peux|pouvons) pas\b|\bn'ai (?:rien|pas|aucune?)\b|\bn'a (?:rien|pas|ete) trouve|\baucune? (?:information|source|reponse|réponse|donnee|donnée|resultat|résultat)|\brien trouve",
        r"\b(?:je|nous) ne (?:(?:trouv|dispos|poss[eèé]d)(?:e|ons) pas (?:\w+[ ']){0,3}?(?:information|r[eé]ponse)|trouv(?:e|ons) rien(?: (?:à ce|à son|dans|sur|concernant)\b|[.,;!]|$)|(?:suis|sommes) pas (?:en mesure|capables?) (?:\w+[ ']){1,3}?(?:r[eé]pond|aider|trouver|dire|fournir|confirmer))|\bn'avons (?:rien|pas) trouv",
        // Spanish and Portuguese
        r"\bno (?:lo )?sé\b|\bno lo se\b|\bno se[.,;!]|\bno se$|\bno (?:se |(?:he|hemos) (?:podido )?)?(?:encontr|hall)|\bno (?:tengo|tenemos|hay|puedo|existe|dispon(?:go|emos) de|(?:cuento|contamos) con) (?:\w+ ){0,3}?(?:informaci|respuesta|respond|(?:datos|fuentes?)(?: (?:sobre|al respecto|acerca|que|suficientes|disponibles|fiables?)\b|[.,;!]|$))",
        r"\bno (?:puedo|podemos|poder|me es posible) (?:\w+ )?(?:ayudar|contestar|responder(?: (?:a|es[ao]|[st]u)\b|[.,]|$))|\bn[aã]o (?:sei|h[aá]|tenho|posso)\b|\bn[aã]o (?:\w+ )?encontr",
        // Sources in French, Spanish and Italian
        r"\b(?:(?:les|mes) (?:documents|sources) ne|(?:los|mis) documentos no|(?:las|mis) fuentes no|i (?:miei )?documenti non|le (?:mie )?fonti non) (?:mentionnent|contiennent|précisent|mencionan|contienen|indican|menzionano|contengono|riportano)\b",
        // Italian and Dutch
        r"\bnon (?:lo )?(?:so|trovo|troviamo)\b|\bnon trova (?:nulla|niente)(?: (?:nei|in|su)\b|[.!]|$)|(?:^|informazion[ei] |risposta )non trovat[oaie]\b|\bnon trovat[oaie](?:[.!]|$)|\bnon (?:(?:ho|abbiamo) trovato|sono riuscit[oa] a trovare)|\bnon (?:ho|abbiamo|dispon(?:go|iamo) di) (?:\w+ ){0,3}?(?:informazion|risposta|dati(?: (?:su|sul|sulla|al riguardo|in merito|disponibili|sufficienti)\b|[.,;!]|$))|\bnon ci sono informazioni|\bnon (?:posso|sono in grado di) (?:\w+ )?risponder|\bnon (?:posso|possiamo|sono in grado di) (?:\w+ )?aiutar\w+(?: (?:con|su|ulteriormente|oltre|in (?:quest\w|merito))\b|[.,;!]|$)|\bweet (?:\w+ ){0,3}?niet\b|\b(?:niets|geen) (?:\w+ ){0,4}?(?:gevonden|bekend|informatie)\b",
        // Finnish, Hungarian, Romanian, Czech, Greek, Ukrainian
        r"\ben (?:tiedä|löytänyt)\b|\bnem (?:tudom|találtam)\b|\bnu (?:[sș]tiu|am g[aă]sit)\b|\bneví[m]e?\b|\bnena[sš]el\b|δεν (?:ξέρω|γνωρίζω|βρήκα)|не знайшов",
        // Swedish, Norwegian, Danish, Polish
        r"\bvet (?:\w+ ){0,2}?(?:inte|ikke)\b|\bved (?:\w+ )?ikke\b|\b(?:inget|ingenting|ingen|intet) (?:\w+ ){0,4}?(?:hitta|funn|fund|information|informasjon)|\b(?:jag|vi) hitta(?:r|de) (?:\w+ )?(?:ing(?:et|en|enting)\b|inte (?:det|något|svar|information))|\b(?:(?:jag|vi) (?:kan|kunde)|(?:det|detta|tyvärr) (?:kan|kunde) (?:jag|vi)) (?:\w+ )?inte (?:svara(?: på(?: (?:det|den|detta|din|frågan)\b|[.,;!]|$)|[.,;!]|$)|hjälpa (?:dig|er|till)(?: (?:med|vidare|mer)\b|[.,;!]|$)|hitta (?:det|svar|(?:någon )?information|något om))|\b(?:(?:jag|vi) har|har (?:jag|vi)) (?:\w+ )?inte (?:den |någon )?information(?:en)?(?: om\b|[.,;!]|$)|\b(?:jag|vi) saknar information",
        r"\bnie (?:wiem|znalaz|(?:(?:mam|posiadam)y?|znam|dysponuj(?:[eę]|emy)) (?:\w+ ){0,3}?(?:informacj(?:i|ami)|odpowiedzi\b|danych (?:na|o)\b)|(?:mog[eę]|mo[zż]emy|uda[lł]o (?:mi|nam) si[eę]|jeste(?:m|[sś]my) w stanie) (?:\w+ ){0,2}?(?:odpowiedzi(?:e[cć])?\b|pom[oó]c(?: (?:w tym|w tej|z tym|ci|panu|pani)\b|[.,;!]|$)|znale[zź][cć] (?:\w+ ){0,2}?(?:informacji|tego)))|\bbrak informacji (?:na|o|w)\b",
        // Japanese, Chinese, Korean
        r"見つかりません|見つから(?:ない|ず)|[わ分]かり(?:ません|かねます)|情報[はがを](?:ありません|ない|ございません|持って(?:い|おり)ません|持ち合わせて)|お?答え(?:(?:する(?:こと)?[はが])?でき(?:ません|かねます)|られません|(?:いた|致)?しかねます)|(?:^|関する|ついての|該当[^。、]{0,3}|[。、])記載[はが](?:あり|ござい)ません|(?:資料|文書|マニュアル|ドキュメント|説明書)[^。、]{0,12}記載(?:[はが](?:あり|ござい)ません|されて(?:い|おり)ません)|お役に立てません",
        r"不知道|[没沒]有(?:找到|[^,。]{0,8}(?:信息|资料|資訊|資料)(?:[.!?。哦呢]|$|[来來](?:回答|判[断斷])|可[供以])|[这這该該此关關相任更足具][^,。]{0,8}(?:信息|资料|資訊|資料)(?:[,.!?。哦呢显顯存能在来來说說表]|$|可[供以]))|我(?:们|們)?[没沒]有[^,。]{0,8}(?:信息|资料|資訊|資料),|找不到|(?:未能?|[无無]法)[找查]到(?:[.!。]|$|[^,。]{0,8}(?:信息|资料|資訊|資料|内容|答案))|[暂暫][无無]相[关關](?:信息|资料|資訊|資料|内容)|[无無]法回答|(?:我(?:们|們)?|^|[,。] ?)[无無]法提供[这這该該此相任更有具准][^,。]{0,8}(?:信息|资料|資訊|資料)(?:[.!。]|$)|我(?:们|們)?不太?清楚(?:[,.!。]|$|[这這该該您相具])|[帮幫]不上忙|(?:文[档件檔]|资料|資料|手册|手冊)[^,。]{0,4}(?:[没沒]有|未)提[到及](?:[^的]|$)",
        r"찾을 수 없|알 수 없|모르겠|정보[가는] (?:\S+에 )?없|(?:^|[.,!] |(?:관련|관련된|해당|대한|관한|\S+하신|\S+에서) )(?:(?:정보|내용|답변?|자료)[를을] (?:\S+ )?찾지 못(?:했|하였)[습어다네]|(?:정보|내용)[은는이가] 확인되지 않습|정보를 (?:가지고|갖고|보유하고) 있지 않)|(?:답변|도움|도와)[을를]? ?드(?:릴 수 없|리기 어렵)|답변(?:하기 어렵|할 수 없)|(?:문서|자료|설명서|매뉴얼)에 (?:\S+ ){0,2}?(?:나와|언급되어|기재되어) 있지 않",
        // Arabic, Russian, Turkish
        r"لا أعرف|لا اعرف|لم أجد|لم يتم العثور|لا توجد معلومات|لا يمكنني|لا (?:أستطيع|استطيع|أعلم|اعلم)|لم [أا]تمكن من (?:العثور|[إا]يجاد|ال[إا]جابة|الرد|تحديد|معرفة)|(?:ليست? (?:لدي|لدينا|عندي|هناك)|لا (?:تتوفر|[تي]وجد|[أا]ملك|نملك))(?: (?:لدي|لدينا|هناك|حاليا|[أا]ي|[أا]ية|هذه|تلك)){0,2} (?:ال)?معلومات|не знаю|не наш[её]л|не найден|нет (?:\w+ ){0,3}?(?:информации|данных)|не могу ответить|bilmiyorum|bulamad|bilgi yok|(?:^|[^l] )bilgi(?:m|miz|ye|si)?(?: \w+)? (?:yok|bulunm(?:am|uy)|bulunamad|yer alm(?:iyor|amakta)|mevcut değil|sahip değil)|(?:yardimci ol|(?:yanit|cevap)(?: ver|la))y?[ae]m(?:iyoru[mz]|[ae](?:m|yiz))\b",
    ];
    RegexSetBuilder::new(english.iter().map(String::as_str).chain(others)).size_limit(32 << 20).build().ok()
});

/// Inability of others, or on a condition, which is no refusal: "You cannot find it in shops".
static OF_OTHERS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let others = "(?:you|they|he|she|one|users?|customers?|members?|guests?|people|children|nobody)";
    let unable = "(?:cannot|can not|can't|could not|couldn't|(?:is|are) (?:unable|not able) to|will not|won't)";
    let conditions = r"如果[^,。]*,|إذا لم \w+";
    Regex::new(&format!(r"\b{others} (?:(?:also|still|just|simply|often|usually|then) )?{unable}\b|{conditions}")).ok()
});

/// A limit, which is a refusal only without a claim beside it: "I cannot say more".
static NO_MORE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let verbs = "(?:know|find|found|say|tell|help|confirm|provide|give|see|have)";
    let whom = "(?:(?:you|us|me) )?(?:any |anything |much |nothing |something )?";
    Regex::new(&format!(r"\b{verbs} {whom}(?:more|further|else)\b(?:[.,;:!]|$)")).ok()
});

/// A belief, up to the end of its sentence, which is a claim: "I don't know, but I think it is blue".
static BELIEF: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let held = r"(?:i|we)(?:'d| would)? (?:(?:do|still|would|also|just|really|personally) )?(?:believe|think|guess|assume|suspect|reckon|(?:say|expect) (?:the|its?|it's|this|that|they|there))";
    let others = "(?:ich|wir) (?:glaube|denke|vermute)n?|(?:glaube|denke|vermute)n? (?:ich|wir)|je (?:crois|pense|suppose) que?|(?:creo|pienso|supongo) que|(?:credo|penso) che";
    let likely =
        "(?:its?|this|that|they|these|those)(?:'s|'re| is| are) (?:probably|likely|most likely|very likely|presumably)";
    Regex::new(&format!(r"\b(?:{held}|{others}|{likely})\b[^.!?;\n]*")).ok()
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
mod tests {
    use super::*;

    #[test]
    fn the_phrases_compile() {
        assert!(
            PHRASES.is_some()
                && [&OF_OTHERS, &NO_MORE, &BELIEF, &CONTRASTS, &POLITE, &CLAUSES].iter().all(|one| one.is_some())
        );
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
            "There is no information currently available.",
            "There is no data whatsoever.",
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
    fn refusals_of_other_languages_are_known_and_what_the_same_words_claim_is_none() {
        for (refusals, claims) in [
            (
                "I'm sorry, I can't assist with that request.|I am unable to assist you with this.|Dabei kann ich Ihnen leider nicht helfen.|Ich kann dir dabei nicht weiterhelfen.|Dazu kann ich leider nichts sagen.|Les documents ne mentionnent pas cela.|Los documentos no contienen esa información.|I documenti non contengono questa informazione.",
                "Customers can't assist the driver.|Der Kundendienst kann Ihnen dabei nicht helfen, aber der Händler.|Das kann ich Ihnen gern sagen.|Dazu müssen Sie nichts sagen.|Le produit ne contient pas de sucre.|Los dulces no contienen azúcar.|I dolci non contengono zucchero.",
            ),
            (
                "No dispongo de esa información.|No cuento con información.|Lamento no poder ayudarte con eso.|No disponemos de información al respecto.|Lo siento, no puedo ayudarte.|No tengo acceso a esa información.|No puedo responder a esa pregunta.|No me es posible responder.|No he podido encontrar información.",
                "No dispone de batería.|No cuenta con garantía para baterías.|No podemos vender sus datos.|No podemos responder por objetos perdidos.|Al no poder verificar sus datos, cancelamos el pedido.|No tenemos acceso para sillas de ruedas.|El plan no cuenta con datos móviles.|No tenemos ninguna fuente de alimentación de repuesto, la nueva cuesta veinte euros.|No cuento con datos móviles en casa.|No hay fuente de agua.",
            ),
            (
                "Non dispongo di informazioni.|Mi dispiace, non posso aiutarti.|Non ho queste informazioni.|Non sono in grado di rispondere.|Non abbiamo informazioni al riguardo.|Non lo so.|Non trovo nulla.|Non sono riuscito a trovare informazioni.|Non trovato.|Non trova nulla nei documenti.|Non ho dati su questo.|Non posso aiutarti con questo.",
                "Non dispone di batteria.|Non sono inclusi i cavi.|Non possiamo rispondere di eventuali danni.|Non trova il prodotto? Lo ordini online.|Non ho dubbi: dura due anni.|Non occorre fornire altre informazioni.|Non posso aiutarti prima delle nove.|Non ho dati mobili.|Gli articoli non trovati vengono rimborsati.",
            ),
            (
                "Nie mam informacji.|Nie posiadam danych na ten temat.|Przykro mi, nie mogę pomóc.|Nie jestem w stanie odpowiedzieć na to pytanie.|Nie udało mi się znaleźć odpowiedzi.|Brak informacji na ten temat.|Nie mam dostępu do tych informacji.|Nie dysponuję takimi informacjami.|Niestety nie mogę Ci pomóc.",
                "Nie posiada baterii.|Nie ma dodatkowych opłat.|Nie możemy przekazywać informacji osobom trzecim.|Nie posiadamy danych Twojej karty.|Nie ponosimy odpowiedzialności za szkody.|Nie mam wątpliwości: gwarancja trwa dwa lata.|Nie mogę pomóc bardziej: gwarancja trwa dwa lata.",
            ),
            (
                "Jag har ingen information om det.|Jag kan tyvärr inte svara.|Det kan jag tyvärr inte svara på.|Jag hittar tyvärr inget om det.|Jag har inte den informationen.|Jag saknar information om det.|Det vet jag tyvärr inte.|Det har jag inte information om.|Jag kan inte hjälpa dig med det.|Jag kan inte hitta någon information om det.",
                "Den har inget batteri.|Du kan inte returnera öppnade varor.|Vi tar ingen avgift.|Jag kan bekräfta att det inte kostar något.|Vi kan inte ansvara för skador.|Varan har inte information om ursprung på etiketten.|Kan jag inte hitta mitt paket? Ring oss.|Jag kan inte svara i telefon efter kl. 18.|Jag hittar inte appen? Ladda ner den.",
            ),
            (
                "Je ne dispose pas de cette information.|Je n'ai pas trouvé.|Je ne suis pas en mesure de répondre.|Nous ne disposons pas de ces informations.|Je ne trouve pas cette information.|Nous n’avons rien trouvé.|Je ne trouve rien.|Je ne trouve rien dans les documents.",
                "Le modèle ne dispose pas de Wi-Fi.|Je ne trouve pas ça cher.|Nous ne disposons pas d'un parking.|Vous ne disposez pas de cette option.|Nous ne sommes pas en mesure de livrer le dimanche.|Nous ne disposons pas de vos données bancaires.|Je ne trouve rien de plus simple que cet appareil.|Je ne trouve rien à redire.",
            ),
            (
                "Bu konuda bilgim yok.|Maalesef yardımcı olamıyorum.|Bu konuda bilgi bulunmamaktadır.|Bu soruyu yanıtlayamıyorum.|Bu soruya cevap veremem.|Bu konuda bir bilgiye sahip değilim.|Belgelerde bilgi yer almıyor.|Yerel bilgi yok.|Genel bilgi yok.",
                "Ek ücret yok.|Pil bulunmamaktadır.|Kartta kişisel bilgi bulunmamaktadır.|Müşteri yardımcı olamıyorsa mağazayı arayın.|İade için ek bilgi gerekmez.|Kartta bilgi yer almaz.",
            ),
            (
                "ليس لدي معلومات.|لا أستطيع الإجابة.|لا أملك هذه المعلومات.|لا تتوفر لدي معلومات.|لم أتمكن من العثور على معلومات.|لا أعلم.|لا توجد لدي أي معلومات.",
                "لا توجد رسوم إضافية.|ليس لدى الجهاز بطارية.|ليس عليك تقديم معلومات إضافية.|لا نشارك معلوماتك مع أحد.|لا يشمل الضمان البطاريات.|إذا لم أتمكن من التوصيل سأتصل بك.|لا يوجد في البطاقة معلومات شخصية.|لم أتمكن من التوصيل أمس.|ليس معلومات شخصية.",
            ),
            (
                "その情報は持っていません。|お答えできかねます。|お答えいたしかねます。|記載がありません。|マニュアルに記載されていません。|お答えすることができません。|該当する情報がございません。|わかりかねます。|資料に価格の記載がありません。",
                "追加料金はありません。|電池は付属していません。|情報を入力する必要はありません。|箱に日付の記載がなくても返品できます。|個人情報は保存していません。|製品には記載されていますが、保証書に日付の記載はありません。",
            ),
            (
                "我没有相关信息。|抱歉,我无法回答。|未找到|我无法找到相关信息。|暂无相关信息。|我无法提供这方面的信息。|我不清楚。|文档中没有提到。|沒有足夠的資訊來回答。|我没有这方面的信息哦|抱歉，没有该产品信息显示在文档中。|我没有产品信息，请联系客服。|抱歉，无法提供相关信息。",
                "没有额外费用。|暂无相关费用。|没有流量限制，信息服务免费。|如果无法找到设备，请重启。|我们不清楚标价商品。|如果图像不清楚，请调整焦距。|这里没有您的个人信息泄露风险。|如果您无法提供购买资料，将不能退货。|无法提供身份资料的客户不能开户。|本产品手册未提及的功能不在保修范围内。|我没有填写的资料来源要求，可直接办理。|没有任何个人信息会被泄露。|没有相关资料也可以办理。|没有任何资料要求。|如果无法找到相关资料，请致电。",
            ),
            (
                "정보를 찾지 못했습니다.|답변드릴 수 없습니다.|관련 정보가 없습니다.|해당 정보가 문서에 없습니다.|도와드릴 수 없습니다.|답변하기 어렵습니다.|문서에 나와 있지 않습니다.|해당 내용은 확인되지 않습니다.|요청하신 정보를 찾지 못했습니다.|관련 정보를 가지고 있지 않습니다.",
                "추가 비용이 없습니다.|개봉한 상품은 반품할 수 없습니다.|기사가 주소를 찾지 못했습니다.|결제가 확인되지 않으면 주문이 취소됩니다.|개인정보를 공유하지 않습니다.|개인 정보를 보유하고 있지 않습니다.|기사가 주소 정보를 찾지 못하면 전화합니다.|결제 정보가 확인되지 않습니다.",
            ),
        ] {
            for text in refusals.split('|') {
                assert!(says_that_it_cannot_answer(text), "{text}");
            }
            for text in claims.split('|') {
                assert!(!says_that_it_cannot_answer(text), "{text}");
            }
        }
    }

    #[test]
    fn an_answer_that_only_refuses_is_known_in_the_language_of_the_conversation() {
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
            "Sorry, I could not find that. Have a nice day!",
            "Hello! I could not find that. If you have any other questions, please let me know.",
            "Thank you for your question. I could not find that; please contact our support team.",
            "I don't know, but feel free to ask another question. Is there anything else I can help you with?",
            "Unfortunately, I can't help you further. Have a nice day!",
            "I cannot tell you more. Please reach out to customer support for further assistance.",
            "I'm sorry, but I don't have that information. I'd be happy to help with anything else.",
            "Grazie per la domanda. Non lo so. Posso aiutarti con altro?",
            "申し訳ありません。情報は見つかりませんでした。他にご質問はございますか？",
            "抱歉，我找不到相关信息。还有什么可以帮您的吗？",
            "죄송합니다. 관련 정보가 없습니다. 다른 질문이 있으신가요?",
            "I apologize for the inconvenience. I don't know. Let me know if you need more help or have other questions!",
            "Thanks for reaching out! I could not find that. Would you like me to search for something else?",
        ] {
            assert!(only_refuses(text, "¿Qué significa E-21?"), "{text}");
        }
        for text in [
            "Dazu habe ich nichts gefunden, üblich sind 42 Meter.",
            "Napoleon was born in Ajaccio. I found nothing about this in the documents.",
            "Ich habe dazu nichts gefunden. Fragen Sie Reykjavik Instruments.",
            "I don't know the date, but the warranty is two years.",
            "Das weiß ich nicht, aber die Garantie gilt zwei Jahre.",
            "Thank you for your question, the warranty is two years. I don't know the date.",
            "No lo sé. La garantía es de dos años. Gracias.",
            "Please contact our support team. Have a nice day!",
            "Nie mam żadnych informacji o dodatkowych opłatach, ale dostawa jest darmowa.",
            "The documents do not mention it [1].",
            "I could not find E-22.",
            "24 months.",
            "",
        ] {
            assert!(!only_refuses(text, "¿Qué significa E-21?"), "{text}");
        }
        let courtesies = "I recommend contacting support. We appreciate your patience.|Could you please rephrase your question? You can reach our support team at any time.|Bitte wenden Sie sich an unseren Kundendienst. Einen schönen Tag noch!|Puis-je vous aider avec autre chose ? Bonne journée !|¿Puedo ayudarte en algo más? ¡Que tengas un buen día!|If there is anything else I can help with, please contact our team directly.|Vielen Dank für Ihre Anfrage und Ihr Interesse.|Let me know how I can help.|Please ask me another question.|Please don't hesitate to reach out if you have any other questions.|Grazie per averci contattato.|¿Hay algo más en lo que pueda ayudarte?|N'hésitez pas à me poser une autre question.|Please contact us directly for more information about this.|Is there anything else you need?|Sorry for any confusion.|I apologize for any inconvenience this may cause.|Sorry for not being able to help.|Let me know if you'd like me to look for something else.";
        let claims = "Please restart the router.|Please ask Maria of the support team.|Did you know that the cover is blue?|You can call us any time, delivery is free.|Please contact our sales team on 555-1234.|Please ask Maria in accounting to reset it.|If you remove the battery and wait for a minute it resets, let me know.|If you hold the button for ten seconds it resets, please let me know if it worked.|Thank you for waiting for two days because delivery was late.|Please contact support at the front desk with your receipt within a month or the warranty expires.|Is there something wrong with the red cable because it overheats?|I can help you with other ways to reset the router by holding the button.|Sorry about the recall of all blue kettles.|Sorry for the delay caused by the strike in Lyon.|Please contact our team to get a full refund.|Please contact support for your free replacement.|Vielen Dank für die Rückgabe innerhalb von dreißig Tagen.|Merci de redémarrer votre appareil.|Feel free to return it.|Try another cable.|If you have a red cable hold the button, let me know.|You can contact the team at the airport to get a full refund in cash.|Hay algo más barato.|Would you like the blue one?";
        for (beside, expected) in [(courtesies, true), (claims, false)] {
            for text in beside.split('|') {
                assert_eq!(only_refuses(&format!("I don't know. {text}"), ""), expected, "{text}");
            }
        }
    }
}
