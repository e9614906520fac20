-- Where does a rank wait? Shows for each of its streams how long nothing ran between two pieces of work, and which
-- kernel followed the longest gap.
WITH work AS (
    SELECT rank, stream, stream_name, name, start_ns, end_ns FROM kernels
    UNION ALL
    SELECT rank, stream, stream_name, kind, start_ns, end_ns FROM memcpys
), gaps AS (
    SELECT rank, stream, stream_name, name,
           start_ns - max(end_ns) OVER (PARTITION BY rank, stream ORDER BY start_ns
                                        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS gap_ns
    FROM work
)
SELECT rank, stream, stream_name, count(*) AS gaps, sum(gap_ns) / 1e6 AS waited_ms, max(gap_ns) / 1e6 AS longest_ms,
       name AS after_the_longest
FROM gaps
WHERE gap_ns > 0
GROUP BY rank, stream
ORDER BY rank, waited_ms DESC;
