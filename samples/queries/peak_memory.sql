-- When does each rank's device memory peak, and what is live then? If a rank has several devices (distinguished by
-- the stream), the one with the highest peak is shown.
WITH curve AS (
    SELECT rank, device, time_ns, category, bytes,
           sum(bytes) OVER (PARTITION BY rank, device ORDER BY time_ns, position) AS live,
           sum(bytes) OVER (PARTITION BY rank, device, category ORDER BY time_ns, position) AS live_of_category,
           row_number() OVER (PARTITION BY rank, device ORDER BY time_ns, position) AS nth
    FROM (SELECT *, coalesce(stream, 0) / 1000000 AS device, row_number() OVER () AS position
          FROM memory WHERE space = 'device')
), peaks AS (
    SELECT rank, device, nth, time_ns, live FROM curve AS c
    WHERE live = (SELECT max(live) FROM curve WHERE rank = c.rank)
    GROUP BY rank
    HAVING nth = min(nth)
)
SELECT p.rank, p.time_ns / 1e6 AS time_ms, p.live AS peak_bytes, c.category, sum(c.bytes) AS bytes
FROM peaks p
JOIN curve c ON c.rank = p.rank AND c.device = p.device AND c.nth <= p.nth
GROUP BY p.rank, c.category
HAVING sum(c.bytes) <> 0
ORDER BY p.rank, bytes DESC;
