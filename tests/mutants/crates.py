#!/usr/bin/env python3
"""Copies the modules `stats`, `metric` and `gate` into crates of their own, so that cargo-mutants compiles one module per mutant.

    tests/mutants/crates.py FOLDER

The crates to mutate, `stats`, `metric` and `gate`, hold their module unchanged, with its unit tests. `numbers` is `stats` as
the others see it, `measures` is `metric` as `gate` sees it, and `base` holds the modules below `metric`: what is `pub(crate)` here is public there.
"""

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BASE = ["platform", "settings", "plan", "trace", "scenario"]
BELOW = "pub use base::{" + ", ".join(BASE) + "};\npub use numbers::stats;\n"
# What tests read beside the sources. They also write to proptest-regressions, which is a copy.
BESIDE = ["docs", "fixtures", "scenarios", "schema", "snapshots", "tests"]
WRITTEN = "proptest-regressions"
# The modules of each crate, whether they are public, the crates that it uses, and its imports.
CRATES = {
    "stats": (["stats"], False, [], ""),
    "numbers": (["stats"], True, [], ""),
    "base": (BASE, True, [], ""),
    "measures": (["metric"], True, ["base", "numbers"], BELOW),
    "metric": (["metric"], False, ["base", "numbers"], BELOW),
    "gate": (["gate"], False, ["base", "numbers", "measures"], BELOW + "pub use measures::metric;\n"),
}
# Otherwise the simulations among the tests take seven times as long.
OPTIMISED = ["stats", "numbers"]


def opened(text: str) -> str:
    """The source with its crate-wide items public, and with what tests of other modules use compiled always."""
    text = text.replace("pub(crate)", "pub")
    text = re.sub(r"macro_rules! words", "#[macro_export]\nmacro_rules! words", text)
    text = text.replace("pub use words;", "pub use crate::words;")
    return re.sub(r" *#\[cfg\(test\)\]\n(?!\s*(#\[path[^\n]*\n\s*)?mod )", "", text)


def dependencies(section: str) -> str:
    manifest = (ROOT / "Cargo.toml").read_text()
    return re.search(rf"\[{section}\]\n(.*?)\n\n", manifest, re.DOTALL).group(1)


def main(folder: Path) -> None:
    used, of_tests = dependencies("dependencies"), dependencies("dev-dependencies")
    # tokio is among both, with other features.
    of_tests = "\n".join(line for line in of_tests.splitlines() if not line.startswith("tokio"))
    for name, (modules, public, crates, head) in CRATES.items():
        crate = folder / name
        shutil.rmtree(crate, ignore_errors=True)
        for module in modules:
            shutil.copytree(ROOT / "src" / module, crate / "src" / module)
        if public:
            for source in (crate / "src").rglob("*.rs"):
                source.write_text(opened(source.read_text()))
        declared = "".join(f"{'pub ' if public else ''}mod {module};\n" for module in modules)
        (crate / "src/lib.rs").write_text("#![allow(warnings)]\n" + head + declared)
        paths = "\n".join(f'{other} = {{ path = "../{other}" }}' for other in crates)
        manifest = f'[package]\nname = "{name}"\nversion = "0.0.0"\nedition = "2024"\nautotests = false\n\n[dependencies]\n{used}\n{paths}\n'
        separate = "\n" if public else "\n[dev-dependencies]\n"
        (crate / "Cargo.toml").write_text(manifest + separate + of_tests + "\n")
        for other in BESIDE:
            (crate / other).symlink_to(ROOT / other)
        shutil.copytree(ROOT / WRITTEN, crate / WRITTEN)
    criteria = "src/flow/tool_rag/criteria.yaml"
    (folder / "gate" / criteria).parent.mkdir(parents=True)
    shutil.copy(ROOT / criteria, folder / "gate" / criteria)
    shutil.copy(ROOT / "Cargo.lock", folder)
    fast = "".join(f"\n[profile.dev.package.{name}]\nopt-level = 2\n" for name in OPTIMISED)
    members = ", ".join(f'"{name}"' for name in CRATES)
    workspace = f'[workspace]\nmembers = [{members}]\nresolver = "3"\n\n[profile.dev]\ndebug = false\n'
    (folder / "Cargo.toml").write_text(workspace + fast)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
