// query: SQL on a trace, the queries that come with the tool, and the page of the schema.
#pragma once

#include <string>
#include <vector>

#include "traces/cli/arguments.h"

namespace shardscope::traces {

struct QueryArguments {
    std::vector<std::string> file_and_sql;  // FILE, then SQL, a path that ends in .sql, or a shipped name
    std::vector<std::string> parameters;    // "name=value"
    std::string time_limit;                 // "10s"; empty: none
    bool write = false, list = false, schema = false;
    Inputs inputs;  // how the trace is read; its files are not looked at
};

int run_sql(const QueryArguments& arguments);

}  // namespace shardscope::traces
