//! Reference page of the CSV files: prose, and the tables of columns from which the files are written.

use crate::grader::judgement_columns;
use crate::report::{
    call_columns, comparison_columns, criterion_columns, latency_columns, requirement_columns, trial_columns,
    variant_columns, violation_columns,
};
use crate::trace::columns::described;

const BEGINNING: &str = "# CSV files

Every column of the CSV files. The page is made from the tables of columns in the code (`ragcheck schema csv`).

They suit data frames: one header, one kind of row, numbers without units, empty cells for unknown values, states as
words in separate columns. Texts that a spreadsheet would read as a formula begin with an apostrophe. New columns come
last. `ragcheck report RUN --to csv --rows criteria|trials|violations|latency|requirements|calls` prints one.

`--to parquet` prints the same table as Apache Parquet, with typed columns; an empty cell is null. Published binaries have it; a build of yours needs `--features parquet`.

```python
import pandas as pd
violations = pd.read_csv(\"reports/latest/violations.csv\")
violations.groupby([\"criterion\", \"variant\"]).size()
```

```sql
-- duckdb
SELECT id, observed_rate, target_op, target_value, verdict
FROM 'reports/latest/criteria.csv' WHERE unit = 'share' AND required;

-- ragcheck report --to parquet --rows calls > calls.parquet
SELECT name, outcome, count(*), quantile_cont(took_us, 0.95) / 1000 AS p95_ms FROM 'calls.parquet' GROUP BY ALL;
```

`run.json` has the same names. A nested member is the column whose parts it joins: `retries.tool` is `retries_tool`,
`interval.lower` is `interval_lower`. Its times end in `_us`, microseconds.
";

pub(super) fn page() -> String {
    let sections = [
        ("criteria.csv: one row per criterion or gate", described(&criterion_columns())),
        ("trials.csv: one row per trial", described(&trial_columns())),
        (
            "violations.csv: one row per unit that fails a criterion\n\nAt most 1,000 rows per criterion, in the order of \
             the plan; `run.json` counts all of them by reason (`causes`).",
            described(&violation_columns()),
        ),
        ("latency.csv: one row per figure of time", described(&latency_columns())),
        ("requirements.csv: one row per requirement", described(&requirement_columns())),
        (
            "calls.csv: one row per call\n\nOf models, tools, searches and declared services. No file of a run folder: \
             `ragcheck report --to csv --rows calls` makes it of the traces.",
            described(&call_columns()),
        ),
        (
            "comparison.csv and pairs.csv: one row per criterion and pair\n\nWritten by `ragcheck compare`: two sides, or \
             all pairs of variants of a run.",
            described(&comparison_columns()),
        ),
        ("variants.csv: one row per figure, variant and case", described(&variant_columns())),
        (
            "judgements.csv: one row per grade\n\nWritten by `ragcheck judge`, beside `grades.jsonl`.",
            described(&judgement_columns()),
        ),
    ];
    let sections: String = sections.iter().map(|(title, table)| format!("\n## {title}\n\n{table}")).collect();
    BEGINNING.to_owned() + &sections
}
