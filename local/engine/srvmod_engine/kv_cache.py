"""KV blocks with vLLM's prefix cache: which sequence holds which block, and which block has which content.

Blocks are numbers; nothing is stored in them. A full block is known by the hash of its tokens and of everything
before them. Blocks that nobody uses stay findable until their room is needed, least recently used first. As in vLLM
one block is set aside, and two sequences that compute the same block at the same time keep a copy each.
"""

from array import array
from collections import OrderedDict
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

from srvmod_engine.sequence import Sequence

_ROOT: Final = b""
_RESERVED: Final = 1
"""Blocks that are never given out: vLLM's null block."""


class BlockPool:
    """Reference counts, the queue of free blocks, and the map from content to block."""

    def __init__(self, blocks: int) -> None:
        self._users = array("L", bytes(8 * blocks))
        self._hashes: list[bytes | None] = [None] * blocks
        self._known: dict[bytes, list[int]] = {}
        self._blocks, self._untouched = blocks, _RESERVED
        """Blocks from `_untouched` on were never taken; they are taken before any other."""
        self._free: OrderedDict[int, None] = OrderedDict()
        """Blocks that had users and have none now, the next one to be taken first."""

    @property
    def free(self) -> int:
        """Blocks that can be had now, those with findable content included."""
        return len(self._free) + max(self._blocks - self._untouched, 0)

    def find(self, content: bytes) -> int | None:
        """A block with this content, if there is one."""
        holders = self._known.get(content)
        return holders[0] if holders else None

    def idle(self, blocks: Iterable[int]) -> int:
        """How many of these blocks have no user."""
        return sum(1 for block in blocks if not self._users[block])

    def share(self, blocks: Iterable[int]) -> None:
        """One more user for each of these blocks."""
        for block in blocks:
            if not self._users[block]:
                del self._free[block]
            self._users[block] += 1

    def take(self, count: int) -> list[int]:
        """Empty blocks with one user each; what was findable in them isn't any more. Raises KeyError beyond `free`."""
        taken: list[int] = []
        for _ in range(count):
            if self._untouched < self._blocks:
                block = self._untouched
                self._untouched += 1
            else:
                block, _ = self._free.popitem(last=False)
                self._forget(block)
            self._users[block] = 1
            taken.append(block)
        return taken

    def name(self, block: int, content: bytes) -> None:
        """Make a full block findable."""
        self._hashes[block] = content
        self._known.setdefault(content, []).append(block)

    def give_back(self, blocks: Iterable[int]) -> None:
        """One user less for each of these blocks, the first one to be taken again first."""
        for block in blocks:
            self._users[block] -= 1
            if not self._users[block]:
                self._free[block] = None

    def _forget(self, block: int) -> None:
        content = self._hashes[block]
        if content is None:
            return
        self._hashes[block] = None
        holders = self._known[content]
        holders.remove(block)
        if not holders:
            del self._known[content]


class KVCache:
    """The block pool as the scheduler uses it. `blocks` in all, of `block_size` tokens each."""

    def __init__(self, blocks: int, block_size: int, *, prefix_caching: bool) -> None:
        self.blocks = blocks
        self.block_size = block_size
        self.prefix_caching = prefix_caching
        self.pool = BlockPool(blocks)

    @property
    def in_use(self) -> int:
        """Blocks that some sequence needs."""
        return self.blocks - _RESERVED - self.pool.free

    @property
    def usage(self) -> float:
        """Share of blocks in use, 0 to 1, as vllm:kv_cache_usage_perc counts it."""
        usable = self.blocks - _RESERVED
        return self.in_use / usable if usable else 0.0

    def lookup(self, seq: Sequence) -> list[int]:
        """The blocks with which a sequence begins and that are there already.

        The last token is never taken from the cache: at least one must be computed to get an output.
        """
        found: list[int] = []
        if not self.prefix_caching:
            return found
        for index in range((seq.length - 1) // self.block_size):
            block = self.pool.find(self._content(seq, index))
            if block is None:
                break
            found.append(block)
        return found

    def admit(self, seq: Sequence, found: list[int], count: int, *, whole: bool, headroom: int) -> bool:
        """Room for a waiting sequence's next `count` tokens after the blocks it found; False changes nothing.

        `whole`: only when its prompt will fit as a whole (vLLM's scheduler_reserve_full_isl). `headroom`: blocks
        that must stay free beyond it (its watermark).
        """
        have = len(found)
        end = have * self.block_size + count
        need = -(-(seq.length if whole else end) // self.block_size) - have
        if need + self.pool.idle(found) + headroom > self.pool.free:
            return False
        self.pool.share(found)
        seq.blocks = found
        seq.named = have
        seq.computed = seq.room = have * self.block_size
        self.extend(seq, end)
        return True

    def extend(self, seq: Sequence, end: int) -> bool:
        """Blocks for the sequence's first `end` tokens, whose full ones become findable; False changes nothing."""
        need = -(-(end - seq.room) // self.block_size)
        if need > 0:
            if need > self.pool.free:
                return False
            seq.blocks += self.pool.take(need)
            seq.room += need * self.block_size
        if self.prefix_caching:
            for index in range(seq.named, end // self.block_size):
                self.pool.name(seq.blocks[index], self._content(seq, index))
                seq.named = index + 1
        return True

    def release(self, seq: Sequence) -> None:
        """Take everything back; named blocks stay findable until their room is needed.

        The end of a prefix is the least likely to be wanted again, so it goes first.
        """
        self.pool.give_back(reversed(seq.blocks))
        seq.blocks = []
        seq.named = seq.room = seq.computed = 0

    def _content(self, seq: Sequence, index: int) -> bytes:
        """Hash of a full block and of everything before it, kept with the sequence."""
        contents = seq.contents
        while len(contents) <= index:
            start = len(contents) * self.block_size
            tokens = array("I", seq.tokens(start, start + self.block_size))
            contents.append(sha256((contents[-1] if contents else _ROOT) + tokens.tobytes()).digest())
        return contents[index]
