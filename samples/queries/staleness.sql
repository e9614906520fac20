-- How stale are the gradients that a parameter server updates with: how many other updates have the parameters had since
-- the worker of each got them? No rows: the server waits for all workers in each step (train.staleness = 0).
WITH served AS (
    SELECT rank, stream, 'update' AS what, start_ns FROM kernels
    WHERE stream_name LIKE 'serve %' AND NOT communication
    UNION ALL
    SELECT rank, stream, 'answer', start_ns FROM memcpys WHERE stream_name LIKE 'serve %'
), numbered AS (
    SELECT rank, stream, what,
           row_number() OVER (PARTITION BY rank, stream, what ORDER BY start_ns) AS number,
           sum(what = 'update') OVER (PARTITION BY rank ORDER BY start_ns ROWS UNBOUNDED PRECEDING) AS updates
    FROM served
), stale AS (
    SELECT u.rank, u.updates - 1 - a.updates AS staleness
    FROM numbered u JOIN numbered a USING (rank, stream, number)
    WHERE u.what = 'update' AND a.what = 'answer'
), counted AS (
    SELECT rank, staleness, count(*) AS updates FROM stale GROUP BY rank, staleness
)
SELECT rank AS server, staleness, updates,
       round(100.0 * updates / sum(updates) OVER (PARTITION BY rank), 1) AS percent,
       substr('########################################', 1,
              round(40.0 * updates / max(updates) OVER (PARTITION BY rank))) AS histogram
FROM counted
ORDER BY server, staleness;
