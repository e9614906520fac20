// query: SQL on a trace, the queries that come with the tool, and the documentation of the schema.
#include <algorithm>
#include <cctype>
#include <chrono>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>

#include <fmt/core.h>

#include "traces/cli/analyse.h"
#include "traces/cli/long_work.h"
#include "traces/cli/verb.h"
#include "traces/query/as_database.h"
#include "traces/query/shipped_queries.h"
#include "traces/report/report.h"
#include "traces/schema/schema.h"
#include "traces/store/sqlite/query.h"

namespace shardscope::traces::cli {

namespace {

int list_queries(report::Format format) {
    std::vector<std::vector<store::Cell>> rows;
    for (const query::ShippedQuery& query : query::shipped_queries())
        rows.push_back(
            {std::string(query.name), query::question_of(query.sql), query::parameters_of(query.sql)});
    print(render_rows({{"name"}, {"answers"}, {"parameters"}}, rows, format));
    return kDone;
}

std::string as_sql(const std::string& text) {
    if (text.ends_with(".sql")) {
        std::ifstream file(text, std::ios::binary);
        std::ostringstream content;
        if (!file || !(content << file.rdbuf()))
            throw UsageError(fmt::format("{} cannot be read as SQL; check the path", text));
        return content.str();
    }
    for (const query::ShippedQuery& query : query::shipped_queries()) {
        if (query.name == text) return std::string(query.sql);
    }
    const auto part_of_a_name = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
    if (std::all_of(text.begin(), text.end(), part_of_a_name)) {
        throw UsageError(
            fmt::format("query: \"{}\" is neither SQL nor a query that comes with the tool; `query --list` "
                        "lists those",
                        text));
    }
    return text;
}

std::map<std::string, std::string> as_parameters(const std::vector<std::string>& texts) {
    std::map<std::string, std::string> parameters;
    for (const std::string& text : texts) {
        const auto equals = text.find('=');
        const std::size_t sign = !text.empty() && std::string_view(":@$").find(text[0]) != std::string::npos;
        if (equals == std::string::npos || equals <= sign) {
            throw UsageError(fmt::format("--param {}: write NAME=VALUE, for example --param top=5", text));
        }
        parameters[text.substr(sign, equals - sign)] = text.substr(equals + 1);
    }
    return parameters;
}

int show_schema(const std::vector<std::string>& tables) {
    if (tables.empty()) {
        print(schema::schema_markdown());
        return kDone;
    }
    std::string text;
    for (const std::string& table : tables) {
        const std::string section = schema::schema_markdown_of(table);
        if (section.empty()) {
            throw UsageError(
                fmt::format("--schema {}: there is no such table or view; --schema alone prints all", table));
        }
        text += (text.empty() ? "" : "\n") + section;
    }
    print(text);
    return kDone;
}

void print_results(const std::vector<store::QueryResult>& results, report::Format format) {
    if (results.size() > 1 && format != report::Format::table) {
        throw UsageError(
            fmt::format("query: {} statements give results, and JSON and CSV hold one; keep one of them or "
                        "use --format table",
                        results.size()));
    }
    bool first = true;
    for (const store::QueryResult& result : results) {
        std::vector<report::Column> columns;
        columns.reserve(result.columns.size());
        for (const std::string& name : result.columns) columns.push_back({name});
        if (!first) print("\n");
        first = false;
        print(render_rows(columns, result.rows, format));
    }
}

// An export of Nsight Systems is queried as it is, or imported if the SQL names tables or views of ours.
std::vector<store::QueryResult> ask(query::AsDatabaseOptions files, const std::string& sql,
                                    const store::QueryOptions& options, const merge::WorkOptions& work) {
    try {
        const query::AsDatabase database(files, work);
        print_notes(database.notes());
        return run_query(database.path(), sql, options);
    } catch (const store::MissingTable&) {
        files.ours = true;
        const query::AsDatabase imported(files, work);
        if (!imported.imported()) throw;
        print_notes(imported.notes());
        return run_query(imported.path(), sql, options);
    }
}

}  // namespace

Work query_verb(Options& options) {
    const auto& given =
        options.arguments("FILE_AND_SQL", "FILE SQL",
                          "The trace, of any kind (an export of Nsight Systems is imported to a temporary "
                          "file if the SQL names our tables or views);"
                          " then SQL, a file that ends in .sql, or the name of a query that comes "
                          "with the tool");
    const auto& parameters =
        options.repeated_text("--param", "NAME=VALUE",
                              "The value of :NAME in the SQL. May be repeated; those given at the head of "
                              "the SQL (-- :top = 10) have a default");
    const bool& list = options.flag("--list", "List the queries that come with the tool, and exit");
    const bool& schema =
        options.flag("--schema", "Print the columns of all tables and views, or of the named ones, and exit");
    const bool& write =
        options.flag("--write", "Statements may change the file: all of them take effect, or none");
    const std::string& time_limit =
        options.text("--time-limit", "TIME",
                     "Stop the query after this time, such as 10s or 500ms; else it runs until it ends");
    options.reading();
    options.footer(
        "Functions: demangle(text), pretty_time(ns), pretty_bytes(n), overlap(start, end, a, b) and the\n"
        "aggregate percentile(value, p). docs/schema.md is what --schema prints.");
    return [&](const Inputs& inputs) {
        if (list) return list_queries(inputs.format);
        if (schema) return show_schema(given);
        if (given.size() != 2) {
            throw UsageError(
                given.empty()
                    ? "query: there is no trace; write query FILE \"SELECT ...\""
                    : fmt::format("query: write one trace and then the SQL in one argument (in quotes); {}",
                                  given.size() == 1 ? "there is no SQL" : "there are more"));
        }
        const std::string& file = given[0];
        const std::string sql = as_sql(given[1]);
        store::QueryOptions asked{.parameters = as_parameters(parameters), .write = write};
        if (!time_limit.empty())
            asked.time_limit = std::chrono::nanoseconds(parse_duration("--time-limit", time_limit));
        Inputs one = inputs;
        one.files = {file};
        check_input_or_folder(file);
        if (write && !query::is_database(file)) {
            throw UsageError(fmt::format(
                "query --write: {} is not a database; import it first and change the result", file));
        }
        std::vector<store::QueryResult> results;
        LongWork work("running the query");
        asked.cancel = work.options().cancel;
        try {
            results = ask(database_options(one), sql, asked, work.options());
        } catch (const store::QueryStopped&) {
            if (const int status = LongWork::stopped_status(); status != 0) return status;
            throw;
        } catch (const merge::Cancelled&) {
            return LongWork::stopped_status();
        }
        if (results.empty() && !write)
            throw UsageError("query: the SQL has no statement with a result; write a SELECT");
        print_results(results, inputs.format);
        return kDone;
    };
}

}  // namespace shardscope::traces::cli
