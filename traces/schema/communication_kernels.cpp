#include "traces/schema/communication_kernels.h"

#include <fmt/core.h>

namespace shardscope::traces::schema {

std::string communication_kernel_sql(std::string_view column) {
    std::string sql;
    for (const KernelNamePattern& pattern : kCommunicationKernelNames) {
        fmt::format_to(std::back_inserter(sql), "{}{} GLOB '{}{}*'", sql.empty() ? "(" : " OR ", column,
                       pattern.anywhere ? "*" : "", pattern.text);
    }
    return sql + ")";
}

std::string communication_kernel_sql(std::string_view short_name, std::string_view full_name) {
    return fmt::format("(coalesce({}, 0) OR coalesce({}, 0))", communication_kernel_sql(short_name),
                       communication_kernel_sql(full_name));
}

// Both kinds of rows are numbered within their correlation id and paired by grouping: a join of the two would
// cost their product wherever SQLite makes no index for it.
std::string collective_kernels_sql() {
    return fmt::format(R"(SELECT max(collective) AS collective,
       CASE WHEN max(named) OR max(kernels) <= max(collectives) THEN max(kernel) END AS kernel
FROM (SELECT rowid AS collective, NULL AS kernel, correlationId, row_number() OVER (PARTITION BY correlationId ORDER BY rowid) AS place,
             count(*) OVER (PARTITION BY correlationId) AS collectives, NULL AS kernels, NULL AS named
      FROM SHARD_COLLECTIVES
      UNION ALL
      SELECT NULL, id, correlationId, row_number() OVER (PARTITION BY correlationId ORDER BY start, finish, id),
             NULL, count(*) OVER (PARTITION BY correlationId), named
      FROM (SELECT e.rowid AS id, e.correlationId AS correlationId, e.start AS start, e."end" AS finish,
                   {0} AS named, max({0}) OVER (PARTITION BY e.correlationId) AS some_named
            FROM CUPTI_ACTIVITY_KIND_KERNEL e
            LEFT JOIN StringIds s ON s.id = e.shortName LEFT JOIN StringIds d ON d.id = e.demangledName
            WHERE e.correlationId <> 0)
      WHERE named = some_named)
GROUP BY correlationId, place HAVING max(collective) IS NOT NULL
ORDER BY 1)",
                       communication_kernel_sql("s.value", "d.value"));
}

}  // namespace shardscope::traces::schema
