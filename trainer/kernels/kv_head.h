// Keys and values of one head out of the parts that the ranks of a tensor group have, where it has more ranks
// than there are heads of keys and values (trainer/model/tensor_parallel.h): `sharing` neighbours share a
// head, and each has computed `part` features of its keys and of its values. Thread safe. T is float, Bf16 or
// Fp16.
//
//   parts   [ranks, rows, 2 part]          of all ranks in their order: keys, then values
//   head    [rows], `row` elements apart   whole keys, then whole values, sharing * part features each
#pragma once

namespace shardscope::trainer::kernels {

struct KvParts {
    int rows = 0, row = 0, part = 0, sharing = 1, ranks = 1;
    int place = 0;  // of the rank that needs the head

    int first() const { return place / sharing * sharing; }  // of the ranks that have a part of it
};

// head = its parts. What else is in its rows stays.
template <class T>
void take_kv_head(const T* parts, T* head, const KvParts& shape);

// The other way round: parts = those of head, and 0 for the other heads.
template <class T>
void spread_kv_head(const T* head, T* parts, const KvParts& shape);

}  // namespace shardscope::trainer::kernels
