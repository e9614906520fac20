#include "trainer/cli/bench_engines.h"

#include <algorithm>

namespace shardscope::trainer::cli {

std::vector<job::Override> engine_keys(const std::string& engine, int ranks, job::SumOrder sums) {
    const bool gpus = engine == "nccl", threads = gpus || engine == "local";
    const std::string number = std::to_string(ranks);
    return {{"run.device", gpus ? "cuda" : "cpu"},
            {"run.comm", gpus && ranks == 1 ? "auto" : engine},
            {"run.ranks", number},
            {"run.processes", threads ? "0" : number},
            {"run.sums", threads || sums == job::SumOrder::ordered ? "ordered" : "ring"}};
}

std::string engine_of(const job::Job& job) {
    if (job.run.device == job::DeviceKind::cuda) return "nccl";
    if (job.run.processes <= 1) return "local";
    switch (job.run.comm) {
        case job::CommKind::mpi:
            return "mpi";
        case job::CommKind::gloo:
            return "gloo";
        default:
            return "tcp";
    }
}

std::vector<job::Override> with_keys(const std::vector<job::Override>& given,
                                     const std::vector<job::Override>& keys) {
    std::vector<job::Override> all;
    for (const job::Override& own : given) {
        const auto same = [&](const job::Override& key) { return key.key == own.key; };
        if (std::none_of(keys.begin(), keys.end(), same)) all.push_back(own);
    }
    all.insert(all.end(), keys.begin(), keys.end());
    return all;
}

const std::vector<std::string>& bench_engines() {
    static const std::vector<std::string> kEngines = {"local", "tcp", "gloo", "mpi", "nccl"};
    return kEngines;
}

}  // namespace shardscope::trainer::cli
