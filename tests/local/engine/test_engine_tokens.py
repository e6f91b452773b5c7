"""Pretended tokens: nothing is lost, answers are deterministic and count as they say."""

import json

from hypothesis import given
from hypothesis import strategies as st
from srvmod_engine import tokens
from srvmod_engine.api.frames import Frames

_FRAMES = Frames(chat=True, id="chatcmpl-1", created=1, model="m", fingerprint=None, token_ids=False)


def _answer(seed: int, **more: object) -> tuple[list[int], list[str], tokens.Stop]:
    settings = {"max_tokens": 40, "natural_length": 1000, **more}
    answer = tokens.Answer(seed, **settings)  # type: ignore[arg-type]
    length = answer.stop.length
    ids = answer.ids(0, length)
    middle = answer.encoded(1, answer.uncut) if answer.uncut > 1 else ()
    texts = [answer.text(number) for number in range(length)]
    assert [text.decode() for text in middle] == texts[1 : max(1, answer.uncut)]
    assert [answer.ids(number, number + 1) for number in range(length)] == [[token] for token in ids]
    return ids, texts, answer.stop


@given(st.text())
def test_pieces_are_the_whole_text(text: str) -> None:
    assert "".join(tokens.pieces(text)) == text
    assert len(tokens.encode(text)) == len(tokens.pieces(text))


@given(st.integers(0, 2**40), st.booleans())
def test_an_answer_encodes_to_the_tokens_that_made_it(seed: int, leading: bool) -> None:
    ids, texts, stop = _answer(seed, leading_space=leading)
    assert tokens.encode("".join(texts)) == ids
    assert stop == tokens.Stop(40, "length")
    assert (ids, texts, stop) == _answer(seed, leading_space=leading)


@given(st.integers(0, 2**40), st.integers(1, 60))
def test_a_natural_end_costs_one_silent_token(seed: int, length: int) -> None:
    ids, texts, stop = _answer(seed, natural_length=length)
    if length < 40:
        length = max(length, 1)
        assert stop == tokens.Stop(length, "stop")
        assert texts[-1] == ""
        assert len(ids) == length
    elif length > 40:
        assert stop.finish_reason == "length"


@given(st.integers(0, 2**31), st.data())
def test_a_stop_string_cuts_the_text_before_it(seed: int, data: st.DataObject) -> None:
    _, texts, _ = _answer(seed)
    whole = "".join(texts)
    start = data.draw(st.integers(0, len(whole) - 1))
    end = data.draw(st.integers(start + 1, min(len(whole), start + 9)))
    stop = whole[start:end]
    ids, cut, how = _answer(seed, stop_strings=[stop])
    assert how.reason == stop
    assert how.finish_reason == "stop"
    assert "".join(cut) == whole[: whole.index(stop)]
    assert len(ids) <= 40
    _, kept, _ = _answer(seed, stop_strings=[stop], include_stop=True)
    assert "".join(kept) == whole[: whole.index(stop) + len(stop)]


@given(st.integers(0, 2**31), st.integers(0, 30))
def test_min_tokens_holds_the_end_back(seed: int, least: int) -> None:
    ids, _, _ = _answer(seed, natural_length=1, min_tokens=least)
    assert len(ids) > least


def test_seeds_tell_prompts_seeds_and_choices_apart() -> None:
    seeds = {
        tokens.answer_seed(prompt, seed, choice)
        for prompt in ([1, 2], [1, 3], [1])
        for seed in (None, 0, 1)
        for choice in (0, 1)
    }
    assert len(seeds) == 18


@given(st.integers(0, 2**32), st.integers(1, 10_000))
def test_natural_lengths_lie_around_the_typical_one(seed: int, typical: int) -> None:
    length = tokens.natural_length(seed, typical)
    assert max(1, typical // 2) <= length <= typical // 2 + typical


def test_a_conversation_sent_back_begins_with_the_same_tokens() -> None:
    first = tokens.encode_chat([("user", "hello")])
    ids, texts, _ = _answer(1)
    second = tokens.encode_chat([("user", "hello"), ("assistant", "".join(texts)), ("user", "more")])
    assert second[: len(first) + len(ids)] == first + ids


@given(st.text(), st.integers(0, 9))
def test_the_fast_event_equals_the_careful_one(text: str, index: int) -> None:
    """The hot path joins bytes around the text; for plain words that must be the same event."""
    words = "".join(tokens.WORDS[ord(letter) % 4900] for letter in text)
    before, after = _FRAMES.plain_template(index)
    event = before + words.encode() + after
    assert event == _FRAMES.tokens(index, words, [])
    assert event.endswith(b"\n\n")
    value = json.loads(event.removeprefix(b"data: "))
    assert value["choices"][0]["delta"] == {"content": words}


@given(st.text(), st.text())
def test_events_of_any_text_stay_one_line(text: str, model: str) -> None:
    frames = Frames(chat=False, id="cmpl-1", created=1, model=model, fingerprint="f", token_ids=True)
    try:
        event = frames.tokens(0, text, [1], finish_reason="stop", stamp=True, prompt=[2])
    except UnicodeEncodeError:
        return  # lone surrogates can't come out of a JSON request body
    assert event.count(b"\n\n") == 1
    assert b"\r" not in event
    assert json.loads(event.removeprefix(b"data: "))["choices"][0]["text"] == text
