// The number of masked tokens per sample of a masked language model. It is constant, so that the mean loss
// over them needs no sum over ranks.
#pragma once

namespace shardscope::trainer::job {

// 15 % (Devlin et al., arXiv:1810.04805, section 3.1), rounded, at least one.
constexpr int masked_tokens(int context) {
    const int share = (15 * context + 50) / 100;
    return share > 0 ? share : 1;
}

}  // namespace shardscope::trainer::job
