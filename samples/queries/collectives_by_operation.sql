-- How many bytes does each kind of collective move, in which part of the step, and at what rate? (GB/s = 10^9; of
-- the full buffer, waiting for other ranks included.)
SELECT rank, operation, phase, count(*) AS calls, sum(bytes) AS bytes, sum(padding) AS padding_bytes,
       sum(duration_ns) / 1e6 AS total_ms, round(1.0 * sum(bytes) / sum(duration_ns), 3) AS gb_per_s
FROM collectives
GROUP BY rank, operation, phase
ORDER BY rank, total_ms DESC;
