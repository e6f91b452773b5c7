"""The command line is vLLM's: what it knows, what it refuses, and what its configuration refuses."""

import json
from pathlib import Path

import pytest
from srvmod_engine import cli
from srvmod_engine.bounds import Bounds
from srvmod_engine.config import build_config
from srvmod_engine.errors import ConfigError, ExitCode, WeightsError
from srvmod_engine.options import SimOptions, read_options
from srvmod_engine.serve_args import human_readable_int, option_table, parse

from .rig import make_config


def _words(line: str) -> list[str]:
    return line.split()


def test_the_options_of_a_real_deployment_are_taken(weights: Path) -> None:
    config = make_config(
        weights,
        *_words("--block-size 16 --max-model-len 8192 --max-num-seqs 768 --max-num-batched-tokens 2k"),
        *_words("--max-cudagraph-capture-size 768 --enable-chunked-prefill --enable-prefix-caching"),
        *_words("--async-scheduling --stream-interval 1 --gpu-memory-utilization 0.92 --shutdown-timeout 60"),
        *_words("--distributed-executor-backend mp --disable-uvicorn-access-log -O2 --compilation-config.mode=3"),
        "--custom-histogram-buckets",
        '{"inter_token_latency": [0.02, 0.03, 0.038], "time_to_first_token": [0.35]}',
    )
    assert (config.max_num_seqs, config.max_batched_tokens, config.shutdown_timeout) == (768, 2000, 60)
    assert config.custom_buckets["inter_token_latency"] == (0.02, 0.03, 0.038)
    assert not config.access_log
    assert config.stand_in
    assert config.shape.layers == 80
    # 0.92 * 79.1 GiB - 16.9 GiB weights - about 3 GiB over 40,960 bytes a token: 1.4 million tokens
    assert config.num_blocks * 16 == pytest.approx(1.4e6, rel=0.05)


@pytest.mark.parametrize(
    "word",
    [
        "--swap-space=4",
        "--num-scheduler-steps=8",
        "--max-seq-len-to-capture=8192",
        "--use-v2-block-manager",
        "--preemption-mode=swap",
        "--disable-async-output-proc",
        "--guided-decoding-backend=x",
        "--cuda-graph-sizes=8",
        "--calculate-kv-scales",
        "--timeout-keep-alive=5",
        "--tp=4",
        "--tensor-parallel=4",
        "--enable-chunked-prefill=False",
        "--tensor-parallel-size=four",
        "--dtype=float99",
        "--srvmod-speed=2",
    ],
)
def test_what_vllm_refuses_is_refused(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(["/models/x", word])
    assert caught.value.code == 2
    assert word.partition("=")[0] in capsys.readouterr().err


@pytest.mark.parametrize("option", option_table(), ids=lambda option: option["flags"][0])
def test_every_option_of_the_table_is_known_in_every_spelling(option: dict[str, object]) -> None:
    flags = option["flags"]
    assert isinstance(flags, list)
    samples = {"int": "1", "float": "0.5", "loads": "[]", "human_readable_int": "1k"}
    for flag in flags:
        words = [flag]
        if option["kind"] in {"value", "append"}:
            choices = option.get("choices")
            value = str(choices[0]) if isinstance(choices, list) else samples.get(str(option.get("type")), "1")
            words.append(value)
        if flag.startswith("--"):
            words[0] = "--" + flag[2:].replace("-", "_")
        assert hasattr(parse(words), str(option["dest"]))


@pytest.mark.parametrize(
    ("text", "number"), [("8192", 8192), ("8k", 8000), ("8K", 8192), ("1.5k", 1500), ("2M", 2**21), ("1g", 10**9)]
)
def test_human_readable_numbers(text: str, number: int) -> None:
    assert human_readable_int(text) == number


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--tensor-parallel-size=3"], "divisible"),
        (["--tensor-parallel-size=0"], "divisible"),
        (["--max-model-len=9000"], "derived max_model_len (8192)"),
        (["--max-num-batched-tokens=32"], "at least --max-num-seqs"),
        (["--gpu-memory-utilization=1.5"], "above 0 and at most 1"),
        (["--stream-interval=0"], "--stream-interval 0"),
        (["--watermark=1"], "--watermark 1.0"),
        (["--long-prefill-token-threshold=-1"], "--long-prefill-token-threshold -1"),
        (["--scheduling-policy=priority"], "--scheduling-policy priority: vLLM knows it"),
        (["--prefill-schedule-interval=2"], "--prefill-schedule-interval"),
        (["--tensor-parallel-size=16"], "tensor_parallel_size = 16"),
        (["--kv-cache-dtype=fp9"], "fp9"),
        (["--block-size=17"], "multiples of 16"),
        (["--shutdown-timeout=-1"], "negative"),
        (["--max-num-queued-reqs=x"], "whole number"),
        (["--num-gpu-blocks-override=4"], "KV blocks"),
        (["--custom-histogram-buckets={"], "not JSON"),
        (['--custom-histogram-buckets={"itl": [1]}'], "unknown bucket family 'itl'"),
        (['--custom-histogram-buckets={"inter_token_latency": [2, 1]}'], "strictly increasing"),
        (['--custom-histogram-buckets={"inter_token_latency": [0]}'], "greater than 0"),
        (['--custom-histogram-buckets={"inter_token_latency": [true]}'], "must be a number"),
        (['--custom-histogram-buckets={"inter_token_latency": []}'], "not empty"),
        (["--enable-lora"], "--enable-lora: vLLM knows it"),
        (["--ssl-keyfile=k"], "--ssl-keyfile"),
        (["--pipeline-parallel-size=2"], "--pipeline-parallel-size"),
        (["--disable-chunked-prefill", "--max-num-batched-tokens=2048"], "without chunked prefill"),
    ],
)
def test_what_vllms_configuration_refuses(weights: Path, flags: list[str], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_config(weights, *flags)
    assert words in str(caught.value)


def test_all_complaints_come_at_once(weights: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        make_config(weights, "--stream-interval=0", "--block-size=17", "--tensor-parallel-size=3")
    assert str(caught.value).count(";") >= 2


def test_a_long_context_is_allowed_by_vllms_own_variable(weights: Path) -> None:
    env = {"VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1", "VLLM_API_KEY": "k", "VLLM_HTTP_TIMEOUT_KEEP_ALIVE": "75"}
    config = make_config(weights, "--max-model-len=16384", env=env)
    assert (config.max_model_len, config.api_keys, config.keep_alive_seconds) == (16384, ("k",), 75.0)


def test_weights_that_are_not_there_or_not_whole(weights: Path, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="no such folder"):
        build_config(parse([str(tmp_path / "none")]), {}, SimOptions())
    for source in weights.iterdir():
        (tmp_path / source.name).write_bytes(source.read_bytes())
    shard = next(tmp_path.glob("*.safetensors"))
    shard.write_bytes(shard.read_bytes()[:-10])
    with pytest.raises(WeightsError, match="incomplete"):
        make_config(tmp_path)
    shard.write_bytes(b"\0" * 100)
    with pytest.raises(WeightsError, match="not a safetensors file"):
        make_config(tmp_path)
    shard.unlink()
    with pytest.raises(WeightsError, match="is not there"):
        make_config(tmp_path)
    for other in tmp_path.glob("*.safetensors"):
        other.unlink()
    with pytest.raises(WeightsError, match=r"no \*\.safetensors"):
        make_config(tmp_path)
    assert make_config(tmp_path, "--load-format=dummy").stand_in


def test_without_the_stand_in_file_the_folders_own_model_counts(weights: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes((weights / "config.json").read_bytes())
    config = make_config(tmp_path, "--load-format=dummy")
    assert not config.stand_in
    assert config.shape.layers == 4
    (tmp_path / "config.json").write_text('{"hidden_size": 1}')
    with pytest.raises(WeightsError, match="num_attention_heads"):
        make_config(tmp_path, "--load-format=dummy")


def test_fp8_kv_without_scales_is_warned_about(weights: Path, tmp_path: Path) -> None:
    assert make_config(weights).warnings == ()
    for name in ("config.json", "srvmod-stand-in.json"):
        (tmp_path / name).write_bytes((weights / name).read_bytes())
    header = json.dumps({"w": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}).encode()
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0")
    assert "k_scale" in make_config(tmp_path).warnings[0]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SRVMOD_SIM_TIME_SCALE", "0"),
        ("SRVMOD_SIM_TIME_SCALE", "nan"),
        ("SRVMOD_SIM_STEP_MS", "-1"),
        ("SRVMOD_SIM_ANSWER_TOKENS", "1.5"),
        ("SRVMOD_SIM_SPEED", "2"),
    ],
)
def test_bad_simulation_options_are_named(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        read_options({name: value})


def test_simulation_options_are_read() -> None:
    options = read_options({"SRVMOD_SIM_STEP_MS": "3", "SRVMOD_SIM_STEP_MODEL": "a:b", "SRVMOD_SIM_ISLANDS": "none"})
    assert (options.step_ms, options.step_model) == (3.0, "a:b")


def test_exit_codes(weights: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    assert cli.main(["bench"]) == 2
    monkeypatch.delenv("NVIDIA_VISIBLE_DEVICES", raising=False)
    assert cli.main(["serve", str(weights), "-tp", "4"]) == ExitCode.ISLAND
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", "GPU-4,GPU-5,GPU-6,GPU-7")
    assert cli.main(["serve", "/nowhere", "-tp", "4"]) == ExitCode.WEIGHTS
    assert cli.main(["serve", str(weights), "-tp", "4", "--block-size", "17"]) == ExitCode.CONFIG
    assert "multiples of 16" in caplog.text
    monkeypatch.setenv("SRVMOD_SIM_STEP_MODEL", "srvmod_engine.step_model:absent")
    assert cli.main(["serve", str(weights), "-tp", "4", "--port", "0", "--host", "127.0.0.1"]) == ExitCode.CONFIG


def test_bounds_on_requests_are_vllms_variables(weights: Path) -> None:
    assert (make_config(weights).bounds.sequences, make_config(weights).bounds.prompts) == (16_384, 1_024)
    env = {"VLLM_MAX_N_SEQUENCES": "8", "VLLM_MAX_COMPLETION_PROMPTS": "2"}
    assert make_config(weights, env=env).bounds == Bounds(8, 2)
    env = {"VLLM_MAX_N_SEQUENCES": "none", "VLLM_MAX_COMPLETION_PROMPTS": "0"}
    with pytest.raises(ConfigError, match=r"VLLM_MAX_N_SEQUENCES='none'.*; VLLM_MAX_COMPLETION_PROMPTS='0'"):
        make_config(weights, env=env)
