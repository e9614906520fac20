// The memory of a plan's rows by formula: what is stored is read back, and files without it are valid.
#include "traces/store/plan/plan_parts.h"

#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/traces/temporary_folder.h"
#include "traces/store/error.h"
#include "traces/store/sqlite/sqlite.h"
#include "traces/store/write/writer.h"

namespace shardscope::traces::store {
namespace TEST_FILE {

class PlanParts : public testing::Test {
  protected:
    std::string plan() const {
        const std::string path = folder_ / "plan.sqlite";
        DatabaseWriter writer({.path = path});
        schema::PlanRow row;
        row.number = 7;
        row.outcome = "fits";
        row.settings = "{}";
        writer.add(row);
        writer.finish(0, 0);
        return path;
    }
    TemporaryFolder folder_;
};

TEST_F(PlanParts, ComeBackAsTheyWereStored) {
    const std::string path = plan();
    PlanPart model{
        .number = 7, .part = "model", .stage = 3, .devices = 8, .offloaded = true, .parameters = 1'000};
    model.known = true;
    model.by_stage = {2'000, 2'000, 2'000, 250};
    model.formula = 0;
    model.simulated = 12'345;
    model.categories = "parameters, communication";
    const PlanPart unknown{.number = 7, .part = "activations", .simulated = 99, .categories = "activations"};
    store_plan_parts(path, std::vector<PlanPart>{model, unknown});
    const std::vector<PlanPart> parts = load_plan_parts(path);
    ASSERT_EQ(parts.size(), 2U);
    EXPECT_EQ(parts[0].part, "model");
    EXPECT_EQ(parts[0].stage, 3);
    EXPECT_EQ(parts[0].devices, 8);
    EXPECT_TRUE(parts[0].offloaded);
    EXPECT_EQ(parts[0].parameters, 1'000);
    EXPECT_TRUE(parts[0].known);
    EXPECT_EQ(parts[0].by_stage, model.by_stage);
    EXPECT_EQ(parts[0].formula, 0);
    EXPECT_EQ(parts[0].simulated, 12'345);
    EXPECT_EQ(parts[0].categories, "parameters, communication");
    EXPECT_FALSE(parts[1].known);
    EXPECT_EQ(parts[1].simulated, 99);
}

TEST_F(PlanParts, FilesWithoutThemAreValid) {
    const std::string path = plan(), text = folder_ / "text.sqlite";
    EXPECT_TRUE(load_plan_parts(path).empty());
    {
        Database database(path, Database::Mode::read_write);
        database.execute("DROP TABLE SHARD_PLAN_PARTS");
    }
    EXPECT_TRUE(load_plan_parts(path).empty()) << "of an earlier version";
    std::ofstream(text) << "no database\n";
    EXPECT_TRUE(load_plan_parts(text).empty());
    EXPECT_TRUE(load_plan_parts(folder_ / "gone.sqlite").empty());
    EXPECT_TRUE(load_plan_parts("").empty());
}

TEST_F(PlanParts, AMissingFileIsRefused) {
    EXPECT_THROW(store_plan_parts(folder_ / "gone.sqlite", {}), StoreError);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::store
