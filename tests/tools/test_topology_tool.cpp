// info --topology and topology of the real shardscope-trace: a paste alone, and a paste added to a trace.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/trace_tool.h"
#include "tests/traces/outcome.h"
#include "tests/traces/part_files.h"
#include "tests/traces/topology_tables.h"

namespace shardscope::tools {
namespace TEST_FILE {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class TopologyTool : public TraceToolTest {
  protected:
    std::string part(std::vector<std::int64_t> ranks, const std::string& host) const {
        traces::PartSpec spec;
        spec.path = folder_ / ("on_" + host + ".sqlite");
        spec.ranks.assign(ranks.begin(), ranks.end());
        spec.host = host;
        return traces::write_part(spec);
    }
    std::string links() const { return file("topo.txt", std::string(traces::kFourGpus)); }
    std::string reads() const {
        return file("p2p.txt", "$ nvidia-smi topo -p2p r\n" + std::string(traces::kNeighbours) +
                                   "\n$ nvidia-smi topo -p2p w\n" + std::string(traces::kNeighbours));
    }
    std::string out() const { return folder_ / "out.sqlite"; }
    // The names of the files in the folder, which a failure must not add to.
    std::size_t files() const {
        return static_cast<std::size_t>(
            std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
    }
};

TEST_F(TopologyTool, HelpSaysWhatToPaste) {
    EXPECT_THAT(text_of({"topology", "--help"}),
                AllOf(HasSubstr("--from"), HasSubstr("--host"), HasSubstr("nvidia-smi topo -m")));
    EXPECT_THAT(text_of({"info", "--help"}), AllOf(HasSubstr("--topology"), HasSubstr("OUT.svg")));
}

TEST_F(TopologyTool, PrintsAPasteAloneAsTextJsonAndPicture) {
    EXPECT_THAT(text_of({"info", "--topology", links()}),
                AllOf(HasSubstr("GPU2  SYS   SYS   X     NV4   SYS   PHB   16-31,48-63   1\n"),
                      HasSubstr("NIC0: mlx5_0"), Not(HasSubstr("Traffic"))));
    const json result = json_of({"info", "--topology", reads()});
    EXPECT_EQ(result["hosts"][0]["links"][0]["read"], "OK");
    EXPECT_EQ(result["hosts"][0]["links"][0]["link"], json());
    EXPECT_THAT(result["pairs"], IsEmpty());
    const std::string svg = folder_ / "topo.svg";
    EXPECT_EQ(tool({"info", "--topology", links(), "-o", svg}).status, 0);
    EXPECT_THAT(traces::bytes_of(svg), AllOf(HasSubstr("<svg "), HasSubstr("NV4"), HasSubstr("</svg>")));
    expect_refused({"info", "--topology", links(), "-o", svg}, 2, "--overwrite");
    EXPECT_EQ(tool({"info", "--topology", links(), "-o", svg, "--overwrite"}).status, 0);
}

TEST_F(TopologyTool, AddsPastesToACopyOfATrace) {
    const std::string trace = part({0, 1}, "node0"), before = traces::bytes_of(trace);
    const std::string first = folder_ / "first.sqlite";
    EXPECT_EQ(tool({"topology", trace, "--from", links(), "-o", first}).status, 0);
    EXPECT_EQ(tool({"topology", first, "--from", reads(), "-o", out()}).status, 0);
    EXPECT_EQ(traces::bytes_of(trace), before);
    const std::string text = text_of({"info", "--topology", out()});
    EXPECT_THAT(text,
                AllOf(HasSubstr("Host node0"), HasSubstr("GPU0  X     NV4"), HasSubstr("-p2p r"),
                      HasSubstr("-p2p w"), HasSubstr("GPU3  CNS   CNS   OK    X\n"), HasSubstr("Traffic")));
    EXPECT_EQ(tool({"check", out()}).status, tool({"check", trace}).status);
    EXPECT_EQ(json_of({"info", out()})["counts"], json_of({"info", trace})["counts"]);
    const std::string page = folder_ / "page.html";
    EXPECT_EQ(tool({"report", out(), "-o", page, "--redact"}).status, 0);
    EXPECT_THAT(traces::bytes_of(page),
                AllOf(HasSubstr("class=\"topology\""), HasSubstr(">CNS<"), Not(HasSubstr("node0"))));
    // A later paste replaces what it states, and nothing else.
    const std::string other = file("other.txt", "\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tPIX\t X \n");
    EXPECT_EQ(tool({"topology", out(), "--from", other, "-o", out() + "2"}).status, 0);
    const json replaced = json_of({"info", "--topology", out() + "2"})["hosts"][0]["links"][0];
    EXPECT_EQ(replaced["link"], "PIX");
    EXPECT_EQ(replaced["lanes"], json());
    EXPECT_EQ(replaced["read"], "OK");
}

TEST_F(TopologyTool, AsksForTheHostWhereThereAreSeveral) {
    const std::string merged = folder_ / "merged.sqlite", text = links();
    EXPECT_EQ(tool({"merge", part({0}, "node0"), part({1}, "node1"), "-o", merged}).status, 0);
    expect_refused({"topology", merged, "--from", text, "-o", out()}, 2,
                   "has the hosts node0, node1; say of which");
    expect_refused({"topology", merged, "--from", text, "--host", "node7", "-o", out()}, 2,
                   "has no host node7");
    EXPECT_EQ(
        tool({"topology", merged, "--from", text, "--host", "node0", "--host", "node1", "-o", out()}).status,
        0);
    const json hosts = json_of({"info", "--topology", out()})["hosts"];
    ASSERT_EQ(hosts.size(), 2u);
    EXPECT_EQ(hosts[1]["host"], "node1");
    EXPECT_EQ(hosts[0]["links"].size(), hosts[1]["links"].size());
    // What was printed of both hosts names them itself.
    const std::string printed = file("printed.txt", text_of({"info", "--topology", out()}));
    expect_refused({"topology", merged, "--from", printed, "--host", "node0", "-o", out() + "2"}, 2,
                   "leave --host out");
    EXPECT_EQ(tool({"topology", merged, "--from", printed, "-o", out() + "2"}).status, 0);
    EXPECT_EQ(json_of({"info", "--topology", out() + "2"})["hosts"], hosts);
}

TEST_F(TopologyTool, MergedPartsKeepTheTopologyOfTheirHosts) {
    const std::string text = links(), first = folder_ / "first.sqlite", second = folder_ / "second.sqlite";
    EXPECT_EQ(tool({"topology", part({0}, "node0"), "--from", text, "-o", first}).status, 0);
    EXPECT_EQ(tool({"topology", part({1}, "node1"), "--from", text, "-o", second}).status, 0);
    EXPECT_EQ(tool({"merge", first, second, "-o", out()}).status, 0);
    EXPECT_EQ(json_of({"info", "--topology", out()})["hosts"].size(), 2u);
    const std::string slice = folder_ / "slice.sqlite";
    EXPECT_EQ(tool({"slice", out(), "--rank", "0", "-o", slice}).status, 0);
    const json kept = json_of({"info", "--topology", slice})["hosts"];
    ASSERT_EQ(kept.size(), 2u);
    EXPECT_EQ(kept[1]["links"], json_of({"info", "--topology", out()})["hosts"][1]["links"]);
}

TEST_F(TopologyTool, OneSentenceRefusesWhatCannotBeRead) {
    const std::string trace = part({0}, "node0"), text = links();
    const std::string broken = file("broken.txt", "\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV\t X \n");
    const std::size_t before = files();
    expect_refused({"topology", trace, "--from", broken, "-o", out()}, 1,
                   "broken.txt, line 3: \"NV\" is neither");
    expect_refused({"info", "--topology", broken}, 1, "broken.txt, line 3: \"NV\" is neither");
    expect_refused({"topology", trace, "--from", folder_ / "none.txt", "-o", out()}, 2, "none.txt");
    expect_refused({"topology", trace, "-o", out()}, 2, "--from");
    expect_refused({"topology", text, "--from", text, "-o", out()}, 2, "is not a database");
    expect_refused({"topology", trace, "--from", text, "-o", trace}, 2, "--overwrite");
    expect_refused({"topology", trace, "--from", text, "--overwrite", "-o", trace}, 1,
                   "both read and written");
    expect_refused({"topology", trace, "--from", text, "-o", folder_ / "no/such/out.sqlite"}, 2, "no/such");
    expect_refused({"info", trace, "-o", folder_ / "x.svg"}, 2, "--topology");
    EXPECT_EQ(files(), before);
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
