// SPDX-License-Identifier: Apache-2.0
// What copies are refused for, with the codes of the H200
// (tests/recordings/async_copies/async_faults): 716 for addresses that are not aligned, 715 for
// maps that don't fit the instruction and CTAs that the cluster doesn't have.
#include "runtime/exec/async_copies.h"

#include "runtime/code/fault.h"
#include "runtime/copy_engine/copy_engine.h"

namespace ptarmigan::runtime {

using abi::AsyncCall;

namespace {

bool is_tensor(abi::AsyncOperation operation) {
    using Operation = abi::AsyncOperation;
    return operation == Operation::tensor_load || operation == Operation::tensor_store ||
           operation == Operation::tensor_reduce || operation == Operation::tensor_prefetch;
}

} // namespace

void AsyncCopies::check(const Copy& copy) {
    using abi::Fault;
    const auto aligned = [&](std::uint64_t address, std::uint64_t bytes) {
        if (address % bytes != 0) fail(copy, Fault::misaligned_address, address);
    };
    const std::uint32_t ranks = abi::cluster_size(*copy.cta->launch);
    // Shared memory of a CTA that the cluster doesn't have.
    const auto in_cluster = [&](std::uint64_t address) {
        const std::uint64_t offset = address - reinterpret_cast<std::uint64_t>(copy.cta->shared);
        if (offset >> 32 == 0 && offset >> abi::cluster_rank_bit >= ranks)
            fail(copy, Fault::illegal_instruction, address, "the cluster has no such block");
    };
    const bool tensor = is_tensor(copy.operation),
               stores = copy.operation == Operation::tensor_store || copy.operation == Operation::tensor_reduce;
    switch (copy.operation) {
    case Operation::load:
        // A generic address of shared memory is none of global memory.
        if (copy.source - reinterpret_cast<std::uint64_t>(copy.cta->shared) < copy.cta->shared_window_size)
            fail(copy, Fault::illegal_address, copy.source);
        [[fallthrough]];
    case Operation::move:
    case Operation::reduce_shared:
        in_cluster(copy.target);
        aligned(copy.target, 16);
        aligned(copy.source, 16);
        break;
    case Operation::store_value:
    case Operation::reduce_value: aligned(copy.target, copy.size); break;
    case Operation::store:
    case Operation::reduce:
        aligned(copy.target, 16);
        aligned(copy.source, 16);
        break;
    case Operation::prefetch: return aligned(copy.source, 16);
    case Operation::prefetch_map: return aligned(copy.source, 64);
    case Operation::tensor_load:
        in_cluster(copy.target);
        aligned(copy.target, 128);
        break;
    case Operation::tensor_store:
    case Operation::tensor_reduce: aligned(copy.source, 128); break;
    default: break;
    }
    if (copy.barrier != 0) {
        aligned(copy.barrier, 8);
    }
    const auto rank_of = [&](std::uint64_t address) {
        return (address - reinterpret_cast<std::uint64_t>(copy.cta->shared)) >> abi::cluster_rank_bit;
    };
    if (copy.operation == Operation::move && rank_of(copy.target) == rank_of(copy.source))
        fail(copy, Fault::illegal_instruction, copy.target,
             "a copy from shared to shared memory goes to another block");
    if ((copy.flags & AsyncCall::multicast) != 0 && copy.mask >> ranks != 0)
        fail(copy, Fault::illegal_instruction, copy.target, "the mask names blocks that the cluster doesn't have");
    if (!tensor) return;
    const std::uint64_t address = stores ? copy.target : copy.source;
    // Among the parameters it is the bank's address that counts, in which they begin at 0x210 on sm_90.
    constexpr std::uint64_t parameter_base = 0x210;
    const std::uint64_t inside = address - reinterpret_cast<std::uint64_t>(copy.cta->params);
    if (inside >= copy.cta->params_size || (inside + parameter_base) % 64 != 0) aligned(address, 64);
    const TensorMap map = map_at(copy, address);
    const TensorTile* tile = nullptr;
    const TensorPosition position{copy.coordinates, copy.offsets};
    const char* rule = tile_of_map(map, tensor_mode(copy.detail), tensor_rank(copy.detail), position, tile);
    if (!rule) rule = position_rule(*tile, position, stores);
    if (rule) fail(copy, Fault::illegal_instruction, address, rule);
    if (copy.operation == Operation::tensor_reduce &&
        !reduce_run(static_cast<BulkReduction>(copy.detail >> 16), tile->map.type))
        fail(copy, Fault::illegal_instruction, address, "elements of the map's type are not reduced by this operation");
}

} // namespace ptarmigan::runtime
