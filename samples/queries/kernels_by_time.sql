-- Which kernels take the most device time, and what share of their rank's kernel time is that?
SELECT rank, coalesce(full_name, name) AS name, count(*) AS calls, sum(duration_ns) / 1e6 AS total_ms,
       avg(duration_ns) / 1e3 AS mean_us,
       round(100.0 * sum(duration_ns) / sum(sum(duration_ns)) OVER (PARTITION BY rank), 2) AS percent
FROM kernels
GROUP BY 1, 2
ORDER BY rank, total_ms DESC, 2;
