from desk import answer


def test_on_its_way(ragcheck_case):
    ragcheck_case.answer = answer("Where is my order A-1042?")
    assert "24 November" in ragcheck_case.answer


def test_lost(ragcheck_case):
    ragcheck_case.answer = answer("My parcel A-1077 was promised for last week. Where is it?")
    assert "lost" in ragcheck_case.answer


def test_no_such_order(ragcheck_case):
    ragcheck_case.answer = answer("Where is my order B-7?")
    assert "B-7" in ragcheck_case.answer
