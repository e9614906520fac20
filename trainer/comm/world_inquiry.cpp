#include <map>
#include <mutex>
#include <utility>

#include "trainer/comm/inquiry.h"
#include "trainer/world/message.h"
#include "trainer/world/world.h"

namespace shardscope::trainer::comm {

namespace {

constexpr const char* kAsk = "collectives.ask";
constexpr const char* kAnswer = "collectives.answer";

// State shared by the World's thread and the group's; the World's handlers keep it beyond the group's end.
struct Answers {
    mutable std::mutex mutex;
    std::function<void()> asked;  // null: nobody listens
    std::map<int, Standing> answers;

    void hear_question() {
        const std::lock_guard lock(mutex);
        if (asked) asked();
    }
    void hear_answer(std::string_view text) {
        world::MessageReader message(text);
        const int rank = message.number<int>();
        Standing standing;
        standing.waits_for = message.number<int>();
        standing.waited_began = message.number<bool>();
        standing.collective = message.text();
        const std::lock_guard lock(mutex);
        answers[rank] = std::move(standing);
    }
};

class WorldInquiry final : public Inquiry {
  public:
    explicit WorldInquiry(world::World& world) : world_(world), answers_(std::make_shared<Answers>()) {
        const bool passes_on = world.rank() == 0;
        world.on(kAsk, [&world, passes_on, answers = answers_](int, std::string_view text) {
            if (passes_on) world.tell_all(kAsk, text);
            answers->hear_question();
        });
        world.on(kAnswer, [&world, passes_on, answers = answers_](int, std::string_view text) {
            if (passes_on) world.tell_all(kAnswer, text);
            answers->hear_answer(text);
        });
    }
    ~WorldInquiry() override { stop_listening(); }

    void listen(std::function<void()> asked) override {
        const std::lock_guard lock(answers_->mutex);
        answers_->asked = std::move(asked);
    }
    void stop_listening() override { listen(nullptr); }

    void ask() override {
        {
            const std::lock_guard lock(answers_->mutex);
            answers_->answers.clear();
        }
        world_.tell(kAsk, {});
    }
    void answer(const Standing& standing) override {
        world_.tell(kAnswer, world::MessageWriter()
                                 .add(world_.rank())
                                 .add(standing.waits_for)
                                 .add(standing.waited_began)
                                 .add(std::string_view(standing.collective))
                                 .text());
    }
    std::optional<Standing> of(int rank) const override {
        const std::lock_guard lock(answers_->mutex);
        const auto found = answers_->answers.find(rank);
        return found == answers_->answers.end() ? std::nullopt : std::optional(found->second);
    }

  private:
    world::World& world_;
    std::shared_ptr<Answers> answers_;
};

}  // namespace

std::unique_ptr<Inquiry> make_world_inquiry(world::World& world) {
    return std::make_unique<WorldInquiry>(world);
}

}  // namespace shardscope::trainer::comm
