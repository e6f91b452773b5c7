"""The model's weights: their manifest lists what engines load, and every file of it lies in the bucket."""

import json
from collections.abc import Iterator

from srvmod.contract import counted
from srvmod.contract.account_needs import AccountNeeds
from srvmod.ops.preflight.account import Account, RefusedError
from srvmod.ops.preflight.answers import Answer, cant_tell, ok, will_fail

MANIFEST = "manifest.json"
"""Name of a revision's list of files, as the weight cache reads it."""
SHOWN = 3


def complete(needs: AccountNeeds, aws: Account) -> Iterator[Answer]:
    """The revision's objects are those of its manifest, by name and size."""
    bucket = needs.weights.bucket
    base = f"{needs.weights.prefix}/{needs.weights.revision}"
    subject, required = f"weights {needs.weights.revision}", " ".join(needs.weights.required)
    needed = f"every file of s3://{bucket}/{base}/{MANIFEST}, {required} among them"
    upload = f"upload the revision, {MANIFEST} last: python3 -m weight_cache manifest DIR --required '{required}' > "
    upload += f"DIR/{MANIFEST}, then aws s3 sync DIR s3://{bucket}/{base}/"
    try:
        wanted = _manifest(aws, bucket, f"{base}/{MANIFEST}")
        there = aws.all("s3", "list_objects_v2", "Contents", Bucket=bucket, Prefix=f"{base}/")
    except RefusedError as error:
        if error.code == "NoSuchBucket":
            found = f"no bucket {bucket} yet: the first `pulumi up` makes it"
            yield cant_tell(subject, found, needed, f"then {upload}; no engine starts before")
        elif error.code == "NoSuchKey":
            yield will_fail(subject, f"no {base}/{MANIFEST}: engines would wait for ever", needed, upload)
        else:
            raise
        return
    except ValueError as error:
        yield will_fail(subject, f"{base}/{MANIFEST}: {error}", needed, upload)
        return
    sizes = {str(item["Key"]).removeprefix(f"{base}/"): int(item["Size"]) for item in there}
    missing = [name for name in wanted if name not in sizes]
    other = [name for name, size in wanted.items() if name in sizes and sizes[name] != size]
    absent = needs.weights.lacking(wanted)
    problems: list[str] = []
    if absent:
        problems.append(f"{MANIFEST} doesn't list {', '.join(absent)}, which engines need: no node would be opened")
        upload = f"put {', '.join(absent)} into DIR, under a new model.revision where nodes have this one, and {upload}"
    if missing or other:
        parts = [f"{len(missing)} missing ({_some(missing)})"] if missing else []
        parts += [f"{len(other)} of another size ({_some(other)})"] if other else []
        problems.append(f"of {counted(len(wanted), 'file')} {' and '.join(parts)}")
    if problems:
        yield will_fail(subject, "; ".join(problems), needed, upload)
        return
    yield ok(subject, f"{counted(len(wanted), 'file')}, {sum(wanted.values()) / 1e9:.1f} GB", needed)


def _some(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")


def _manifest(aws: Account, bucket: str, key: str) -> dict[str, int]:
    """Path to size in bytes. Raises ValueError for something else than a manifest."""
    raw = aws.ask("s3", "get_object", Bucket=bucket, Key=key)["Body"].read()
    try:
        document = json.loads(raw)
        files = {str(entry["path"]): int(entry["sizeBytes"]) for entry in document["files"]}
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"isn't a manifest ({type(error).__name__}: {error})") from None
    if not files:
        raise ValueError("lists no files")
    return files
