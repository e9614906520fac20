-- Which modules does the host spend its forward time in, and how many parameters do they have?
SELECT rank, path, name, unit, parameters, calls, host_ns / 1e6 AS host_ms, host_ns / 1e3 / max(calls, 1) AS us_per_call
FROM modules
ORDER BY rank, host_ms DESC, id;
