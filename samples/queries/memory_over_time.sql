-- How does live device memory by category grow and shrink over the steps? Shows the largest total within each
-- step, and each category's maximum in it (on one device, if a rank has several).
WITH curve AS (
    SELECT m.rank, m.time_ns, m.category,
           sum(m.bytes) OVER (PARTITION BY m.rank, m.device, m.category ORDER BY m.time_ns, m.position) AS live_bytes
    FROM (SELECT *, coalesce(stream, 0) / 1000000 AS device, row_number() OVER () AS position
          FROM memory WHERE space = 'device') m
)
SELECT s.rank, s.step, c.category, max(c.live_bytes) AS most_bytes
FROM steps s
JOIN curve c ON c.rank = s.rank AND c.time_ns >= s.start_ns AND c.time_ns < s.end_ns
GROUP BY s.rank, s.step, c.category
ORDER BY s.rank, s.step, most_bytes DESC;
