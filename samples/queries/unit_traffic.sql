-- How many bytes does each FSDP unit gather and reduce, and how long does that take on the device?
SELECT rank, name AS unit, module, shard_bytes, gathers, gathered_bytes, gather_ns / 1e6 AS gather_ms, reductions,
       reduced_bytes, reduce_ns / 1e6 AS reduce_ms
FROM units
ORDER BY rank, gathered_bytes DESC, id;
