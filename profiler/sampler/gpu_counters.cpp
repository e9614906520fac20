// The thread that samples the GPUs.
#include "profiler/sampler/gpu_counters.h"

#include <chrono>
#include <mutex>
#include <utility>

#include <fmt/core.h>
#include <pthread.h>

#include "profiler/nvml/links.h"
#include "profiler/sampler/adapters.h"
#include "profiler/sampler/gpu_reader.h"

namespace shardscope::profiler {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kGpuPeriod{100};
// PCIe takes NVML 40 ms, so each GPU's is read once in this many rounds, and not two GPUs' in the same round.
constexpr std::size_t kPciePeriods = 10;
constexpr std::size_t kLostPeriods = 10;      // a GPU that does not answer is asked once in this many rounds
constexpr std::size_t kMostSamples = 10'000;  // if they are not taken, the oldest are dropped

}  // namespace

class GpuCounters::Work final : public PatientWork {
  public:
    Work(What what, std::string root) : what_(what), root_(std::move(root)) {}

    GpuFindings take() {
        const std::lock_guard lock(mutex_);
        return std::exchange(found_, {});
    }

  private:
    void run() override {
        ::pthread_setname_np(::pthread_self(), "GPU counters");
        std::string why;
        const std::unique_ptr<nvml::Library> nvml = nvml::Library::open(&why);
        if (nvml == nullptr) {
            if (!why.empty()) note(fmt::format("GPUs are not recorded: {}", why));
            return;
        }
        std::vector<std::string> failures;
        const std::vector<nvml::Gpu> gpus = nvml->gpus(&failures);
        std::vector<GpuReader> readers;
        std::vector<nvml::GpuFacts> facts;
        for (const nvml::Gpu& gpu : gpus) {
            readers.emplace_back(*nvml, gpu);
            facts.push_back(nvml->facts(gpu));
        }
        {
            // Together: which of them a process sees is asked of all.
            const std::lock_guard lock(mutex_);
            found_.gpus = std::move(facts);
        }
        if (what_ == What::facts) return;
        find_links(*nvml, gpus);
        for (const std::string& failure : failures) note(fmt::format("not recorded: {}", failure));
        for (std::size_t round = 0; !stopped() && !readers.empty(); ++round) {
            sample(readers, round);
            wait_until(Clock::now() +
                       kGpuPeriod);  // never sooner: PCIe's and NVML's own values would be the same
        }
    }

    void find_links(const nvml::Library& nvml, const std::vector<nvml::Gpu>& gpus) {
        const std::vector<Adapter> adapters = infiniband_adapters(SystemFiles(root_));
        std::vector<nvml::LinkEnd> ends;
        ends.reserve(gpus.size() + adapters.size());
        for (const nvml::Gpu& gpu : gpus)
            ends.push_back({fmt::format("GPU{}", gpu.number), nvml.facts(gpu).bus, gpu.device});
        for (const Adapter& adapter : adapters)
            ends.push_back({fmt::format("NIC{}", adapter.row.number), adapter.row.bus, nullptr});
        std::vector<traces::schema::TopologyRow> links = nvml::links_between(&nvml, ends, root_);
        const std::lock_guard lock(mutex_);
        found_.links = std::move(links);
    }

    void sample(std::vector<GpuReader>& readers, std::size_t round) {
        for (std::size_t i = 0; i < readers.size(); ++i) {
            if (readers[i].lost() && round % kLostPeriods != 0) continue;
            std::vector<SamplerNote> notes;
            GpuSample sample = readers[i].sample(round % kPciePeriods == i % kPciePeriods, notes);
            const std::lock_guard lock(mutex_);
            for (SamplerNote& note : notes) found_.notes.push_back(std::move(note));
            if (found_.samples.size() > kMostSamples)
                found_.samples.erase(found_.samples.begin(), found_.samples.begin() + kMostSamples / 2);
            if (!sample.values.empty()) found_.samples.push_back(std::move(sample));
        }
    }

    void note(std::string text) {
        const std::lock_guard lock(mutex_);
        found_.notes.push_back({MonotonicTime::now(), std::move(text)});
    }

    const What what_;
    const std::string root_;
    std::mutex mutex_;
    GpuFindings found_;
};

GpuCounters::GpuCounters(What what, std::string root) : work_(std::make_shared<Work>(what, std::move(root))) {
    thread_.emplace(work_);
}

GpuCounters::~GpuCounters() = default;

GpuFindings GpuCounters::take() {
    return work_->take();
}

}  // namespace shardscope::profiler
