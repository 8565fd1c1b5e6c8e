// SPDX-License-Identifier: Apache-2.0
// The products of matrices that the warpgroups of one worker's CTAs start (PTX manual 9.7.15), and when they are done.
#pragma once

#include "runtime/tensor_core/warpgroup_product.h"
#include "translator/kernel_abi.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace ptarmigan::runtime {

class AsyncCopies;

/// Not thread-safe: belongs to a worker. Eager products are done when they are started. Late ones when a
/// wgmma.wait_group covers them: they read shared memory then, as the last proxy fence has left it (AsyncCopies).
/// Random ones at a moment between. Until the wait their accumulators are tokens, numbers that name a product and a
/// register of it: code that looks at them earlier finds nothing that it can use, and a product that goes on with them
/// waits for theirs.
class WarpgroupProducts {
public:
    explicit WarpgroupProducts(AsyncCopies& copies) : copies_(copies) {}

    /// Who executes an instruction: `lanes` of warp `warp` of the CTA, whose first step is `step`.
    struct Warp {
        abi::CtaContext& cta;
        std::uint32_t warp, step, lanes;
    };
    /// Faults don't return.
    void run(const Warp& warp, abi::WarpgroupCall& call);
    /// The same by steps of less than a warp: for each lane the address of its step's WarpgroupCall.
    void run_collective(const Warp& warp, const std::uint64_t (&calls)[32]);

    bool pending() const { return !warps_.empty(); }
    /// A CTA whose cluster has exited, or all: late products that nobody waited for are lost.
    void finish(const abi::CtaContext* cta = nullptr);
    /// For random times; each launch begins with the same.
    void seed(std::uint64_t seed) { random_ = seed; }

private:
    using Registers = std::uint32_t (*)[32];
    /// A register of C that is a product's.
    struct Source {
        std::uint32_t register_index, token; ///< its number
    };
    /// A product that nobody has waited for.
    struct Product {
        std::unique_ptr<abi::WarpgroupCall> call; ///< `d`: C, then D
        std::uint32_t step;
        std::uint32_t first_token = 0; ///< of its registers; the others follow
        std::uint32_t group = 0;       ///< 0: not committed
        bool done = false;
        std::vector<Source> sources; ///< of C
    };
    struct Pending {
        std::deque<Product> products; ///< in the order of the program, which they are done in
        std::uint32_t committed = 0;  ///< groups so far
        std::uint32_t next_token = 0;
    };
    using Key = std::pair<abi::CtaContext*, std::uint32_t>; ///< a warp

    void multiply(const Warp& warp, const abi::WarpgroupCall& call, Registers d);
    [[noreturn]] static void fail(const Warp& warp, const abi::WarpgroupCall& call, abi::Fault fault, const char* rule);
    void start(const Warp& warp, abi::WarpgroupCall& call);
    void wait(const Warp& warp, abi::WarpgroupCall& call);
    void finish_product(const Key& warp, Pending& pending, Product& product);
    void do_some();
    std::uint32_t random(std::uint32_t below);

    AsyncCopies& copies_;
    std::unique_ptr<tensor_core::WarpgroupMultiplier> multiplier_; ///< made when it is needed
    std::vector<abi::WarpgroupCall> whole_;                        ///< run_collective()'s
    std::map<Key, Pending> warps_;
    std::uint64_t random_ = 0;
};

} // namespace ptarmigan::runtime
