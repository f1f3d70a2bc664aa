"""Reads the Parquet tables of a run with DuckDB and Polars, and compares them with the CSV files. Called by tests/suite/tables.rs."""

import sys

import duckdb
import polars as pl

folder, tables = sys.argv[1], sys.argv[2]
kinds = {
    "trials": {"turns": pl.Int64, "took_ms": pl.Int64, "cost_usd": pl.Float64, "verdict": pl.String},
    "criteria": {"required": pl.Boolean, "n": pl.Int64, "observed_rate": pl.Float64, "sentence": pl.String},
    "violations": {"repetition": pl.Int64, "required": pl.Boolean, "reason": pl.String},
    "latency": {"n": pl.Int64, "value_ms": pl.Float64, "value_state": pl.String},
    "requirements": {"passed": pl.Int64, "state": pl.String},
    "calls": {"took_us": pl.Int64, "status": pl.Int64, "outcome": pl.String},
}
for name, columns in kinds.items():
    table = pl.read_parquet(f"{tables}/{name}.parquet")
    for column, kind in columns.items():
        assert table.schema[column] == kind, f"{name}.{column} is {table.schema[column]}"
    csv = f"{tables}/calls.csv" if name == "calls" else f"{folder}/{name}.csv"
    texts = pl.read_csv(csv, infer_schema=False)
    assert texts.columns == table.columns, f"{name}: {table.columns}"
    typed = texts.with_columns(
        (pl.col(column) == "true").alias(column) if kind == pl.Boolean else pl.col(column).cast(kind)
        for column, kind in table.schema.items()
    )
    assert typed.equals(table), f"{name} differs from its CSV"
    assert duckdb.sql(f"SELECT count(*) FROM '{tables}/{name}.parquet'").fetchall() == [(len(texts),)] and (len(texts) > 0 or name in ("violations", "requirements"))
joined = duckdb.sql(
    f"SELECT count(*), sum(calls.took_us) FROM '{tables}/calls.parquet' calls JOIN '{tables}/trials.parquet' trials ON calls.trial = trials.id"
).fetchall()[0]
calls = pl.read_parquet(f"{tables}/calls.parquet")
assert joined == (len(calls), calls["took_us"].sum()), "a call has no trial"
per_trial = calls.filter(pl.col("kind") == "model").group_by("trial").len()
trials = pl.read_parquet(f"{tables}/trials.parquet").filter(pl.col("model_calls") > 0)
counted = trials.join(per_trial, left_on="id", right_on="trial", how="left")
assert (counted["model_calls"] == counted["len"]).all(), "calls are missing"
print(f"{len(trials)} trials, {len(calls)} calls")
