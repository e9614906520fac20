#include "trainer/planner/space.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "trainer/job/keys.h"
#include "trainer/planner/hooks.h"
#include "trainer/planner/key_names.h"
#include "trainer/planner/model_classes.h"

namespace shardscope::trainer::planner {

namespace {

using Values = std::vector<std::string>;

Values first_of_all(const std::string& first, const Values& others) {
    Values values = {first};
    for (const std::string& other : others) add_once(values, other);
    return values;
}

// A way to place the parameters, and which other keys matter with it.
struct Strategy {
    std::vector<job::Override> settings;
    bool units = false;    // it has units, which may hold parameters in bf16
    bool shards = false;   // it shards parameters, which may be offloaded
    bool gathers = false;  // it gathers: prefetch and limiter matter
    bool frees = false;    // it frees units after their forward
    bool updates = false;  // its optimizer may be on the host alone (memory.offload)
    bool once = false;     // it compresses gradients, which it does once in a step
};

// Keys that the strategies and the axes below decide.
constexpr std::array kDecided = {kMode,          kSharding, kShardGroup, kShardOptimizer, kCommHook,
                                 kOffload,       kWrap,     kPrefetch,   kLimiter,        kParam,
                                 kCheckpointing, kBatch,    kLayout,     kMemoryOffload,  kNvme};

// The search space of one job, whose keys outside kDecided are fixed.
class Space {
  public:
    // `settings` make the job.
    Space(const job::Job& job, const std::vector<job::Override>& settings, const std::vector<Given>& given,
          const JobMaker& make_job, const ClusterMaker& cluster_of)
        : job_(job),
          cluster_(cluster_of(job)),
          settings_(settings),
          given_(given),
          make_job_(make_job),
          cluster_of_(cluster_of) {}

    std::vector<std::vector<job::Override>> combinations() const;
    std::vector<std::vector<job::Override>> last_resorts() const;

  private:
    const Values* given(const std::string& key) const { return find_given(given_, key); }
    // The command line's values, or else the job's own and `others`.
    Values values(const std::string& key, const Values& others) const {
        if (const Values* own = given(key)) return *own;
        return first_of_all(text_of(job_, key), others);
    }
    // The narrow type that is tried: bf16, unless the job is in fp16.
    std::string narrow() const { return job_.precision.param == job::Precision::fp16 ? "fp16" : "bf16"; }
    // The command line's values, or else the one value that makes sense.
    Values only(const std::string& key, const std::string& value) const {
        const Values* own = given(key);
        return own ? *own : Values{value};
    }
    Values only_or(const std::string& key, const Values& others) const {
        const Values* own = given(key);
        return own ? *own : others;
    }
    Values modes() const;
    std::vector<Strategy> strategies() const;
    std::vector<Strategy> ddp() const;
    void add_sharded(const std::string& name, std::vector<Strategy>& into) const;
    Values shard_groups() const;
    Values layouts(const Strategy& strategy) const;
    bool can_be_fully() const;
    Values limiters(const std::string& layout, const Values& others) const;
    // The job's memory.offload with the optimizer, or, if it has it, without.
    std::string other_offload() const {
        const job::Offload& own = job_.memory.offload;
        return to_text(job::Offload{!own.optimizer, own.activations});
    }
    // Of memory.nvme, if the job has it or it is given: without files, and with them where the host updates.
    std::vector<std::vector<job::Override>> folders(bool on_host) const;
    std::vector<std::vector<job::Override>> halves() const;
    std::vector<std::vector<job::Override>> offloads(const Values& of_fsdp, const Values& of_memory,
                                                     bool updates) const;
    void add_loops(const Strategy& strategy, std::vector<std::vector<job::Override>>& all) const;
    void combine(const Strategy& strategy, std::vector<std::vector<job::Override>>& into) const;
    void combine(const Strategy& strategy, const std::string& layout,
                 const std::vector<job::Override>& instead,
                 std::vector<std::vector<job::Override>>& into) const;

    const job::Job& job_;
    const sim::Cluster& cluster_;
    const std::vector<job::Override>& settings_;
    const std::vector<Given>& given_;
    const JobMaker& make_job_;
    const ClusterMaker& cluster_of_;
};

// What the tensor and context groups of a node hold forms a shard group, if the ranks fill several nodes.
Values Space::shard_groups() const {
    if (const Values* own = given(kShardGroup)) return *own;
    Values groups;
    if (job_.fsdp.shard_group > 0) groups.push_back(std::to_string(job_.fsdp.shard_group));
    const int ranks = job_.run.ranks, in_node = cluster_.ranks_of_node();
    const int inside = job_.parallel.tensor * job_.parallel.context;
    if (cluster_.node_of(ranks - 1) > 0 && ranks % in_node == 0 && in_node % inside == 0 &&
        in_node > inside && job_.data_ranks() % (in_node / inside) == 0)
        add_once(groups, std::to_string(in_node / inside));
    return groups;
}

void Space::add_sharded(const std::string& name, std::vector<Strategy>& into) const {
    Strategy strategy{{{kMode, "fsdp"}, {kSharding, name}}, true, true, true, name == "FULL_SHARD", true};
    set(strategy.settings, without_hook(job_));
    if (name.starts_with("HYBRID")) {
        Values groups = shard_groups();
        if (groups.empty() && given(kSharding)) groups = {"0"};  // requested: the job reports what is missing
        for (const std::string& group : groups) {
            Strategy hybrid = strategy;
            hybrid.settings.push_back({kShardGroup, group});
            into.push_back(hybrid);
        }
        return;
    }
    if (given(kShardGroup) || job_.fsdp.shard_group > 0) strategy.settings.push_back({kShardGroup, "0"});
    if (name == "NO_SHARD") strategy.shards = strategy.gathers = strategy.updates = false;
    if (name == "ZERO_1") strategy.units = strategy.shards = strategy.gathers = strategy.updates = false;
    into.push_back(strategy);
}

Values Space::modes() const {
    if (const Values* own = given(kMode)) return *own;
    const Values* hooks = given(kCommHook);
    if (is_onebit(job_.optimizer.type) || job_.train.local_steps > 0 ||
        (hooks && std::any_of(hooks->begin(), hooks->end(), [](const auto& hook) { return hook != "none"; })))
        return {"ddp"};
    if (given(kSharding)) return {"fsdp"};
    if (job_.parallel.mode == job::ParallelMode::server) {
        throw job::JobError(
            where(job_, "parallel.mode") +
            "parallel.mode: a parameter server is not planned; set the key to \"ddp\", or simulate "
            "the job with run.device = \"sim\"");
    }
    Values modes = {text_of(job_, kMode)};
    for (const char* mode : {"fsdp", "ddp"}) add_once(modes, mode);
    if (job_.run.ranks == 1) add_once(modes, "none");
    return modes;
}

// DDP with each hook, and with a sharded optimizer.
std::vector<Strategy> Space::ddp() const {
    std::vector<Strategy> all;
    // These need the whole optimizer, and reduce no gradients that a hook could compress.
    const bool whole = is_onebit(job_.optimizer.type) || job_.train.local_steps > 0;
    for (const std::string& sharded : values(kShardOptimizer, whole ? Values{} : Values{"false", "true"}))
        all.push_back({.settings = {{kMode, "ddp"}, {kShardOptimizer, sharded}},
                       .updates = sharded == "false" && !whole});
    if (whole) return all;
    Values hooks;
    if (const Values* own = given(kCommHook)) {
        hooks = *own;
    } else {
        Strategy plain = all.front();
        set(plain.settings, without_hook(job_));
        std::vector<std::vector<job::Override>> first;
        combine(plain, first);
        std::vector<job::Override> settings = settings_;
        set(settings, first.front());
        hooks = hooks_for(job_, settings, make_job_, cluster_of_);
        if (hooks.size() == 1) return all;
    }
    std::vector<Strategy> hooked;
    for (const std::string& hook : hooks) {
        for (Strategy strategy : all) {
            set(strategy.settings, with_hook(job_, hook));
            strategy.once = traits(job::parse_comm_hook(hook).kind).keeps_error;
            strategy.updates = strategy.updates && hook == hooks.front();
            hooked.push_back(std::move(strategy));
        }
    }
    return hooked;
}

std::vector<Strategy> Space::strategies() const {
    std::vector<Strategy> all;
    for (const std::string& mode : modes()) {
        if (mode == "fsdp") {
            const Values names =
                values(kSharding, {"FULL_SHARD", "SHARD_GRAD_OP", "HYBRID_SHARD", "NO_SHARD"});
            for (const std::string& name : names) {
                // The schedule of a pipeline frees units, so that the two strategies are one.
                if (name == "SHARD_GRAD_OP" && job_.parallel.pipeline > 1 && !given(kSharding) &&
                    name != text_of(job_, kSharding))
                    continue;
                add_sharded(name, all);
            }
        } else if (mode == "ddp") {
            for (Strategy& strategy : ddp()) all.push_back(std::move(strategy));
        } else {
            Strategy strategy{.settings = {{kMode, mode}}, .updates = true};
            set(strategy.settings, without_hook(job_));
            all.push_back(std::move(strategy));
        }
    }
    return all;
}

// The layouts of units that a strategy may have, the job's own first. "lean" is tried only if nothing else
// fits.
Values Space::layouts(const Strategy& strategy) const {
    if (given(kLayout)) return *given(kLayout);
    const std::string own = text_of(job_, kLayout);
    if (strategy.gathers)
        return first_of_all(own, can_be_fully() ? Values{"fsdp1", "fsdp2"} : Values{"fsdp1"});
    return {strategy.units ? "fsdp1" : own};
}

// Whether fully_shard is tried: it has no limiter, so not if the command line requires one.
bool Space::can_be_fully() const {
    const Values* own = given(kLimiter);
    return !own || std::find(own->begin(), own->end(), "false") != own->end();
}

// The command line's values, or `others`; "false" for fully_shard, which has no limiter, unless one is
// required.
Values Space::limiters(const std::string& layout, const Values& others) const {
    if (layout == "fsdp2" && can_be_fully()) return {"false"};
    return only_or(kLimiter, others);
}

// The same samples per step in micro-batches of half the size.
std::vector<std::vector<job::Override>> Space::halves() const {
    if (given(kBatch) || given(kAccumulation) || job_.data.batch % 2 != 0) return {};
    return {{{kBatch, std::to_string(job_.data.batch / 2)},
             {kAccumulation, std::to_string(job_.train.accumulation * 2)}}};
}

std::vector<std::vector<job::Override>> Space::folders(bool on_host) const {
    if (job_.memory.nvme.empty() && !given(kNvme)) return {{}};
    std::vector<std::vector<job::Override>> settings;
    for (const std::string& folder : on_host ? values(kNvme, {""}) : Values{""})
        settings.push_back({{kNvme, folder}});
    return settings;
}

// fsdp.cpu_offload and memory.offload, whose optimizer gives way where it is not possible unless it is given;
// and, of a job with memory.nvme, what the host updates with files and without.
std::vector<std::vector<job::Override>> Space::offloads(const Values& of_fsdp, const Values& of_memory,
                                                        bool updates) const {
    std::vector<std::vector<job::Override>> all;
    for (const std::string& fsdp : of_fsdp) {
        for (std::string memory : of_memory) {
            if (!given(kMemoryOffload) && (!updates || fsdp == "true")) {
                job::Offload without = job::parse_offload(memory);
                without.optimizer = false;
                memory = to_text(without);
            }
            for (const std::vector<job::Override>& folder :
                 folders(fsdp == "true" || job::parse_offload(memory).optimizer)) {
                std::vector<job::Override> one = {{kOffload, fsdp}, {kMemoryOffload, memory}};
                one.insert(one.end(), folder.begin(), folder.end());
                if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(std::move(one));
            }
        }
    }
    return all;
}

void Space::combine(const Strategy& strategy, std::vector<std::vector<job::Override>>& into) const {
    const Values all_layouts = layouts(strategy);
    for (const std::string& layout : all_layouts) combine(strategy, layout, {}, into);
    if (strategy.updates && !given(kMemoryOffload) && !given(kOffload)) {
        for (std::vector<job::Override> instead : folders(job::parse_offload(other_offload()).optimizer)) {
            instead.insert(instead.begin(), {kMemoryOffload, other_offload()});
            combine(strategy, all_layouts.front(), instead, into);
        }
    }
    if (strategy.once && job_.train.accumulation_sync) return;
    for (const std::vector<job::Override>& half : halves())
        combine(strategy, all_layouts.front(), half, into);
}

// `instead`: settings that replace the job's; keys that make little difference then keep one value.
void Space::combine(const Strategy& strategy, const std::string& layout,
                    const std::vector<job::Override>& instead,
                    std::vector<std::vector<job::Override>>& into) const {
    const std::string wrap = text_of(job_, kWrap), prefetch = text_of(job_, kPrefetch),
                      limiter = text_of(job_, kLimiter);
    // fully_shard gathers the next unit before computing a unit's gradients, and has no limiter. A
    // fully_shard job that is tried in another layout gets that layout's defaults. The
    // schedule of a pipeline says when units are gathered.
    const bool fully = layout == "fsdp2", fixed = fully || !instead.empty() || job_.parallel.pipeline > 1;
    const job::FsdpSection defaults;
    const std::string first_limiter =
        job_.fsdp.layout == job::FsdpLayout::fsdp2 && defaults.limit_all_gathers ? "true" : limiter;
    Values prefetches = only(kPrefetch, fully ? "BACKWARD_PRE" : prefetch),
           all_limiters = limiters(layout, {first_limiter});
    if (strategy.gathers && !fixed) {
        prefetches = values(kPrefetch, {"BACKWARD_PRE", "BACKWARD_POST", "NONE"});
        all_limiters = limiters(layout, first_of_all(first_limiter, {"true", "false"}));
    }
    if (!strategy.gathers) {
        prefetches = {prefetch};
        all_limiters = only(kLimiter, limiter);
    }
    const std::vector<std::pair<std::string, Values>> axes = {
        {kCheckpointing, values(kCheckpointing, given(kCheckpointing) ? Values{} : checkpointings_for(job_))},
        {kPrefetch, prefetches},
        {kLimiter, all_limiters},
        {kParam, strategy.units ? values(kParam, {narrow(), "fp32"}) : only(kParam, "fp32")},
        {kBatch, values(kBatch, {})},
    };
    std::vector<std::vector<job::Override>> all = {strategy.settings};
    all.front().push_back({kLayout, layout});
    if (!strategy.units && !given(kReduce)) all.front().push_back({kReduce, "fp32"});
    multiply(all, kWrap,
             strategy.units ? values(kWrap, given(kWrap) ? Values{} : wraps_for(job_)) : Values{wrap});
    const bool updates = !instead.empty() && instead.front().key == kMemoryOffload;
    multiply(all, offloads(strategy.shards && !updates ? values(kOffload, {"false", "true"})
                                                       : only(kOffload, "false"),
                           values(kMemoryOffload, {}), strategy.updates));
    for (const auto& [key, key_values] : axes) multiply(all, key, key_values);
    for (std::vector<job::Override>& settings : all) set(settings, instead);
    if (fully && !given(kWrap)) add_loops(strategy, all);
    into.insert(into.end(), std::make_move_iterator(all.begin()), std::make_move_iterator(all.end()));
}

// Adds, for each combination that makes a unit of each block, those of which fewer are units or the last one
// is kept.
void Space::add_loops(const Strategy& strategy, std::vector<std::vector<job::Override>>& all) const {
    const auto loop = loop_for(job_);
    if (!loop) return;
    const bool keeps = strategy.frees && job_.parallel.pipeline == 1 && job_.fsdp.unit.empty() &&
                       !given(kUnit) && job_.fsdp.exclude.names.empty() && !given("fsdp.exclude");
    for (std::size_t i = 0, before = all.size(); i < before; ++i) {
        const auto wrap = std::find(all[i].begin(), all[i].end(), job::Override{kWrap, loop->wrap});
        if (wrap == all[i].end()) continue;
        std::vector<job::Override> every = all[i], kept = all[i];
        if (!loop->every.empty()) {
            every[static_cast<std::size_t>(wrap - all[i].begin())].value = loop->every;
            all.push_back(std::move(every));
        }
        if (!keeps) continue;
        kept.push_back({kUnit, loop->keep_last});
        all.push_back(std::move(kept));
    }
}

// The last options if nothing fits: everything sharded, in each layout, with as little other memory as
// possible.
std::vector<std::vector<job::Override>> Space::last_resorts() const {
    const Values* modes = given(kMode);
    if (modes && std::find(modes->begin(), modes->end(), "fsdp") == modes->end()) return {};
    if (is_onebit(job_.optimizer.type) || job_.train.local_steps > 0) return {};
    std::vector<Strategy> strategies;
    for (const std::string& name : only(kSharding, "FULL_SHARD")) add_sharded(name, strategies);
    std::erase_if(strategies, [](const Strategy& strategy) { return !strategy.shards; });
    std::vector<std::vector<job::Override>> batches;
    for (const std::string& batch : values(kBatch, {})) batches.push_back({{kBatch, batch}});
    if (!given(kBatch) && !given(kAccumulation)) {
        for (int parts = 2; parts <= job_.data.batch; ++parts) {
            if (job_.data.batch % parts != 0) continue;
            batches.push_back({{kBatch, std::to_string(job_.data.batch / parts)},
                               {kAccumulation, std::to_string(job_.train.accumulation * parts)}});
        }
    }
    // Fused attention keeps less; for BERT "auto" means plain.
    const bool plain =
        !given(kAttention) &&
        (job_.model.attention == job::AttentionKind::plain ||
         (job_.model.type == job::ModelType::bert && job_.model.attention == job::AttentionKind::automatic));
    const std::vector<std::pair<std::string, Values>> axes = {
        {kCheckpointing, values(kCheckpointing, given(kCheckpointing) ? Values{} : checkpointings_for(job_))},
        {kPrefetch, only(kPrefetch, "NONE")},
        {kParam, values(kParam, {narrow(), "fp32"})},
    };
    std::vector<std::vector<job::Override>> started;
    for (const Strategy& strategy : strategies) {
        for (const std::vector<job::Override>& batch : batches) {
            std::vector<job::Override> settings = strategy.settings;
            settings.insert(settings.end(), batch.begin(), batch.end());
            if (job_.fsdp.forward_prefetch && !given(kForwardPrefetch))
                settings.push_back({kForwardPrefetch, "false"});
            started.push_back(settings);
            if (!plain) continue;
            settings.push_back({kAttention, "fused"});
            started.push_back(std::move(settings));
        }
    }
    std::vector<std::vector<job::Override>> all;
    for (const std::string& layout :
         only_or(kLayout, can_be_fully() ? Values{"fsdp1", "fsdp2", "lean"} : Values{"fsdp1", "lean"})) {
        std::vector<std::vector<job::Override>> some = started;
        multiply(some, kLayout, {layout});
        multiply(some, kLimiter, limiters(layout, {"true"}));
        multiply(some, kWrap, values(kWrap, given(kWrap) ? Values{} : wraps_for(job_)));
        multiply(some, offloads(only_or(kOffload, {"true", "false"}),
                                only_or(kMemoryOffload,
                                        {"none", "optimizer", "activations", "optimizer+activations"}),
                                true));
        for (const auto& [key, key_values] : axes) multiply(some, key, key_values);
        all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
    }
    return all;
}

std::vector<std::vector<job::Override>> Space::combinations() const {
    std::vector<std::vector<job::Override>> all;
    for (const Strategy& strategy : strategies()) combine(strategy, all);
    return all;
}

// The job whose own values come first. If it is impossible as it is, it is made an FSDP job.
job::Job job_of(std::vector<job::Override> settings, const JobMaker& make_job) {
    try {
        return make_job(settings);
    } catch (const job::JobError&) {
        settings.push_back({kMode, "fsdp"});
        try {
            return make_job(settings);
        } catch (const job::JobError&) {  // report the first error
        }
        throw;
    }
}

}  // namespace

std::vector<Candidate> combine_jobs(const std::vector<Given>& given, std::span<const char* const> decided,
                                    const JobMaker& make_job, const Combinations& combinations) {
    // The keys that the space does not decide form the outer combinations: each is a job with its own space.
    std::vector<std::vector<job::Override>> outer(1);
    for (const Given& key : given) {
        if (std::find(decided.begin(), decided.end(), key.key) == decided.end())
            multiply(outer, key.key, key.values);
    }
    std::vector<Candidate> all;
    std::optional<job::JobError> problem;
    for (const auto& settings : outer) {
        std::string of_job;
        for (const job::Override& own : settings) of_job += own.key + "=" + own.value + "\n";
        try {
            const job::Job job = job_of(settings, make_job);
            for (const auto& more : combinations(settings, job)) {
                Candidate& candidate = all.emplace_back(Candidate{settings, of_job});
                set(candidate.settings, more);
            }
        } catch (const job::JobError& error) {
            if (outer.size() == 1) throw;
            problem = error;
            all.push_back({settings, of_job});  // becomes a row with the reason
        }
        if (all.size() > kMostCandidates) {
            throw job::JobError(fmt::format(
                "command line: more than {} configurations; give fewer values, or fix keys that are not in "
                "question with --section.key=value",
                kMostCandidates));
        }
    }
    if (all.size() == outer.size() && problem) throw job::JobError(*problem);  // none is possible
    return all;
}

const Values* find_given(const std::vector<Given>& given, std::string_view key) {
    const auto found = std::find_if(given.begin(), given.end(), [&](const Given& g) { return g.key == key; });
    return found == given.end() ? nullptr : &found->values;
}

void add_once(Values& values, const std::string& value) {
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

void set(std::vector<job::Override>& settings, const std::vector<job::Override>& more) {
    for (const job::Override& setting : more) {
        const auto found = std::find_if(settings.begin(), settings.end(),
                                        [&](const job::Override& own) { return own.key == setting.key; });
        if (found == settings.end()) {
            settings.push_back(setting);
        } else {
            found->value = setting.value;
        }
    }
}

void multiply(std::vector<std::vector<job::Override>>& all, const std::string& key, const Values& values) {
    std::vector<std::vector<job::Override>> longer;
    for (const auto& settings : all) {
        for (const std::string& value : values) {
            longer.push_back(settings);
            longer.back().push_back({key, value});
        }
    }
    all = std::move(longer);
}

void multiply(std::vector<std::vector<job::Override>>& all,
              const std::vector<std::vector<job::Override>>& settings) {
    std::vector<std::vector<job::Override>> longer;
    for (const auto& own : all) {
        for (const auto& more : settings) {
            longer.push_back(own);
            longer.back().insert(longer.back().end(), more.begin(), more.end());
        }
    }
    all = std::move(longer);
}

std::vector<Candidate> candidates(const std::vector<Given>& given, const JobMaker& make_job,
                                  const ClusterMaker& cluster_of) {
    return combine_jobs(given, kDecided, make_job, [&](const auto& settings, const job::Job& job) {
        return Space(job, settings, given, make_job, cluster_of).combinations();
    });
}

std::vector<Candidate> last_resorts(const std::vector<Given>& given, const JobMaker& make_job,
                                    const ClusterMaker& cluster_of) {
    return combine_jobs(given, kDecided, make_job, [&](const auto& settings, const job::Job& job) {
        return Space(job, settings, given, make_job, cluster_of).last_resorts();
    });
}

}  // namespace shardscope::trainer::planner
