// import, export, merge and slice read traces, write files, and print a line about each part.
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/core.h>

#include "traces/cli/analyse.h"
#include "traces/cli/long_work.h"
#include "traces/cli/verb.h"
#include "traces/export/chrome_trace.h"
#include "traces/export/csv_tables.h"
#include "traces/export/text_output.h"
#include "traces/import/import.h"
#include "traces/import/inputs.h"
#include "traces/merge/merge.h"
#include "traces/merge/slice.h"
#include "traces/query/as_database.h"
#include "traces/schema/text.h"
#include "traces/store/apart.h"
#include "traces/store/grouped.h"
#include "traces/store/number_list.h"
#include "traces/store/write/writer.h"

namespace shardscope::traces::cli {

namespace {

constexpr std::int64_t kRanksAtMost = 1 << 20;

double us(std::int64_t ns) {
    return static_cast<double>(ns) / 1000;
}

// Checks the output first, so that a wrong command line is reported before anything is read.
void check_output(const std::string& output, bool overwrite) {
    try {
        store::DatabaseWriter::check_output(output, overwrite);
    } catch (const store::StoreError& error) {
        throw UsageError(error.what());
    }
}

// Checks an input of the verbs that copy rows from database to database.
void check_database(const std::string& verb, const std::string& file) {
    check_input(file);
    std::error_code error;
    constexpr std::uintmax_t kHead = 16;  // shorter files are reported when they are opened
    if (query::is_database(file) || std::filesystem::file_size(file, error) < kHead || error) return;
    throw UsageError(
        fmt::format("{0}: {1} is not a database, and {0} takes those of Shardscope and of Nsight Systems; "
                    "import it first: shardscope-trace import {1} -o NEW.sqlite",
                    verb, file));
}

// Prints a closing sentence: to standard error with JSON and CSV, so that the output stays parsable.
void tell(const std::string& sentence, report::Format format) {
    if (format == report::Format::table) return print(sentence + "\n");
    fmt::print(stderr, "shardscope-trace: {}\n", sentence);
}

// Runs `action` until it is done or a signal stops it.
template <typename Action>
int stoppable(const std::string& name, const std::string& output, Action action) {
    try {
        const LongWork long_work(name);
        action(long_work.options());
        return kDone;
    } catch (const merge::Cancelled&) {
        fmt::print(stderr, "shardscope-trace: {} was stopped; {} was not written\n", name, output);
        return LongWork::stopped_status() != 0 ? LongWork::stopped_status() : kFailed;
    }
}

std::string clocks(const merge::MergeResult& result) {
    if (result.parts.size() < 2) return "";
    std::string measured;
    if (result.was_measured())
        measured = fmt::format("measured to within {:.3f} µs", us(result.uncertainty_ns()));
    if (result.collectives == 0) {
        return fmt::format("; clocks: {}, since the parts have no collectives in common",
                           measured.empty() ? "by the wall clock alone" : measured + " and no more");
    }
    if (!measured.empty()) measured += "; ";
    return fmt::format(
        "; clocks: {}{} within {:.3f} µs (median; {:.3f} µs at worst; "
        "{}{:.3f} µs by the wall clock alone)",
        measured,
        store::counted(result.collectives, "collective in common ends", "collectives in common end"),
        us(result.residual_ns), us(result.worst_ns),
        result.was_measured()
            ? fmt::format("{:.3f} µs by the measurements alone; ", us(result.residual_measured_ns))
            : "",
        us(result.residual_by_wall_ns));
}

// The ranges of a list of ranks, both ends included. Throws UsageError if the text is not such a list.
std::vector<std::pair<std::int64_t, std::int64_t>> parse_rank_list(const std::string& text) {
    const auto wrong = [&] {
        return UsageError(
            fmt::format("--rank {}: it is not a list of ranks; write for example 0,8 or 0-3", text));
    };
    const auto number = [&](std::string_view digits) {
        const auto value = schema::number_of<std::int64_t>(digits);
        if (!value || *value < 0 || *value > kRanksAtMost) throw wrong();
        return *value;
    };
    std::vector<std::pair<std::int64_t, std::int64_t>> ranks;
    std::string_view rest = text;
    for (bool more = !text.empty(); more;) {
        const auto comma = rest.find(',');
        const std::string_view item = rest.substr(0, comma);
        more = comma != std::string_view::npos;
        rest = more ? rest.substr(comma + 1) : std::string_view();
        const auto dash = item.find('-');
        const std::int64_t first = number(item.substr(0, dash));
        const std::int64_t last = dash == std::string_view::npos ? first : number(item.substr(dash + 1));
        if (last < first) throw wrong();
        ranks.emplace_back(first, last);
    }
    return ranks;
}

void print_chrome(const std::string& output, const exports::ChromeExportResult& result,
                  report::Format format) {
    print(
        render_rows({{"file"}, {"events"}, {"json_bytes"}}, {{output, result.events, result.bytes}}, format));
}

void print_csv(const std::string& folder, const std::vector<exports::CsvTable>& tables,
               report::Format format) {
    std::vector<std::vector<store::Cell>> rows;
    rows.reserve(tables.size());
    for (const exports::CsvTable& table : tables) rows.push_back({folder + "/" + table.file, table.rows});
    print(render_rows({{"file"}, {"rows"}}, rows, format));
}

int import_into(const Inputs& inputs, const std::string& output, bool overwrite) {
    const importer::ImportToOptions options{.inputs = inputs.files,
                                            .output = output,
                                            .overwrite = overwrite,
                                            .partial = inputs.partial,
                                            .max_bytes = parse_size(inputs.max_size)};
    for (const std::string& file : inputs.files) check_input_or_folder(file);
    check_output(output, overwrite);
    importer::ImportResult result;
    const int status = stoppable(
        "importing", output, [&](const merge::WorkOptions& work) { result = import_files(options, work); });
    if (status != kDone) return status;
    print_notes(result.notes);
    const bool several = result.files.size() > 1;
    std::vector<std::vector<store::Cell>> rows;
    for (std::size_t i = 0; i < result.files.size(); ++i) {
        const importer::ImportedFile& file = result.files[i];
        std::vector<store::Cell>& row =
            rows.emplace_back(std::vector<store::Cell>{file.file, file.format, file.bytes});
        if (!several) continue;
        const merge::MergedPart& part = result.merged.parts[i];
        for (const store::Cell& cell : {store::Cell(store::number_list(part.ranks)), store::Cell(part.rows),
                                        store::Cell(us(part.shift_ns)), store::Cell(us(part.correction_ns))})
            row.push_back(cell);
    }
    std::vector<report::Column> columns = {{"file"}, {"format"}, {"bytes"}};
    if (several) {
        for (const char* title : {"ranks", "rows", "shift_us", "by_collectives_us"})
            columns.push_back({title});
    }
    print(render_rows(columns, rows, inputs.format));
    tell(several
             ? fmt::format("{}: {} of {} files{}", output, store::counted(result.merged.rows, "row", "rows"),
                           result.files.size(), clocks(result.merged))
             : fmt::format("{} is written", output),
         inputs.format);
    return kDone;
}

}  // namespace

Work import_verb(Options& options) {
    const Output output = trace_output(options);
    options.footer(
        "Reads Kineto and Chrome traces (JSON), memory snapshots and flight recorder dumps of PyTorch, and\n"
        "SQLite exports of Nsight Systems; each plain or compressed with gzip. Several files, or a folder,\n"
        "are the ranks of one job: their clocks are aligned as by merge. Text that is not valid JSON but "
        "can\n"
        "be understood is read and counted (info reports it).");
    return [=](const Inputs& inputs) { return import_into(inputs, output.path, output.overwrite); };
}

Work export_verb(Options& options) {
    const std::string& to = options.required_text(
        "--to", "chrome|csv|sqlite",
        "chrome: JSON as PyTorch's profiler writes it, for Perfetto and others; csv: a folder of "
        "tables; sqlite: our own database");
    const std::string& output = options.required_text(
        "-o,--output", "OUT", "The file to write (compressed if it ends in .gz), or for csv the folder");
    const bool& overwrite = options.flag("--overwrite", "Replace what exists of that name");
    return [&](const Inputs& inputs) -> int {
        if (to == "sqlite") return import_into(inputs, output, overwrite);
        if (to != "chrome" && to != "csv")
            throw UsageError(fmt::format("--to {} is unknown; use chrome, csv or sqlite", to));
        for (const std::string& file : inputs.files) check_input_or_folder(file);
        try {
            const LongWork work("exporting");
            if (to == "chrome") {
                try {
                    store::check_apart(importer::file_paths(inputs.files), output);
                    exports::TextOutput::check(output, overwrite);
                } catch (const store::StoreError& error) {
                    throw UsageError(error.what());
                }
            }
            query::AsDatabaseOptions as_ours = database_options(inputs);
            as_ours.ours = true;
            const query::AsDatabase database(as_ours, work.options());
            print_notes(database.notes());
            if (to == "csv") {
                print_csv(output, exports::export_csv(database.path(), output, overwrite, work.options()),
                          inputs.format);
                return kDone;
            }
            const exports::ChromeExportOptions chrome{.overwrite = overwrite,
                                                      .pack = output.ends_with(".gz")};
            print_chrome(output, export_chrome(database.path(), output, chrome, work.options()),
                         inputs.format);
            return kDone;
        } catch (const merge::Cancelled&) {
            fmt::print(stderr, "shardscope-trace: exporting was stopped; {} was not written\n", output);
            return LongWork::stopped_status() != 0 ? LongWork::stopped_status() : kFailed;
        }
    };
}

Work merge_verb(Options& options) {
    const Output output = trace_output(options);
    options.files("IN", "The parts; the first one's clock is the reference", 1, 0);
    options.footer(
        "Ranks keep their numbers; ids that clash are renumbered. Clocks are aligned by the wall clock and\n"
        "then by the ends of the collectives that parts have in common; remaining differences are printed.\n"
        "docs/merging.md has the details.");
    return [=](const Inputs& inputs) {
        for (const std::string& file : inputs.files) check_database("merge", file);
        check_output(output.path, output.overwrite);
        merge::MergeResult result;
        const int status = stoppable("merging", output.path, [&](const merge::WorkOptions& work) {
            result = merge_traces(
                {.inputs = inputs.files, .output = output.path, .overwrite = output.overwrite}, work);
        });
        if (status != kDone) return status;
        print_notes(result.notes);
        std::vector<std::vector<store::Cell>> rows;
        for (const merge::MergedPart& part : result.parts) {
            rows.push_back({part.file, store::number_list(part.ranks), part.rows, us(part.shift_ns),
                            us(part.correction_ns), part.drift_ppm, part.collectives,
                            part.uncertainty_ns < 0 ? store::Cell{} : store::Cell{us(part.uncertainty_ns)}});
        }
        print(render_rows({{"part"},
                           {"ranks"},
                           {"rows"},
                           {"shift_us"},
                           {"by_collectives_us"},
                           {"drift_ppm"},
                           {"collectives_in_common"},
                           {"measured_within_us"}},
                          rows, inputs.format));
        tell(fmt::format("{}: {} of {}{}", output.path, store::counted(result.rows, "row", "rows"),
                         store::counted(static_cast<std::int64_t>(result.parts.size()), "part", "parts"),
                         clocks(result)),
             inputs.format);
        return kDone;
    };
}

Work slice_verb(Options& options) {
    const Output output = trace_output(options);
    options.files("IN", "The trace", 1, 1);
    const std::string& ranks =
        options.text("--rank,--ranks", "LIST", "Only these ranks, for example 0,8 or 0-3");
    options.times();
    options.footer(
        "Times do not change. Device work belongs to the step in which it was launched; memory "
        "that\n"
        "is live at the start is recorded as allocated there. docs/merging.md has the details.");
    return [=, &ranks](const Inputs& inputs) {
        const std::string& file = inputs.files[0];
        const analysis::Selection parsed = parse_selection(inputs.selection);
        const merge::SliceOptions sliced{.input = file,
                                         .output = output.path,
                                         .overwrite = output.overwrite,
                                         .choice = {.ranks = parse_rank_list(ranks),
                                                    .first_step = parsed.first_step,
                                                    .last_step = parsed.last_step,
                                                    .from_ns = parsed.from_ns,
                                                    .to_ns = parsed.to_ns}};
        if (sliced.choice.ranks.empty() && !sliced.choice.cuts_time())
            throw UsageError("slice: there is no selection to keep; give --rank, --step or --range");
        check_database("slice", file);
        check_output(output.path, output.overwrite);
        merge::SliceResult result;
        const int status = stoppable("slicing", output.path, [&](const merge::WorkOptions& work) {
            result = slice_trace(sliced, work);
        });
        if (status != kDone) return status;
        print_notes(result.notes);
        print(
            render_rows({{"file"}, {"ranks"}, {"steps"}, {"from_us"}, {"to_us"}, {"rows"}, {"rows_of_input"}},
                        {{output.path, store::number_list(result.ranks), store::number_list(result.steps),
                          us(result.first_ns), us(result.last_ns), result.rows, result.rows_of_input}},
                        inputs.format));
        return kDone;
    };
}

}  // namespace shardscope::traces::cli
