//! Which texts are refusals.

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

#[test]
fn natural_answers_of_five_languages_are_no_refusals_and_natural_refusals_are() {
    let refusals = "Esa información no está disponible.|Los documentos no contienen esa información.|Los documentos no mencionan el nombre del director.|Les documents ne contiennent pas cette information.|Cette information ne figure pas dans notre base de connaissances.|Les documents ne mentionnent pas le nom du directeur.|Das geht aus den Unterlagen nicht hervor.|Dazu kann ich keine Auskunft geben.|Darüber weiß ich leider nichts.|Tut mir leid, dabei kann ich nicht helfen.|Eine medizinische Diagnose kann ich nicht stellen.|Ich darf keine Rechtsberatung geben. Bitte wenden Sie sich an einen Anwalt.|No puedo ofrecer asesoramiento legal.|その件については把握しておりません。|医療上のアドバイスはできません。|I can only answer questions about our products.|I don't have access to your account details.|That falls outside my area of expertise.|My apologies, this is not something I can assist with.|That information is not available to me.|The documents I have cover deposits and returns, but they don't mention the CEO.|I’m not qualified to give legal advice.|I cannot diagnose your condition.|There's nothing about this in our policies.|The provided documents do not mention the CEO.|Die Dokumente enthalten keine Angaben dazu.|Je ne dispose pas de cette information.|資料には記載がありません。|I have not been able to find that.|I was not able to find the answer.|I'm not able to answer that.|I am not able to help with this.|There is no evidence of this in the documents.|There is no information available on that.|There is no mention of a CEO in the documents.|I found no entry on that.|We have no data on this.|There was no answer in the sources I searched.|The documents do not mention a fee, so I cannot say.|The documents do not mention this, so it is unclear.|The sources don't state the date, so it's impossible to say.|Die Unterlagen nennen das Datum nicht.|Das Handbuch erwähnt keine Gebühr.|Dazu finde ich keine Angaben, daher kann ich nichts dazu sagen.|Dazu kann ich leider keine Aussage treffen.|Ich kann Ihnen dazu keine Auskunft geben.|Dabei kann ich Ihnen leider nicht weiterhelfen.|Leider kann ich das nicht beantworten.|Le manuel ne précise pas la durée.|Ces informations ne sont pas disponibles.|Je suis désolé, je ne sais pas.|El manual no especifica la duración.|Lo siento, no puedo dar consejos médicos.|Esta información no aparece en los documentos.|詳細については把握していません。|法律に関する助言はいたしかねます。|お答えできません。|I can't assist with that request.|I cannot discuss individual medical cases.|I'm unable to offer medical advice.|I am only able to say that I don't know.|This information is not available in the provided context.|I do not currently have access to live prices.|There are no results for this in the knowledge base.|There is no record of that order.|No answer was found.|There is no documentation describing this.|There is no information, unfortunately.|Nothing about that is documented.|I do not have any information about the CEO.|I cannot comment on ongoing cases.|Dazu liegen mir keine Daten vor.|Ich habe dazu leider keine Daten.|That question is outside the scope of this assistant.|That is outside the scope.|This is beyond the scope of what I can answer.|I'm afraid I have no information about this.|There are no details regarding that.|I don't have enough data to say.|I have no knowledge of that.|The search returned no matching documents.|The search returned no results.|There was no relevant passage.|I found no documents that answer this.|I found no source for this.|We do not have this information yet.|I do not have a reliable source for that.|I don't have that detail.|There is no data for 2023.|The knowledge base has no article or document on it.|There is no answer to this question in the documents.|I have no information.|There's no information on this.|I do not have any results to share.|There is no documentation I could find on this.|There is no source I can cite for that.|I have no documents mentioning it.|There is no information I can give you.|I won't be able to help you with that.|I will not be able to assist with this.|I don't have those details right now.|I have no information past 2021.";
    let claims = "You cannot return opened items after 14 days.|I can't recommend the blue one enough.|Nicht gefunden? Dann rufen Sie uns an.|The policy does not mention a fee, so it is free.|The documents do not mention a fee, so it is free.|There is no entry fee on Sundays.|We have no entry fee.|There are no data charges in the EU.|There is no answering machine; call between 9 and 5.|There is no evidence that ibuprofen affects this.|There is no evidence that vaccines cause autism.|There is no information leaflet in the box; download it from our website.|I wasn't able to cancel your order because it has already shipped.|We were not able to deliver your parcel because nobody was at home.|Sie müssen keine Angaben zum Grund machen.|Sie brauchen keine Angaben zu machen.|Der Mietvertrag enthält keine Angaben zu Haustieren, sie sind also erlaubt.|There are no known interactions.|If I don't have access to my email, I can use the recovery code.|What if I can't find my order number? It is in the confirmation mail.|The warranty does not cover water damage.|Employees cannot discuss salaries with the press.|The test cannot diagnose allergies.|The plan does not include breakfast.|Das Gerät kann keine Diagnose stellen.|Sie können den Artikel nicht zurückgeben, wenn er geöffnet ist.|Die Garantie gilt nicht für Wasserschäden.|Der Hausarzt darf keine Rechtsberatung anbieten, ein Anwalt schon: Das kostet 80 Euro.|Nichts ist einfacher: Drücken Sie den Knopf.|Ich weiß nichts Besseres als dieses Modell.|Les documents ne sont pas nécessaires pour l'inscription.|Le passeport ne suffit pas.|Vous ne pouvez pas retourner les articles ouverts.|Les animaux ne sont pas admis.|Cette option n'est pas disponible le dimanche.|Cette garantie ne figure pas dans le contrat de base, mais elle coûte dix euros.|El plan básico no incluye desayuno.|No puede devolver artículos abiertos.|No se permiten animales.|Este producto no está disponible los domingos.|El documento no es necesario para inscribirse.|No puedo ofrecer un descuento mayor que el diez por ciento.|開封後の返品はできません。|診断書は必要ありません。|日曜日は診断できません、平日は可能です。|医師でない者は医療診断ができませんが、看護師は測定できます。|この商品は海外に発送できません。|That option is not available in the basic plan.|This data is not available on the free tier; upgrade to Pro.|I do not have access to real-time data, but the listed price is eighty euros.|The results look good, but they do not last long.|Our staff are not allowed to accept tips.|You are not qualified to claim the refund after 30 days.|It is not something you need to worry about.|The passage is closed, but it does not affect trains.|The search box can only help with exact names.|We only answer calls on weekdays.|Section 3 is outside the scope of the warranty for batteries only.|Children may enter only with an adult.|There's nothing in our policy against dogs, so they are welcome.|The manual says nothing is needed.|The contract contains no break clause.|You don't need any documents to register.|No documents are required.|There are no source files to install.|No, the battery is not included.|I cannot overstate how important it is to unplug it.|We could not process the payment, so your order was cancelled.|Keine Sorge, die Daten bleiben erhalten.|Es sind keine Daten verloren gegangen.|Das Dokument nennt den Preis nicht nur in Euro, sondern auch in Dollar.|Es werden keine Daten an Dritte weitergegeben.|We have no results-based pay.|There are no document fees.|There is no record player in the room.|There are no hidden source taxes.|Hits do not count as damage.|I'm unable to recommend it more highly.|He is not able to attend.|You can only ask questions by mail.|Leider nein, das Paket enthält keine Batterien.|Ich kann Ihnen keine Rabatte anbieten, der Preis ist fest.|Das kann ich nicht genug empfehlen.|Je ne peux que vous recommander ce modèle.|No hay desayuno los domingos.|駐車場はありません。|その点については満足しています。|Le document fourni doit être signé.|El documento indica que no se cobra nada.|There's no match fee.|There's no data limit.";
    for (texts, expected) in [(refusals, true), (claims, false)] {
        for text in texts.split('|') {
            assert_eq!(says_that_it_cannot_answer(text), expected, "{text}");
        }
    }
}
