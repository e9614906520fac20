// The counters and limits of a host, from a /proc and a /sys that the test plays.
#include "profiler/sampler/machine_counters.h"

#include <cmath>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/profiler/sampler/played_files.h"

namespace shardscope::profiler {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::map<std::string, std::string> facts_of(const SystemFiles& files) {
    std::map<std::string, std::string> facts;
    for (const traces::schema::RunInfoRow& fact : host_facts(files, "here")) facts[fact.key] = fact.value;
    return facts;
}

void write_stat(const PlayedFiles& played, int user, int idle) {
    played.write("/proc/stat", "cpu  " + std::to_string(user) + " 10 20 " + std::to_string(idle) +
                                   " 999 3 4 50 0 0\ncpu0 1 1 1 1 1 1 1 0 0 0\n");
}

TEST(MachineCounters, are_what_changed_since_the_last_sample) {
    const PlayedFiles played;
    write_stat(played, 1000, 5000);
    played.write("/proc/meminfo", "MemTotal:  4096 kB\nMemFree: 1 kB\nMemAvailable:    1024 kB\n");
    played.write("/proc/vmstat", "nr_free_pages 5\npswpin 100\npswpout 200\n");
    MachineCounters machine(played.files());
    Samples samples;
    machine.sample(samples);
    EXPECT_TRUE(std::isnan(value_of(samples, "host_cpu_cores")));  // a rate needs two readings
    EXPECT_EQ(value_of(samples, "host_memory_available_bytes"), 1 << 20);
    machine.sample(samples);
    write_stat(played, 1000 + static_cast<int>(::sysconf(_SC_CLK_TCK)), 9000);
    played.write("/proc/vmstat", "nr_free_pages 5\npswpin 103\npswpout 200\n");
    machine.sample(samples);
    EXPECT_NEAR(counted(samples, "host_cpu_cores"), 1, 1e-6);  // second of a processor
    EXPECT_NEAR(counted(samples, "host_swap_in_bytes_per_second"),
                3 * static_cast<double>(::sysconf(_SC_PAGESIZE)), 1e-3);
    EXPECT_EQ(value_of(samples, "host_swap_out_bytes_per_second"), 0);
    EXPECT_THAT(samples.notes, ElementsAre());
}

TEST(MachineCounters, say_once_what_they_cannot_read) {
    const PlayedFiles played;
    played.write("/proc/meminfo", "MemAvailable:    1024 kB\n");
    MachineCounters machine(played.files());
    Samples samples;
    for (int i = 0; i < 3; ++i) machine.sample(samples);
    ASSERT_EQ(samples.notes.size(), 2u);
    EXPECT_EQ(samples.notes[0].text,
              "the use of the host's processors is not recorded: /proc/stat cannot be read: No such file or "
              "directory");
    EXPECT_THAT(samples.notes[1].text, HasSubstr("/proc/vmstat"));
    EXPECT_EQ(samples.counters.size(), 3u);
}

TEST(MachineCounters, do_not_take_other_texts_for_numbers) {
    const PlayedFiles played;
    played.write("/proc/stat", "intr 1 2 3\n");
    played.write("/proc/meminfo", "");
    played.write("/proc/vmstat", "pswpin many\npswpout\n");
    MachineCounters machine(played.files());
    Samples samples;
    for (int i = 0; i < 2; ++i) machine.sample(samples);
    EXPECT_TRUE(samples.counters.empty());
    EXPECT_TRUE(samples.notes.empty());
}

TEST(ControlGroup, of_version_2_has_the_lowest_limit_above_it) {
    const PlayedFiles played;
    const std::string tree = "/sys/fs/cgroup";
    played.write("/proc/self/cgroup", "0::/slurm/job_7/step_0\n");
    played.write(tree + "/cgroup.controllers", "cpu memory\n");
    played.write(tree + "/slurm/job_7/step_0/cpu.max", "max 100000\n");
    played.write(tree + "/slurm/job_7/step_0/memory.max", "max\n");
    played.write(tree + "/slurm/job_7/cpu.max", "250000 100000\n");
    played.write(tree + "/slurm/job_7/memory.max", "1073741824\n");
    played.write(tree + "/slurm/cpu.max", "6400000 100000\n");
    played.write(tree + "/slurm/memory.max", "8589934592\n");
    const ControlGroup group = control_group(played.files());
    EXPECT_EQ(group.cpu_cores, 2.5);
    EXPECT_EQ(group.memory_bytes, 1 << 30);
    EXPECT_EQ(group.cpu_statistics, tree + "/slurm/job_7/cpu.stat");

    const auto write_periods = [&](int all, int throttled) {
        played.write(group.cpu_statistics, "usage_usec 5\nnr_periods " + std::to_string(all) +
                                               "\nnr_throttled " + std::to_string(throttled) + "\n");
    };
    MachineCounters machine(played.files());
    Samples samples;
    write_periods(100, 50);
    machine.sample(samples);
    EXPECT_TRUE(std::isnan(value_of(samples, "cgroup_throttled_percent")));
    write_periods(104, 51);
    machine.sample(samples);
    EXPECT_EQ(value_of(samples, "cgroup_throttled_percent"), 25);
    machine.sample(samples);  // nothing ran
    EXPECT_EQ(value_of(samples, "cgroup_throttled_percent"), 0);
}

TEST(ControlGroup, of_a_container_begins_at_the_mount) {
    const PlayedFiles played;
    played.write("/proc/self/cgroup", "0::/docker/0123456789ab\n");
    played.write("/sys/fs/cgroup/cpu.max", "50000 100000\n");
    EXPECT_EQ(control_group(played.files()).cpu_cores, 0.5);
}

TEST(ControlGroup, of_version_1_has_a_tree_for_each_controller) {
    const PlayedFiles played;
    played.write("/proc/self/cgroup",
                 "5:memory:/job\n4:cpuset:/\n3:cpu,cpuacct:/job\n1:name=systemd:/\n0::/\n");
    played.write("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "300000\n");
    played.write("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
    played.write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    played.write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    played.write("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2147483648\n");
    played.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    const ControlGroup group = control_group(played.files());
    EXPECT_EQ(group.cpu_cores, 3);
    EXPECT_EQ(group.memory_bytes, std::int64_t{1} << 31);
    EXPECT_EQ(group.cpu_statistics, "/sys/fs/cgroup/cpu/job/cpu.stat");
}

TEST(ControlGroup, without_limits_or_with_nonsense_has_none) {
    const PlayedFiles played;
    played.write("/proc/self/cgroup", "nonsense\n0::\n1:cpu\n0::relative\n0::/\n");
    played.write("/sys/fs/cgroup/cpu.max", "0 0\n");
    played.write("/sys/fs/cgroup/memory.max", "-5\n");
    const ControlGroup group = control_group(played.files());
    EXPECT_FALSE(group.cpu_cores);
    EXPECT_FALSE(group.memory_bytes);
    EXPECT_EQ(group.cpu_statistics, "");
}

TEST(HostFacts, are_its_size_and_its_limits) {
    const PlayedFiles played;
    EXPECT_TRUE(facts_of(played.files()).empty());
    played.write("/sys/devices/system/cpu/online", "0-31,64-95\n");
    played.write("/proc/meminfo", "MemTotal:  1024 kB\n");
    EXPECT_THAT(facts_of(played.files()),
                ElementsAre(Pair("host.here.cpus", "64"), Pair("host.here.memory_bytes", "1048576")));
    played.write("/proc/self/cgroup", "0::/\n");
    played.write("/sys/fs/cgroup/cpu.max", "250000 100000\n");
    played.write("/sys/fs/cgroup/memory.max", "4096\n");
    EXPECT_THAT(facts_of(played.files()),
                AllOf(::testing::Contains(Pair("host.here.cpu_limit_cores", "2.5")),
                      ::testing::Contains(Pair("host.here.memory_limit_bytes", "4096"))));
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
