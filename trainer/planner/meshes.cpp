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
#include "trainer/planner/key_names.h"
#include "trainer/planner/model_classes.h"

namespace shardscope::trainer::planner {

namespace {

using Settings = std::vector<job::Override>;
using Values = std::vector<std::string>;

constexpr std::array kOfMeshes = {kPipeline, kSchedule, kVirtualStages, kTensor,
                                  kSequence, kMode,     kSharding,      kShardGroup,
                                  kWrap,     kBatch,    kAccumulation,  kCheckpointing};
// Sizes of micro-batches that are tried for each mesh: all samples of a rank, half of them, and so on.
constexpr int kMicroBatchSizes = 6;

class Meshes {
  public:
    Meshes(const job::Job& job, const Settings& outer, const std::vector<Given>& given,
           const JobMaker& make_job)
        : job_(job), outer_(outer), given_(given), make_job_(make_job) {}

    std::vector<Settings> combinations() const {
        std::vector<Settings> all;
        for (const auto& [tensor, pipeline] : model_sizes()) {
            const int data = job_.run.ranks / (tensor * pipeline);
            for (const Settings& batches : micro_batches(data, pipeline)) {
                for (const Settings& sharding : shardings(data, pipeline)) {
                    std::vector<Settings> some = {
                        {{kTensor, std::to_string(tensor)}, {kPipeline, std::to_string(pipeline)}}};
                    multiply(some, kSequence, only(kSequence, tensor > 1 ? "true" : "false"));
                    if (pipeline > 1) {
                        multiply(some, kSchedule, only(kSchedule, text_of(job_, kSchedule)));
                        multiply(some, kVirtualStages, only(kVirtualStages, text_of(job_, kVirtualStages)));
                    } else {
                        multiply(some, kVirtualStages, {"1"});
                        multiply(some, kSchedule, {job::ParallelSection().schedule});
                    }
                    for (Settings& own : some) {
                        own.insert(own.end(), sharding.begin(), sharding.end());
                        own.insert(own.end(), batches.begin(), batches.end());
                    }
                    multiply(some, kWrap, only(kWrap, wrap()));
                    multiply(some, kCheckpointing, checkpointings());
                    all.insert(all.end(), std::make_move_iterator(some.begin()),
                               std::make_move_iterator(some.end()));
                }
            }
        }
        return all;
    }

  private:
    std::vector<std::string> only(const char* key, const std::string& value) const {
        const std::vector<std::string>* own = find_given(given_, key);
        return own ? *own : std::vector<std::string>{value};
    }
    // The ranks that one copy of the parameters is computed on: tensor groups x places of a pipeline.
    std::vector<std::pair<int, int>> model_sizes() const {
        std::vector<std::pair<int, int>> sizes;
        std::optional<job::JobError> problem;
        for (const int tensor : sizes_of(kTensor, job_.parallel.tensor)) {
            for (const int pipeline : sizes_of(kPipeline, job_.parallel.pipeline)) {
                try {
                    checkpointings_for(make_job_(with(tensor, pipeline)));  // makes the model
                    sizes.emplace_back(tensor, pipeline);
                } catch (const job::JobError& error) {  // ranks, heads, features, tokens or layers do not do
                    if (!problem) problem = error;
                }
            }
        }
        if (sizes.empty()) throw job::JobError(*problem);
        return sizes;
    }
    // The given ones, or the job's own and the powers of two up to its ranks, and up to its layers.
    std::vector<int> sizes_of(const char* key, int own) const {
        std::vector<int> sizes = {own};
        if (const auto* values = find_given(given_, key)) {
            sizes.clear();
            for (const std::string& value : *values) sizes.push_back(size_of(key, value));
            return sizes;
        }
        const std::int64_t most =
            key == kPipeline ? std::min<std::int64_t>(job_.run.ranks, job_.model.layers) : job_.run.ranks;
        for (int size = 1; size <= most; size *= 2)
            if (size != own) sizes.push_back(size);
        return sizes;
    }
    // Throws what is wrong with a value that is not a size.
    int size_of(const char* key, const std::string& value) const {
        Settings settings = outer_;
        // What the job sets beside its own size may be impossible with others.
        settings.insert(settings.end(), {{kSequence, "false"},
                                         {kVirtualStages, "1"},
                                         {kSchedule, job::ParallelSection().schedule},
                                         {key, value}});
        const job::Job job = make_job_(settings);
        return key == kTensor ? job.parallel.tensor : job.parallel.pipeline;
    }
    Settings with(int tensor, int pipeline) const {
        Settings settings = outer_;
        const Settings own = {{kTensor, std::to_string(tensor)},
                              {kPipeline, std::to_string(pipeline)},
                              {kVirtualStages, "1"},
                              {kSchedule, job::ParallelSection().schedule},
                              {kSequence, "false"},
                              {kMode, "fsdp"},
                              {kSharding, "FULL_SHARD"},
                              {kShardGroup, "0"}};
        settings.insert(settings.end(), own.begin(), own.end());
        return settings;
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
            if (own / batch >= pipeline)
                all.push_back(
                    {{kBatch, std::to_string(batch)}, {kAccumulation, std::to_string(own / batch)}});
            if (batch % 2 != 0) break;
        }
        return all;
    }
    // How `data` ranks divide the parameters of a tensor group: whole copies, shard groups of each size, all.
    std::vector<Settings> shardings(int data, int pipeline) const {
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
                if (!in_groups && !groups && (data > 1 || strategies))
                    all.push_back({{kMode, "fsdp"}, {kSharding, name}, {kShardGroup, "0"}});
                if (!in_groups) continue;
                Values sizes;
                for (int group = 2; group < data; group *= 2)
                    if (data % group == 0) sizes.push_back(std::to_string(group));
                for (const std::string& group : groups ? *groups : sizes) {
                    int size = 0;  // what is not a size is refused with its row
                    std::from_chars(group.data(), group.data() + group.size(), size);
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

std::string placement_of(const plan::Mesh& mesh, const sim::Cluster& cluster) {
    constexpr std::array<std::pair<plan::Group, const char*>, 4> kAxes = {
        {{plan::Group::tensor, "tensor"},
         {plan::Group::shard, "shard"},
         {plan::Group::replicate, "data"},
         {plan::Group::pipeline, "pipeline"}}};
    std::vector<std::string> words;
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
        words.push_back(most == 1 ? fmt::format("{} {} in a node", name, size)
                                  : fmt::format("{} {} over {} nodes", name, size, most));
    }
    return traces::schema::joined(words, ", ");
}

}  // namespace shardscope::trainer::planner
