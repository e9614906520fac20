// Checks that span several keys of a job, defaults that depend on another key, and names that stand for
// several keys: checks.cpp, and of the model checks_model.cpp. Internal to the room.
#pragma once

#include <string>
#include <string_view>

#include <fmt/core.h>

#include "trainer/job/job.h"
#include "trainer/job/loading.h"

namespace shardscope::trainer::job {

// As the job file writes it: "resnet".
std::string_view word_of(ModelType type);

class Checks {
  public:
    Checks(Job& job, const std::string& file, const Origins& origins)
        : job_(job), file_(file), origins_(origins) {}

    void run() {
        device();
        shape();
        images();
        model();
        experts();
        attention();
        data();
        mesh();
        context();
        strategy();
        comm_hook();
        expert_groups();
        precision();
        optimizer();
        onebit();
        local_steps();
        server();
        offload();
        nvme();
        rest();
    }

  private:
    bool given(const std::string& key) const { return origins_.contains(key); }

    // Throws JobError. Its place is where `key` was given, else (the key has its default) where `other` was,
    // else the file.
    [[noreturn]] void refuse(const std::string& key, const std::string& other, const std::string& why) const {
        auto origin = origins_.find(key);
        if (origin == origins_.end()) origin = origins_.find(other);
        throw JobError(
            fmt::format("{}: {}: {}", origin == origins_.end() ? file_ : origin->second, key, why));
    }

    void device() const;
    void shared_devices() const;
    void simulation() const;
    void shape();
    void images() const;
    void preparation() const;
    void model() const;
    void experts() const;
    void expert_groups() const;
    void attention();
    void data();
    void epochs();
    void mesh() const;
    void context() const;
    void strategy();
    void comm_hook() const;
    void precision();
    void loss_scale();
    void optimizer();
    void whole_model(const char* key, const char* who) const;
    void onebit() const;
    void local_steps() const;
    void server() const;
    void offload() const;
    void nvme() const;
    void rest() const;

    Job& job_;
    const std::string& file_;
    const Origins& origins_;
};

}  // namespace shardscope::trainer::job
