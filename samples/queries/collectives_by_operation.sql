-- How many bytes does each kind of collective move, in which part of the step, and at what rate? (GB = 10^9
-- bytes of the full buffer; the time includes waiting for other ranks.)
SELECT rank, operation, phase, count(*) AS calls, sum(bytes) AS bytes, sum(padding) AS padding_bytes,
       sum(duration_ns) / 1e6 AS total_ms, round(1.0 * sum(bytes) / sum(duration_ns), 3) AS gb_per_s
FROM collectives
GROUP BY rank, operation, phase
ORDER BY rank, total_ms DESC;
