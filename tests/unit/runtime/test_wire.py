"""Frames survive any cut of the stream, and what is no frame is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandyard_runtime.wire import HEADER_BYTES, LENGTHS, PAYLOAD_BYTES, Decoder, FrameError, encode

HEADERS = st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=4).map(lambda each: {**each, "type": "t"})
FRAMES = st.lists(st.tuples(HEADERS, st.binary(max_size=50)), max_size=5)


@given(FRAMES, st.integers(1, 40))
def test_frames_come_out_as_they_went_in_however_they_are_cut(
    frames: list[tuple[dict[str, str], bytes]], size: int
) -> None:
    stream = b"".join(encode(header, payload) for header, payload in frames)
    decoder = Decoder()
    found = [frame for start in range(0, len(stream), size) for frame in decoder.feed(stream[start : start + size])]
    assert [(frame.header, frame.payload) for frame in found] == frames


@pytest.mark.parametrize(
    "raw",
    [b"[]", b"{}", b'{"type": 1}', b"{", b"\xff", b"null", b"[" * 20_000],
    ids=lambda raw: raw[:10].decode("latin-1"),
)
def test_a_header_that_is_none_is_refused(raw: bytes) -> None:
    with pytest.raises(FrameError):
        Decoder().feed(LENGTHS.pack(len(raw), 0) + raw)


@pytest.mark.parametrize("lengths", [(HEADER_BYTES + 1, 0), (2, PAYLOAD_BYTES + 1), (2**32 - 1, 2**32 - 1)])
def test_lengths_above_the_bounds_are_refused_before_anything_is_held(lengths: tuple[int, int]) -> None:
    with pytest.raises(FrameError, match="above its bounds"):
        Decoder().feed(LENGTHS.pack(*lengths))


def test_the_largest_frame_is_one_and_a_byte_more_is_not() -> None:
    filler = HEADER_BYTES - len(json.dumps({"type": "t", "x": ""}, separators=(",", ":")))
    largest = encode({"type": "t", "x": "x" * filler}, b"p" * PAYLOAD_BYTES)
    assert len(Decoder().feed(largest)) == 1
    for header, payload in (({"type": "t", "x": "x" * (filler + 1)}, b""), ({"type": "t"}, b"p" * (PAYLOAD_BYTES + 1))):
        with pytest.raises(FrameError):
            encode(header, payload)
