from desk import answer


def test_on_its_way(case):
    case.answer = answer("Where is my order A-1042?")
    assert "24 November" in case.answer


def test_lost(case):
    case.answer = answer("My parcel A-1077 was promised for last week. Where is it?")
    assert "lost" in case.answer


def test_no_such_order(case):
    case.answer = answer("Where is my order B-7?")
    assert "B-7" in case.answer
