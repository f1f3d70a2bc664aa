//! The files of `project/` and `demo/`. Written by `UPDATE=1 cargo test --test suite starter`.

/// Path below `project/`, and text.
pub(super) static FILES: &[(&str, &str)] = &[
    ("README.md", include_str!("project/README.md")),
    ("dot-gitattributes", include_str!("project/dot-gitattributes")),
    ("dot-github/workflows/ragcheck.yml", include_str!("project/dot-github/workflows/ragcheck.yml")),
    ("dot-gitignore", include_str!("project/dot-gitignore")),
    ("knowledge/bikes/bookings.md", include_str!("project/knowledge/bikes/bookings.md")),
    ("knowledge/bikes/equipment.md", include_str!("project/knowledge/bikes/equipment.md")),
    ("knowledge/bikes/hire.md", include_str!("project/knowledge/bikes/hire.md")),
    ("knowledge/bikes/repairs.md", include_str!("project/knowledge/bikes/repairs.md")),
    ("knowledge/bikes/returns.md", include_str!("project/knowledge/bikes/returns.md")),
    ("ragcheck.yaml", include_str!("project/ragcheck.yaml")),
    (
        "recordings/questions/battery-range/tool-rag.short.1.yaml",
        include_str!("project/recordings/questions/battery-range/tool-rag.short.1.yaml"),
    ),
    (
        "recordings/questions/battery-range/tool-rag.strict.1.yaml",
        include_str!("project/recordings/questions/battery-range/tool-rag.strict.1.yaml"),
    ),
    (
        "recordings/questions/blobs/2c947e0de2cbe3b7.txt",
        include_str!("project/recordings/questions/blobs/2c947e0de2cbe3b7.txt"),
    ),
    (
        "recordings/questions/blobs/d0347d0aaeaa4a93.json",
        include_str!("project/recordings/questions/blobs/d0347d0aaeaa4a93.json"),
    ),
    (
        "recordings/questions/cancellation/tool-rag.short.1.yaml",
        include_str!("project/recordings/questions/cancellation/tool-rag.short.1.yaml"),
    ),
    (
        "recordings/questions/cancellation/tool-rag.strict.1.yaml",
        include_str!("project/recordings/questions/cancellation/tool-rag.strict.1.yaml"),
    ),
    (
        "recordings/questions/child-seat/tool-rag.short.1.yaml",
        include_str!("project/recordings/questions/child-seat/tool-rag.short.1.yaml"),
    ),
    (
        "recordings/questions/child-seat/tool-rag.strict.1.yaml",
        include_str!("project/recordings/questions/child-seat/tool-rag.strict.1.yaml"),
    ),
    (
        "recordings/questions/deposit/tool-rag.short.1.yaml",
        include_str!("project/recordings/questions/deposit/tool-rag.short.1.yaml"),
    ),
    (
        "recordings/questions/deposit/tool-rag.strict.1.yaml",
        include_str!("project/recordings/questions/deposit/tool-rag.strict.1.yaml"),
    ),
    (
        "recordings/questions/flat-tyre/tool-rag.short.1.yaml",
        include_str!("project/recordings/questions/flat-tyre/tool-rag.short.1.yaml"),
    ),
    (
        "recordings/questions/flat-tyre/tool-rag.strict.1.yaml",
        include_str!("project/recordings/questions/flat-tyre/tool-rag.strict.1.yaml"),
    ),
    (
        "recordings/questions/group-booking/tool-rag.short.1.yaml",
        include_str!("project/recordings/questions/group-booking/tool-rag.short.1.yaml"),
    ),
    (
        "recordings/questions/group-booking/tool-rag.strict.1.yaml",
        include_str!("project/recordings/questions/group-booking/tool-rag.strict.1.yaml"),
    ),
    (
        "recordings/questions/helmet/tool-rag.short.1.yaml",
        include_str!("project/recordings/questions/helmet/tool-rag.short.1.yaml"),
    ),
    (
        "recordings/questions/helmet/tool-rag.strict.1.yaml",
        include_str!("project/recordings/questions/helmet/tool-rag.strict.1.yaml"),
    ),
    (
        "recordings/questions/late-return/tool-rag.short.1.yaml",
        include_str!("project/recordings/questions/late-return/tool-rag.short.1.yaml"),
    ),
    (
        "recordings/questions/late-return/tool-rag.strict.1.yaml",
        include_str!("project/recordings/questions/late-return/tool-rag.strict.1.yaml"),
    ),
    (
        "recordings/questions/minimum-age/tool-rag.short.1.yaml",
        include_str!("project/recordings/questions/minimum-age/tool-rag.short.1.yaml"),
    ),
    (
        "recordings/questions/minimum-age/tool-rag.strict.1.yaml",
        include_str!("project/recordings/questions/minimum-age/tool-rag.strict.1.yaml"),
    ),
    (
        "recordings/questions/return-after-closing/tool-rag.short.1.yaml",
        include_str!("project/recordings/questions/return-after-closing/tool-rag.short.1.yaml"),
    ),
    (
        "recordings/questions/return-after-closing/tool-rag.strict.1.yaml",
        include_str!("project/recordings/questions/return-after-closing/tool-rag.strict.1.yaml"),
    ),
    ("scenarios/criteria.yaml", include_str!("project/scenarios/criteria.yaml")),
    ("scenarios/prompts/short.md", include_str!("project/scenarios/prompts/short.md")),
    ("scenarios/prompts/strict.md", include_str!("project/scenarios/prompts/strict.md")),
    ("scenarios/questions.yaml", include_str!("project/scenarios/questions.yaml")),
    ("simulator/behaviour.yaml", include_str!("project/simulator/behaviour.yaml")),
    ("simulator/rates.yaml", include_str!("project/simulator/rates.yaml")),
];

/// The same of the files of `demo/`, which `ragcheck demo` has in place of the project's.
pub(super) static DEMO: &[(&str, &str)] = &[
    ("knowledge/bikes/bookings.md", include_str!("demo/knowledge/bikes/bookings.md")),
    ("ragcheck.yaml", include_str!("demo/ragcheck.yaml")),
    (
        "recordings/questions/blobs/2c947e0de2cbe3b7.txt",
        include_str!("demo/recordings/questions/blobs/2c947e0de2cbe3b7.txt"),
    ),
    (
        "recordings/questions/blobs/d0347d0aaeaa4a93.json",
        include_str!("demo/recordings/questions/blobs/d0347d0aaeaa4a93.json"),
    ),
    (
        "recordings/questions/deposit/tool-rag.strict.1.yaml",
        include_str!("demo/recordings/questions/deposit/tool-rag.strict.1.yaml"),
    ),
    (
        "recordings/questions/deposit/tool-rag.strict.2.yaml",
        include_str!("demo/recordings/questions/deposit/tool-rag.strict.2.yaml"),
    ),
    (
        "recordings/questions/deposit/tool-rag.strict.3.yaml",
        include_str!("demo/recordings/questions/deposit/tool-rag.strict.3.yaml"),
    ),
    (
        "recordings/questions/group-booking/tool-rag.strict.1.yaml",
        include_str!("demo/recordings/questions/group-booking/tool-rag.strict.1.yaml"),
    ),
    (
        "recordings/questions/group-booking/tool-rag.strict.2.yaml",
        include_str!("demo/recordings/questions/group-booking/tool-rag.strict.2.yaml"),
    ),
    (
        "recordings/questions/group-booking/tool-rag.strict.3.yaml",
        include_str!("demo/recordings/questions/group-booking/tool-rag.strict.3.yaml"),
    ),
    (
        "recordings/questions/helmet/tool-rag.strict.1.yaml",
        include_str!("demo/recordings/questions/helmet/tool-rag.strict.1.yaml"),
    ),
    (
        "recordings/questions/helmet/tool-rag.strict.2.yaml",
        include_str!("demo/recordings/questions/helmet/tool-rag.strict.2.yaml"),
    ),
    (
        "recordings/questions/helmet/tool-rag.strict.3.yaml",
        include_str!("demo/recordings/questions/helmet/tool-rag.strict.3.yaml"),
    ),
    (
        "recordings/questions/late-return/tool-rag.strict.1.yaml",
        include_str!("demo/recordings/questions/late-return/tool-rag.strict.1.yaml"),
    ),
    (
        "recordings/questions/late-return/tool-rag.strict.2.yaml",
        include_str!("demo/recordings/questions/late-return/tool-rag.strict.2.yaml"),
    ),
    (
        "recordings/questions/late-return/tool-rag.strict.3.yaml",
        include_str!("demo/recordings/questions/late-return/tool-rag.strict.3.yaml"),
    ),
    ("scenarios/questions.yaml", include_str!("demo/scenarios/questions.yaml")),
    ("simulator/behaviour.yaml", include_str!("demo/simulator/behaviour.yaml")),
];
