#!/usr/bin/env python3
"""A plain model of PyTorch's caching allocator, to judge shardscope-trace's replay by.

Written from the rules in docs/allocator.md: every segment is a list of blocks, and every question is answered by
looking at all of them. It prints a list of events, made from a seed, and what is reserved after each of them:

    event KIND ID BYTES STREAM POOL
    state FITTED RESERVED ALLOCATED LARGEST_FREE SEGMENTS

FITTED is 1 or 0; SEGMENTS are BYTES:STREAM:POOL:SMALL, by address, separated by commas. The first line has the
settings and the limit (bytes, 0 none).
"""
import random
import sys

KB, MB = 1 << 10, 1 << 20
FREE, USED, UNMAPPED = "free", "used", "unmapped"
ADDRESSES_OF_EXPANDABLE = 20 << 40


class Block:
    def __init__(self, address, size, state):
        self.address, self.size, self.state = address, size, state
        self.since = 0  # searches of the pool when it became free


class Segment:
    def __init__(self, stream, pool, small, expandable, first):
        self.stream, self.pool, self.small, self.expandable = stream, pool, small, expandable
        self.blocks = [first]  # by address
        self.base = first.address

    def page(self):
        return 2 * MB if self.small else 20 * MB

    def join_free(self):
        """Neighbours that are free, or unmapped, become one block."""
        joined = [self.blocks[0]]
        for block in self.blocks[1:]:
            last = joined[-1]
            if last.state == block.state and block.state != USED:
                last.size += block.size
                last.since = max(last.since, block.since)
            else:
                joined.append(block)
        self.blocks = joined

    def mapped_runs(self):
        """Sizes and addresses of what is reserved in one piece."""
        runs = []
        touching = False
        for block in self.blocks:
            if block.state == UNMAPPED:
                touching = False
            elif touching:
                runs[-1][1] += block.size
            else:
                runs.append([block.address, block.size])
                touching = True
        return runs


class Allocator:
    def __init__(self, settings, limit):
        self.settings, self.limit = settings, limit
        self.segments = []
        self.live = {}  # id -> (segment, block)
        self.waiting = []  # ids that the program freed and a stream still uses
        self.searches = {}  # (pool, small) -> how often a free block was searched
        self.next_address = 1 << 57

    # --- what there is ---

    def reserved(self):
        return sum(b.size for s in self.segments for b in s.blocks if b.state != UNMAPPED)

    def allocated(self):
        return sum(b.size for s in self.segments for b in s.blocks if b.state == USED)

    def largest_free(self):
        return max([b.size for s in self.segments for b in s.blocks if b.state == FREE], default=0)

    def reserved_segments(self):
        runs = [(address, f"{size}:{s.stream}:{s.pool}:{int(s.small)}") for s in self.segments
                for address, size in s.mapped_runs()]
        return [text for _, text in sorted(runs)]

    def has_room(self, size):
        return self.limit == 0 or self.reserved() + size <= self.limit

    # --- sizes ---

    def rounded(self, size):
        if size <= 512:
            return 512
        power = 512
        while power * 2 <= size:
            power *= 2
        parts = self.settings.get("divisions", 0)
        step = power // parts if parts > 1 and size > 512 * parts else 512
        return -(-size // step) * step

    @staticmethod
    def segment_size(size):
        if size <= MB:
            return 2 * MB
        if size < 10 * MB:
            return 20 * MB
        return -(-size // (2 * MB)) * 2 * MB

    # --- a request ---

    def allocate(self, name, requested, stream, pool):
        size = self.rounded(requested)
        small = size <= MB
        found = self.search(size, stream, pool, small)
        if not found and self.settings.get("gc") and self.limit:
            self.collect_garbage()
        if not found:
            found = self.take(size, stream, pool, small)
        if not found and self.release_oversize(size, stream, pool, small):
            found = self.take(size, stream, pool, small)
        if not found:
            self.empty_cache()
            found = self.take(size, stream, pool, small)
        if not found:
            return False
        segment, block = found
        self.split(segment, block, size)
        block.state = USED
        self.live[name] = found
        return True

    def split(self, segment, block, size):
        rest = block.size - size
        if segment.small or self.settings.get("expandable"):
            splits = rest >= 512
        else:
            splits = rest > MB and size < self.settings.get("max_split", 1 << 62)
        if splits:
            remainder = Block(block.address + size, rest, FREE)
            remainder.since = self.searches[(segment.pool, segment.small)]
            block.size = size
            segment.blocks.insert(segment.blocks.index(block) + 1, remainder)

    def search(self, size, stream, pool, small):
        self.searches[(pool, small)] = self.searches.get((pool, small), 0) + 1
        fitting = []
        for segment in self.segments:
            if (segment.stream, segment.pool, segment.small) != (stream, pool, small):
                continue
            for block in segment.blocks:
                if block.state == FREE and block.size >= size:
                    fitting.append((block.size, block.address, segment, block))
        if not fitting:
            return None
        fitting.sort(key=lambda f: f[:2])
        best = fitting[0]
        if self.settings.get("expandable"):
            # A block before unmapped memory counts with what it can grow to; the search goes on while the next
            # one is smaller in that sense.
            for other in fitting[1:]:
                if self.can_become(other[2], other[3]) >= self.can_become(best[2], best[3]):
                    break
                best = other
        limit = self.settings.get("max_split", 1 << 62)
        if size < limit <= best[0]:
            return None
        if size >= limit and best[0] >= size + 20 * MB:
            return None
        return best[2], best[3]

    @staticmethod
    def can_become(segment, block):
        place = segment.blocks.index(block)
        after = segment.blocks[place + 1:place + 2]
        return block.size + sum(b.size for b in after if b.state == UNMAPPED)

    # --- more memory of the device ---

    def take(self, size, stream, pool, small):
        if self.settings.get("expandable"):
            return self.take_pages(size, stream, pool, small)
        bytes_taken = self.segment_size(size)
        if not self.has_room(bytes_taken):
            return None
        block = Block(self.next_address, bytes_taken, FREE)
        self.next_address += bytes_taken
        segment = Segment(stream, pool, small, False, block)
        self.segments.append(segment)
        return segment, block

    def take_pages(self, size, stream, pool, small):
        segment, place = self.find_pages(size, stream, pool, small)
        while True:
            block = segment.blocks[place]
            if block.state == FREE and block.size >= size:
                return segment, block
            missing = block if block.state == UNMAPPED else segment.blocks[place + 1]
            wanted = size if block.state == UNMAPPED else size - block.size
            wanted = min(wanted, missing.size)
            mapped = min(-(-wanted // segment.page()) * segment.page(), missing.size)
            if not self.has_room(mapped):
                return None
            at = segment.blocks.index(missing)
            new = Block(missing.address, mapped, FREE)
            new.since = self.searches[(pool, small)]
            rest = Block(missing.address + mapped, missing.size - mapped, UNMAPPED)
            segment.blocks[at:at + 1] = [new] + ([rest] if rest.size else [])
            address = block.address
            segment.join_free()
            place = max(i for i, b in enumerate(segment.blocks) if b.address <= address)

    def find_pages(self, size, stream, pool, small):
        """The first free or unmapped block from which on the segment has room, at or right before the lowest
        unmapped block for which that is so."""
        candidates = []
        for segment in self.segments:
            if (segment.stream, segment.pool, segment.small) != (stream, pool, small):
                continue
            for place, block in enumerate(segment.blocks):
                if block.state == UNMAPPED:
                    candidates.append((block.address, segment, place))
        for _, segment, place in sorted(candidates, key=lambda c: c[0]):
            if place > 0 and segment.blocks[place - 1].state != USED:
                place -= 1
            room = 0
            for block in segment.blocks[place:]:
                if block.state == USED:
                    break
                room += block.size
            if room >= size:
                return segment, place
        block = Block(self.next_address, ADDRESSES_OF_EXPANDABLE, UNMAPPED)
        self.next_address += 2 * ADDRESSES_OF_EXPANDABLE
        segment = Segment(stream, pool, small, True, block)
        self.segments.append(segment)
        return segment, 0

    # --- less memory of the device ---

    def whole_free(self, stream=None, pool=None, small=None):
        """Segments of one free block."""
        return [s for s in self.segments
                if not s.expandable and len(s.blocks) == 1 and s.blocks[0].state == FREE
                and stream in (None, s.stream) and pool in (None, s.pool) and small in (None, s.small)]

    def release_oversize(self, size, stream, pool, small):
        limit = self.settings.get("max_split")
        if limit is None:
            return False
        needed = max(size, limit)
        whole = sorted(self.whole_free(stream, pool, small), key=lambda s: (s.blocks[0].size, s.blocks[0].address))
        enough = [s for s in whole if s.blocks[0].size >= needed]
        if enough:
            self.segments.remove(enough[0])
            return True
        released = 0
        for segment in reversed(whole):
            if released >= needed or segment.blocks[0].size < limit:
                break
            released += segment.blocks[0].size
            self.segments.remove(segment)
        return released >= needed

    def empty_cache(self):
        for name in list(self.waiting):
            self.free(name)
        for segment in self.whole_free():
            if segment.pool == 0:  # a private pool keeps its segments
                self.segments.remove(segment)
        for segment in self.segments:
            if not segment.expandable or segment.pool != 0:
                continue
            blocks = []
            for block in segment.blocks:
                first, last = block.address, block.address + block.size
                if block.state == FREE:
                    # Only pages that lie within the block.
                    first = segment.base - (segment.base - first) // segment.page() * segment.page()
                    last = segment.base + (last - segment.base) // segment.page() * segment.page()
                if block.state != FREE or first >= last:
                    blocks.append(block)
                    continue
                end = block.address + block.size
                parts = [Block(block.address, first - block.address, FREE), Block(first, last - first, UNMAPPED),
                         Block(last, end - last, FREE)]
                blocks += [p for p in parts if p.size]
            segment.blocks = blocks
            segment.join_free()

    def collect_garbage(self):
        allowed = self.settings["gc"] * self.limit
        if self.reserved() <= allowed:
            return
        target = self.reserved() - allowed
        searches = self.searches.get((0, False), 0)
        old = [(searches - s.blocks[0].since, s) for s in self.whole_free(pool=0, small=False)]
        reclaimed, found_one = 0, True
        while old and found_one and reclaimed < target:
            mean = sum(age for age, _ in old) / len(old)
            leaving = [s for age, s in old if age >= mean]
            found_one = bool(leaving)
            for segment in leaving:
                reclaimed += segment.blocks[0].size
                self.segments.remove(segment)
            old = [(age, s) for age, s in old if age < mean]

    # --- frees ---

    def free(self, name):
        if name not in self.live:
            return
        segment, block = self.live.pop(name)
        if name in self.waiting:
            self.waiting.remove(name)
        block.state = FREE
        block.since = self.searches[(segment.pool, segment.small)]
        # The joined block is a new one in the list: it is as young as its youngest part.
        segment.join_free()

    def request_free(self, name):
        if name in self.live and name not in self.waiting:
            self.waiting.append(name)


SETTINGS = [
    ("defaults", {}),
    ("expandable_segments:True", {"expandable": True}),
    ("max_split_size_mb:32", {"max_split": 32 * MB}),
    ("roundup_power2_divisions:4", {"divisions": 4}),
    ("garbage_collection_threshold:0.5", {"gc": 0.5}),
    ("expandable_segments:True,roundup_power2_divisions:8", {"expandable": True, "divisions": 8}),
    ("max_split_size_mb:64,garbage_collection_threshold:0.7", {"max_split": 64 * MB, "gc": 0.7}),
    ("max_split_size_mb:21,roundup_power2_divisions:2", {"max_split": 21 * MB, "divisions": 2}),
]


def a_size(dice):
    kind = dice.random()
    if kind < 0.4:
        return dice.randint(1, 64 * KB)
    if kind < 0.6:
        return dice.randint(64 * KB, 2 * MB)
    if kind < 0.9:
        return dice.randint(MB, 24 * MB)
    return dice.choice([dice.randint(20 * MB, 120 * MB), 32 * MB, 64 * MB, 10 * MB, MB, MB + 1, 512])


def main():
    seed, length = int(sys.argv[1]), int(sys.argv[2])
    dice = random.Random(seed)
    text, settings = SETTINGS[seed % len(SETTINGS)]
    limit = 0 if seed % 3 == 0 and "gc" not in settings else dice.randint(120, 400) * MB
    streams, pools = dice.randint(1, 3), dice.choice([1, 1, 2])
    print("settings", text, limit)
    allocator = Allocator(settings, limit)
    for number in range(1, length + 1):
        live = sorted(allocator.live)
        # Phases that fill the memory and phases that drain it.
        filling = 0.65 if number // 80 % 2 == 0 else 0.4
        kind = dice.random()
        name, size, stream, pool, fitted = 0, 0, 0, 0, True
        if kind < 0.01:
            what = "empty_cache"
            allocator.empty_cache()
        elif kind < filling or not live:
            what, name, size = "allocate", number, a_size(dice)
            stream, pool = dice.randrange(streams), dice.randrange(pools)
            fitted = allocator.allocate(name, size, stream, pool)
        elif kind < filling + 0.05:
            what, name = "request_free", dice.choice(live)
            allocator.request_free(name)
        else:
            what, name = "free", dice.choice(live)
            allocator.free(name)
        print("event", what, name, size, stream, pool)
        print("state", int(fitted), allocator.reserved(), allocator.allocated(), allocator.largest_free(),
              ",".join(allocator.reserved_segments()) or "-")


main()
