"""The site of the documentation: it is built as `make docs` builds it, with every page, name and scorer."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import adjudge
from adjudge import reasons
from adjudge.cli.main import COMMANDS
from adjudge.scoring import builtin

ROOT = Path(__file__).parents[1]


def headings(page: Path) -> set[str]:
    return set(re.findall(r'<h[1-6] id="([^"]+)"', page.read_text(encoding="utf-8")))


def test_the_site_is_whole_and_no_link_is_dead(tmp_path: Path) -> None:
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    # not --quiet, which silences the warnings that --strict counts
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    site = tmp_path / "site"
    written = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert {re.sub(r"README\.md$", "index.md", page).replace(".md", ".html") for page in written} <= {
        page.relative_to(site).as_posix() for page in site.rglob("*.html")
    }
    assert {name.lower() for name in adjudge.__all__ if name != "__version__"} <= headings(site / "api.html")
    assert {*builtin.BUILTIN, *builtin.preset_names()} <= headings(site / "options.html")
    assert {f"adjudge-{name}" for name in COMMANDS} <= headings(site / "commands.html")
    texts = [page.read_text(encoding="utf-8") for page in site.rglob("*.html")]
    assert not [text for text in texts if str(ROOT) in text], "no page names the machine that it was made on"
    assert not [text for text in texts if re.search(" object at 0x[0-9a-f]", text)]
    first, protocol = ((site / name).read_text(encoding="utf-8") for name in ("index.html", "protocol.html"))
    assert all(f'href="{name}.html"' in first for name in ("commands", "options", "api"))
    assert not [code for code in reasons.ALL if code and f"<td><code>{code}</code></td>" not in protocol]
    search = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    words = re.split(search["config"]["separator"], "reward.dry_run(rows), &lt;think&gt; and `cohort: 8`")
    assert {"dry_run", "think", "cohort"} <= {*words}
    assert not [entry for entry in search["docs"] if entry["location"].startswith("sources/")]
