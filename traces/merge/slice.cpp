#include "traces/merge/slice.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string_view>

#include <fmt/core.h>

#include "traces/merge/launched_work.h"
#include "traces/merge/output_file.h"
#include "traces/merge/part.h"
#include "traces/merge/state_at.h"
#include "traces/merge/table_copy.h"
#include "traces/schema/column_roles.h"
#include "traces/schema/enums.h"
#include "traces/schema/rows.h"
#include "traces/schema/schema.h"
#include "traces/store/apart.h"
#include "traces/store/number_list.h"

namespace shardscope::traces::merge {

namespace fs = std::filesystem;

namespace {

constexpr double kShareOfSlicing = 0.6;  // of the whole work; the rest finishes the file

// The indices of the columns that hold a row's owner, times and launch; -1 if the table has no such column.
struct RowPlaces {
    int rank = -1, thread = -1, device = -1, process = -1, pid = -1, start = -1, end = -1, correlation = -1;

    RowPlaces(const schema::SchemaTable& table, const TableCopy& rows) {
        for (const schema::SchemaColumn& column : table.columns) {
            const int at = rows.place(column.name);
            const auto take = [&](int& place) { place = place < 0 ? at : place; };
            switch (column_role(table.name, column)) {
                case schema::ColumnRole::rank:
                    take(rank);
                    break;
                case schema::ColumnRole::thread:
                    take(thread);
                    break;
                case schema::ColumnRole::device:
                    take(device);
                    break;
                case schema::ColumnRole::process:
                    take(process);
                    break;
                case schema::ColumnRole::pid:
                    take(pid);
                    break;
                case schema::ColumnRole::correlation:
                    take(correlation);
                    break;
                case schema::ColumnRole::time:
                case schema::ColumnRole::time_or_zero:
                    take(column.name == "end" ? end : start);
                    break;
                default:
                    break;
            }
        }
    }
    bool is_device_work() const { return device >= 0 && correlation >= 0; }
};

class Slice {
  public:
    Slice(const SliceOptions& options, const WorkOptions& work)
        : options_(options),
          part_(options.input),
          windows_(part_, options.choice),
          ids_(part_.database, nullptr),
          watch_(work, part_.rows, kShareOfSlicing),
          work_(work),
          work_kept_(by_steps()) {
        if (part_.has_table("SHARD_MODULES")) {
            store::Statement module(part_.database, "SELECT id FROM SHARD_MODULES");
            while (module.step()) ids_.known_modules.insert(module.integer(0));
        }
    }

    SliceResult run() {
        store::check_apart({options_.input}, options_.output);
        OutputFile output(options_.output, options_.overwrite, part_.utc_ns, part_.system_ns);
        output_ = &output;
        try {
            if (cuts_time()) work_kept_.find(part_, windows_);
            for (const auto tables : {schema::nsight_tables(), schema::shard_tables()}) {
                for (const schema::SchemaTable& table : tables) copy(table);
            }
            copy_model();
            output.add_ranks(part_, ids_);
            write_facts();
            copy_strings();
            output.finish({.duration_ns = duration_ns(), .dropped = part_.dropped}, work_, kShareOfSlicing);
        } catch (const Cancelled&) {
            throw;
        } catch (const store::StoreError& error) {
            throw store::StoreError(output.told(error.what()));
        }
        result_.rows_of_input = part_.rows;
        result_.ranks.assign(windows_.ranks().begin(), windows_.ranks().end());
        result_.steps.assign(windows_.steps().begin(), windows_.steps().end());
        return std::move(result_);
    }

  private:
    bool cuts_time() const { return options_.choice.cuts_time(); }
    bool by_steps() const { return options_.choice.first_step || options_.choice.last_step; }

    // --- owners of rows

    const SliceWindows::Windows& owner(const TableCopy& rows, const RowPlaces& at) const {
        if (const auto rank = rows.integer_at(at.rank)) return windows_.of_rank(*rank);
        if (const auto thread = rows.integer_at(at.thread)) return windows_.of_thread(*thread);
        const auto process = rows.integer_at(at.process);
        if (const auto device = rows.integer_at(at.device))
            return windows_.of_device(*device, process.value_or(0));
        return process ? windows_.of_process(*process) : windows_.of_nobody();
    }

    // --- rows

    void copy(const schema::SchemaTable& table) {
        if (table_role(table) == schema::TableRole::made || !part_.has_table(table.name)) return;
        if (table.name == "SHARD_MODULES" || table.name == "SHARD_UNITS") return;  // see copy_model()
        if (table.name == "SHARD_MEMORY") return copy_state(table, live_allocations(part_, windows_));
        if (table.name == "SHARD_SEGMENTS") return copy_state(table, live_segments(part_, windows_));
        if (table.name == "CUDA_GPU_MEMORY_USAGE_EVENTS")
            return copy_state(table, live_cuda_allocations(part_, windows_));
        if (table.name == "SHARD_COUNTERS") return copy_state(table, last_values(part_, windows_));
        if (table_role(table) == schema::TableRole::facts) return copy_facts(table);
        copy_events(table);
    }

    std::string where(const schema::SchemaTable& table) {
        if (!cuts_time() || table.name == "SHARD_COLLECTIVES") return {};
        // Its rows have the start of their event but not the end.
        if (table.name == "SHARD_DEVICE_DETAILS") return {};
        const auto [start, end] = times_of(part_, table);
        if (start.empty()) return {};
        const bool work = is_device_work(table);
        std::string sql = fmt::format("WHERE (+{} >= {}", end, windows_.hull().from);
        if (!work) fmt::format_to(std::back_inserter(sql), " AND +{} < {}", start, windows_.hull().to);
        sql += ")";
        if (table.name == "NVTX_EVENTS")
            sql += fmt::format(" OR eventType IN ({}, {}, {})", schema::kNvtxCategory,
                               schema::kNvtxThreadName, schema::kNvtxDomainCreate);
        // Calls before the range are needed, too, if their work ran in it.
        if (table.name == "CUPTI_ACTIVITY_KIND_RUNTIME" && work_kept_.has_beside()) return {};
        return sql;
    }

    static bool is_device_work(const schema::SchemaTable& table) {
        bool device = false, correlation = false;
        for (const schema::SchemaColumn& column : table.columns) {
            const schema::ColumnRole role = column_role(table.name, column);
            device = device || role == schema::ColumnRole::device;
            correlation = correlation || role == schema::ColumnRole::correlation;
        }
        return device && correlation;
    }

    void copy_events(const schema::SchemaTable& table) {
        TableCopy rows(part_.database, output_->database(), table, ids_, where(table));
        const RowPlaces at(table, rows);
        const int type = table.name == "NVTX_EVENTS" ? rows.place("eventType") : -1;
        const int step = table.name == "SHARD_STEPS" ? rows.place("step") : -1;
        const bool collectives = table.name == "SHARD_COLLECTIVES";
        const bool calls = table.name == "CUPTI_ACTIVITY_KIND_RUNTIME";
        result_.rows += rows.run(watch_, [&] {
            const SliceWindows::Windows& windows = owner(rows, at);
            const std::int64_t correlation = rows.integer_at(at.correlation).value_or(0);
            if (type >= 0 && names_something(rows.integer_at(type)))
                return windows_.has_process(rows.integer_at(at.thread).value_or(0) & schema::kPidMask);
            if (windows.empty()) return false;
            if (!cuts_time()) return true;
            if (collectives) return work_kept_.has(correlation);
            const std::int64_t start = rows.integer_at(at.start).value_or(0);
            const std::int64_t end = rows.integer_at(at.end).value_or(start);
            if (at.is_device_work()) return work_kept_.keeps(correlation, windows, start, end);
            const bool kept = meets(windows, start, end) || (calls && work_kept_.is_beside(correlation));
            if (step < 0) return kept;
            const std::int64_t number = rows.integer_at(step).value_or(0);
            if (!kept || !options_.choice.has_step(number)) return false;
            steps_kept_.insert(number);
            return true;
        });
    }

    static bool names_something(std::optional<std::int64_t> type) {
        return type == schema::kNvtxDomainCreate || type == schema::kNvtxCategory ||
               type == schema::kNvtxThreadName;
    }

    // Copies the state at the start, with the time of the start, then what changed in the windows.
    void copy_state(const schema::SchemaTable& table, const std::vector<std::int64_t>& carried) {
        const auto [start, end] = times_of(part_, table);
        if (!carried.empty()) {
            part_.database.execute(
                "CREATE TEMP TABLE IF NOT EXISTS carried (id INTEGER PRIMARY KEY); DELETE FROM carried");
            store::Statement insert(part_.database, "INSERT INTO carried VALUES (?1)");
            for (const std::int64_t id : carried) {
                insert.bind(1, id);
                insert.run();
            }
            TableCopy rows(
                part_.database, output_->database(), table, ids_,
                fmt::format("WHERE rowid IN (SELECT id FROM temp.carried) ORDER BY {}, rowid", start));
            const RowPlaces at(table, rows);
            while (rows.next()) {
                rows.write(beginning(owner(rows, at)));
                ++result_.rows;
            }
        }
        TableCopy rows(part_.database, output_->database(), table, ids_, where_in_windows(start));
        const RowPlaces at(table, rows);
        result_.rows += rows.run(
            watch_, [&] { return whole(owner(rows, at)).holds(rows.integer_at(at.start).value_or(0)); });
    }

    std::string where_in_windows(const std::string& time) const {
        if (!cuts_time()) return {};
        return fmt::format("WHERE +{0} >= {1} AND +{0} < {2}", time, windows_.hull().from,
                           windows_.hull().to);
    }

    void copy_facts(const schema::SchemaTable& table) {
        TableCopy rows(part_.database, output_->database(), table, ids_);
        const RowPlaces at(table, rows);
        const bool metrics = table.name == "SHARD_METRICS";
        const int step = metrics || table.name == "SHARD_LOSSES" ? rows.place("step") : -1;
        rows.run(watch_, [&] {
            if (step >= 0 && cuts_time()) {
                const auto number = rows.integer_at(step);
                const std::int64_t time = rows.integer_at(at.start).value_or(0);
                if (number ? !steps_kept_.contains(*number)
                           : time < windows_.hull().from || time >= windows_.hull().to)
                    return false;
            }
            if (const auto rank = rows.integer_at(at.rank)) return !windows_.of_rank(*rank).empty();
            if (const auto thread = rows.integer_at(at.thread)) return !windows_.of_thread(*thread).empty();
            if (const auto process = rows.integer_at(at.process)) return windows_.has_process(*process);
            if (const auto device = rows.integer_at(at.device))
                return !windows_.of_device(*device, 0).empty();
            if (const auto pid = rows.integer_at(at.pid)) return windows_.has_pid(*pid);
            return true;
        });
    }

    // Copies the modules that rows refer to, their parents, and the units of both.
    void copy_model() {
        if (part_.has_table("SHARD_UNITS") && part_.has_table("SHARD_MODULES")) {
            std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>>
                modules;  // -> parent, unit; -1 none
            store::Statement module(part_.database, "SELECT id, parent, unit FROM SHARD_MODULES");
            while (module.step())
                modules[module.integer(0)] = {module.integer_or(1, -1), module.integer_or(2, -1)};
            std::map<std::int64_t, std::int64_t> module_of;
            store::Statement unit(part_.database, "SELECT id, module FROM SHARD_UNITS");
            while (unit.step()) module_of[unit.integer(0)] = unit.integer_or(1, -1);
            std::vector<std::int64_t> open(ids_.used_modules.begin(), ids_.used_modules.end());
            const auto want = [&](std::int64_t id) {
                if (id >= 0 && ids_.used_modules.insert(id).second) open.push_back(id);
            };
            for (const std::int64_t id : std::set(ids_.used_units))
                want(module_of.contains(id) ? module_of[id] : -1);
            while (!open.empty()) {
                const std::int64_t id = open.back();
                open.pop_back();
                if (!modules.contains(id)) continue;
                want(modules[id].first);
                const std::int64_t its_unit = modules[id].second;
                if (its_unit >= 0 && ids_.used_units.insert(its_unit).second && module_of.contains(its_unit))
                    want(module_of[its_unit]);
            }
        }
        copy_used("SHARD_MODULES", ids_.used_modules);
        copy_used("SHARD_UNITS", ids_.used_units);
    }

    void copy_used(std::string_view name, const std::set<std::int64_t>& of) {
        if (!part_.has_table(name)) return;
        const std::set<std::int64_t> used = of;  // a copy: copying rows adds to the set
        TableCopy rows(part_.database, output_->database(), *schema::find_table(name), ids_);
        rows.run(watch_, [&] { return used.contains(rows.integer("id").value_or(-1)); });
    }

    void copy_strings() {
        store::Statement insert(output_->database(),
                                "INSERT OR IGNORE INTO StringIds (id, value) VALUES (?1, ?2)");
        std::vector<std::int64_t> used;
        for (const auto& [id, same] : ids_.strings.used()) used.push_back(id);
        std::sort(used.begin(), used.end());
        for (const std::int64_t id : used) {
            const std::string text(ids_.strings.text(id));
            insert.bind(1, id);
            insert.bind(2, std::string_view(text));
            insert.run();
        }
    }

    // --- facts about the file

    void write_facts() {
        const SliceChoice& choice = options_.choice;
        for (const auto& [key, value] : part_.run_facts) output_->add_fact(key, value);
        output_->add_fact("slice.of", fs::path(options_.input).filename().string());
        if (!choice.ranks.empty()) {
            const std::vector<std::int64_t> ranks(windows_.ranks().begin(), windows_.ranks().end());
            output_->add_fact("slice.ranks", store::number_list(ranks));
        }
        const auto sides = [](const std::optional<std::int64_t>& from,
                              const std::optional<std::int64_t>& to) {
            return fmt::format("{}:{}", from ? std::to_string(*from) : "", to ? std::to_string(*to) : "");
        };
        if (by_steps()) output_->add_fact("slice.steps", sides(choice.first_step, choice.last_step));
        if (choice.from_ns || choice.to_ns)
            output_->add_fact("slice.range_ns", sides(choice.from_ns, choice.to_ns));
        if (!part_.ended) {
            output_->add_note(
                0, static_cast<int>(schema::Severity::error),
                fmt::format("the run of {} did not end: it was killed or was still running", part_.path));
            result_.notes.push_back(fmt::format(
                "the run of {} did not end; what it did after its last commit is missing", part_.path));
        }
    }

    std::int64_t duration_ns() {
        const Window hull = windows_.hull();
        result_.first_ns = std::max<std::int64_t>(0, hull.from);
        result_.last_ns = std::min(part_.end_ns, hull.to);
        return result_.last_ns;
    }

    const SliceOptions& options_;
    Part part_;
    SliceWindows windows_;
    RowIds ids_;
    WorkWatch watch_;
    const WorkOptions& work_;
    LaunchedWork work_kept_;
    OutputFile* output_ = nullptr;
    SliceResult result_;
    std::set<std::int64_t> steps_kept_;
};

}  // namespace

SliceResult slice_trace(const SliceOptions& options, const WorkOptions& work) {
    return Slice(options, work).run();
}

}  // namespace shardscope::traces::merge
