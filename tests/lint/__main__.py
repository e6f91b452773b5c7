"""checkov, parliament and kube-score over everything that environments render. `python -m tests.lint [--env E]`

The first two live in environments of their own under `.tools/lint` (their pins clash with ours and each other's),
kube-score is built as the other tools are. AWS resources are checked as CloudFormation's properties, Kubernetes
objects and IAM documents as they lie in `manifests/`.
Exit code 1 for a finding without a waiver, or a waiver without a finding.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srvmod.infra.settings.cloud import KubernetesVersion
from srvmod.infra.waivers import CHECKOV, KUBE_SCORE, PARLIAMENT, WAIVERS, Waiver
from srvmod.tools import ensure

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".tools" / "lint"
PINS = {CHECKOV: "checkov==3.3.30", PARLIAMENT: "parliament==1.6.4", "aws": "awscli==1.46.3"}
"""Other people's Python programs by their command; the last runs the pages' own `aws` commands in tests."""
ENVIRONMENTS = ("dev", "staging", "prod")


@dataclass(frozen=True)
class Finding:
    """What a tool says about a resource."""

    tool: str
    check: str
    text: str
    resource: str
    env: str

    def waived_by(self, waiver: Waiver) -> bool:
        """Whether a waiver is about this finding."""
        return (waiver.tool, waiver.check) == (self.tool, self.check) and any(
            part in self.resource for part in waiver.where
        )


def tool(name: str) -> Path:
    """A tool's command, installed on first use. Raises CalledProcessError."""
    folder = HOME / PINS[name].replace("==", "-")
    command = folder / "bin" / name
    if not command.exists():
        print(f"installing {PINS[name]} into {folder.relative_to(ROOT)}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, PINS[name], "setuptools<81"], check=True)  # parliament imports pkg_resources
    return command


def checkov(framework: str, target: Path, env: str) -> Iterator[Finding]:
    """Findings of one framework in a file or folder."""
    where = ["--directory" if target.is_dir() else "--file", str(target)]
    options = ["--framework", framework, "--compact", "--quiet", "--output", "json", "--skip-download"]
    done = subprocess.run([str(tool(CHECKOV)), *where, *options], capture_output=True, text=True, check=False)
    answer: Any = json.loads(done.stdout)
    reports = answer if isinstance(answer, list) else [answer]
    passed = sum(report.get("summary", report).get("passed", 0) for report in reports)
    if not passed:
        raise RuntimeError(f"checkov {framework} on {target} checked nothing: {done.stdout[:500]}{done.stderr[-500:]}")
    print(f"checkov {framework} {env}: {passed} checks passed", file=sys.stderr)
    for report in reports:
        for failed in report.get("results", {}).get("failed_checks", []):
            yield Finding(CHECKOV, failed["check_id"], failed["check_name"], failed["resource"], env)


def parliament(folder: Path, env: str) -> Iterator[Finding]:
    """Findings in the IAM documents of a folder."""
    command = [str(tool(PARLIAMENT)), "--directory", str(folder), "--include_policy_extension", "json", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode not in {0, 1} or "Traceback" in done.stderr:
        raise RuntimeError(f"parliament: exit {done.returncode}: {done.stderr[-800:]}")
    print(f"parliament {env}: {len(list(folder.glob('*.json')))} documents", file=sys.stderr)
    for line in done.stdout.splitlines():
        found = json.loads(line)
        name = Path(found["location"].get("filepath") or "?").name
        yield Finding(PARLIAMENT, found["issue"], f"{found['title']}: {found['detail']}", name, env)


GOOD = 10
"""kube-score's grade of an object without a finding."""


def kube_score(folder: Path, env: str) -> Iterator[Finding]:
    """Findings in the Kubernetes objects below a folder, judged together: a NetworkPolicy covers pods elsewhere."""
    objects = sorted(str(file) for file in folder.rglob("*.yaml") if "charts" not in file.relative_to(folder).parts)
    command = [str(ensure([KUBE_SCORE])[KUBE_SCORE]), "score", "--output-format", "json"]
    command += ["--kubernetes-version", f"v{KubernetesVersion.V1_36.value}", *objects]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    answer: Any = json.loads(done.stdout) if done.stdout else []
    made = [(judged, check) for judged in answer for check in judged["checks"] if not check["skipped"]]
    if not made:
        raise RuntimeError(f"kube-score on {folder} checked nothing: {done.stderr[-800:]}")
    print(f"kube-score {env}: {len(made)} checks on {len(answer)} objects", file=sys.stderr)
    for judged, check in made:
        if check["grade"] < GOOD:
            meta = judged["object_meta"]
            resource = f"{judged['type_meta']['kind']}.{meta.get('namespace', '')}.{meta['name']}"
            for comment in check["comments"] or [{"path": "", "summary": check["check"]["comment"]}]:
                text = f"{comment['path']}: {comment['summary']}"
                yield Finding(KUBE_SCORE, check["check"]["id"], text, resource, env)


def findings(env: str, folder: Path) -> Iterator[Finding]:
    """Everything that the tools find in an environment."""
    from tests.infra.aws_template import LIKE, PLACEHOLDER, template
    from tests.infra.environment import graph

    file = folder / f"{env}.template.json"
    file.write_text(json.dumps(template(graph(env))), encoding="utf-8")
    yield from checkov("cloudformation", file, env)
    yield from checkov("kubernetes", ROOT / "manifests" / env, env)
    yield from kube_score(ROOT / "manifests" / env, env)
    documents = folder / f"{env}-iam"
    documents.mkdir()
    for document in sorted((ROOT / "manifests" / env / "iam").glob("*.json")):
        if not document.name.startswith("role-"):  # parliament knows no trust policies: it wants a Resource
            text = PLACEHOLDER.sub(LIKE["aws:kms/key:Key", "arn"], document.read_text(encoding="utf-8"))
            (documents / document.name).write_text(text, encoding="utf-8")
    yield from parliament(documents, env)


def judge(found: list[Finding]) -> tuple[list[Finding], list[Waiver]]:
    """Findings without a waiver, and waivers without a finding."""
    open_ones = [finding for finding in found if not any(finding.waived_by(waiver) for waiver in WAIVERS)]
    idle = [waiver for waiver in WAIVERS if not any(finding.waived_by(waiver) for finding in found)]
    return open_ones, idle


def main() -> int:
    """Run everything and say what stands."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", action="append", choices=ENVIRONMENTS)
    chosen = parser.parse_args().env or ENVIRONMENTS
    with tempfile.TemporaryDirectory() as folder:
        found = [finding for env in chosen for finding in findings(env, Path(folder))]
    open_ones, idle = judge(found)
    shown = Counter((f.tool, f.check, f.resource, f.text[:160]) for f in open_ones)
    for (name, check, resource, text), _ in sorted(shown.items()):
        print(f"{name} {check} {resource}: {text}")
    for waiver in idle:
        print(f"waiver without a finding: {waiver.tool} {waiver.check} {waiver.where}; fix: take it out")
    print(
        f"{len(found)} findings, {len(found) - len(open_ones)} waived, {len(open_ones)} open, {len(idle)} idle waivers"
    )
    return 1 if open_ones or idle else 0


if __name__ == "__main__":
    sys.exit(main())
