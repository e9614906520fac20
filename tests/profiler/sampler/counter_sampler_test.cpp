// The sampler as a whole: this process, a host that the test plays, and GPUs of a library that plays NVML.
#include "profiler/sampler/counter_sampler.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "profiler/sampler/counter_thread.h"
#include "tests/profiler/sampler/played_files.h"

namespace shardscope::profiler {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::SizeIs;

// Loads the library that plays NVML: the sampler then finds it under NVML's name.
void play_gpus(const char* play) {
    ASSERT_NE(::dlopen(FAKE_NVML, RTLD_NOW), nullptr) << ::dlerror();
    ::setenv("FAKE_NVML", play, 1);
}

class Sampler : public ::testing::Test {
  protected:
    SamplerOptions options() {
        played_.write("/proc/stat", "cpu 1 1 1 1 1 1 1 1 0 0\n");
        played_.write("/proc/meminfo", "MemTotal: 10 kB\nMemAvailable: 5 kB\n");
        played_.write("/proc/vmstat", "pswpin 0\npswpout 0\n");
        played_.write("/sys/devices/system/cpu/online", "0-3\n");
        SamplerOptions options;
        options.origin = origin_;
        options.host = "here";
        options.root = played_.root();
        return options;
    }
    // Samples until `enough`.
    template <typename Enough>
    Samples sample_until(CounterSampler& sampler, Enough enough) {
        const WatchedProcess self{::getpid(), 5};
        Samples all;
        while (!enough(all)) {
            const Samples more = sampler.sample({&self, 1});
            all.counters.insert(all.counters.end(), more.counters.begin(), more.counters.end());
            all.notes.insert(all.notes.end(), more.notes.begin(), more.notes.end());
            all.devices.insert(all.devices.end(), more.devices.begin(), more.devices.end());
            all.topology.insert(all.topology.end(), more.topology.begin(), more.topology.end());
            all.facts.insert(all.facts.end(), more.facts.begin(), more.facts.end());
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return all;
    }

    const MonotonicTime origin_ = MonotonicTime::now();
    PlayedFiles played_;
};

std::vector<Sample> of(const Samples& samples, const std::string& name) {
    std::vector<Sample> found;
    for (const Sample& sample : samples.counters)
        if (sample.name == name) found.push_back(sample);
    return found;
}

TEST_F(Sampler, has_constant_use_as_it_is) {
    play_gpus("constant");
    CounterSampler sampler(options());
    const Samples samples = sample_until(
        sampler, [](const Samples& so_far) { return of(so_far, "gpu_utilization_percent").size() >= 3; });
    for (const Sample& sample : of(samples, "gpu_utilization_percent")) {
        EXPECT_EQ(sample.value, 70);
        EXPECT_EQ(sample.rank, 5);
        EXPECT_EQ(sample.device, 0);
    }
    EXPECT_EQ(value_of(samples, "gpu_power_watts", 0), 350);
    EXPECT_EQ(value_of(samples, "gpu_temperature_celsius", 0), 61);
    EXPECT_GE(value_of(samples, "gpu_energy_joules", 0), 5000);
    EXPECT_EQ(value_of(samples, "gpu_throttle_reasons_bits", 0), 0);
    EXPECT_GE(value_of(samples, "process_cpu_cores"), 0);
    ASSERT_THAT(samples.devices, SizeIs(1));
    const traces::schema::DeviceRow& gpu = samples.devices[0];
    EXPECT_EQ(gpu.host, "here");
    EXPECT_EQ(gpu.kind, "gpu");
    EXPECT_EQ(gpu.name, "Played GPU");
    EXPECT_EQ(gpu.bus, "0000:17:00.0");
    EXPECT_EQ(gpu.memory_bytes, std::int64_t{80} << 30);
    EXPECT_EQ(gpu.power_limit_watts, 700);
    EXPECT_TRUE(gpu.visible);
    std::vector<std::string> facts;
    for (const traces::schema::RunInfoRow& fact : samples.facts) facts.push_back(fact.key + "=" + fact.value);
    EXPECT_THAT(facts, ElementsAre("sampler.period_ns=100000000", "host.here.cpus=4",
                                   "host.here.memory_bytes=10240"));
}

TEST_F(Sampler, has_the_energy_of_a_triangle_of_power) {
    play_gpus("triangle");
    CounterSampler sampler(options());
    const Samples samples = sample_until(
        sampler, [](const Samples& so_far) { return of(so_far, "gpu_power_watts").size() >= 15; });
    const std::vector<Sample> power = of(samples, "gpu_power_watts"),
                              energy = of(samples, "gpu_energy_joules");
    ASSERT_EQ(power.size(), energy.size());
    double joules = 0, longest = 0;
    for (std::size_t i = 1; i < power.size(); ++i) {
        const double seconds = static_cast<double>(power[i].time - power[i - 1].time) * 1e-9;
        joules += (power[i].value + power[i - 1].value) / 2 * seconds;
        longest = std::max(longest, seconds);
    }
    // A trapezoid over a tip of the triangle cuts it off; on a busy machine more than that is missing.
    if (longest > 0.2) GTEST_SKIP() << "the machine is too busy: " << longest << " s between two samples";
    EXPECT_NEAR(joules / (energy.back().value - energy.front().value), 1, 0.05);
}

// GPUs 0 and 1, and 2 and 3, reach each other; each pair is there once.
TEST_F(Sampler, has_the_links_of_the_gpus_once) {
    play_gpus("one_of_four");
    CounterSampler sampler(options());
    const Samples samples = sample_until(
        sampler, [](const Samples& so_far) { return of(so_far, "gpu3_utilization_percent").size() >= 2; });
    ASSERT_THAT(samples.topology, SizeIs(6));
    const traces::schema::TopologyRow &near = samples.topology[0], &far = samples.topology[1];
    EXPECT_EQ(near.host, "here");
    EXPECT_EQ(near.to_host, "here");
    EXPECT_EQ(near.from, "GPU0");
    EXPECT_EQ(near.to, "GPU1");
    EXPECT_EQ(near.link, "PIX");
    EXPECT_EQ(near.read, "OK");
    EXPECT_EQ(near.source, "nvml");
    EXPECT_EQ(far.to, "GPU2");
    EXPECT_EQ(far.link, "SYS");
    EXPECT_EQ(far.read, "CNS");
}

TEST_F(Sampler, sees_four_gpus_of_which_one_works) {
    play_gpus("one_of_four");
    SamplerOptions with = options();
    with.visible_gpus = "0,1,GPU-00000003";
    CounterSampler sampler(with);
    const Samples samples = sample_until(
        sampler, [](const Samples& so_far) { return !of(so_far, "gpu3_utilization_percent").empty(); });
    EXPECT_EQ(value_of(samples, "gpu_utilization_percent", 0), 70);
    for (int gpu = 1; gpu < 4; ++gpu) {
        const std::string name = "gpu" + std::to_string(gpu) + "_utilization_percent";
        EXPECT_EQ(value_of(samples, name, gpu), 0);
        EXPECT_EQ(of(samples, name).at(0).rank, -1);
    }
    ASSERT_THAT(samples.devices, SizeIs(4));
    EXPECT_TRUE(samples.devices[1].visible);
    EXPECT_FALSE(samples.devices[2].visible);
    EXPECT_TRUE(samples.devices[3].visible);
}

TEST_F(Sampler, says_once_that_a_gpu_is_lost_and_continues_with_the_others) {
    play_gpus("falls_off");
    CounterSampler sampler(options());
    std::size_t before = 0;
    const Samples samples = sample_until(sampler, [&](const Samples& so_far) {
        const std::size_t now = of(so_far, "gpu_power_watts").size();
        if (so_far.notes.empty()) before = now;
        return now >= before + 5;  // five samples of the other since
    });
    std::vector<std::string> notes;
    for (const SamplerNote& note : samples.notes) {
        if (note.text.find("not sampled from") == std::string::npos) notes.push_back(note.text);
    }
    EXPECT_THAT(
        notes, ElementsAre("GPU 1 no longer answers: GPU is lost; its counters end here, those of other GPUs "
                           "continue"));
    EXPECT_FALSE(of(samples, "gpu1_power_watts").empty());
}

TEST_F(Sampler, says_once_what_a_gpu_no_longer_has) {
    play_gpus("no_power");
    CounterSampler sampler(options());
    std::size_t at_note = 0;
    const Samples samples = sample_until(sampler, [&](const Samples& so_far) {
        const std::size_t now = of(so_far, "gpu_utilization_percent").size();
        if (so_far.notes.empty()) at_note = now;
        return now >= at_note + 5;
    });
    EXPECT_THAT(samples.notes.at(0).text,
                "GPU 0: the power could not be read: Unknown Error; samples of it are missing");
    EXPECT_EQ(std::count_if(
                  samples.notes.begin(), samples.notes.end(),
                  [](const SamplerNote& note) { return note.text.find("the power") != std::string::npos; }),
              1);
    EXPECT_LT(of(samples, "gpu_power_watts").size(), of(samples, "gpu_utilization_percent").size());
}

TEST_F(Sampler, says_why_there_are_no_gpus) {
    play_gpus("mismatch");
    CounterSampler sampler(options());
    const Samples samples =
        sample_until(sampler, [](const Samples& so_far) { return !so_far.notes.empty(); });
    EXPECT_EQ(samples.notes[0].text,
              "GPUs are not recorded: libnvidia-ml.so.1 does not start: Driver/library version mismatch");
}

TEST_F(Sampler, says_which_gpu_was_lost_before_it_began) {
    play_gpus("one_lost");
    CounterSampler sampler(options());
    const Samples samples =
        sample_until(sampler, [](const Samples& so_far) { return !of(so_far, "gpu_power_watts").empty(); });
    ASSERT_FALSE(samples.notes.empty());
    EXPECT_EQ(samples.notes[0].text, "not recorded: GPU 1: GPU is lost");
}

// Another process of the job samples the host: this one has its own rank, and the GPUs that it may use.
TEST_F(Sampler, leaves_the_host_to_the_first_process_on_it) {
    play_gpus("one_of_four");
    SamplerOptions with = options();
    with.whole_host = false;
    with.alone = false;
    with.visible_gpus = "2";
    CounterSampler sampler(with);
    const Samples samples =
        sample_until(sampler, [](const Samples& so_far) { return !so_far.devices.empty(); });
    ASSERT_THAT(samples.devices, SizeIs(1));
    EXPECT_EQ(samples.devices[0].number, 2);
    for (const Sample& sample : samples.counters) EXPECT_THAT(sample.name, HasSubstr("process_"));
    ASSERT_THAT(samples.facts, SizeIs(1));
}

TEST_F(Sampler, asks_for_the_rank_of_a_process_that_it_does_not_watch) {
    play_gpus("constant");
    SamplerOptions with = options();
    std::vector<pid_t> asked;
    with.rank_of = [&](pid_t pid) {
        asked.push_back(pid);
        return 7;
    };
    CounterSampler sampler(with);
    Samples samples;
    while (of(samples, "gpu_power_watts").size() < 2) {
        const Samples more = sampler.sample({});
        samples.counters.insert(samples.counters.end(), more.counters.begin(), more.counters.end());
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(of(samples, "gpu_power_watts").at(0).rank, 7);
    EXPECT_THAT(asked, ElementsAre(::getpid()));
}

TEST_F(Sampler, says_once_that_it_was_late) {
    CounterSampler sampler(options());
    std::vector<std::string> gaps;
    for (int i = 0; i < 3; ++i) {
        for (const SamplerNote& note : sampler.sample({}).notes) {
            if (note.text.starts_with("counters were not sampled from")) gaps.push_back(note.text);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(310));
    }
    EXPECT_THAT(gaps, SizeIs(1));
}

TEST_F(Sampler, thread_takes_a_last_sample_and_ends) {
    std::mutex mutex;
    std::vector<Sample> counters;
    MonotonicTime asked{0};
    {
        CounterThread thread(options(), {{::getpid(), 0}}, [&](const Samples& samples) {
            const std::lock_guard lock(mutex);
            counters.insert(counters.end(), samples.counters.begin(), samples.counters.end());
        });
        asked = MonotonicTime::now();
        thread.sample_now();
        const std::lock_guard lock(mutex);
        if (!counters.empty()) {
            EXPECT_GE(counters.back().time.ns, asked.ns);
        }
        counters.clear();
    }
    if (!PatientThread::any_left_behind()) {
        ASSERT_FALSE(counters.empty());
        EXPECT_GT(counters.back().time.ns, asked.ns);
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
