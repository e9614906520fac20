#include "traces/merge/merge.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include <fmt/core.h>

#include "traces/merge/assign_ids.h"
#include "traces/merge/output_file.h"
#include "traces/merge/part.h"
#include "traces/merge/part_clocks.h"
#include "traces/merge/run_facts.h"
#include "traces/merge/table_copy.h"
#include "traces/schema/column_roles.h"
#include "traces/schema/enums.h"
#include "traces/schema/rows.h"
#include "traces/schema/schema.h"
#include "traces/store/apart.h"
#include "traces/store/grouped.h"
#include "traces/store/number_list.h"

namespace shardscope::traces::merge {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kSecondsApart = 3600;  // parts that are farther apart get a note
constexpr double kShareOfCopying = 0.6;       // of the whole work; the rest finishes the file

void check_inputs(const MergeOptions& options) {
    store::check_apart(options.inputs, options.output);
    for (std::size_t i = 0; i < options.inputs.size(); ++i) {
        const std::string& input = options.inputs[i];
        for (std::size_t j = 0; j < i; ++j) {
            if (store::same_file(input, options.inputs[j]))
                throw store::StoreError(fmt::format("{} is given twice; give each part once", input));
        }
    }
}

class Merge {
  public:
    Merge(const MergeOptions& options, const WorkOptions& work) : options_(options), work_(work) {}

    MergeResult run() {
        check_inputs(options_);
        for (const std::string& input : options_.inputs) parts_.push_back(std::make_unique<Part>(input));
        assignment_ = assign_ids(parts_, strings_);
        result_.notes = assignment_->notes;
        align();
        OutputFile output(options_.output, options_.overwrite, utc_ns_, system_ns_);
        output_ = &output;
        try {
            copy_all();
            write_facts();
            output.add_strings(strings_);
            output.finish({.duration_ns = duration_ns(), .dropped = dropped()}, work_, kShareOfCopying);
        } catch (const Cancelled&) {
            throw;
        } catch (const store::StoreError& error) {
            throw store::StoreError(output.told(error.what()));
        }
        return std::move(result_);
    }

  private:
    void align() {
        std::vector<PartClock> clocks;
        for (std::size_t p = 0; p < parts_.size(); ++p) {
            Part& part = *parts_[p];
            PartClock clock{.utc_ns = part.utc_ns,
                            .system_ns = part.system_ns,
                            .host = part.hosts.empty() ? "" : part.hosts.begin()->second,
                            .measures = part.measures,
                            .has_rank_0 = has_rank_0(part),
                            .length_ns = part.end_ns};
            if (parts_.size() > 1) {
                RowIds& ids = *assignment_->ids[p];
                read_collectives(
                    part, [&](std::int64_t group) { return ids.map(schema::ColumnRole::group, group, -1); },
                    clock);
            }
            clocks.push_back(std::move(clock));
            if (part.utc_ns == 0 && parts_.size() > 1)
                note(fmt::format("{} does not record its start time", part.path));
        }
        const Alignment alignment = align_clocks(clocks);
        // Time 0 is that of the earliest part, on the clock of the first one.
        std::int64_t first = std::numeric_limits<std::int64_t>::max();
        for (const AlignedPart& part : alignment.parts) first = std::min(first, part.clock(0));
        utc_ns_ = parts_.front()->utc_ns == 0 ? 0 : parts_.front()->utc_ns + first;
        system_ns_ = parts_.front()->system_ns == 0 ? 0 : parts_.front()->system_ns + first;
        for (std::size_t p = 0; p < parts_.size(); ++p) {
            ClockMap clock = alignment.parts[p].clock;
            clock.shift -= first;
            assignment_->ids[p]->clock = clock;
            MergedPart& part = result_.parts.emplace_back();
            static_cast<ClockShift&>(part) = alignment.parts[p];
            part.by_wall_ns -= first;
            part.file = parts_[p]->path;
            part.shift_ns = clock.shift;
            part.drift_ppm = clock.drift * 1e6;
        }
        tell_lonely_parts();
        static_cast<ClockResiduals&>(result_) = alignment;
    }

    // A part whose first host is that of rank 0, so that its clock is rank 0's.
    static bool has_rank_0(const Part& part) {
        return part.ours && !part.ranks.empty() && part.ranks.front().rank == 0 && !part.hosts.empty() &&
               part.ranks.front().host == part.hosts.begin()->second;
    }

    // Parts of one job should run at the same time, or soon after one another.
    void tell_lonely_parts() {
        for (std::size_t p = 0; p < parts_.size() && parts_.size() > 1; ++p) {
            std::int64_t nearest = std::numeric_limits<std::int64_t>::max();
            const auto start = [&](std::size_t i) { return static_cast<double>(result_.parts[i].shift_ns); };
            const auto end = [&](std::size_t i) { return start(i) + static_cast<double>(parts_[i]->end_ns); };
            for (std::size_t q = 0; q < parts_.size(); ++q) {
                const double apart = std::max({start(p) - end(q), start(q) - end(p), 0.0});
                if (q != p) nearest = std::min(nearest, static_cast<std::int64_t>(apart * 1e-9));
            }
            if (nearest < kSecondsApart) continue;
            note(fmt::format("{} is {} s apart from the other parts; are they of one job?", parts_[p]->path,
                             nearest));
        }
    }

    void copy_all() {
        std::int64_t rows = 0;
        for (const auto& part : parts_) rows += part->rows;
        WorkWatch watch(work_, rows, kShareOfCopying);
        for (std::size_t p = 0; p < parts_.size(); ++p) {
            for (const auto tables : {schema::nsight_tables(), schema::shard_tables()}) {
                for (const schema::SchemaTable& table : tables) copy(p, table, watch);
            }
            output_->add_ranks(*parts_[p], *assignment_->ids[p]);
            for (const PartRank& rank : parts_[p]->ranks)
                result_.parts[p].ranks.push_back(
                    assignment_->ids[p]->map(schema::ColumnRole::rank, rank.rank, -1));
            result_.rows += result_.parts[p].rows;
        }
    }

    void copy(std::size_t p, const schema::SchemaTable& table, WorkWatch& watch) {
        const schema::TableRole role = table_role(table);
        if (role == schema::TableRole::made || !parts_[p]->has_table(table.name)) return;
        RowIds& ids = *assignment_->ids[p];
        TableCopy rows(parts_[p]->database, output_->database(), table, ids);
        if (role == schema::TableRole::events) {
            const bool nvtx = table.name == "NVTX_EVENTS";
            const int type = rows.place("eventType");
            result_.parts[p].rows +=
                nvtx ? rows.run(watch,
                                [&] { return is_new_name(rows, ids, rows.integer_at(type).value_or(0)); })
                     : rows.run(watch);
            return;
        }
        if (table.name == "TARGET_INFO_GPU") return copy_devices(rows, ids);
        std::int64_t contradictions = 0;
        while (rows.next()) {
            watch.row();
            if (table.name == schema::MetricRow::kTable && !is_first_of_step(rows, ids, p)) continue;
            if (!rows.write_once(facts_[table.name])) ++contradictions;
        }
        if (contradictions > 0) {
            note(fmt::format("{}: {} from an earlier part's of the same key and {} omitted", parts_[p]->path,
                             store::counted(contradictions, fmt::format("row of {} differs", table.name),
                                            fmt::format("rows of {} differ", table.name)),
                             contradictions == 1 ? "was" : "were"));
        }
    }

    // What a step has of the whole job comes from the first part that has it: the clocks of parts differ.
    bool is_first_of_step(const TableCopy& rows, RowIds& ids, std::size_t part) {
        const std::optional<std::int64_t> step = rows.integer("step");
        if (!step || rows.integer("rank")) return true;
        const std::int64_t name = ids.strings.map(rows.integer("nameId").value_or(0));
        return step_metrics_.try_emplace({*step, name}, part).first->second == part;
    }

    // Rows of NVTX_EVENTS that name a domain, a category or a thread are written once for each process or
    // thread.
    bool is_new_name(const TableCopy& rows, RowIds& ids, std::int64_t type) {
        if (type != schema::kNvtxDomainCreate && type != schema::kNvtxCategory &&
            type != schema::kNvtxThreadName)
            return true;
        const std::int64_t thread = ids.process(rows.integer("globalTid").value_or(0));
        const std::int64_t domain =
            ids.domain(rows.integer("domainId").value_or(0), rows.integer("globalTid").value_or(0));
        const std::int64_t text = ids.strings.map(rows.integer("textId").value_or(0));
        return names_
            .insert({type, type == schema::kNvtxThreadName ? thread : thread & schema::kPidMask, domain,
                     rows.integer("category").value_or(-1), text})
            .second;
    }

    // A device that several ranks of the part shared becomes several devices.
    void copy_devices(TableCopy& rows, RowIds& ids) {
        while (rows.next()) {
            const std::int64_t old = rows.integer("id").value_or(0);
            std::set<std::int64_t> numbers;
            for (const auto& [key, number] : ids.devices) {
                if (key.first == old) numbers.insert(number);
            }
            if (numbers.empty()) numbers.insert(ids.device(old, -1));
            const auto kept = ids.devices.find({old, -1});
            const std::int64_t first = kept != ids.devices.end() ? kept->second : old;
            for (const std::int64_t number : numbers) {
                ids.devices[{old, -1}] = number;
                if (devices_.insert(number).second) rows.write();
            }
            ids.devices[{old, -1}] = first;
        }
    }

    void write_facts() {
        std::vector<RunFacts> facts;
        for (const auto& part : parts_) {
            facts.push_back(part->run_facts);
            if (!part->ended) {
                output_->add_note(
                    0, static_cast<int>(schema::Severity::error),
                    fmt::format("the run of {} did not end: it was killed or was still running", part->path));
                result_.notes.push_back(fmt::format(
                    "the run of {} did not end; what it did after its last commit is missing", part->path));
            }
        }
        for (const auto& [key, value] : merge_run_facts(facts)) output_->add_fact(key, value);
        if (parts_.size() > 1) {
            if (const auto unended = unended_ranks(); !unended.empty())
                output_->add_fact(kUnendedRanks, store::number_list(unended));
            output_->add_fact("merge.parts", std::to_string(parts_.size()));
            output_->add_fact("merge.collectives", std::to_string(result_.collectives));
            output_->add_fact("merge.residual_us", fmt::format("{:.3f}", us(result_.residual_ns)));
            output_->add_fact("merge.residual_worst_us", fmt::format("{:.3f}", us(result_.worst_ns)));
            output_->add_fact("merge.residual_by_wall_clock_us",
                              fmt::format("{:.3f}", us(result_.residual_by_wall_ns)));
            if (result_.was_measured()) {
                output_->add_fact("merge.residual_measured_us",
                                  fmt::format("{:.3f}", us(result_.residual_measured_ns)));
                output_->add_fact("merge.clock_uncertainty_us",
                                  fmt::format("{:.3f}", us(result_.uncertainty_ns())));
            }
            for (std::size_t p = 0; p < parts_.size(); ++p) {
                const MergedPart& part = result_.parts[p];
                const std::string prefix = fmt::format("merge.part.{}.", p + 1);
                output_->add_fact(prefix + "file", fs::path(part.file).filename().string());
                output_->add_fact(prefix + "shift_us", fmt::format("{:.3f}", us(part.shift_ns)));
                if (part.drift_ppm != 0)
                    output_->add_fact(prefix + "drift_ppm", fmt::format("{:.6f}", part.drift_ppm));
                if (part.uncertainty_ns >= 0)
                    output_->add_fact(prefix + "clock_uncertainty_us",
                                      fmt::format("{:.3f}", us(part.uncertainty_ns)));
            }
        }
        for (const std::string& text : noted_)
            output_->add_note(0, static_cast<int>(schema::Severity::information), text);
        for (const std::string& text : assignment_->notes)
            output_->add_note(0, static_cast<int>(schema::Severity::information), text);
    }

    void note(const std::string& text) {
        noted_.push_back(text);
        result_.notes.push_back(text);
    }

    // Ranks of the parts that did not end, as the merged file numbers them.
    std::vector<std::int64_t> unended_ranks() const {
        std::set<std::int64_t> ranks;
        for (std::size_t p = 0; p < parts_.size(); ++p) {
            if (!parts_[p]->ended || was_finished_later(parts_[p]->run_facts))
                ranks.insert(result_.parts[p].ranks.begin(), result_.parts[p].ranks.end());
        }
        return {ranks.begin(), ranks.end()};
    }

    static double us(std::int64_t ns) { return static_cast<double>(ns) * 1e-3; }

    std::int64_t duration_ns() const {
        std::int64_t last = 0;
        for (std::size_t p = 0; p < parts_.size(); ++p)
            last = std::max(last, assignment_->ids[p]->clock(parts_[p]->end_ns));
        return last;
    }

    std::int64_t dropped() const {
        std::int64_t sum = 0;
        for (const auto& part : parts_) sum += part->dropped;
        return sum;
    }

    const MergeOptions& options_;
    const WorkOptions& work_;
    std::vector<std::unique_ptr<Part>> parts_;
    store::StringTable strings_;
    std::unique_ptr<Assignment> assignment_;
    MergeResult result_;
    OutputFile* output_ = nullptr;
    std::int64_t utc_ns_ = 0, system_ns_ = 0;
    std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> step_metrics_;  // (step, name): the part
    std::map<std::string_view, std::set<std::string>> facts_;  // rows written so far, by table
    std::set<std::array<std::int64_t, 5>> names_;              // NVTX rows that name something
    std::set<std::int64_t> devices_;                           // those with a row in TARGET_INFO_GPU
    std::vector<std::string> noted_;
};

}  // namespace

MergeResult merge_traces(const MergeOptions& options, const WorkOptions& work) {
    return Merge(options, work).run();
}

}  // namespace shardscope::traces::merge
