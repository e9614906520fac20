// The schema exists once: SQL, the enums in code and docs/schema.md must agree.
#include "traces/schema/schema.h"

#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/outcome.h"
#include "tests/traces/temporary_folder.h"
#include "traces/schema/communication_kernels.h"
#include "traces/schema/enums.h"
#include "traces/store/sqlite/sqlite.h"
#include "traces/store/write/writer.h"

namespace shardscope::traces::schema {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

// An empty trace that is open.
class EmptyTrace : public ::testing::Test {
  protected:
    EmptyTrace() : path_(folder_ / "empty.sqlite") {
        store::DatabaseWriter({.path = path_}).finish(0, 0);
        database_.emplace(path_, store::Database::Mode::read_only);
    }
    std::vector<std::string> columns_of(std::string_view table) {
        std::vector<std::string> names;
        store::Statement statement(*database_, "SELECT name FROM pragma_table_info(?1) ORDER BY cid");
        statement.bind(1, table);
        while (statement.step()) names.emplace_back(statement.text(0));
        return names;
    }
    static std::vector<std::string> names(std::span<const SchemaColumn> columns) {
        std::vector<std::string> result;
        for (const SchemaColumn& c : columns) result.emplace_back(c.name);
        return result;
    }

    TemporaryFolder folder_;
    std::string path_;
    std::optional<store::Database> database_;
};

TEST_F(EmptyTrace, CarriesTheVersions) {
    EXPECT_EQ(database_->integer("PRAGMA user_version"), kSchemaVersion);
    EXPECT_EQ(database_->integer("PRAGMA application_id"), kApplicationId);
    EXPECT_EQ(
        database_->integer("SELECT count(*) FROM META_DATA_EXPORT WHERE name = 'EXPORT_SCHEMA_VERSION' AND "
                           "value = '3.25.0'"),
        1);
    EXPECT_EQ(
        database_->integer("SELECT value FROM META_DATA_EXPORT WHERE name = 'EXPORT_SCHEMA_VERSION_MINOR'"),
        25);
}

TEST_F(EmptyTrace, HasEveryTableWithItsColumns) {
    for (const auto tables : {nsight_tables(), nsight_enums(), shard_tables(), shard_enums()}) {
        for (const SchemaTable& table : tables) {
            EXPECT_EQ(columns_of(table.name), names(table.columns)) << table.name;
            EXPECT_EQ(find_table(table.name), &table);
        }
    }
    EXPECT_EQ(find_table("nothing"), nullptr);
}

TEST_F(EmptyTrace, HasEveryViewWithItsColumnsAndTheRank) {
    for (const SchemaView& view : views()) {
        EXPECT_EQ(columns_of(view.name), names(view.columns)) << view.name;
        EXPECT_EQ(view.columns[0].name, "rank") << view.name;
        store::Statement statement(*database_, "SELECT * FROM " + std::string(view.name));
        EXPECT_FALSE(statement.step()) << view.name << " of an empty trace has rows";
    }
}

TEST_F(EmptyTrace, HasTheColumnsThatScriptsForNsightExportsUse) {
    EXPECT_THAT(
        columns_of("CUPTI_ACTIVITY_KIND_KERNEL"),
        IsSupersetOf({"start", "end", "deviceId", "contextId", "greenContextId", "streamId", "correlationId",
                      "globalPid", "demangledName", "shortName", "mangledName", "registersPerThread", "gridX",
                      "blockX", "staticSharedMemory", "graphNodeId", "clusterX"}));
    EXPECT_THAT(columns_of("NVTX_EVENTS"),
                IsSupersetOf({"start", "end", "eventType", "rangeId", "text", "textId", "domainId",
                              "globalTid", "endGlobalTid", "jsonText", "binaryData"}));
    EXPECT_THAT(columns_of("ENUM_CUDA_MEMCPY_OPER"), ElementsAre("id", "name", "label"));
    EXPECT_EQ(database_->integer("SELECT id FROM ENUM_NSYS_EVENT_TYPE WHERE name = 'NvtxPushPopRange'"),
              kNvtxPushPop);
    EXPECT_EQ(database_->integer("SELECT id FROM ENUM_CUDA_MEMCPY_OPER WHERE label = 'Host-to-Device'"),
              kCopyHostToDevice);
    EXPECT_EQ(database_->integer("SELECT id FROM ENUM_CUDA_MEM_KIND WHERE label = 'Pinned'"), kMemKindPinned);
    EXPECT_EQ(database_->integer("SELECT id FROM ENUM_CUPTI_SYNC_TYPE WHERE label = 'Stream sync'"),
              kSyncStream);
    EXPECT_EQ(database_->integer("SELECT count(*) FROM CUDA_GRAPH_NODE_EVENTS"), 0);
}

TEST_F(EmptyTrace, NamesTheValuesAsTheCodeDoes) {
    const auto expect_names = [&](const std::string& table, auto all_names) {
        for (std::size_t i = 0; i < all_names.size(); ++i) {
            store::Statement statement(*database_, "SELECT name FROM " + table + " WHERE id = ?1");
            statement.bind(1, static_cast<std::int64_t>(i));
            ASSERT_TRUE(statement.step()) << table << " " << i;
            EXPECT_EQ(statement.text(0), all_names[i]);
        }
        EXPECT_EQ(database_->integer("SELECT count(*) FROM " + table),
                  static_cast<std::int64_t>(all_names.size()));
    };
    expect_names("SHARD_ENUM_CATEGORY", kMemoryCategoryNames);
    expect_names("SHARD_ENUM_SPACE", kMemorySpaceNames);
    expect_names("SHARD_ENUM_PHASE", kPhaseNames);
    expect_names("SHARD_ENUM_OPERATION", kOperationNames);
    expect_names("SHARD_ENUM_PART", kPredictionPartNames);
}

TEST_F(EmptyTrace, IsIndexedOnceFinished) {
    EXPECT_EQ(
        database_->integer("SELECT count(*) FROM sqlite_master WHERE type = 'index' AND name LIKE '%.%'"),
        static_cast<std::int64_t>(indexes().size()));
    for (const SchemaIndex& index : indexes())
        EXPECT_THAT(columns_of(index.table), IsSupersetOf({index.column}));
}

TEST(Schema, DocumentsEveryColumnOnce) {
    std::set<std::string_view> seen;
    for (const auto tables : {nsight_tables(), nsight_enums(), shard_tables(), shard_enums()}) {
        for (const SchemaTable& table : tables) {
            EXPECT_TRUE(seen.insert(table.name).second) << table.name << " is defined twice";
            EXPECT_FALSE(table.meaning.empty()) << table.name;
            for (const SchemaColumn& c : table.columns)
                EXPECT_FALSE(c.meaning.empty()) << table.name << "." << c.name;
        }
    }
    for (const SchemaView& view : views()) {
        EXPECT_TRUE(seen.insert(view.name).second) << view.name << " is defined twice";
        for (const SchemaColumn& c : view.columns) {
            EXPECT_FALSE(c.meaning.empty()) << view.name << "." << c.name;
            EXPECT_EQ(c.name.ends_with("_ns"), c.unit == "ns") << view.name << "." << c.name;
        }
    }
}

class CommunicationKernels : public EmptyTrace {};

TEST_F(CommunicationKernels, AreTheSameInCodeAndInSql) {
    const auto in_sql = [&](std::string_view kernel) {
        store::Statement row(*database_,
                             "SELECT " + communication_kernel_sql("name") + " FROM (SELECT ?1 AS name)");
        row.bind(1, kernel);
        EXPECT_TRUE(row.step());
        return row.integer(0) != 0;
    };
    for (const std::string_view kernel :
         {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
          "void rcclGenericKernel<1>(ncclDevKernelArgs4K)", "void ncclKernel_AllReduce<float>",
          "rccl_main_kernel", "mscclKernel_Sum_float_LL", "oneccl_allreduce_kernel",
          "void oneapi::ccl::allreduce", "hcom_allReduce__844_0", "mtia_hccl_all_gather"}) {
        EXPECT_TRUE(is_communication_kernel(kernel)) << kernel;
        EXPECT_TRUE(in_sql(kernel)) << kernel;
    }
    for (const std::string_view kernel : {"gemm", "NCCL", "my_nccl_like", "void reduce_kernel<512>", ""}) {
        EXPECT_FALSE(is_communication_kernel(kernel)) << kernel;
        EXPECT_FALSE(in_sql(kernel)) << kernel;
    }
}

// "a kernel whose name starts with `a` or `b`, or contains `c` or `d`".
TEST_F(CommunicationKernels, AreThoseThatTheDefinitionsName) {
    std::vector<std::string> names[2];
    for (const KernelNamePattern& pattern : kCommunicationKernelNames)
        names[pattern.anywhere ? 1 : 0].push_back("`" + std::string(pattern.text) + "`");
    const auto listed = [](const std::vector<std::string>& all) {
        std::string text;
        for (std::size_t i = 0; i < all.size(); ++i)
            text += (i == 0 ? "" : i + 1 == all.size() ? " or " : ", ") + all[i];
        return text;
    };
    EXPECT_THAT(bytes_of(SHARDSCOPE_DEFINITIONS_PAGE),
                HasSubstr("a kernel whose name starts with " + listed(names[0]) + ", or contains " +
                          listed(names[1]) + " |"));
}

// docs/schema.md is generated from the schema. To update it: SHARDSCOPE_UPDATE_DOCS=1 and run this test.
TEST(SchemaPage, AgreesWithTheSchema) {
    if (std::getenv("SHARDSCOPE_UPDATE_DOCS") != nullptr)
        std::ofstream(SHARDSCOPE_SCHEMA_PAGE) << schema_markdown();
    EXPECT_TRUE(bytes_of(SHARDSCOPE_SCHEMA_PAGE) == schema_markdown())
        << "docs/schema.md is out of date: run this test with SHARDSCOPE_UPDATE_DOCS=1 and commit the page";
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::schema
