// One action of a pipeline schedule, and its text as PyTorch writes it: "3F2", "7I0", "2SEND_F5", "0UNSHARD".
//
//     STAGE KIND [MICRO-BATCH]     stages and micro-batches are numbered from 0, stages over the whole model
//     (0F7;7B3)OVERLAP_F_B         a forward and a backward that run together
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::trainer::pipeline {

enum class ActionKind : std::uint8_t {
    forward,          // F
    backward_input,   // I: the gradient of the stage's input
    backward_weight,  // W: the gradients of its weights, after I
    backward,         // B: both
    send_forward,     // SEND_F: the stage's output to the next stage
    recv_forward,     // RECV_F: its input from the previous stage
    send_backward,    // SEND_B: the gradient of its input to the previous stage
    recv_backward,    // RECV_B: the gradient of its output from the next stage
    wait_send_forward,
    wait_send_backward,
    unshard,      // FSDP gathers the stage's parameters; no micro-batch, as the three below
    reshard,      // FSDP frees them
    reduce_grad,  // the stage's gradients are reduced over the data-parallel ranks
    wait_reduce_grad,
};

struct Action {
    int stage = 0;
    ActionKind kind = ActionKind::forward;
    int micro_batch = 0;     // 0 if the kind has none
    bool with_next = false;  // an overlapped pair: this forward runs together with the next action

    bool operator==(const Action&) const = default;
};

constexpr bool is_compute(ActionKind kind) {
    return kind <= ActionKind::backward;
}
// Whether it computes the gradient that the previous stage waits for.
constexpr bool gives_input_gradient(ActionKind kind) {
    return kind == ActionKind::backward || kind == ActionKind::backward_input;
}
// Whether it is the last work on the stage's micro-batch.
constexpr bool ends_backward(ActionKind kind) {
    return kind == ActionKind::backward || kind == ActionKind::backward_weight;
}
// Sends, receives and waits for sends.
constexpr bool is_transfer(ActionKind kind) {
    return kind >= ActionKind::send_forward && kind <= ActionKind::wait_send_backward;
}

// UNSHARD, RESHARD and REDUCE_GRAD.
constexpr bool is_sharding(ActionKind kind) {
    return kind >= ActionKind::unshard;
}

// "F"
std::string_view letters_of(ActionKind kind);
// Whether its text ends with a micro-batch.
bool has_micro_batch(ActionKind kind);
// "3F2"
std::string text_of(const Action& action);
// The actions of a cell run together: one, or the two of an overlapped pair. `at`: the first one.
std::span<const Action> cell_at(std::span<const Action> actions, std::size_t at);
// "3F2", "(0F7;7B3)OVERLAP_F_B"
std::string cell_text(std::span<const Action> cell);

// Appends the actions of a cell to `into`; none if the cell is blank. Returns what is wrong with the text, ""
// if nothing.
std::string parse_cell(std::string_view text, std::vector<Action>& into);

// The largest number of stages or micro-batches that a text may name.
inline constexpr int kMostNumbered = 1'000'000;

}  // namespace shardscope::trainer::pipeline
