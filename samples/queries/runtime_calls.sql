-- What does the host spend its time on in the runtime API, by rank and call? Long waits mean that the host runs
-- ahead of the device; many short launches mean that it cannot.
SELECT rank, name AS call, count(*) AS calls, sum(duration_ns) / 1e6 AS total_ms, avg(duration_ns) / 1e3 AS mean_us,
       max(duration_ns) / 1e3 AS longest_us
FROM calls
GROUP BY rank, name
ORDER BY rank, total_ms DESC;
