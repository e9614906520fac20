#include "traces/schema/communication_kernels.h"

#include <fmt/format.h>

namespace shardscope::traces {

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

// All kernels are numbered, also those of no collective: SQLite takes the few that a condition leaves for so
// few that it would look through all of them for each collective, and makes no index.
std::string collective_kernels_sql() {
    return fmt::format(R"(SELECT c.id AS collective, k.id AS kernel
FROM (SELECT rowid AS id, correlationId, row_number() OVER same AS place, count(*) OVER (PARTITION BY correlationId) AS size
      FROM SHARD_COLLECTIVES WHERE correlationId <> 0
      WINDOW same AS (PARTITION BY correlationId ORDER BY rowid)) c
JOIN (SELECT id, correlationId, named, row_number() OVER (PARTITION BY correlationId ORDER BY start, finish, id) AS place,
             count(*) OVER (PARTITION BY correlationId) AS size
      FROM (SELECT e.rowid AS id, e.correlationId AS correlationId, e.start AS start, e."end" AS finish,
                   {0} AS named, max({0}) OVER (PARTITION BY e.correlationId) AS some_named
            FROM CUPTI_ACTIVITY_KIND_KERNEL e
            LEFT JOIN StringIds s ON s.id = e.shortName LEFT JOIN StringIds d ON d.id = e.demangledName)
      WHERE named = some_named) k
  ON k.correlationId = c.correlationId AND k.place = c.place AND (k.named OR k.size <= c.size))",
                       communication_kernel_sql("s.value", "d.value"));
}

}  // namespace shardscope::traces
