-- How much time did the profiler itself take from the threads of each rank, and for what? An export of Nsight Systems
-- has all of it, a recording of ours what CUPTI reports of itself.
SELECT r.rank, o.work, coalesce(o.times, 0) AS times, coalesce(o.ns, 0) / 1e6 AS total_ms,
       coalesce(o.longest, 0) / 1e6 AS longest_ms
FROM SHARD_RANKS r
LEFT JOIN (
    SELECT coalesce(t.rank, (SELECT max(q.rank) FROM SHARD_RANKS q WHERE q.globalPid = p.globalTid & ~0xFFFFFF
                             GROUP BY q.globalPid HAVING count(*) = 1)) AS rank,
           coalesce(s.value, e.label) AS work, count(*) AS times, sum(p."end" - p.start) AS ns,
           max(p."end" - p.start) AS longest
    FROM (SELECT start, "end", globalTid, nameId, overheadType FROM PROFILER_OVERHEAD
          UNION ALL
          SELECT start, "end", globalTid, nameId, overheadType FROM CUPTI_ACTIVITY_KIND_OVERHEAD
          WHERE overheadType IN (3, 4, 5)) p
    LEFT JOIN SHARD_THREADS t ON t.globalTid = p.globalTid
    LEFT JOIN StringIds s ON s.id = p.nameId
    LEFT JOIN ENUM_CUPTI_OVERHEAD_TYPE e ON e.id = p.overheadType
    GROUP BY 1, 2) o ON o.rank = r.rank
ORDER BY r.rank, o.ns DESC, o.work;
