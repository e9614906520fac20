-- How much less than its gradients does a bucket of DDP send, because a communication hook compresses them? Of the last
-- step: the bytes that a rank sends, if a ring carries them, beside those of an all-reduce of the gradients in fp32.
WITH launched AS (
    SELECT c.rank, c.unit, c.operation, c.bytes, c.group_size,
           coalesce((SELECT min(k.start_ns) FROM calls k WHERE k.rank = c.rank AND k.correlation = c.correlation),
                    c.start_ns) AS at_ns
    FROM collectives c WHERE c.unit IS NOT NULL AND c.bytes IS NOT NULL
), by_step AS (
    SELECT l.rank, l.unit, s.step, count(*) AS collectives, max(l.group_size) AS ranks,
           sum(l.bytes * CASE l.operation WHEN 'all_reduce' THEN 2.0 ELSE 1.0 END * (l.group_size - 1) / l.group_size)
               AS sent
    FROM launched l JOIN steps s ON s.rank = l.rank AND l.at_ns >= s.start_ns AND l.at_ns < s.end_ns
    GROUP BY l.rank, l.unit, s.step
)
SELECT b.rank, b.unit AS bucket, b.step, b.collectives, round(b.sent) AS sent_bytes,
       round(2.0 * u.bytes * (b.ranks - 1) / b.ranks) AS plain_bytes,
       round(2.0 * u.bytes * (b.ranks - 1) / b.ranks / b.sent, 2) AS times_less
FROM by_step b JOIN units u ON u.rank = b.rank AND u.name = b.unit
WHERE b.step = (SELECT max(step) FROM by_step last WHERE last.rank = b.rank)
ORDER BY b.rank, b.sent DESC;
