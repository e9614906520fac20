// Every column of every table must declare what its values refer to; otherwise merge and slice would copy ids
// unchanged.
#include "traces/schema/column_roles.h"

#include <gtest/gtest.h>

namespace shardscope::traces::schema {
namespace TEST_FILE {

ColumnRole role(std::string_view table, std::string_view name) {
    for (const SchemaColumn& column : find_table(table)->columns) {
        if (column.name == name) return column_role(table, column);
    }
    throw std::runtime_error("no such column");
}

TEST(ColumnRoles, AreDecidedForEveryColumnOfEveryTable) {
    for (const auto tables : {nsight_tables(), shard_tables()}) {
        for (const SchemaTable& table : tables) {
            if (table_role(table) == TableRole::made) continue;
            for (const SchemaColumn& column : table.columns) {
                EXPECT_TRUE(is_decided(table.name, column))
                    << table.name << "." << column.name << ": state its role in column_roles.cpp";
            }
        }
    }
}

TEST(ColumnRoles, AskForADecisionWhereTheUnitIsAnId) {
    EXPECT_FALSE(is_decided("A_NEW_TABLE", {"newId", "INTEGER", "id", "Nobody knows."}));
    EXPECT_FALSE(is_decided("A_NEW_TABLE", {"when", "INTEGER", "ns", "Nobody knows."}));
    EXPECT_TRUE(is_decided("A_NEW_TABLE", {"bytes", "INTEGER", "bytes", "A size."}));
    EXPECT_TRUE(is_decided("A_NEW_TABLE", {"correlationId", "INTEGER", "id", "As everywhere."}));
}

TEST(ColumnRoles, KnowTheExceptions) {
    EXPECT_EQ(role("SHARD_RANKS", "rank"), ColumnRole::rank);
    EXPECT_EQ(role("SHARD_NCCL_OPERATIONS", "rank"), ColumnRole::kept);
    EXPECT_EQ(role("SHARD_MODULES", "id"), ColumnRole::module);
    EXPECT_EQ(role("TARGET_INFO_GPU", "id"), ColumnRole::device);
    EXPECT_EQ(role("NVTX_EVENTS", "int64Value"), ColumnRole::module_payload);
    EXPECT_EQ(role("NVTX_EVENTS", "category"), ColumnRole::kept);
}

TEST(TableRoles, DistinguishEventsFromFacts) {
    EXPECT_EQ(table_role(*find_table("CUPTI_ACTIVITY_KIND_KERNEL")), TableRole::events);
    EXPECT_EQ(table_role(*find_table("SHARD_COLLECTIVES")), TableRole::events);
    EXPECT_EQ(table_role(*find_table("SHARD_RANKS")), TableRole::facts);
    EXPECT_EQ(table_role(*find_table("StringIds")), TableRole::made);
    EXPECT_EQ(table_role(*find_table("ENUM_CUDA_MEMCPY_OPER")), TableRole::made);
    EXPECT_EQ(table_role(*find_table("SHARD_ENUM_PHASE")), TableRole::made);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::schema
