#include "traces/store/plan/plan_parts.h"

#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::store {

void store_plan_parts(const std::string& path, std::span<const PlanPart> parts) {
    Database database(path, Database::Mode::read_write);
    database.execute("BEGIN");
    {
        Statement insert(database,
                         "INSERT INTO SHARD_PLAN_PARTS(number, part, stage, devices, offloaded, parameters, "
                         "stage0, stage1, stage2, stage3, formula, simulated, categories) "
                         "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
        for (const PlanPart& part : parts) {
            int column = 0;
            insert.bind(++column, std::int64_t{part.number});
            insert.bind(++column, part.part);
            insert.bind(++column, std::int64_t{part.stage});
            insert.bind(++column, std::int64_t{part.devices});
            insert.bind(++column, std::int64_t{part.offloaded});
            insert.bind(++column, part.parameters);
            for (const double bytes :
                 {part.by_stage[0], part.by_stage[1], part.by_stage[2], part.by_stage[3], part.formula}) {
                ++column;
                part.known ? insert.bind(column, bytes) : insert.bind_null(column);
            }
            insert.bind(++column, part.simulated);
            insert.bind(++column, part.categories);
            insert.run();
        }
    }
    database.execute("COMMIT");
    database.close();
}

std::vector<PlanPart> load_plan_parts(const std::string& path) {
    std::vector<PlanPart> parts;
    try {
        Database database(path, Database::Mode::read_only);
        if (!database.has_table("SHARD_PLAN_PARTS")) return parts;
        Statement rows(
            database,
            "SELECT number, part, stage, devices, offloaded, parameters, formula, simulated, "
            "categories, stage0, stage1, stage2, stage3 FROM SHARD_PLAN_PARTS ORDER BY number, rowid");
        while (rows.step()) {
            PlanPart& part = parts.emplace_back();
            part.number = static_cast<int>(rows.integer_or(0, 0));
            part.part = rows.text(1);
            part.stage = static_cast<int>(rows.integer_or(2, 0));
            part.devices = static_cast<int>(rows.integer_or(3, 1));
            part.offloaded = rows.integer_or(4, 0) != 0;
            part.parameters = rows.integer_or(5, 0);
            part.known = !rows.is_null(6);
            part.formula = part.known ? rows.real(6) : 0;
            part.simulated = rows.is_null(7) ? 0 : rows.real(7);
            part.categories = rows.text(8);
            for (std::size_t z = 0; z < kZeroStages; ++z) {
                const int column = 9 + static_cast<int>(z);
                part.by_stage[z] = rows.is_null(column) ? 0 : rows.real(column);
            }
        }
    } catch (const StoreError&) {
        parts.clear();  // the rows of the plan are shown without them
    }
    return parts;
}

}  // namespace shardscope::traces::store
