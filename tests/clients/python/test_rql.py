"""Queries as text: what is found, in which order, and what is made of it (`cases/rql.json`)."""

import pytest

from cases import each, matches


@each("rql")
def test_rql(shop, case):
    with shop.open_session() as session:
        query = session.advanced.raw_query(case["rql"], dict).wait_for_non_stale_results()
        for name, value in case.get("parameters", {}).items():
            query.add_parameter(name, value)
        if "error" in case:
            with pytest.raises(Exception, match=case["error"]):
                list(query)
        else:
            matches(case, session, list(query), "order by" in case["rql"].lower())
