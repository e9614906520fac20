#include "trainer/planner/meshes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/joined.h"
#include "trainer/job/keys.h"
#include "trainer/pipeline/schedule_table.h"
#include "trainer/planner/hooks.h"
#include "trainer/planner/key_names.h"
#include "trainer/planner/model_classes.h"

namespace shardscope::trainer::planner {

namespace {

using Settings = std::vector<job::Override>;
using Values = std::vector<std::string>;

constexpr std::array kOfMeshes = {
    kContext, kContextExchange, kExpert,     kPipeline, kSchedule, kVirtualStages, kTensor,       kSequence,
    kMode,    kSharding,        kShardGroup, kWrap,     kBatch,    kAccumulation,  kCheckpointing};
// Sizes of micro-batches that are tried for each mesh: all samples of a rank, or as many as give each place
// of a pipeline one, half of them, and so on.
constexpr int kMicroBatchSizes = 6;
// More than this many micro-batches are tried only if there are more places.
constexpr int kMostMicroBatches = 128;
// Stages of a place that are tried, of schedules that have a choice.
constexpr int kMostStages = 4;
// Context groups leave each rank this many tokens of a sample or more: they are for samples whose activations
// are too large for a rank, or that are fewer than the ranks, and cost an exchange in each layer.
constexpr int kFewestTokens = 4096;

// 0 if the text is not a number.
int number_of(const std::string& text) {
    int number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

bool contains(const Values& values, const std::string& value) {
    return std::find(values.begin(), values.end(), value) != values.end();
}

// Combines each of `all` with each of `more`.
void append_each(std::vector<Settings>& all, const std::vector<Settings>& more) {
    std::vector<Settings> longer;
    for (const Settings& own : all) {
        for (const Settings& other : more) {
            longer.push_back(own);
            longer.back().insert(longer.back().end(), other.begin(), other.end());
        }
    }
    all = std::move(longer);
}

// Schedules that idle as long as another one (1f1b, interleaved) and keep more activations.
bool is_dominated(std::string_view schedule) {
    return schedule == "gpipe" || schedule == "looped_bfs";
}

// Whether a schedule has backwards in two parts.
bool splits(const std::string& schedule) {
    const pipeline::ScheduleKind* kind = pipeline::find_schedule(schedule);
    if (kind == nullptr) return false;
    const pipeline::Schedule smallest = make_schedule(*kind, {2, 4, kind->fewest_chunks});
    return std::any_of(smallest.actions[0].begin(), smallest.actions[0].end(), [](const auto& action) {
        return action.kind == pipeline::ActionKind::backward_weight;
    });
}

// Whether the search leaves out the recomputation: where a backward is split, what is recomputed for its
// first part is kept for the second, so that little memory is saved.
bool leaves_out_recomputation(const Settings& settings) {
    bool split = false, recomputes = false;
    for (const auto& [key, value] : settings) {
        split = split || (key == kSchedule && splits(value));
        recomputes = recomputes || (key == kCheckpointing && value != "none" && !value.empty());
    }
    return recomputes && split;
}

class Meshes {
  public:
    Meshes(const job::Job& job, const Settings& outer, const std::vector<Given>& given,
           const JobMaker& make_job)
        : job_(job), outer_(outer), given_(given), make_job_(make_job) {}

    std::vector<Settings> combinations() const {
        std::vector<Settings> all;
        const std::vector<ModelSizes> sizes = model_sizes();
        const bool contexts = std::any_of(sizes.begin(), sizes.end(), [&](const ModelSizes& own) {
            return own.context > 1 || job_.parallel.context > 1;
        });
        for (const auto& [tensor, context, pipeline] : sizes) {
            const int data = job_.run.ranks / (tensor * context * pipeline);
            for (const Settings& batches : micro_batches(data, pipeline)) {
                for (const Settings& sharding : shardings(data, context, pipeline)) {
                    std::vector<Settings> some = {
                        {{kTensor, std::to_string(tensor)}, {kPipeline, std::to_string(pipeline)}}};
                    multiply(some, kSequence, only(kSequence, tensor > 1 ? "true" : "false"));
                    if (contexts) {
                        multiply(some, kContext, {std::to_string(context)});
                        multiply(some, kContextExchange, exchanges(context));
                    }
                    append_each(some, schedules(pipeline, batches));
                    if (divides_unevenly(pipeline)) multiply(some, kStages, {job::ParallelSection().stages});
                    append_each(some, {sharding});
                    append_each(some, {batches});
                    if (job_.model.experts > 0)
                        multiply(some, kExpert, expert_sizes(data, context, sharding));
                    multiply(some, kWrap, only(kWrap, wrap()));
                    multiply(some, kCheckpointing, checkpointings());
                    if (!find_given(given_, kCheckpointing)) {
                        std::erase_if(some, [&](const Settings& own) {
                            return leaves_out_recomputation(own) && !is_of_the_job(own);
                        });
                    }
                    all.insert(all.end(), std::make_move_iterator(some.begin()),
                               std::make_move_iterator(some.end()));
                }
            }
        }
        return all;
    }

  private:
    // Whether a pipeline's schedule and its recomputation are those of the job.
    bool is_of_the_job(const Settings& settings) const {
        const auto has = [&](const char* key, const std::string& value) {
            return std::any_of(settings.begin(), settings.end(), [&](const job::Override& own) {
                return own.key == key && own.value == value;
            });
        };
        return job_.parallel.pipeline > 1 && has(kSchedule, job_.parallel.schedule) &&
               has(kVirtualStages, std::to_string(job_.parallel.virtual_stages)) &&
               has(kCheckpointing, text_of(job_, kCheckpointing));
    }
    std::vector<std::string> only(const char* key, const std::string& value) const {
        const std::vector<std::string>* own = find_given(given_, key);
        return own ? *own : std::vector<std::string>{value};
    }
    // The ranks that compute the same samples with one copy of the layers: tensor groups x context groups x
    // places of a pipeline.
    struct ModelSizes {
        int tensor, context, pipeline;
    };
    std::vector<ModelSizes> model_sizes() const {
        std::vector<ModelSizes> sizes;
        std::optional<job::JobError> problem;
        for (const int tensor : sizes_of(kTensor, job_.parallel.tensor)) {
            for (const int context : sizes_of(kContext, job_.parallel.context)) {
                for (const int pipeline : sizes_of(kPipeline, job_.parallel.pipeline)) {
                    try {
                        checkpointings_for(make_job_(with({tensor, context, pipeline})));  // makes the model
                        sizes.push_back({tensor, context, pipeline});
                    } catch (
                        const job::JobError& error) {  // ranks, heads, features, tokens or layers do not do
                        if (!problem) problem = error;
                    }
                }
            }
        }
        if (sizes.empty()) throw job::JobError(*problem);
        return sizes;
    }
    // The given ones, or the job's own and the powers of two up to its ranks; of a pipeline up to its layers,
    // of a context group while each rank has enough tokens.
    std::vector<int> sizes_of(const char* key, int own) const {
        std::vector<int> sizes = {own};
        if (const auto* values = find_given(given_, key)) {
            sizes.clear();
            for (const std::string& value : *values) sizes.push_back(size_of(key, value));
            return sizes;
        }
        int most = job_.run.ranks;
        if (key == kPipeline) most = std::min(most, job_.model.layers);
        if (key == kContext) {
            const bool tokens = has_tokens(job_.model.type);
            most = std::min(most, std::max(1, tokens ? job_.model.context / kFewestTokens : 1));
        }
        for (int size = 1; size <= most; size *= 2)
            if (size != own) sizes.push_back(size);
        return sizes;
    }
    // Throws what is wrong with a value that is not a size.
    int size_of(const char* key, const std::string& value) const {
        // What the job sets beside its own size may be impossible with others.
        Settings settings = with({1, 1, 1});
        for (job::Override& own : settings)
            if (own.key == key) own.value = value;
        const job::Job job = make_job_(settings);
        return key == kTensor    ? job.parallel.tensor
               : key == kContext ? job.parallel.context
                                 : job.parallel.pipeline;
    }
    Settings with(const ModelSizes& sizes) const {
        Settings settings = outer_;
        const Settings own = {{kTensor, std::to_string(sizes.tensor)},
                              {kContext, std::to_string(sizes.context)},
                              {kContextExchange, "allgather"},
                              {kPipeline, std::to_string(sizes.pipeline)},
                              {kVirtualStages, "1"},
                              {kSchedule, job::ParallelSection().schedule},
                              {kSequence, "false"},
                              {kExpert, "1"},
                              {kMode, "fsdp"},
                              {kSharding, "FULL_SHARD"},
                              {kShardGroup, "0"}};
        settings.insert(settings.end(), own.begin(), own.end());
        set(settings, without_hook(job_));
        if (divides_unevenly(sizes.pipeline)) settings.push_back({kStages, job::ParallelSection().stages});
        return settings;
    }
    // Stages of which the job says how they are cut need a pipeline.
    bool divides_unevenly(int pipeline) const {
        return pipeline == 1 && job_.parallel.stages != job::ParallelSection().stages &&
               !find_given(given_, kStages);
    }
    Values exchanges(int context) const {
        if (context == 1) return {text_of(job::Job(), kContextExchange)};
        return only(kContextExchange, text_of(job_, kContextExchange));
    }
    // The samples of a step on `data` ranks that read different ones, in micro-batches of each size. None if
    // these ranks do not divide them. A pipeline gets at least as many micro-batches as it has places.
    std::vector<Settings> micro_batches(int data, int pipeline) const {
        if (find_given(given_, kBatch) || find_given(given_, kAccumulation)) {
            std::vector<Settings> all(1);
            multiply(all, kBatch, only(kBatch, std::to_string(job_.data.batch)));
            multiply(all, kAccumulation, only(kAccumulation, std::to_string(job_.train.accumulation)));
            return all;
        }
        const std::int64_t step = job_.data.batch * job_.train.accumulation * job_.data_ranks();
        if (step % data != 0) return {};
        const std::int64_t own = step / data;
        std::vector<Settings> all;
        for (std::int64_t batch = own; std::ssize(all) < kMicroBatchSizes && batch > 0; batch /= 2) {
            if (own / batch >= pipeline && own / batch <= std::max(pipeline, kMostMicroBatches))
                all.push_back(
                    {{kBatch, std::to_string(batch)}, {kAccumulation, std::to_string(own / batch)}});
            if (batch % 2 != 0) break;
        }
        return all;
    }
    // The schedules that can take the micro-batches, the job's own first; of those with a choice two and four
    // stages of each place.
    std::vector<Settings> schedules(int pipeline, const Settings& batches) const {
        const auto setting = [](const std::string& schedule, int stages) {
            return Settings{{kVirtualStages, std::to_string(stages)}, {kSchedule, schedule}};
        };
        if (pipeline == 1) return {setting(job::ParallelSection().schedule, 1)};
        const auto* names = find_given(given_, kSchedule);
        const auto* stages = find_given(given_, kVirtualStages);
        std::vector<Settings> all;
        const auto add = [&](const std::string& name, int count) {
            Settings own = setting(name, count);
            if (std::find(all.begin(), all.end(), own) == all.end()) all.push_back(std::move(own));
        };
        const auto micro_batches = std::find_if(batches.begin(), batches.end(),
                                                [](const auto& own) { return own.key == kAccumulation; });
        const int m = number_of(micro_batches->value);
        const auto add_kind = [&](const pipeline::ScheduleKind& kind) {
            for (int count = kind.fewest_chunks; count <= std::min(kind.most_chunks, kMostStages);
                 count *= 2) {
                if (stages && !contains(*stages, std::to_string(count))) continue;
                if (pipeline * count <= job_.model.layers && refusal(kind, {pipeline, m, count}).empty())
                    add(std::string(kind.name), count);
            }
        };
        if (!names && !stages && job_.parallel.pipeline > 1 &&
            pipeline * job_.parallel.virtual_stages <= job_.model.layers)
            add(job_.parallel.schedule, job_.parallel.virtual_stages);
        for (const pipeline::ScheduleKind& kind : pipeline::schedule_kinds())
            if (names ? contains(*names, std::string(kind.name)) : !is_dominated(kind.name)) add_kind(kind);
        if (!names || !all.empty()) return all;
        // What cannot be is refused with its row.
        for (const std::string& name : *names)
            add(name, stages ? number_of(stages->front()) : job_.parallel.virtual_stages);
        return all;
    }
    // Ranks that divide the experts, among those that have other tokens and within a shard group: the given
    // ones, or powers of two.
    Values expert_sizes(int data, int context, const Settings& sharding) const {
        if (const auto* own = find_given(given_, kExpert)) return *own;
        int group = data;
        for (const auto& [key, value] : sharding)
            if (key == kShardGroup && number_of(value) > 0) group = number_of(value);
        group *= context;
        Values sizes = {"1"};
        for (int size = 2; size <= std::min(group, job_.model.experts); size *= 2)
            if (group % size == 0 && job_.model.experts % size == 0) sizes.push_back(std::to_string(size));
        return sizes;
    }
    // How `data` ranks, and the context groups in them, divide the parameters of a tensor group: whole
    // copies, shard groups of each size, all.
    std::vector<Settings> shardings(int data, int context, int pipeline) const {
        std::vector<Settings> all;
        const auto* modes = find_given(given_, kMode);
        const auto* strategies = find_given(given_, kSharding);
        const auto* groups = find_given(given_, kShardGroup);
        if (!modes || std::find(modes->begin(), modes->end(), "fsdp") != modes->end()) {
            // In a pipeline the schedule frees units, so that the two strategies are one.
            Values names = {"FULL_SHARD", "HYBRID_SHARD"};
            if (pipeline == 1) names.insert(names.begin() + 1, "SHARD_GRAD_OP");
            for (const std::string& name : strategies ? *strategies : names) {
                const bool in_groups = name.find("HYBRID") != std::string::npos;
                if (!in_groups && !groups && (data * context > 1 || strategies))
                    all.push_back({{kMode, "fsdp"}, {kSharding, name}, {kShardGroup, "0"}});
                if (!in_groups) continue;
                Values sizes;
                for (int group = 2; group < data; group *= 2)
                    if (data % group == 0) sizes.push_back(std::to_string(group));
                for (const std::string& group : groups ? *groups : sizes) {
                    const int size = number_of(group);  // what is not a size is refused with its row
                    if (size <= 0 || data % size == 0)
                        all.push_back({{kMode, "fsdp"}, {kSharding, name}, {kShardGroup, group}});
                }
            }
        }
        for (const std::string& mode : modes ? *modes : Values{"ddp"}) {
            if (mode == "fsdp" || strategies || groups) continue;
            Settings whole = {{kMode, mode}};
            for (const char* precision : {kParam, kReduce})  // units alone hold parameters in bf16
                if (!find_given(given_, precision)) whole.push_back({precision, "fp32"});
            all.push_back(whole);
        }
        for (Settings& own : all) {
            if (own.front().value != "ddp") set(own, without_hook(job_));
        }
        return all;
    }
    // Units of one block each, unless the job says otherwise.
    std::string wrap() const {
        const std::string own = text_of(job_, kWrap);
        return own == "root" ? wraps_for(job_).front() : own;
    }
    std::vector<std::string> checkpointings() const {
        if (const auto* own = find_given(given_, kCheckpointing)) return *own;
        std::vector<std::string> all = {text_of(job_, kCheckpointing)};
        for (const std::string& other : checkpointings_for(job_)) add_once(all, other);
        return all;
    }

    const job::Job& job_;
    const Settings& outer_;
    const std::vector<Given>& given_;
    const JobMaker& make_job_;
};

}  // namespace

std::vector<Candidate> mesh_candidates(const std::vector<Given>& given, const JobMaker& make_job) {
    std::vector<Candidate> all =
        combine_jobs(given, kOfMeshes, make_job, [&](const Settings& outer, const job::Job& job) {
            return Meshes(job, outer, given, make_job).combinations();
        });
    if (all.empty()) {
        throw job::JobError(
            "command line: --meshes: no mesh has the given parallel.mode, strategy, shard groups and samples "
            "per step; give fewer of them");
    }
    return all;
}

std::vector<MeshAxis> mesh_axes(const plan::Mesh& mesh, const sim::Cluster& cluster,
                                const std::vector<job::SlowLink>& slow_links) {
    constexpr std::array<std::pair<plan::Group, const char*>, 6> kAxes = {
        {{plan::Group::tensor, "tensor"},
         {plan::Group::context, "context"},
         {plan::Group::expert, "expert"},
         {plan::Group::shard, "shard"},
         {plan::Group::replicate, "data"},
         {plan::Group::pipeline, "pipeline"}}};
    std::vector<MeshAxis> axes;
    for (const auto& [group, name] : kAxes) {
        const int size = mesh.size(group);
        if (size < 2) continue;
        std::size_t most = 0;  // nodes that a group has ranks on
        for (int first = 0; first < mesh.ranks; ++first) {
            if (mesh.place(group, first) != 0) continue;
            std::set<int> nodes;
            for (int place = 0; place < size; ++place)
                nodes.insert(cluster.node_of(mesh.member(group, first, place)));
            most = std::max(most, nodes.size());
        }
        double bandwidth = most == 1 ? cluster.intra.bandwidth : cluster.inter.bandwidth;
        for (const job::SlowLink& slow : slow_links)
            if (slow.node < 0 && slow.between_nodes == (most > 1)) bandwidth *= slow.share;
        axes.push_back({name, size, static_cast<int>(most), bandwidth});
    }
    return axes;
}

std::string placement_text(const std::vector<MeshAxis>& axes) {
    std::vector<std::string> words;
    words.reserve(axes.size());
    for (const MeshAxis& axis : axes) {
        words.push_back(axis.nodes == 1
                            ? fmt::format("{} {} in a node", axis.name, axis.size)
                            : fmt::format("{} {} over {} nodes", axis.name, axis.size, axis.nodes));
    }
    return traces::schema::joined(words, ", ");
}

}  // namespace shardscope::trainer::planner
