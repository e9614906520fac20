-- Which rank keeps the others waiting? Shows for the ten worst collectives the rank that arrived last (its own part
-- was the shortest) and how long the first rank waited for it.
SELECT operation, group_id, sequence, unit,
       (SELECT rank FROM collectives d
        WHERE d.group_id = c.group_id AND d.sequence = c.sequence AND d.operation = c.operation
        ORDER BY d.duration_ns, d.rank LIMIT 1) AS last_rank,
       (max(duration_ns) - min(duration_ns)) / 1e3 AS longest_wait_us
FROM collectives c
GROUP BY operation, group_id, sequence
ORDER BY longest_wait_us DESC
LIMIT 10;
