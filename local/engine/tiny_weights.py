"""Weights of a few megabytes for the local stack: a random Llama that a real server can load, too.

The tensors are random but seeded, the tokenizer is a plain byte-level one, and `srvmod-stand-in.json` says which
model they stand for, so that the simulated engine takes memory and step times from that model.
"""

import hashlib
import json
import random
import struct
from pathlib import Path
from typing import Any, Final, Protocol

REVISION: Final = "tiny-1"
"""The revision's name in the local bucket."""

_HIDDEN, _LAYERS, _HEADS, _KV_HEADS, _HEAD_DIM, _FFN, _VOCAB = 256, 4, 8, 4, 32, 896, 512

LLAMA_3_70B: Final[dict[str, Any]] = {
    "num_hidden_layers": 80,
    "hidden_size": 8192,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 28672,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "quantization_config": {"quant_method": "fp8", "activation_scheme": "static"},
}
"""config.json of an FP8 checkpoint of meta-llama/Meta-Llama-3-70B-Instruct, as far as memory and speed need it."""

CONFIG: Final[dict[str, Any]] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": _HIDDEN,
    "intermediate_size": _FFN,
    "num_hidden_layers": _LAYERS,
    "num_attention_heads": _HEADS,
    "num_key_value_heads": _KV_HEADS,
    "head_dim": _HEAD_DIM,
    "vocab_size": _VOCAB,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "attention_bias": False,
    "bos_token_id": 0,
    "eos_token_id": 1,
}

_SPECIAL: Final = (
    "<|begin_of_text|>",
    "<|eot_id|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
)
_CHAT_TEMPLATE: Final = (
    "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m['role'] }}<|end_header_id|>\n\n"
    "{{ m['content'] }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)


def _byte_alphabet() -> list[str]:
    """The 256 characters that byte-level tokenizers write bytes as (GPT-2's table)."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {byte: chr(byte) for byte in printable}
    spare = 0
    for byte in range(256):
        if byte not in table:
            table[byte] = chr(256 + spare)
            spare += 1
    return [table[byte] for byte in range(256)]


def _tokenizer() -> dict[str, Any]:
    vocabulary = {token: index for index, token in enumerate(_SPECIAL)}
    for character in _byte_alphabet():
        vocabulary[character] = len(vocabulary)
    while len(vocabulary) < _VOCAB:
        vocabulary[f"<|reserved_{len(vocabulary)}|>"] = len(vocabulary)
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": index,
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for index, token in enumerate(_SPECIAL)
        ],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": vocabulary,
            "merges": [],
        },
    }


def _tensors() -> list[tuple[str, str, tuple[int, ...]]]:
    """Name, type and shape of every tensor."""
    out: list[tuple[str, str, tuple[int, ...]]] = [("model.embed_tokens.weight", "BF16", (_VOCAB, _HIDDEN))]
    q, kv = _HEADS * _HEAD_DIM, _KV_HEADS * _HEAD_DIM
    for layer in range(_LAYERS):
        base = f"model.layers.{layer}"
        out += [
            (f"{base}.input_layernorm.weight", "BF16", (_HIDDEN,)),
            (f"{base}.self_attn.q_proj.weight", "BF16", (q, _HIDDEN)),
            (f"{base}.self_attn.k_proj.weight", "BF16", (kv, _HIDDEN)),
            (f"{base}.self_attn.v_proj.weight", "BF16", (kv, _HIDDEN)),
            (f"{base}.self_attn.o_proj.weight", "BF16", (_HIDDEN, q)),
            # calibrated scales: an FP8 KV cache needs them in the checkpoint
            (f"{base}.self_attn.k_scale", "F32", ()),
            (f"{base}.self_attn.v_scale", "F32", ()),
            (f"{base}.post_attention_layernorm.weight", "BF16", (_HIDDEN,)),
            (f"{base}.mlp.gate_proj.weight", "BF16", (_FFN, _HIDDEN)),
            (f"{base}.mlp.up_proj.weight", "BF16", (_FFN, _HIDDEN)),
            (f"{base}.mlp.down_proj.weight", "BF16", (_HIDDEN, _FFN)),
        ]
    return [*out, ("model.norm.weight", "BF16", (_HIDDEN,)), ("lm_head.weight", "BF16", (_VOCAB, _HIDDEN))]


def _values(name: str, kind: str, shape: tuple[int, ...], seed: int) -> bytes:
    """Small random numbers; norms and scales are one."""
    if kind == "F32":
        return struct.pack("<f", 1.0)
    count = 1
    for side in shape:
        count *= side
    if len(shape) == 1:
        return b"\x80\x3f" * count  # 1.0 in bfloat16
    source = random.Random(f"{seed}:{name}")
    raw = bytearray(source.randbytes(2 * count))
    # Sign and mantissa stay random; the exponent byte makes them at most 0.03, so that a real server stays finite.
    raw[1::2] = bytes((byte & 0x80) | 0x3C for byte in raw[1::2])
    return bytes(raw)


def _write_safetensors(path: Path, tensors: list[tuple[str, str, tuple[int, ...]]], seed: int) -> int:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    blobs: list[bytes] = []
    offset = 0
    for name, kind, shape in tensors:
        blob = _values(name, kind, shape, seed)
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [offset, offset + len(blob)]}
        offset += len(blob)
        blobs.append(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))
    return offset


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def write_tiny_weights(folder: Path, revision: str = REVISION, *, seed: int = 1, shards: int = 2) -> dict[str, Any]:
    """Write the files into `folder` (made when missing) and return their manifest, which is written, too.

    The same arguments give the same bytes on every machine. The manifest has the weight cache's form: schema,
    revision, and path, sizeBytes and sha256 of each file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tensors = _tensors()
    weight_map: dict[str, str] = {}
    total = 0
    for shard in range(shards):
        name = f"model-{shard + 1:05d}-of-{shards:05d}.safetensors"
        part = tensors[shard * len(tensors) // shards : (shard + 1) * len(tensors) // shards]
        total += _write_safetensors(folder / name, part, seed)
        weight_map |= {tensor: name for tensor, _, _ in part}
    _write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": weight_map})
    _write_json(folder / "config.json", CONFIG)
    _write_json(folder / "generation_config.json", {"bos_token_id": 0, "eos_token_id": 1})
    _write_json(folder / "tokenizer.json", _tokenizer())
    _write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": _SPECIAL[0],
            "eos_token": _SPECIAL[1],
            "model_max_length": 8192,
            "clean_up_tokenization_spaces": False,
            "chat_template": _CHAT_TEMPLATE,
        },
    )
    _write_json(folder / "srvmod-stand-in.json", {"name": "Meta-Llama-3-70B-Instruct (FP8)", "config": LLAMA_3_70B})
    files = [
        {
            "path": path.name,
            "sizeBytes": path.stat().st_size,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
        for path in sorted(folder.iterdir())
        if path.name != "manifest.json"
    ]
    manifest: dict[str, Any] = {"schema": 1, "revision": revision, "files": files}
    _write_json(folder / "manifest.json", manifest)
    return manifest


class S3Client(Protocol):
    """The one call of boto3's S3 client that uploading needs."""

    def put_object(self, *, Bucket: str, Key: str, Body: bytes) -> Any:  # noqa: N803 - boto3's names
        """Store one object."""
        ...


def upload(s3: S3Client, bucket: str, prefix: str, folder: Path) -> list[str]:
    """Upload a folder with its manifest to s3://bucket/prefix/revision/; the keys, manifest last.

    The manifest goes last, so that whoever finds it finds everything that it names.
    """
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    base = "/".join(part for part in (prefix.strip("/"), str(manifest["revision"])) if part)
    names = [str(entry["path"]) for entry in manifest["files"]] + ["manifest.json"]
    keys: list[str] = []
    for name in names:
        key = f"{base}/{name}"
        s3.put_object(Bucket=bucket, Key=key, Body=(folder / name).read_bytes())
        keys.append(key)
    return keys
