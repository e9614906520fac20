// NCCL among processes with one rank each, over the simulated CUDA and NCCL: every process is a thread with a
// CudaDevice of its own, which knows the others only through a Bootstrap.
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/played_cuda/nccl.h"
#include "tests/trainer/played_cuda/runtime_api.h"
#include "tests/trainer/played_processes.h"
#include "trainer/cuda/cuda_device.h"
#include "trainer/cuda/roll_call.h"

namespace shardscope::trainer::cuda {
namespace TEST_FILE {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using device::Bootstrap;
using device::DeviceSettings;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Uses the device like a rank's host thread.
class Rank {
  public:
    Rank(CudaDevice& device, const plan::Mesh& mesh, int rank)
        : device_(device),
          mesh_(mesh),
          rank_(rank),
          stream_(device.add_stream(rank, plan::Stream::unshard)),
          receives_(device.add_stream(rank, plan::Stream::receive)) {}

    std::vector<float> collective(plan::Group among, plan::Operation operation, const std::vector<float>& in,
                                  std::size_t result, std::int64_t full, int divisor = 1) {
        Memory input(device_, rank_, in.size()), output(device_, rank_, result);
        device_.copy(rank_, input.data(), reinterpret_cast<const std::byte*>(in.data()), input.bytes());
        device::CollectiveLaunch launch = part(among);
        launch.call = {operation, plan::DType::fp32, output.data(), input.data(), full, divisor};
        device_.wait(device_.enqueue(stream_, device::Waits{}, launch));
        std::vector<float> out(result);
        device_.copy(rank_, reinterpret_cast<std::byte*>(out.data()), output.data(), output.bytes());
        return out;
    }
    std::vector<float> sum(plan::Group among, float value) {
        return collective(among, plan::Operation::all_reduce, {value}, 1, 1);
    }
    // Sends values to a neighbour in the pipeline and receives as many from it.
    std::vector<float> swap(int other, const std::vector<float>& values) {
        Memory sent(device_, rank_, values.size()), received(device_, rank_, values.size());
        device_.copy(rank_, sent.data(), reinterpret_cast<const std::byte*>(values.data()), sent.bytes());
        const auto message = [&](bool sends, std::byte* data) {
            device::CollectiveLaunch launch;
            launch.communicator = sends ? mesh_.channel(rank_, other) : mesh_.channel(other, rank_);
            launch.place = sends ? 0 : 1;
            launch.members = 2;
            launch.sequence = next_[launch.communicator]++;
            launch.call = {sends ? plan::Operation::send : plan::Operation::recv,
                           plan::DType::fp32,
                           data,
                           data,
                           static_cast<std::int64_t>(values.size()),
                           1};
            return device_.enqueue(sends ? stream_ : receives_, device::Waits{}, launch);
        };
        const auto over = message(true, sent.data());
        device_.wait(message(false, received.data()));
        device_.wait(over);
        std::vector<float> out(values.size());
        device_.copy(rank_, reinterpret_cast<std::byte*>(out.data()), received.data(), received.bytes());
        return out;
    }
    device::StreamEvent barrier() {
        return device_.enqueue(stream_, device::Waits{}, part(plan::Group::world));
    }
    CudaDevice& device() { return device_; }
    int number() const { return rank_; }

  private:
    class Memory {
      public:
        Memory(CudaDevice& device, int rank, std::size_t elements)
            : device_(device),
              rank_(rank),
              bytes_(static_cast<std::int64_t>(elements * sizeof(float))),
              data_(device.take(rank, plan::MemorySpace::device, bytes_, true)) {}
        // Streams that still use the memory have been released, or are done.
        ~Memory() {
            device_.stop();
            device_.give_back(rank_, plan::MemorySpace::device, data_);
        }
        Memory(const Memory&) = delete;
        Memory& operator=(const Memory&) = delete;
        std::byte* data() const { return data_; }
        std::int64_t bytes() const { return bytes_; }

      private:
        CudaDevice& device_;
        int rank_;
        std::int64_t bytes_;
        std::byte* data_;
    };

    device::CollectiveLaunch part(plan::Group among) {
        device::CollectiveLaunch launch;
        launch.communicator = mesh_.id(among, rank_);
        launch.place = mesh_.place(among, rank_);
        launch.members = mesh_.size(among);
        launch.sequence = next_[launch.communicator]++;
        return launch;
    }

    CudaDevice& device_;
    plan::Mesh mesh_;
    int rank_;
    device::StreamIndex stream_, receives_;
    std::map<plan::CommunicatorId, std::int64_t> next_;
};

class CudaProcesses : public ::testing::Test {
  protected:
    CudaProcesses() { played_cuda::set_machine({.gpus = 4}); }
    ~CudaProcesses() override {
        played_nccl::let_go_of_starts(false);
        played_cuda::set_machine({});
    }

    DeviceSettings settings(const testing::PlayedProcesses& job, const plan::Mesh& mesh, int rank) const {
        DeviceSettings made;
        made.mesh = mesh;
        made.timeout_s = timeout_s_;
        made.ranks = {rank};
        made.local_rank = rank;
        made.bootstrap = job.bootstrap(rank);
        return made;
    }
    // Returns what each process threw.
    template <class Body>
    std::vector<std::string> run(testing::PlayedProcesses& job, const plan::Mesh& mesh,
                                 const Body& body) const {
        std::vector<std::string> thrown(static_cast<std::size_t>(mesh.ranks));
        std::vector<std::thread> threads;
        threads.reserve(static_cast<std::size_t>(mesh.ranks));
        for (int rank = 0; rank < mesh.ranks; ++rank) {
            threads.emplace_back([&, rank] {
                try {
                    CudaDevice device(settings(job, mesh, rank), &played_nccl::library());
                    job.on_failure(rank, [&device](const std::string& sentence) {
                        device.fail(std::make_exception_ptr(std::runtime_error(sentence)));
                    });
                    try {
                        Rank own(device, mesh, rank);
                        body(own);
                    } catch (...) {
                        job.on_failure(rank, {});
                        throw;
                    }
                    job.on_failure(rank, {});
                } catch (const std::exception& error) {
                    thrown[static_cast<std::size_t>(rank)] = error.what();
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
        return thrown;
    }

    double timeout_s_ = 0;
};

TEST_F(CudaProcesses, MoveAndSumBetweenThem) {
    testing::PlayedProcesses job(2);
    const plan::Mesh mesh{2, 2};
    std::array<std::vector<float>, 2> gathered, scattered, averaged, divided, sent;
    const auto thrown = run(job, mesh, [&](Rank& own) {
        const auto r = static_cast<std::size_t>(own.number());
        const std::vector<float> in =
            own.number() == 0 ? std::vector<float>{1, 2, 3, 4} : std::vector<float>{10, 20, 30, 40};
        gathered[r] = own.collective(plan::Group::world, plan::Operation::all_gather, {in[0], in[1]}, 4, 4);
        scattered[r] = own.collective(plan::Group::world, plan::Operation::reduce_scatter, in, 2, 4);
        averaged[r] = own.collective(plan::Group::world, plan::Operation::all_reduce, in, 4, 4, 2);
        divided[r] = own.collective(plan::Group::world, plan::Operation::all_reduce, in, 4, 4, 4);
        sent[r] = own.collective(plan::Group::world, plan::Operation::broadcast, in, 4, 4);
    });
    EXPECT_THAT(thrown, Each(""));
    EXPECT_THAT(gathered, Each(ElementsAre(1, 2, 10, 20)));
    EXPECT_THAT(scattered[0], ElementsAre(11, 22));
    EXPECT_THAT(scattered[1], ElementsAre(33, 44));
    EXPECT_THAT(averaged, Each(ElementsAre(5.5F, 11, 16.5F, 22))) << "over 2, by NCCL's average";
    EXPECT_THAT(divided, Each(ElementsAre(2.75F, 5.5F, 8.25F, 11))) << "over 4, after NCCL's sum";
    EXPECT_THAT(sent, Each(ElementsAre(1, 2, 3, 4)));
}

// A pipeline of three places, each of which sends to both neighbours while they send to it.
TEST_F(CudaProcesses, SendToTheirNeighboursInThePipeline) {
    testing::PlayedProcesses job(3);
    const plan::Mesh mesh{3, 1, 1, 3};
    std::array<std::vector<float>, 3> from_next, from_previous;
    const auto thrown = run(job, mesh, [&](Rank& own) {
        const int r = own.number();
        const std::vector<float> values = {static_cast<float>(r), static_cast<float>(10 * r)};
        // Neighbours in the same order on both sides: 0 and 1, then 1 and 2, then 2 and 0.
        const auto swap = [&](int other) {
            (other == (r + 1) % 3 ? from_next : from_previous)[static_cast<std::size_t>(r)] =
                own.swap(other, values);
        };
        if (r == 0) return swap(1), swap(2);
        if (r == 1) return swap(0), swap(2);
        return swap(1), swap(0);
    });
    EXPECT_THAT(thrown, Each(""));
    for (std::size_t r = 0; r < 3; ++r) {
        const auto next = static_cast<float>((r + 1) % 3), previous = static_cast<float>((r + 2) % 3);
        EXPECT_THAT(from_next[r], ElementsAre(next, 10 * next));
        EXPECT_THAT(from_previous[r], ElementsAre(previous, 10 * previous));
    }
}

// HYBRID_SHARD of 4 ranks, 2 x 2: shard groups {0, 1} and {2, 3}, replicate groups {0, 2} and {1, 3}.
TEST_F(CudaProcesses, HaveCommunicatorsOfTheirOwnGroupsAlone) {
    const int made = played_nccl::made(), gone = played_nccl::gone();
    testing::PlayedProcesses job(4);
    const plan::Mesh mesh{4, 2};
    std::array<std::vector<float>, 4> world, shard, replicate;
    const auto thrown = run(job, mesh, [&](Rank& own) {
        const auto r = static_cast<std::size_t>(own.number());
        const auto value = static_cast<float>(1 << own.number());
        world[r] = own.sum(plan::Group::world, value);
        shard[r] = own.collective(plan::Group::shard, plan::Operation::all_gather, {value}, 2, 2);
        replicate[r] = own.sum(plan::Group::replicate, value);
    });
    EXPECT_THAT(thrown, Each(""));
    EXPECT_THAT(world, Each(ElementsAre(15)));
    EXPECT_THAT(shard,
                ElementsAre(ElementsAre(1, 2), ElementsAre(1, 2), ElementsAre(4, 8), ElementsAre(4, 8)));
    EXPECT_THAT(replicate, ElementsAre(ElementsAre(5), ElementsAre(10), ElementsAre(5), ElementsAre(10)));
    EXPECT_EQ(played_nccl::made() - made, 4 * 3) << "each process is in three of the five";
    EXPECT_EQ(played_nccl::gone() - gone, 4 * 3);
    EXPECT_EQ(played_cuda::allocated(), 0U);
}

TEST_F(CudaProcesses, ABarrierWaitsForAll) {
    testing::PlayedProcesses job(2);
    std::atomic<bool> came = false;
    const auto thrown = run(job, {2, 2}, [&](Rank& own) {
        if (own.number() == 1) {
            std::this_thread::sleep_for(50ms);
            came = true;
        }
        own.device().wait(own.barrier());
        EXPECT_TRUE(came) << "rank " << own.number();
    });
    EXPECT_THAT(thrown, Each(""));
}

TEST_F(CudaProcesses, OneThatDiesEndsTheOthers) {
    testing::PlayedProcesses job(2);
    const Clock::time_point begin = Clock::now();
    const auto thrown = run(job, {2, 2}, [&](Rank& own) {
        if (own.number() == 0) own.device().wait(own.barrier());
        std::this_thread::sleep_for(20ms);
        EXPECT_THAT(own.device().waiting(), "");
        job.fail("rank 1 (process 4711 on host b) has ended");
        throw std::runtime_error("killed");
    });
    EXPECT_EQ(thrown[0], "rank 1 (process 4711 on host b) has ended") << "no time limit is set";
    EXPECT_EQ(thrown[1], "killed");
    EXPECT_LT(seconds_since(begin), 5);
}

// The others' NCCL reports a broken connection before the job knows which rank caused it.
TEST_F(CudaProcesses, ABrokenConnectionIsBlamedOnTheProcessThatIsGone) {
    testing::PlayedProcesses job(2);
    const auto thrown = run(job, {2, 2}, [&](Rank& own) {
        if (own.number() == 0) own.device().wait(own.barrier());
        own.device().fail(std::make_exception_ptr(std::runtime_error("gone")));  // aborts its communicator
        std::this_thread::sleep_for(300ms);
        job.fail("rank 1 (process 4711 on host b) has ended");
        throw std::runtime_error("killed");
    });
    EXPECT_EQ(thrown[0], "rank 1 (process 4711 on host b) has ended");
}

TEST_F(CudaProcesses, NcclsErrorIsReportedIfNoBetterIsKnown) {
    testing::PlayedProcesses job(2);
    std::atomic<bool> over = false;
    const auto thrown = run(job, {2, 2}, [&](Rank& own) {
        if (own.number() == 0) {
            try {
                own.device().wait(own.barrier());
            } catch (...) {
                over = true;
                throw;
            }
        }
        own.device().fail(std::make_exception_ptr(std::runtime_error("gone")));
        while (!over) std::this_thread::sleep_for(5ms);
    });
    EXPECT_THAT(thrown[0], HasSubstr("rank 0"));
    EXPECT_THAT(thrown[0], HasSubstr("NCCL failed: remote process exited"));
    EXPECT_THAT(job.failure(), HasSubstr("rank 0 says that NCCL failed: remote process exited"));
}

TEST_F(CudaProcesses, OneThatNeverArrivesIsNamedOnAll) {
    timeout_s_ = 0.3;
    testing::PlayedProcesses job(3);
    const Clock::time_point begin = Clock::now();
    const auto thrown = run(job, {3, 3}, [&](Rank& own) {
        own.device().wait(own.barrier());
        if (own.number() != 2) own.device().wait(own.barrier());
        while (true) {  // busy with something else forever
            std::this_thread::sleep_for(5ms);
            own.device().wait({});
        }
    });
    EXPECT_LT(seconds_since(begin), 2) << "0.3 s, and the answers of the others";
    EXPECT_THAT(thrown[0], HasSubstr("rank 2 has not begun"));
    EXPECT_THAT(thrown[1], HasSubstr("rank 2 has not begun"));
    EXPECT_THAT(thrown[2],
                HasSubstr("rank 2 has not begun barrier of 0 fp32 elements over 1 (number 1 of "
                          "communicator 0, step 0) within the 0.3 s of run.timeout, in which rank "));
    EXPECT_EQ(thrown[2], job.failure());
}

// A process that does not answer counts like one that has not arrived.
TEST_F(CudaProcesses, OneThatDoesNotAnswerIsNamed) {
    timeout_s_ = 0.2;
    testing::PlayedProcesses job(2);
    job.deafen(1);
    const auto thrown = run(job, {2, 2}, [&](Rank& own) {
        if (own.number() == 0) own.device().wait(own.barrier());
        while (true) {
            std::this_thread::sleep_for(5ms);
            own.device().wait({});
        }
    });
    EXPECT_THAT(job.failure(),
                HasSubstr("rank 1 does not answer; rank 0 has waited for more than the 0.2 s of "
                          "run.timeout in barrier"));
    EXPECT_THAT(thrown[0], HasSubstr("rank 1"));
}

TEST_F(CudaProcesses, OneThatDoesNotStartNcclEndsTheOthersStart) {
    timeout_s_ = 0.2;
    testing::PlayedProcesses job(2);
    const plan::Mesh mesh{2, 2};
    std::thread other([&] {
        Introduction known;
        known.nccl_version = 22809;
        known.on[1] = {"machine b", "0000:10:00", "b", 0};
        known.on[1].machine = "b";
        job.bootstrap(1)->gather(write(known));
    });
    std::string why;
    try {
        const CudaDevice device(settings(job, mesh, 0), &played_nccl::library());
    } catch (const std::exception& error) {
        why = error.what();
    }
    other.join();
    EXPECT_THAT(why,
                HasSubstr("starting NCCL among the processes did not end within the 0.2 s of run.timeout"));
    // The start that was left behind ends.
    const int gone = played_nccl::gone();
    played_nccl::let_go_of_starts(true);
    const Clock::time_point begin = Clock::now();
    while (played_nccl::starts_waiting() > 0 && seconds_since(begin) < 5) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(played_nccl::starts_waiting(), 0);
    EXPECT_EQ(played_nccl::gone(), gone);
}

TEST_F(CudaProcesses, AFailureElsewhereEndsTheStart) {
    testing::PlayedProcesses job(2);  // no time limit
    const plan::Mesh mesh{2, 2};
    std::thread other([&] {
        Introduction known;
        known.nccl_version = 22809;
        known.on[1] = {"b", "0000:10:00", "b", 0};
        job.bootstrap(1)->gather(write(known));
        job.fail("rank 1 (process 4711 on host b) has ended");
    });
    std::string why;
    try {
        const CudaDevice device(settings(job, mesh, 0), &played_nccl::library());
    } catch (const std::exception& error) {
        why = error.what();
    }
    other.join();
    EXPECT_EQ(why, "rank 1 (process 4711 on host b) has ended");
    played_nccl::let_go_of_starts(true);
    while (played_nccl::starts_waiting() > 0) std::this_thread::sleep_for(1ms);
}

TEST_F(CudaProcesses, TwoOnOneGpuAreRefusedByAll) {
    played_cuda::set_machine({.gpus = 1});
    testing::PlayedProcesses job(2);
    const auto thrown = run(job, {2, 2}, [](Rank&) { FAIL() << "there is no such device"; });
    EXPECT_THAT(thrown, SizeIs(2));
    EXPECT_THAT(thrown, Each(AllOf(HasSubstr("ranks 0 and 1 share GPU 0 of host "),
                                   HasSubstr("run.comm = \"local\" in one process"))));
}

TEST_F(CudaProcesses, TheLocalGroupIsForOneProcess) {
    testing::PlayedProcesses job(1);
    DeviceSettings wrong = settings(job, {2, 2}, 0);
    wrong.group = device::GroupKind::local;
    try {
        const CudaDevice device(wrong, &played_nccl::library());
        FAIL() << "it was made";
    } catch (const CudaError& error) {
        EXPECT_THAT(error.what(), HasSubstr("run.comm = \"local\" is for ranks of one process"));
    }
}

TEST_F(CudaProcesses, RanksOfOtherProcessesAreRefused) {
    testing::PlayedProcesses job(2);
    const auto thrown = run(job, {2, 2}, [](Rank& own) {
        EXPECT_THROW(own.device().add_stream(1 - own.number(), plan::Stream::compute), std::logic_error);
        traces::schema::RankRow row;
        row.rank = own.number();
        own.device().describe(row);
        EXPECT_EQ(row.device_name, fmt::format("played GPU {}", own.number()));
    });
    EXPECT_THAT(thrown, Each(""));
}

// --- first messages --------------------------------------------------------------------------------------

Introduction one(int rank, const std::string& bus) {
    Introduction made;
    made.nccl_version = 22809;
    made.on[rank] = {"4e1c", bus, "b", 0};
    return made;
}

// The text that all processes receive, which is the same for each.
std::string told(std::vector<Introduction> all) {
    class Fixed final : public Bootstrap {
      public:
        explicit Fixed(std::vector<Introduction> said) : said_(std::move(said)) {}
        int process() const override { return 0; }
        std::vector<std::string> gather(std::string_view) override {
            std::vector<std::string> texts;
            for (const Introduction& each : said_) texts.push_back(write(each));
            return texts;
        }
        void on(const std::string&, Handler) override {}
        void tell(const std::string&, std::string_view) override {}
        void tell_all(const std::string&, std::string_view) override {}
        void fail(int, const std::string&) override {}
        void check() override {}

      private:
        std::vector<Introduction> said_;
    };
    Fixed bootstrap(all);
    try {
        call_roll(bootstrap, all[0], static_cast<int>(all.size()), 1);
    } catch (const CudaError& error) {
        return error.what();
    }
    return "";
}

TEST(RollCalls, SurviveTheirEncoding) {
    Introduction said = one(3, "0000:3b:00");
    said.on[5] = {"4e1c", "0001:ff:1f", "b.example", 1};
    for (std::size_t i = 0; i < sizeof said.ids[2].internal; ++i) {
        said.ids[2].internal[i] = static_cast<char>(i * 7);
    }
    const Introduction heard = read(write(said));
    EXPECT_EQ(heard.nccl_version, 22809);
    EXPECT_EQ(heard.missing, "");
    ASSERT_THAT(heard.on, SizeIs(2));
    EXPECT_EQ(heard.on.at(5).bus, "0001:ff:1f");
    EXPECT_EQ(heard.on.at(5).host, "b.example");
    EXPECT_EQ(heard.on.at(5).ordinal, 1);
    EXPECT_EQ(std::string(heard.ids.at(2).internal, 128), std::string(said.ids[2].internal, 128));
    Introduction without;
    without.missing = "libnccl.so.2 cannot be opened (no such file)";
    EXPECT_EQ(read(write(without)).missing, without.missing);
    EXPECT_THROW(read("hello"), CudaError);
    EXPECT_THROW(read("id 0 12"), CudaError);
    EXPECT_THROW(read("rank -1 a b 0 c"), CudaError);
}

TEST(RollCalls, FindContradictions) {
    EXPECT_EQ(told({one(0, "a"), one(1, "b")}), "");
    Introduction other_machine = one(1, "a");
    other_machine.on[1].machine = "9f00";
    EXPECT_EQ(told({one(0, "a"), other_machine}), "") << "the same place in another machine";
    EXPECT_THAT(told({one(0, "a"), one(1, "a")}), HasSubstr("ranks 0 and 1 share GPU 0 of host b"));

    Introduction without = one(1, "b");
    without.nccl_version = 0;
    without.missing = "libnccl.so.2 cannot be opened";
    EXPECT_EQ(told({one(0, "a"), without}), "rank 1: libnccl.so.2 cannot be opened");
    Introduction older = one(1, "b");
    older.nccl_version = 22005;
    EXPECT_THAT(told({one(0, "a"), older}), HasSubstr("rank 0 has NCCL 2.28.9 and rank 1 has NCCL 2.20.5"));
    EXPECT_THAT(told({one(0, "a"), one(0, "b")}), HasSubstr("two processes say that they are rank 0"));
    EXPECT_THAT(told({one(0, "a"), one(2, "b")}), HasSubstr("no process is rank 1 of 2"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::cuda
