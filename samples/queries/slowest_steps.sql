-- Which steps took longest, on which rank, and how much of each was spent in collectives on the device?
SELECT s.rank, s.step, s.duration_ns / 1e6 AS step_ms,
       coalesce(sum(c.duration_ns), 0) / 1e6 AS collectives_ms, count(c.duration_ns) AS collectives, s.loss
FROM steps s
LEFT JOIN collectives c ON c.rank = s.rank AND c.start_ns >= s.start_ns AND c.start_ns < s.end_ns
GROUP BY s.rank, s.step
ORDER BY s.duration_ns DESC, s.rank
LIMIT 10;
