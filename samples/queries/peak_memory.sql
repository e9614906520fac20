-- When is each rank's device memory fullest, and what lives there then?
WITH curve AS (
    SELECT rank, time_ns, category, bytes,
           sum(bytes) OVER (PARTITION BY rank ORDER BY time_ns, position) AS live,
           sum(bytes) OVER (PARTITION BY rank, category ORDER BY time_ns, position) AS live_of_category,
           row_number() OVER (PARTITION BY rank ORDER BY time_ns, position) AS nth
    FROM (SELECT *, row_number() OVER () AS position FROM memory WHERE space = 'device')
), peaks AS (
    SELECT rank, nth, time_ns, live FROM curve AS c
    WHERE live = (SELECT max(live) FROM curve WHERE rank = c.rank)
    GROUP BY rank
    HAVING nth = min(nth)
)
SELECT p.rank, p.time_ns / 1e6 AS time_ms, p.live AS peak_bytes, c.category, sum(c.bytes) AS bytes
FROM peaks p
JOIN curve c ON c.rank = p.rank AND c.nth <= p.nth
GROUP BY p.rank, c.category
HAVING sum(c.bytes) <> 0
ORDER BY p.rank, bytes DESC;
