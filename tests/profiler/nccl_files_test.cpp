// The files that NCCL writes about a host: who writes them, what of them is added to a trace, and what
// happens to those that are damaged or the user's own.
#include "profiler/nccl/nccl_files.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/profiler/memory_sink.h"
#include "tests/profiler/nccl_dumps.h"
#include "tests/traces/temporary_folder.h"

namespace shardscope::profiler {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

using Variables = std::map<std::string, std::string>;

NcclFilesOptions options_of(const Variables& environment, int rank = -1, bool writes = true) {
    return {.host = "node",
            .rank = rank,
            .writes = writes,
            .environment = [environment](const std::string& name) {
                const auto found = environment.find(name);
                return found == environment.end() ? std::nullopt : std::optional(found->second);
            }};
}

std::string own(const NcclFiles& files, const std::string& variable) {
    for (const auto& [name, value] : files.variables())
        if (name == variable) return value;
    return "";
}
void write(const std::string& path, std::string_view text) {
    std::ofstream(path, std::ios::binary) << text;
}
void write_both(const NcclFiles& files) {
    write(own(files, "NCCL_TOPO_DUMP_FILE"), testing::kNcclSystem);
    write(own(files, "NCCL_GRAPH_DUMP_FILE"), testing::kNcclGraphs);
}

// What an object adds to a trace.
struct Added {
    explicit Added(NcclFiles& files, bool ended = true) {
        testing::MemorySink sink(got);
        files.add_rows(sink, 7, ended);
        for (const auto& row : got.devices) devices.push_back(row.kind + std::to_string(row.number));
        for (const auto& row : got.topology) links.push_back(row.from + " " + row.to + " " + row.link);
        for (const auto& row : got.diagnostics) said += row.text;
    }
    testing::Received got;
    std::vector<std::string> devices, links;
    std::string said;
};

TEST(NcclFiles, AreReadAndRemoved) {
    std::string folder;
    {
        NcclFiles files(options_of({}));
        ASSERT_THAT(files.variables(), SizeIs(2));
        folder = fs::path(own(files, "NCCL_TOPO_DUMP_FILE")).parent_path();
        struct stat facts;
        ASSERT_EQ(::stat(folder.c_str(), &facts), 0);
        EXPECT_EQ(facts.st_mode & 0777, 0700u);
        Added nothing(files);
        EXPECT_THAT(nothing.devices, IsEmpty());
        EXPECT_EQ(nothing.said, "");
        write_both(files);
        const Added added(files);
        EXPECT_THAT(added.devices, UnorderedElementsAre("numa0", "gpu0", "gpu1", "infiniband0"));
        EXPECT_THAT(added.links, ElementsAre("GPU0 GPU1 NV18", "GPU0 NIC0 PIX", "GPU1 NIC0 PIX"));
        EXPECT_EQ(added.got.topology[0].source, "nccl");
        EXPECT_EQ(added.got.topology[0].host, "node");
        ASSERT_THAT(added.got.run_info, SizeIs(1));
        EXPECT_EQ(added.got.run_info[0].key, "nccl.rings.node");
        EXPECT_EQ(added.got.run_info[0].value, "0,1");
        EXPECT_EQ(added.said, "");
        EXPECT_THAT(Added(files).links, IsEmpty()) << "once";
    }
    EXPECT_FALSE(fs::exists(folder));
}

TEST(NcclFiles, AreWrittenByOneRankOfAHost) {
    EXPECT_THAT(
        NcclFiles(options_of({}, 8)).variables(),
        ElementsAre(Pair("NCCL_TOPO_DUMP_FILE", HasSubstr("/NCCL_TOPO_DUMP_FILE.xml")),
                    Pair("NCCL_TOPO_DUMP_FILE_RANK", "8"), Pair("NCCL_GRAPH_DUMP_FILE", HasSubstr("/")),
                    Pair("NCCL_GRAPH_DUMP_FILE_RANK", "8")));
    EXPECT_THAT(NcclFiles(options_of({}, 0)).variables(), SizeIs(2)) << "rank 0 writes by itself";
    EXPECT_THAT(NcclFiles(options_of({}, 9, false)).variables(), IsEmpty());
    // The user's choice of a rank is kept.
    EXPECT_THAT(NcclFiles(options_of({{"NCCL_TOPO_DUMP_FILE_RANK", "9"}}, 8)).variables(), SizeIs(3));
}

TEST(NcclFiles, OfTheUserAreReadAndLeft) {
    const traces::TemporaryFolder folder;
    const std::string topology = folder / "topo.xml", graph = folder / "graph.xml";
    const Variables named = {{"NCCL_TOPO_DUMP_FILE", topology}, {"NCCL_GRAPH_DUMP_FILE", graph}};
    {
        NcclFiles files(options_of(named));
        EXPECT_THAT(files.variables(), IsEmpty());
        write(topology, testing::kNcclSystem);
        const Added added(files);
        EXPECT_THAT(added.links, SizeIs(3));
        EXPECT_EQ(added.said, "") << "there are no graphs, which is no fault";
    }
    EXPECT_TRUE(fs::exists(topology));
    // On a disk that hosts share, it is that of the host of the rank that writes it.
    NcclFiles second(options_of(named, 1));
    NcclFiles first(options_of(named, 0));
    Variables by_rank = named;
    by_rank["NCCL_TOPO_DUMP_FILE_RANK"] = "1";
    NcclFiles chosen(options_of(by_rank, 1, false));
    EXPECT_THAT(Added(second).links, IsEmpty());
    EXPECT_THAT(Added(first).links, SizeIs(3));
    EXPECT_THAT(Added(chosen).links, SizeIs(3));
    // What was there before is of an earlier job.
    fs::last_write_time(topology, fs::file_time_type::clock::now() - std::chrono::hours(1));
    NcclFiles later(options_of(named));
    EXPECT_THAT(Added(later).links, IsEmpty());
    // One that is empty is not a name.
    EXPECT_THAT(NcclFiles(options_of({{"NCCL_TOPO_DUMP_FILE", ""}})).variables(), SizeIs(2));
}

TEST(NcclFiles, LeaveNumbersAndFactsToTheSampler) {
    NcclFiles files(options_of({}));
    write_both(files);
    Samples samples;
    for (const auto& [kind, number, name] :
         {std::tuple("gpu", 0, "NVIDIA H100"), std::tuple("infiniband", 0, "mlx5_9"),
          std::tuple("infiniband", 3, "mlx5_0"), std::tuple("ethernet", 0, "eth0")}) {
        traces::schema::DeviceRow row;
        row.kind = kind;
        row.number = number;
        row.name = name;
        samples.devices.push_back(row);
    }
    traces::schema::TopologyRow link;
    link.from = "GPU1";
    link.to = "GPU0";
    link.link = "NV18";
    samples.topology.push_back(link);
    files.know(samples);
    const Added added(files);
    EXPECT_THAT(added.devices, ElementsAre("numa0"));
    EXPECT_THAT(added.links, ElementsAre("GPU0 NIC3 PIX", "GPU1 NIC3 PIX"));
    // An adapter that the host does not have is none of its.
    NcclFiles others(options_of({}));
    write_both(others);
    samples.devices.erase(samples.devices.begin() + 2);
    samples.topology[0].link.clear();  // the driver has the pair, and does not know its link
    others.know(samples);
    EXPECT_THAT(Added(others).links, ElementsAre("GPU0 GPU1 NV18"));
}

// --- files that cannot be used ---------------------------------------------------------------------------

TEST(NcclFiles, ThatAreDamagedAreOneSentence) {
    const std::string whole = testing::kNcclSystem;
    const std::map<std::string, std::string> damaged = {
        {whole.substr(0, whole.size() / 2), "it, line"},
        {"not XML at all", "it, line 1"},
        {"<graphs version=\"1\"></graphs>", "it has no ring"},
        {"<html></html>", "is neither a system nor graphs"},
        {"<!DOCTYPE x [<!ENTITY a \"b\">]><system>&a;</system>", "a document type is not allowed"},
        {std::string(std::size_t{17} << 20, ' '), "it is larger than 16 MiB"},
    };
    for (const auto& [text, why] : damaged) {
        NcclFiles files(options_of({}));
        write_both(files);
        write(own(files, "NCCL_TOPO_DUMP_FILE"), text);
        // The other file is not affected, and while NCCL may still write, nothing is said.
        const Added early(files, false);
        EXPECT_EQ(early.said, "");
        EXPECT_THAT(early.got.run_info, SizeIs(1));
        const Added added(files);
        EXPECT_THAT(added.said, HasSubstr("what NCCL wrote for NCCL_TOPO_DUMP_FILE is omitted: it"));
        EXPECT_THAT(added.said, HasSubstr(why));
        EXPECT_THAT(added.got.diagnostics, SizeIs(1));
        EXPECT_THAT(added.devices, IsEmpty());
        write(own(files, "NCCL_TOPO_DUMP_FILE"), whole);
        EXPECT_THAT(Added(files).links, SizeIs(3)) << "it is whole now";
    }
}

// The graph is read first.
TEST(NcclFiles, OfADamagedGraphTheSystemIsKept) {
    NcclFiles files(options_of({}));
    write_both(files);
    write(own(files, "NCCL_GRAPH_DUMP_FILE"), "<graphs version=");
    const Added added(files);
    EXPECT_THAT(added.said, HasSubstr("what NCCL wrote for NCCL_GRAPH_DUMP_FILE is omitted: it"));
    EXPECT_THAT(added.links, SizeIs(3));
}

TEST(NcclFiles, ThatAreNotFilesAreNotOpened) {
    NcclFiles files(options_of({}));
    const std::string path = own(files, "NCCL_TOPO_DUMP_FILE");
    fs::create_symlink("/etc/hostname", path);
    EXPECT_THAT(Added(files).said, HasSubstr("it cannot be read as a file"));
    fs::remove(path);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);  // which would wait for a writer
    EXPECT_THAT(Added(files).said, HasSubstr("it cannot be read as a file"));
    fs::remove(path);
    fs::create_directory(path);
    EXPECT_THAT(Added(files).said, HasSubstr("it cannot be read as a file"));
}

TEST(NcclFiles, AreRefusedWithMoreThan256Devices) {
    std::string many = "<system version=\"1\"><cpu numaid=\"0\">";
    for (int gpu = 0; gpu < 300; ++gpu) many += "<pci><gpu dev=\"" + std::to_string(gpu) + "\"/></pci>";
    NcclFiles files(options_of({}));
    write(own(files, "NCCL_TOPO_DUMP_FILE"), many + "</cpu></system>");
    const Added added(files);
    EXPECT_THAT(added.said, HasSubstr("it has more than 256 devices"));
    EXPECT_THAT(added.links, IsEmpty());
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
