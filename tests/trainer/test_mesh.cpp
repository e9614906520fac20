// The mesh: which ranks are in which group, and the numbers of their communicators.
#include <array>
#include <cstdlib>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "trainer/plan/builder.h"
#include "trainer/plan/mesh.h"

namespace shardscope::trainer::plan {
namespace TEST_FILE {

constexpr std::array kGroups = {Group::world, Group::shard,    Group::replicate, Group::tensor,
                                Group::data,  Group::pipeline, Group::context};

std::vector<int> members_of(const Mesh& mesh, Group group, int rank) {
    std::vector<int> ranks;
    for (int place = 0; place < mesh.size(group); ++place) ranks.push_back(mesh.member(group, rank, place));
    return ranks;
}

// The default, one with every axis in another place, and one with the data axes outermost.
constexpr AxisOrder kOrders[] = {
    kMegatronOrder,
    {Axis::pipeline, Axis::shard, Axis::replica, Axis::tensor, Axis::context},
    {Axis::tensor, Axis::pipeline, Axis::context, Axis::shard, Axis::replica},
};

// Every mesh of up to `most` ranks.
std::vector<Mesh> meshes(int most) {
    std::vector<Mesh> all;
    const auto add = [&](int ranks, int tensor, int context, int pipeline) {
        const int data = ranks / (tensor * context * pipeline);
        for (int shard = 1; shard <= data; ++shard) {
            if (data % shard != 0) continue;
            for (const AxisOrder& order : kOrders) {
                all.push_back({ranks, shard * context, tensor, pipeline, 1, context, order, context > 1});
                if (shard == 1 && context > 1) all.push_back({ranks, 1, tensor, pipeline, 1, context, order});
            }
        }
    };
    for (int ranks = 1; ranks <= most; ++ranks) {
        for (int tensor = 1; tensor <= ranks; ++tensor) {
            for (int context = 1; tensor * context <= ranks; ++context) {
                for (int pipeline = 1; tensor * context * pipeline <= ranks; ++pipeline) {
                    if (ranks % (tensor * context * pipeline) == 0) add(ranks, tensor, context, pipeline);
                }
            }
        }
    }
    return all;
}

std::string name_of(const Mesh& mesh) {
    std::string order;
    for (const Axis axis : mesh.order) order += " " + std::to_string(static_cast<int>(axis));
    return "ranks " + std::to_string(mesh.ranks) + ", shard " + std::to_string(mesh.shard) + ", tensor " +
           std::to_string(mesh.tensor) + ", context " + std::to_string(mesh.context) + ", pipeline " +
           std::to_string(mesh.pipeline) + ", order" + order;
}

// A rank is the sum of its places, each times the sizes of the axes inside its own.
int rank_of(const Mesh& mesh, int rank) {
    int sum = 0, inside = 1;
    for (const Axis axis : mesh.order) {
        sum += mesh.place(axis, rank) * inside;
        inside *= mesh.size(axis);
    }
    return sum;
}

TEST(Meshes, DivideTheRanksIntoGroups) {
    const Mesh mesh{24, 3, 4};  // tensor 4, shard 3, replicas 2
    EXPECT_EQ(mesh.data_size(), 6);
    EXPECT_EQ(mesh.replicas(), 2);
    // Rank 17 = 1 + 4 * (1 + 3 * 1).
    EXPECT_EQ(mesh.tensor_index(17), 1);
    EXPECT_EQ(mesh.shard_index(17), 1);
    EXPECT_EQ(mesh.replica(17), 1);
    EXPECT_EQ(members_of(mesh, Group::tensor, 17), (std::vector{16, 17, 18, 19}));
    EXPECT_EQ(members_of(mesh, Group::shard, 17), (std::vector{13, 17, 21}));
    EXPECT_EQ(members_of(mesh, Group::replicate, 17), (std::vector{5, 17}));
    EXPECT_EQ(members_of(mesh, Group::data, 17), (std::vector{1, 5, 9, 13, 17, 21}));
    EXPECT_EQ(members_of(mesh, Group::world, 17).size(), 24U);
    EXPECT_EQ(mesh.id(Group::world, 17), CommunicatorId::world);
}

// Two axes of equal size are two groups; a group of all ranks is the world.
TEST(Meshes, OfTwoAxesOfEqualSizeHaveTwoGroups) {
    const Mesh mesh{4, 2, 2};
    for (int rank = 0; rank < 4; ++rank) {
        EXPECT_NE(mesh.id(Group::tensor, rank), mesh.id(Group::shard, rank));
        EXPECT_NE(mesh.id(Group::tensor, rank), CommunicatorId::world);
    }
    EXPECT_EQ((Mesh{4, 4, 1}.id(Group::shard, 3)), CommunicatorId::world);
    EXPECT_EQ((Mesh{4, 1, 4}.id(Group::tensor, 3)), CommunicatorId::world);
    EXPECT_EQ((Mesh{4, 2, 1}.all_data()), Group::world);
    EXPECT_EQ((Mesh{4, 2, 2}.all_data()), Group::data);
}

TEST(Meshes, HaveThePipelineOutermost) {
    const Mesh mesh{24, 3, 2, 2};  // tensor 2, shard 3, replicas 2, pipeline 2
    EXPECT_EQ(mesh.data_size(), 6);
    EXPECT_EQ(mesh.replicas(), 2);
    // Rank 21 = 1 + 2 * (1 + 3 * (1 + 2 * 1)).
    EXPECT_EQ(mesh.tensor_index(21), 1);
    EXPECT_EQ(mesh.shard_index(21), 1);
    EXPECT_EQ(mesh.replica(21), 1);
    EXPECT_EQ(mesh.data_rank(21), 4);
    EXPECT_EQ(mesh.pipeline_index(21), 1);
    EXPECT_EQ(members_of(mesh, Group::tensor, 21), (std::vector{20, 21}));
    EXPECT_EQ(members_of(mesh, Group::shard, 21), (std::vector{19, 21, 23}));
    EXPECT_EQ(members_of(mesh, Group::replicate, 21), (std::vector{15, 21}));
    EXPECT_EQ(members_of(mesh, Group::data, 21), (std::vector{13, 15, 17, 19, 21, 23}));
    EXPECT_EQ(members_of(mesh, Group::pipeline, 21), (std::vector{9, 21}));
    EXPECT_EQ(mesh.all_data(), Group::data);
    EXPECT_EQ((Mesh{4, 2, 1, 2}.all_data()), Group::data);
}

// An expert group takes neighbours that read different samples; those at its places, in groups of their own,
// have the same experts.
TEST(Meshes, HaveExpertGroupsInsideTheDataAxes) {
    const Mesh mesh{24, 6, 2, 1, 3};  // tensor 2, shard 6, replicas 2, expert 3
    EXPECT_EQ(members_of(mesh, Group::expert, 15), (std::vector{13, 15, 17}));
    EXPECT_EQ(members_of(mesh, Group::expert_data, 15), (std::vector{3, 9, 15, 21}));
    EXPECT_EQ(members_of(mesh, Group::expert_shard, 15), (std::vector{15, 21}));
    EXPECT_EQ(mesh.place(Group::expert, 15), 1);
    EXPECT_EQ(mesh.place(Group::expert_data, 15), 2);
    EXPECT_EQ(mesh.place(Group::expert_shard, 15), 0);
    EXPECT_NE((Mesh{4, 4, 1, 1, 4}.id(Group::expert, 3)), CommunicatorId::world);
    const Mesh copies{8, 1, 1, 1, 2};  // without shards, an expert group has the copy
    EXPECT_EQ(copies.copy_size(), 2);
    EXPECT_EQ(copies.size(Group::expert_shard), 1);
    EXPECT_EQ(members_of(copies, Group::expert_data, 3), (std::vector{1, 3, 5, 7}));
    EXPECT_EQ(mesh.expert_group_of(mesh.id(Group::expert_data, 15)), Group::expert_data);
    EXPECT_EQ(mesh.expert_group_of(mesh.id(Group::shard, 15)), Group::world);
    EXPECT_EQ((Mesh{8, 4, 2}.id(Group::expert, 3)), CommunicatorId::none);
}

TEST(Meshes, HaveContextGroupsInsideTheDataAxes) {
    const Mesh mesh{
        .ranks = 24, .shard = 4, .tensor = 2, .pipeline = 1, .context = 2};  // shard 2, replicas 3
    EXPECT_EQ(mesh.data_size(), 6);
    EXPECT_EQ(mesh.replicas(), 3);
    // Rank 15 = 1 + 2 * (1 + 2 * (1 + 2 * 1)).
    EXPECT_EQ(mesh.tensor_index(15), 1);
    EXPECT_EQ(mesh.context_index(15), 1);
    EXPECT_EQ(mesh.place(Axis::shard, 15), 1);
    EXPECT_EQ(mesh.place(Axis::replica, 15), 1);
    EXPECT_EQ(mesh.data_rank(15), 3);
    EXPECT_EQ(members_of(mesh, Group::context, 15), (std::vector{13, 15}));
    EXPECT_EQ(members_of(mesh, Group::shard, 15), (std::vector{9, 11, 13, 15}));
    EXPECT_EQ(members_of(mesh, Group::replicate, 15), (std::vector{7, 15, 23}));
    EXPECT_EQ(members_of(mesh, Group::data, 15).size(), 12U);
    // Without shards the ranks of a context group hold the same, and reduce over both axes.
    const Mesh copies{.ranks = 4, .tensor = 1, .context = 2};
    EXPECT_EQ(copies.replicas(), 4);
    EXPECT_EQ(members_of(copies, Group::shard, 3), (std::vector{3}));
    EXPECT_EQ(copies.all_data(), Group::world);
    // A context group of all ranks does not share the world's communicator.
    EXPECT_NE((Mesh{.ranks = 4, .shard = 4, .context = 4}.id(Group::context, 0)), CommunicatorId::world);
}

// Of every small mesh: places are the inverse of members, a rank is what its places say, every communicator
// holds the ranks that know it by its number, and no number is used twice.
TEST(Meshes, NumberTheirCommunicatorsUniquely) {
    for (const Mesh& mesh : meshes(16)) {  // the first with two ranks along each of four axes
        SCOPED_TRACE(name_of(mesh));
        ASSERT_EQ(mesh.data_size() * mesh.tensor * mesh.pipeline * mesh.context, mesh.ranks);
        ASSERT_EQ(mesh.replicas() * mesh.shard, mesh.size(Group::data));
        const auto communicators = mesh.communicators();
        std::map<CommunicatorId, std::pair<Group, std::vector<int>>> found;  // by number
        for (int rank = 0; rank < mesh.ranks; ++rank) {
            ASSERT_EQ(rank_of(mesh, rank), rank);
            if (mesh.replica(rank) == 0) {
                ASSERT_EQ(mesh.rank_in_copy(mesh.pipeline_index(rank), mesh.copy_index(rank)), rank);
            }
            for (const Group group : kGroups) {
                const std::vector<int> members = members_of(mesh, group, rank);
                for (std::size_t place = 0; place < members.size(); ++place) {
                    ASSERT_EQ(mesh.place(group, members[place]), static_cast<int>(place));
                    ASSERT_EQ(members_of(mesh, group, members[place]), members);
                }
                ASSERT_EQ(members[static_cast<std::size_t>(mesh.place(group, rank))], rank);
                const CommunicatorId id = mesh.id(group, rank);
                if (static_cast<int>(members.size()) == mesh.ranks && mesh.is_world(group)) {
                    ASSERT_EQ(id, CommunicatorId::world);
                    continue;
                }
                if (id == CommunicatorId::none) {  // an axis that is not used
                    ASSERT_EQ(members.size(), 1U);
                    ASSERT_TRUE((group == Group::tensor && mesh.tensor == 1) ||
                                (group == Group::pipeline && mesh.pipeline == 1) ||
                                (group == Group::context && mesh.context == 1) ||
                                (group == Group::data && mesh.all_data() != Group::data));
                    continue;
                }
                ASSERT_GT(id, CommunicatorId::world);
                ASSERT_EQ(communicators.at(static_cast<std::size_t>(id)), members);
                const auto& known = found.try_emplace(id, group, members).first->second;
                ASSERT_EQ(known, (std::pair(group, members)));
            }
        }
        int channels = 0;
        for (int from = 0; from < mesh.ranks; ++from) {
            for (const int to : members_of(mesh, Group::pipeline, from)) {
                const int apart = std::abs(mesh.pipeline_index(from) - mesh.pipeline_index(to));
                if (apart != 1 && (apart == 0 || apart != mesh.pipeline - 1)) {
                    EXPECT_THROW(mesh.channel(from, to), std::logic_error);
                    continue;
                }
                const CommunicatorId id = mesh.channel(from, to);
                ASSERT_EQ(communicators.at(static_cast<std::size_t>(id)), (std::vector{from, to}));
                ASSERT_FALSE(found.contains(id));
                ++channels;
            }
        }
        for (int from = 0; mesh.ring && from < mesh.ranks; ++from) {
            const int to = mesh.neighbour(Group::context, from, 1);
            ASSERT_EQ(communicators.at(static_cast<std::size_t>(mesh.channel(from, to))),
                      (std::vector{from, to}));
            ++channels;
        }
        // Each number is the world's, a group's or a channel's; a group of all ranks leaves one out.
        std::size_t named = 1 + found.size() + static_cast<std::size_t>(channels);
        for (const std::vector<int>& members : communicators) named += members.empty() ? 1 : 0;
        ASSERT_EQ(communicators.size(), named);
    }
}

// Without a pipeline, the numbers are those of the other axes.
TEST(Meshes, WithoutAPipelineHaveNoChannels) {
    const Mesh mesh{8, 2, 2};
    EXPECT_EQ(mesh.communicators().size(), 1U + 4 + 4 + 4 + 2);
    EXPECT_EQ(mesh.id(Group::pipeline, 3), CommunicatorId::none);
    EXPECT_THROW(mesh.channel(0, 1), std::logic_error);
}

TEST(Messages, AreOperationsOfThePlan) {
    PlanBuilder builder(PlanKind::steady, {});
    {
        const Tensor activations =
            builder.new_tensor("activations", MemoryCategory::activations, 6, DType::bf16);
        builder.order(Stream::compute, Stream::send);
        builder.send(activations, 1);
        builder.receive(activations, 2);
    }
    const Plan plan = builder.take();
    ASSERT_EQ(plan.ops.size(), 6U);
    const Op& sent = plan.ops[3];
    EXPECT_TRUE(is_message(sent) && is_device_work(sent));
    EXPECT_EQ(sent.stream, Stream::send);
    EXPECT_EQ(sent.bytes, 12);
    ASSERT_EQ(sent.args.size(), 1U);
    EXPECT_EQ(sent.collective().operation, Operation::send);
    EXPECT_EQ(sent.collective().dtype, DType::bf16);
    EXPECT_EQ(sent.collective().peer, 1);
    EXPECT_EQ(plan.ops[4].collective().operation, Operation::recv);
    EXPECT_EQ(plan.ops[4].stream, Stream::receive);
    EXPECT_EQ(plan.ops[4].collective().peer, 2);
    EXPECT_FALSE(is_message(plan.ops[1]));
}

// Channels of a benchmark come after all others.
TEST(Mesh, TalkersHaveAChannelToEachOther) {
    for (Mesh mesh : meshes(6)) {
        const auto before = mesh.communicators();
        for (int talkers = 2; talkers <= mesh.ranks; ++talkers) {
            mesh.talkers = talkers;
            auto all = mesh.communicators();
            ASSERT_EQ(all.size(), before.size() + static_cast<std::size_t>(talkers * (talkers - 1)));
            std::set<CommunicatorId> ids;
            for (int from = 0; from < talkers; ++from) {
                for (int to = 0; to < talkers; ++to) {
                    if (from == to) continue;
                    const CommunicatorId id = mesh.talk(from, to);
                    EXPECT_TRUE(ids.insert(id).second);
                    EXPECT_EQ(mesh.ends(id), (std::vector{from, to}));
                    EXPECT_EQ(all[static_cast<std::size_t>(id)], (std::vector{from, to}));
                }
            }
            EXPECT_EQ(static_cast<std::size_t>(*ids.begin()), before.size());
            all.resize(before.size());
            EXPECT_EQ(all, before);
            EXPECT_THROW((void)mesh.talk(0, 0), std::logic_error);
            EXPECT_THROW((void)mesh.talk(0, talkers), std::logic_error);
        }
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::plan
