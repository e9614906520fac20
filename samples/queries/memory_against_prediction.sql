-- How far is the peak of each step's device memory from what the memory account predicted? The peak includes
-- memory that is live when the step begins; a predicted step applies to later ones until the next stored one.
WITH curve AS (
    SELECT rank, time_ns, sum(bytes) OVER (PARTITION BY rank ORDER BY time_ns, position) AS live,
           row_number() OVER (PARTITION BY rank ORDER BY time_ns, position) AS nth
    FROM (SELECT *, row_number() OVER () AS position FROM memory WHERE space = 'device')
), bounds AS (
    SELECT s.rank, s.step, s.end_ns,
           (SELECT max(nth) FROM curve c WHERE c.rank = s.rank AND c.time_ns <= s.start_ns) AS before,
           (SELECT p.bytes FROM predictions p WHERE p.rank = s.rank AND p.part = 'step' AND p.name <= s.step
            ORDER BY p.name DESC LIMIT 1) AS predicted_bytes
    FROM steps s
)
SELECT b.rank, b.step, max(c.live) AS peak_bytes, b.predicted_bytes,
       max(c.live) - b.predicted_bytes AS difference_bytes
FROM bounds b
JOIN curve c ON c.rank = b.rank AND c.nth >= coalesce(b.before, 1) AND c.time_ns < b.end_ns
GROUP BY b.rank, b.step
ORDER BY b.rank, b.step;
