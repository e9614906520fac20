-- How evenly do kernels run? Shows the longest-running kernels of each rank, the spread of their durations, and the
-- number of kernels shown.
-- :top = 10
SELECT rank, demangle(kernel) AS kernel, calls, total, median, p95, longest
FROM (SELECT rank, kernel, count(*) AS calls, pretty_time(sum(duration_ns)) AS total,
             pretty_time(percentile(duration_ns, 50)) AS median, pretty_time(percentile(duration_ns, 95)) AS p95,
             pretty_time(max(duration_ns)) AS longest,
             row_number() OVER (PARTITION BY rank ORDER BY sum(duration_ns) DESC, kernel) AS place
      FROM (SELECT rank, coalesce(full_name, name) AS kernel, duration_ns FROM kernels)
      GROUP BY rank, kernel)
WHERE place <= :top
ORDER BY rank, place;
