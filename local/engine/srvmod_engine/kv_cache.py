"""The KV block pool with vLLM's prefix cache, counted but not stored.

A block is private (its content is known to nobody else) or shared: full, and found by the hash of its tokens and of
everything before them. Shared blocks that nobody uses stay until their room is needed, least recently used first.
"""

from collections import OrderedDict

from srvmod_engine.sequence import Sequence


class KVCache:
    """Counts of blocks; see the module's text. `blocks` in all, of `block_size` tokens each."""

    def __init__(self, blocks: int, block_size: int, *, prefix_caching: bool) -> None:
        self.blocks = blocks
        self.block_size = block_size
        self.prefix_caching = prefix_caching
        self._private = 0
        self._used: dict[int, int] = {}
        """Shared blocks in use: hash to number of users."""
        self._idle: OrderedDict[int, None] = OrderedDict()
        """Shared blocks without users, oldest first."""

    @property
    def in_use(self) -> int:
        """Blocks that some sequence needs."""
        return self._private + len(self._used)

    @property
    def usage(self) -> float:
        """Share of blocks in use, 0 to 1, as vllm:kv_cache_usage_perc counts it."""
        return self.in_use / self.blocks if self.blocks else 0.0

    def available(self) -> int:
        """Blocks that can be had now, idle shared ones included."""
        return self.blocks - self.in_use

    def attach_prefix(self, seq: Sequence) -> int:
        """Give a sequence the shared blocks that it begins with; the number of tokens found.

        The last token is never taken from the cache: at least one must be computed to get an output.
        """
        if not self.prefix_caching:
            return 0
        tokens = seq.prompt + seq.output
        limit = (len(tokens) - 1) // self.block_size
        found = 0
        chain = 0
        for index in range(limit):
            chain = self._hash(chain, tokens, index)
            if chain in self._used:
                self._used[chain] += 1
            elif chain in self._idle:
                del self._idle[chain]
                self._used[chain] = 1
            else:
                break
            seq.shared_hashes.append(chain)
            found += 1
        seq.computed = found * self.block_size
        return seq.computed

    def grow(self, seq: Sequence, tokens: int) -> bool:
        """Make room for the sequence's first `tokens` tokens; False, and nothing changed, when there is none."""
        have = len(seq.shared_hashes) + seq.private_blocks
        need = -(-tokens // self.block_size) - have
        if need <= 0:
            return True
        if need > self.available():
            return False
        while self._private + len(self._used) + len(self._idle) + need > self.blocks:
            self._idle.popitem(last=False)
        seq.private_blocks += need
        self._private += need
        return True

    def publish(self, seq: Sequence) -> None:
        """Make the sequence's newly filled blocks findable by others."""
        if not self.prefix_caching:
            return
        full = seq.computed // self.block_size
        done = len(seq.shared_hashes)
        if full <= done:
            return
        tokens = seq.prompt + seq.output
        chain = seq.shared_hashes[-1] if done else 0
        for index in range(done, full):
            chain = self._hash(chain, tokens, index)
            seq.private_blocks -= 1
            self._private -= 1
            seq.shared_hashes.append(chain)
            if chain in self._used:
                # Someone computed the same block meanwhile: vLLM keeps both copies until one is freed; the
                # simulation keeps one, which is at most a block per such sequence kinder than the original.
                self._used[chain] += 1
            else:
                self._idle.pop(chain, None)
                self._used[chain] = 1

    def release(self, seq: Sequence) -> None:
        """Take everything back; shared blocks stay findable until their room is needed."""
        self._private -= seq.private_blocks
        seq.private_blocks = 0
        # The end of a prefix is the least likely to be used again, so it becomes the oldest.
        for chain in reversed(seq.shared_hashes):
            users = self._used[chain] - 1
            if users:
                self._used[chain] = users
            else:
                del self._used[chain]
                self._idle[chain] = None
        seq.shared_hashes.clear()
        seq.computed = 0

    def _hash(self, parent: int, tokens: list[int], index: int) -> int:
        start = index * self.block_size
        return hash((parent, *tokens[start : start + self.block_size]))
