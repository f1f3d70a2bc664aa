"""Loads the CSV files of a run folder with pandas and DuckDB: types, units and what joins them. Called by tests/suite/tables.rs."""

import sys

import duckdb
import pandas as pd

folder = sys.argv[1]
tables = {name: pd.read_csv(f"{folder}/{name}.csv") for name in ["criteria", "trials", "violations", "latency"]}
criteria, trials, violations, latency = tables.values()

numbers = {
    "criteria": "n successes clusters distinct target_value observed_rate observed_seconds lower upper interval_lower interval_upper",
    "trials": "turns model_calls tool_calls input_tokens output_tokens cost_usd slowest_turn_ms took_ms",
    "violations": "repetition",
    "latency": "n unanswered value_ms lower_95_ms upper_95_ms share",
}
for name, columns in numbers.items():
    for column in columns.split():
        assert pd.api.types.is_numeric_dtype(tables[name][column]), f"{name}.{column} is {tables[name][column].dtype}"
        # DuckDB takes a column that is empty in every row for text.
        if tables[name][column].notna().any():
            kind = duckdb.sql(f"SELECT typeof(\"{column}\") FROM '{folder}/{name}.csv' LIMIT 1").fetchall()[0][0]
            assert kind in ("BIGINT", "DOUBLE"), f"{name}.{column} is {kind} in DuckDB"
assert criteria["required"].dtype == bool
for name, table in tables.items():
    for column in ["model", "recorded_on"]:
        assert column in table.columns, f"{name} has no {column}"
    rows = duckdb.sql(f"SELECT count(*) FROM '{folder}/{name}.csv'").fetchall()[0][0]
    assert rows == len(table) > 0, f"{name}: {rows} rows in DuckDB, {len(table)} in pandas"
assert set(criteria["unit"]) == {"share", "s"}
assert criteria["observed_rate"].dropna().between(0, 1).all()
assert set(violations["trial"]) <= set(trials["id"])
assert set(violations["criterion"]) <= set(criteria["id"])
failed = duckdb.sql(
    f"SELECT count(*) FROM '{folder}/violations.csv' v JOIN '{folder}/trials.csv' t ON v.trial = t.id"
).fetchall()[0][0]
assert failed == len(violations), "a violation has no trial"
assert (latency["value_state"].eq("measured") == latency["value_ms"].notna()).all()
print(f"{len(trials)} trials, {len(violations)} violations")
