#include "trainer/planner/hooks.h"

#include <algorithm>
#include <array>

#include "trainer/job/keys.h"
#include "trainer/planner/key_names.h"
#include "trainer/planner/search.h"

namespace shardscope::trainer::planner {

namespace {

// Half of the bytes, and a few hundredths of them (docs/parallelism.md, "Compressed gradients").
constexpr std::array kTried = {"bf16", "powersgd:4"};

bool can_be(const std::vector<job::Override>& settings, const JobMaker& make_job) {
    try {
        make_job(settings);
        return true;
    } catch (const job::JobError&) {
        return false;
    }
}

bool waits_for_the_wire(const std::vector<job::Override>& plain, const JobMaker& make_job,
                        const ClusterMaker& cluster_of) {
    const Row row = evaluate({plain, {}}, 1, make_job, cluster_of, true);
    return row.timed && row.times.exposed > kExposedShare * row.times.step;
}

}  // namespace

std::vector<job::Override> with_hook(const job::Job& job, const std::string& hook) {
    const job::DdpSection defaults;
    const job::CommHookKind kind = job::parse_comm_hook(hook).kind;
    std::vector<job::Override> settings = {{kCommHook, hook}};
    if (!traits(kind).keeps_error && job.ddp.comm_hook_start != defaults.comm_hook_start)
        settings.push_back({"ddp.comm_hook_start", std::to_string(defaults.comm_hook_start)});
    if (kind != job::CommHookKind::powersgd && job.ddp.orthogonalization_epsilon != 0)
        settings.push_back({"ddp.orthogonalization_epsilon", "0"});
    return settings;
}

std::vector<job::Override> without_hook(const job::Job& job) {
    if (job.ddp.comm_hook.kind == job::CommHookKind::none) return {};
    return with_hook(job, "none");
}

std::vector<std::string> hooks_for(const job::Job& job, const std::vector<job::Override>& plain,
                                   const JobMaker& make_job, const ClusterMaker& cluster_of) {
    std::vector<std::string> hooks = {text_of(job, kCommHook)};
    add_once(hooks, "none");
    if (job.run.ranks == 1 || !waits_for_the_wire(plain, make_job, cluster_of)) return hooks;
    for (const char* hook : kTried) {
        std::vector<job::Override> settings = plain;
        set(settings, with_hook(job, hook));
        if (can_be(settings, make_job)) add_once(hooks, hook);
    }
    return hooks;
}

}  // namespace shardscope::trainer::planner
