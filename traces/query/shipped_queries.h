// The queries that come with the tools (made from samples/queries at build time), and what the comment at a
// query's head says. Constant data; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardscope::traces::query {

struct ShippedQuery {
    std::string_view name;  // "kernels_by_time"
    std::string_view sql;
};
const std::vector<ShippedQuery>& shipped_queries();

// The question that a query answers: the text at its head, up to the first question mark if it has one.
std::string question_of(std::string_view sql);

// The parameters to which its head gives values: "top=10 rank=0"; empty if there are none.
std::string parameters_of(std::string_view sql);

}  // namespace shardscope::traces::query
