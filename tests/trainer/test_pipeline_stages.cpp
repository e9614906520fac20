// What the stages of a pipeline are, and schedules that a user gives.
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "pipeline_jobs.h"
#include "tests/traces/temporary_folder.h"
#include "trainer/pipeline/csv.h"
#include "trainer/pipeline/schedule_table.h"
#include "trainer/sharding/stage_costs.h"
#include "trainer/sharding/stages.h"

namespace shardscope::trainer {
namespace TEST_FILE {

using testing::Kind;
using testing::kPipes;
using testing::losses_of;
using testing::Pipe;
using testing::piped;
using testing::pipeline_job;
using testing::refusal;
using testing::SampleText;

class OwnSchedule {
  public:
    explicit OwnSchedule(const std::string& text) : path_(folder_ / "own.csv") {
        std::ofstream(path_) << text;
    }
    job::Job of(job::Job job, int places, int stages = 1) const {
        return piped(std::move(job), {places, path_.c_str(), stages});
    }
    std::string refusal_of(const job::Job& job) const {
        std::string text = refusal(job);
        for (std::size_t at = 0; (at = text.find(path_)) != std::string::npos;)
            text.replace(at, path_.size(), "own.csv");
        return text;
    }

  private:
    traces::TemporaryFolder folder_;
    std::string path_;
};

TEST(PipelineStages, TrainsWithAScheduleOfAFile) {
    const SampleText text;
    const job::Job job = pipeline_job(Kind::gpt, text);
    const std::vector<double> expected = losses_of(job);
    for (const Pipe& pipe : kPipes) {
        const auto& kind = *pipeline::find_schedule(pipe.schedule);
        const OwnSchedule own(csv_text(make_schedule(kind, {pipe.places, 4, pipe.stages})));
        EXPECT_EQ(*sharding::Program(own.of(job, pipe.places, pipe.stages)).schedule(),
                  *sharding::Program(piped(job, pipe)).schedule())
            << pipe.schedule;
    }
    // One that no name has: the last rank has the first stage, and backwards are whole or split.
    const OwnSchedule own(
        "1F0,1B0,1F1,1I1,1W1,1F2,1B2,1F3,1B3\n"
        "0F0,0F1,0B0,0F2,0I1,0F3,0B2,0W1,0I3,0W3\n");
    testing::expect_close(losses_of(own.of(job, 2)), expected, "own.csv");
}

// The micro-batches of a file come in any order, also where DDP prepares its buckets in the last backward.
TEST(PipelineStages, TakesTheMicroBatchesInTheOrderOfTheFile) {
    const SampleText text;
    const OwnSchedule own(
        "0F2,0B2,0F1,0F0,0B0,0B1,0F3,0B3\n"
        "1F2,1B2,1F0,1B0,1F1,1B1,1F3,1B3\n");
    for (const bool views : {false, true}) {
        job::Job job = pipeline_job(Kind::gpt, text);
        job.run.ranks = 2;
        job.parallel.mode = job::ParallelMode::ddp;
        job.ddp.gradient_as_bucket_view = views;
        testing::expect_close(losses_of(own.of(job, 2)), losses_of(job), views ? "views" : "own memory");
    }
}

TEST(PipelineStages, RefusesAScheduleOfAFileThatCannotRun) {
    const SampleText text;
    const job::Job job = pipeline_job(Kind::gpt, text);
    const auto saying = [&](const std::string& csv, int places = 2, int stages = 1) {
        const OwnSchedule own(csv);
        return own.refusal_of(own.of(job, places, stages));
    };
    const std::string first = "0F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3\n", last = "1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n";
    EXPECT_EQ(saying(first + last), "");
    EXPECT_EQ(
        saying("0F0,0B0,0F1,0B1,0F2,0B2,0F3,0B3\n1F0,1F1,1B0,1B1,1F2,1B2,1F3,1B3\n"),
        "parallel.schedule: own.csv:1: cell 2 (rank 0): deadlock: rank 0 at 0B0 for 1B0 of rank 1, rank 1 at "
        "1F1 for 0F1 of rank 0 wait; change the order on one of these ranks");
    EXPECT_EQ(
        saying(first + "1F0,1B0,1F1,1B1,1F2,1F3,1B3\n"),
        "parallel.schedule: own.csv:2: (rank 1): 1B2 is missing; each forward has a backward on its rank: B, "
        "or I and then W");
    EXPECT_EQ(saying("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"),
              "train.accumulation: own.csv has 2 micro-batches, not 4; use 2");
    EXPECT_EQ(saying(first + last, 4), "parallel.pipeline: own.csv has 2 ranks, not 4; use 2");
    EXPECT_EQ(saying(first + last, 2, 2),
              "parallel.virtual_stages: own.csv has 1 stage on rank 0, not 2; use 1");
    EXPECT_EQ(saying("0F0,0SEND_F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3\n" + last).find("parallel.schedule: own.csv"),
              0U);
    const auto shape = [](int rank_of_1, int rank_of_2) {  // four ranks, where stages 1 and 2 are on these
        std::string lines[4];
        const int ranks[] = {0, rank_of_1, rank_of_2, 3};
        for (int stage = 0; stage < 4; ++stage) {
            for (int m = 0; m < 4; ++m) lines[ranks[stage]] += fmt::format("{}F{},", stage, m);
            for (int m = 0; m < 4; ++m) lines[ranks[stage]] += fmt::format("{}B{},", stage, m);
        }
        return lines[0] + "\n" + lines[1] + "\n" + lines[2] + "\n" + lines[3] + "\n";
    };
    EXPECT_EQ(saying(shape(1, 2), 4), "");
    EXPECT_EQ(saying(shape(2, 1), 4),
              "parallel.schedule: own.csv has stage 0 on rank 0 and stage 1 on rank 2, which are not "
              "neighbours; let "
              "neighbouring stages be on one rank or on neighbouring ones");
    EXPECT_NE(refusal(piped(job, {2, "none.csv"})).find("none.csv: cannot be read"), std::string::npos);
}

std::vector<std::size_t> layers_of(const job::Job& job) {
    const sharding::Program program(job);
    std::vector<std::size_t> layers;
    for (const model::ChildRange& range : program.stages()->ranges) {
        std::size_t& own = layers.emplace_back(0);
        for (std::size_t i = range.first; i < range.end; ++i)
            own += sharding::unwrapped(*program.stages()->layers->children()[i]).is_layer ? 1 : 0;
    }
    return layers;
}

TEST(PipelineStages, DealsLayersByCostOrByName) {
    const SampleText text;
    job::Job job = pipeline_job(Kind::gpt, text);
    const std::vector<double> expected = losses_of(job);
    job::Job mesh = piped(job, {4, "1f1b"});
    EXPECT_EQ(layers_of(mesh), (std::vector<std::size_t>{2, 2, 2, 2}));
    mesh.parallel.stages = "cost";
    EXPECT_EQ(losses_of(mesh), expected);
    mesh.parallel.stages = "blocks.1,blocks.4,blocks.5";
    EXPECT_EQ(layers_of(mesh), (std::vector<std::size_t>{1, 3, 1, 3}));
    EXPECT_EQ(losses_of(mesh), expected);
    // A head that costs as much as several blocks leaves the last stage fewer of them.
    mesh.model.vocabulary = 0;
    mesh.model.width = 8;
    mesh.model.heads = 2;
    mesh.model.layers = 12;
    mesh.parallel.stages = "cost";
    const std::vector<std::size_t> dealt = layers_of(mesh);
    EXPECT_EQ(std::accumulate(dealt.begin(), dealt.end(), std::size_t{0}), 12U);
    EXPECT_LT(dealt[3], dealt[0]);
    EXPECT_EQ(sharding::divide_by_cost({1, 1, 1, 1, 1, 5}, 3), (std::vector<std::size_t>{3, 2, 1}));
    EXPECT_EQ(sharding::divide_by_cost({4, 1, 1, 1, 1, 4}, 3), (std::vector<std::size_t>{1, 4, 1}));
    EXPECT_EQ(sharding::divide_by_cost({2, 2, 2, 2}, 4), (std::vector<std::size_t>{1, 1, 1, 1}));
    // Among those with the least largest stage, the most even one.
    EXPECT_EQ(sharding::divide_by_cost({6, 1, 1, 1, 1}, 3), (std::vector<std::size_t>{1, 2, 2}));
}

// What an action leaves behind on the device, of a micro-batch that is neither the first nor the last.
std::int64_t left_by(const plan::Plan& step, const std::string& action) {
    std::int64_t bytes = 0;
    int depth = 0;
    for (const plan::Op& op : step.ops) {
        if (op.kind == plan::OpKind::push_range &&
            (depth > 0 || step.names[static_cast<std::size_t>(op.name)] == action))
            ++depth;
        if (op.kind == plan::OpKind::pop_range && depth > 0) --depth;
        if (depth == 0 || (op.kind != plan::OpKind::allocate && op.kind != plan::OpKind::free)) continue;
        const plan::Buffer& buffer = step.buffers[static_cast<std::size_t>(op.args[0].buffer)];
        if (buffer.space != plan::MemorySpace::device) continue;
        bytes += op.kind == plan::OpKind::allocate ? buffer.bytes : -buffer.bytes;
    }
    return bytes;
}

// Between the first and the last place stages are equal, in pipelines of any length, so their peaks differ by
// what is in flight alone: the chunks of the closed form, and the gradients that have been sent, which stay
// until the end of the step, as in PyTorch. Where a backward is split, as many of the chunks as the place's
// number wait for their W; in a V none does at the peak, and as many forwards are still to begin as there are
// places behind.
class PipelineMemory : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Of, PipelineMemory,
                         ::testing::Values("gpipe", "1f1b", "interleaved", "looped_bfs", "zb_h1",
                                           "interleaved_zb", "zb_v", "dualpipe_v"),
                         [](const auto& made) { return std::string("Of_") + made.param; });

TEST_P(PipelineMemory, IsWhatTheChunksInFlightNeed) {
    const SampleText text;
    const auto& kind = *pipeline::find_schedule(GetParam());
    const bool in_v = kind.placement == pipeline::Placement::v;
    std::vector<std::int64_t> besides;  // what is not in flight, of each place
    for (const auto& [places, micro_batches] : {std::pair(6, 12), std::pair(5, 10), std::pair(4, 12)}) {
        const pipeline::Shape shape{places, micro_batches, kind.fewest_chunks};
        job::Job job = pipeline_job(Kind::gpt, text);
        job.run.steps = 2;
        job.model.layers = 2 * places;
        job.train.accumulation = micro_batches;
        job = piped(job, {places, GetParam(), kind.fewest_chunks});
        losses_of(job);  // the device's peaks are those of the account
        const sharding::Program program(job);
        const sharding::Program& second = program.role(1);
        const plan::Plan& step = second.step(second.warm_up_steps());
        const std::int64_t sent = left_by(step, "PP:1RECV_F3"), forward = sent + left_by(step, "PP:1F3"),
                           waiting = -left_by(step, "PP:1W3");
        EXPECT_GT(sent, 0);
        EXPECT_GT(forward, sent);
        EXPECT_EQ(waiting > 0, kind.name.find("zb") != std::string_view::npos);
        const std::vector<sharding::MemoryPrediction> roles = program.predict_roles();
        for (int place = 1; place + 1 < places; ++place) {
            const std::int64_t chunks = kind.form.peak_chunks(shape, place),
                               wait = waiting > 0 && !in_v ? place : 0,
                               to_begin = in_v ? places - 1 - place : 0,
                               done = std::int64_t{micro_batches} * shape.chunks - to_begin - (chunks - wait),
                               in_flight = (chunks - wait) * forward + wait * waiting + done * sent;
            besides.push_back(roles[static_cast<std::size_t>(place)].peak.bytes - in_flight);
        }
    }
    EXPECT_EQ(besides, std::vector<std::int64_t>(4 + 3 + 2, besides[0]));
}

TEST(PipelineStages, RefusesTiedEmbeddingsWhoseStagesAreNotNeighbours) {
    const SampleText text;
    job::Job job = pipeline_job(Kind::gpt, text);
    job.train.accumulation = 1;
    const OwnSchedule own("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n6F0,7F0,7B0,6B0\n4F0,5F0,5B0,4B0\n");
    EXPECT_EQ(own.refusal_of(own.of(job, 4, 2)), "");
    job.model.tied_embeddings = true;
    EXPECT_EQ(own.refusal_of(own.of(job, 4, 2)),
              "model.tied_embeddings: own.csv has the first stage on rank 0 and the last on rank 2, which "
              "exchange the gradient of their copies and are not neighbours; let them be neighbours, or omit "
              "the key");
}

TEST(PipelineStages, RefusesNamesThatMakeNoStages) {
    const SampleText text;
    job::Job mesh = piped(pipeline_job(Kind::gpt, text), {4, "1f1b"});
    const auto saying = [&](const char* stages) {
        mesh.parallel.stages = stages;
        return refusal(mesh);
    };
    EXPECT_EQ(
        saying("blocks.1,blocks.2"),
        "parallel.stages: 2 layers named, which makes 3 stages, not the 4 of 4 places with 1 each; name 3");
    EXPECT_EQ(saying("blocks.1,head,blocks.2"),
              "parallel.stages: \"head\" is not a layer; the layers are blocks.0 to blocks.7");
    EXPECT_EQ(
        saying("blocks.3,blocks.3,blocks.4"),
        "parallel.stages: blocks.3 leaves the stage before it without a layer; name the first layer of each "
        "stage but the first, in the order of the model");
    EXPECT_NE(saying("even"), "");
    EXPECT_NE(saying("blocks.1,blocks.2,blocks.3,"), "") << "nothing is named after the last comma";
}

TEST(PipelineStages, RefusesWhatDoesNotFitAndNamesTheNearestThatDoes) {
    const SampleText text;
    job::Job job = pipeline_job(Kind::gpt, text);
    EXPECT_EQ(refusal(piped(job, {3, "gpipe", 1})), "");
    job.model.layers = 5;
    EXPECT_EQ(
        refusal(piped(job, {3, "interleaved", 2})),
        "parallel.pipeline: 5 layers cannot be dealt to 6 stages (3 places with 2 each); the nearest number "
        "of places that works is 2");
    EXPECT_EQ(refusal(piped(job, {5, "1f1b"})),
              "train.accumulation: 1f1b takes 5 micro-batches or more on 5 ranks (m >= p), not 4; use 5");
    EXPECT_EQ(refusal(piped(job, {2, "1f1b", 2})),
              "parallel.virtual_stages: 1f1b has 1 stage on each place, not 2; use 1");
    EXPECT_EQ(
        refusal(piped(job, {2, "zigzag"})),
        "parallel.schedule: \"zigzag\" is unknown; use one of gpipe, 1f1b, interleaved, looped_bfs, zb_h1, "
        "interleaved_zb, zb_v, dualpipe_v, or FILE.csv");
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer
