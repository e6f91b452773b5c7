"""What the program says when the clients' keys can't be used: place, what is allowed, the commands; never a key."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

import pytest

from srvmod.infra.aws.api_keys import KeysError, KeysSecret
from srvmod.infra.aws.names import Account

SECRET = KeysSecret("srvmod-case/api-keys", Account("111122223333", "us-east-1", "aws"), ("web", "mobile"))
WEB, MOBILE = "web-0123456789abcdefghij", "mobile-0123456789abcdefghij"


def test_one_key_per_client_is_taken() -> None:
    assert SECRET.checked(json.dumps({"web": WEB, "mobile": MOBILE})) == {"web": WEB, "mobile": MOBILE}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        (WEB, "isn't JSON"),
        (f'["{WEB}"]', "isn't a JSON object"),
        ('{"web": 1, "mobile": 2}', "isn't a JSON object"),
        (json.dumps({"web": WEB}), "has no key for mobile"),
        (json.dumps({"web": WEB, "mobile": MOBILE, "desk": "desk-0123456789abcdefghij"}), "has a key for desk"),
        (json.dumps({"web": WEB, "mobile": "short"}), "has a short key for mobile"),
        (json.dumps({"web": WEB, "mobile": WEB}), "has one key for two clients"),
    ],
)
def test_a_wrong_value_names_place_form_and_command(text: str, said: str) -> None:
    with pytest.raises(KeysError) as caught:
        SECRET.checked(text)
    told = str(caught.value)
    assert told.startswith("secret srvmod-case/api-keys in account 111122223333, us-east-1")
    assert said in told
    assert '{"web": "KEY", "mobile": "KEY"}' in told
    assert "aws secretsmanager put-secret-value --secret-id srvmod-case/api-keys --region us-east-1" in told
    assert WEB not in told
    assert MOBILE not in told


def test_several_mistakes_are_told_at_once() -> None:
    with pytest.raises(KeysError, match=r"no key for mobile; has a key for desk.*; has a short key for desk, web"):
        SECRET.checked('{"web": "a", "desk": "b"}')


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("operation error GetSecretValue: ResourceNotFoundException: Secrets Manager can't find the specified secret.",
         "create-secret --name srvmod-case/api-keys"),
        ("reading Secrets Manager Secret Version (srvmod-case/api-keys|AWSCURRENT): couldn't find resource",
         "create-secret --name srvmod-case/api-keys"),
        ("InvalidRequestException: the secret because it was marked for deletion.", "restore-secret"),
        ("AccessDeniedException: not authorized to perform: secretsmanager:GetSecretValue", "allow secretsmanager:Get"),
    ],
)  # fmt: skip
def test_a_secret_that_cannot_be_read(answer: str, said: str) -> None:
    assert said in str(SECRET._unreadable(answer))


def test_the_command_that_makes_keys_makes_good_ones() -> None:
    told = str(SECRET._unreadable("couldn't find resource"))
    line = next(line for line in told.splitlines() if "python3 -c" in line)
    command, _, file = line[line.index("python3 -c") :].rpartition(" > ")
    assert file == "k.json"
    words = [sys.executable, *shlex.split(command)[1:]]
    made = subprocess.run(words, capture_output=True, text=True, timeout=30, check=True).stdout
    assert set(SECRET.checked(made)) == {"web", "mobile"}
