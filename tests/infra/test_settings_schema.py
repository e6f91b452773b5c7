"""The committed JSON schema is the models' and judges files as they do, as far as a schema can."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from srvmod.infra.settings.schema import COMMITTED, stack_schema, stack_schema_text
from srvmod.infra.settings.stackfile import _Loader
from tests.infra.bad_configs import forms
from tests.infra.bad_configs.base import Case, changed

ROOT = Path(__file__).parents[2]
VALIDATOR = jsonschema.Draft202012Validator(stack_schema())


def test_committed_schema_is_fresh() -> None:
    assert (ROOT / COMMITTED).read_text(encoding="utf-8") == stack_schema_text(), (
        "run: python -m srvmod.infra.settings.schema"
    )


def test_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(stack_schema_text()))


@pytest.mark.parametrize("file", sorted(ROOT.glob("Pulumi.*.yaml")), ids=lambda file: file.name)
def test_stack_files_follow_and_name_the_schema(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert f"$schema={COMMITTED.as_posix()}" in text.splitlines()[0]
    VALIDATOR.validate(yaml.load(text, _Loader))


@pytest.mark.parametrize("case", forms.CASES, ids=lambda case: case.name)
def test_editors_see_wrong_forms(case: Case) -> None:
    config = {f"srvmod:{name}": section for name, section in changed(case.changes).items()}
    assert list(VALIDATOR.iter_errors({"config": config}))
