// SPDX-License-Identifier: Apache-2.0
// Part of kernel_abi.h: one call of the service of asynchronous copies (PTX manual 9.7.9.25).
#pragma once

#include <cstdint>

namespace ptarmigan::abi {

/// When asynchronous copies are done: LaunchContext::async_mode.
enum class AsyncMode : std::uint32_t { eager, late, random };

/// What the service does. Memory is global unless it says shared.
enum class AsyncOperation : std::uint32_t {
    copy,          ///< cp.async to shared: `size` bytes, of which `detail` is the copy's size; the rest is zeros
    copy_commit,   ///< cp.async.commit_group
    copy_wait,     ///< cp.async.wait_group: `detail` groups may be pending
    copy_wait_all, ///< cp.async.wait_all
    load,          ///< cp.async.bulk to shared
    store,         ///< cp.async.bulk from shared; with `masked`, byte i of each 16 is copied if bit i of `mask` is set
    move,          ///< cp.async.bulk from shared to shared of the cluster
    reduce,        ///< cp.reduce.async.bulk from shared (AsyncReduction)
    reduce_shared, ///< cp.reduce.async.bulk from shared to shared of the cluster (reduction_detail)
    tensor_load,   ///< cp.async.bulk.tensor to shared (tensor_detail)
    tensor_store,  ///< cp.async.bulk.tensor from shared (tensor_detail)
    tensor_reduce, ///< cp.reduce.async.bulk.tensor from shared (tensor_detail)
    store_value,   ///< st.async to shared of the cluster: `size` bytes, whose words are in `coordinates`
    reduce_value,  ///< red.async to shared of the cluster: likewise (reduction_detail)
    prefetch,      ///< cp.async.bulk.prefetch: the address is checked
    tensor_prefetch, ///< cp.async.bulk.prefetch.tensor: the map is checked (tensor_detail)
    commit,          ///< cp.async.bulk.commit_group
    wait,            ///< cp.async.bulk.wait_group: `detail` groups may be pending
    wait_read,       ///< cp.async.bulk.wait_group.read: likewise, as far as they read
    proxy_fence,     ///< fence.proxy.async; `detail` is a FencedMemory
    map_release,     ///< fence.proxy.tensormap::generic.release
    map_acquire,     ///< fence.proxy.tensormap::generic.acquire of the map at `target`
    replace,         ///< tensormap.replace of the map at `target`: field `detail`, dimension `size`, value `source`
    copy_map,        ///< tensormap.cp_fenceproxy: 128 bytes from `source` (shared) to `target`
    clear,           ///< st.bulk: `source` zero bytes at `target` (shared)
    prefetch_map,    ///< prefetch.tensormap: its address is checked
};

/// Whose accesses a proxy fence orders. Global memory only in code compiled with CompileOptions::late_copies.
enum class FencedMemory : std::uint32_t { shared_of_cta, shared_of_cluster, global, all };

enum class BulkReduction : std::uint32_t { add, min, max, inc, dec, bit_and, bit_or, bit_xor };

/// `.load_mode` of the tensor forms. four_rows is tile::gather4 and tile::scatter4.
enum class TensorMode : std::uint32_t { tile, four_rows, im2col, im2col_w, im2col_w_128 };

/// Types of elements in a tensor map, numbered as `tensormap.replace.elemtype` has them.
enum class TensorType : std::uint8_t {
    u8,
    u16,
    u32,
    s32,
    u64,
    s64,
    f16,
    f32,
    f32_ftz,
    f64,
    bf16,
    tf32,
    tf32_ftz,
    b4x16,
    b4x16_p64,
    b6x16_p32,
};

/// Fields of tensormap.replace.
enum class TensorMapField : std::uint32_t {
    global_address,
    rank,
    box_dim,
    global_dim,
    global_stride,
    element_stride,
    elemtype,
    interleave_layout,
    swizzle_mode,
    swizzle_atomicity,
    fill_mode,
};

/// AsyncCall::detail of reductions, and of tensor operations.
constexpr std::uint32_t reduction_detail(BulkReduction operation, TensorType type) {
    return static_cast<std::uint32_t>(operation) | static_cast<std::uint32_t>(type) << 8;
}
constexpr std::uint32_t tensor_detail(TensorMode mode, unsigned rank, BulkReduction operation) {
    return static_cast<std::uint32_t>(mode) | rank << 8 | static_cast<std::uint32_t>(operation) << 16;
}

/// One instruction of a step. Arrays are indexed by lane of the step; the service looks at the lanes in `active`, and
/// at those arrays that the operation has. Addresses are generic.
struct AsyncCall {
    /// Bits of `flags`. multicast: to the CTAs of the cluster in `mask`; pair_barrier: .cta_group::2, the mbarrier may
    /// be the neighbour's; ignores: the first and last bytes, of which `offsets` 0 and 1 say how many, are nobody's
    /// (.ignore_oob); multimem: the target is a multicast address.
    static constexpr std::uint32_t multicast = 1, masked = 2, pair_barrier = 4, ignores = 8, multimem = 16;
    std::uint32_t operation, flags, detail;
    std::uint32_t line; ///< of the PTX text
    std::uint64_t active;
    std::uint64_t target[32];  ///< of tensor stores and reductions: the map
    std::uint64_t source[32];  ///< of tensor loads and prefetches: the map
    std::uint64_t barrier[32]; ///< mbarrier object
    std::uint32_t size[32];    ///< bytes
    std::uint32_t mask[32];
    std::uint32_t coordinates[5][32];
    std::uint32_t offsets[3][32];
};

} // namespace ptarmigan::abi
