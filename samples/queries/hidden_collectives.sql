-- Which collectives are hidden least? Shows for each the part of its time during which no other kernel of its rank
-- ran; by default the worst ten, of any operation.
-- :operation = %
-- :top = 10
WITH parts AS (
    SELECT c.rank, c.operation, c.unit, c.phase, c.start_ns, c.duration_ns,
           coalesce((SELECT sum(overlap(c.start_ns, c.end_ns, k.start_ns, k.end_ns)) FROM kernels k
                     WHERE k.rank = c.rank AND NOT k.communication
                       AND k.start_ns < c.end_ns AND k.end_ns > c.start_ns), 0) AS covered_ns
    FROM collectives c WHERE c.operation LIKE :operation
)
SELECT rank, operation, unit, phase, pretty_time(start_ns) AS at, pretty_time(duration_ns) AS took,
       pretty_time(max(duration_ns - covered_ns, 0)) AS not_hidden
FROM parts
ORDER BY max(duration_ns - covered_ns, 0) DESC, rank, start_ns
LIMIT :top;
