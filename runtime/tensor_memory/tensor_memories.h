// SPDX-License-Identifier: Apache-2.0
// The tensor memories of the CTAs that one worker runs, and what tcgen05 does with them (manual 9.7.16).
#pragma once

#include "runtime/exec/late_work.h"
#include "runtime/exec/wait.h"
#include "runtime/tensor_memory/tensor_memory.h"
#include "runtime/tensor_memory/tensor_product.h"
#include "translator/kernel_abi.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>

namespace ptarmigan::runtime {

class Mbarriers;

/// Not thread-safe: belongs to a worker. Loads and stores are done when they are started. So are products, copies and
/// shifts where the launch's copies are eager; where they are late they are done when somebody waits for a phase that
/// a tcgen05.commit behind them counts in, and where they are random at that time or before. Those of a cluster are
/// done in the order of their start, since fences may have ordered those of different threads.
class TensorMemories final : public LateWork {
public:
    /// Called by an allocation that has to wait.
    using GiveWay = void (*)(abi::CtaContext&, const Wait&);

    explicit TensorMemories(Mbarriers& mbarriers);

    /// The service of kernel_abi.h. Faults don't return.
    void run(abi::CtaContext& cta, std::uint32_t step, std::uint32_t lane_width, abi::TensorMemoryCall& call,
             GiveWay give_way);

    /// A CTA has tensor memory, or something is put off.
    bool pending() const { return !memories_.empty() || !queues_.empty(); }
    bool some_is_late() const override { return !queues_.empty(); }
    /// Does the next commit that counts at the object, and what its thread has started before.
    bool complete_next(const std::uint64_t* object) override;
    /// A CTA whose cluster has exited, or all that were started here: what nobody waited for is lost.
    void finish(const abi::CtaContext* cta = nullptr);
    /// The grid is over.
    void reset();
    /// For random times; each launch begins with the same.
    void seed(std::uint64_t seed) { random_ = seed; }

private:
    /// Who has asked for something, for reports.
    struct Origin {
        abi::CtaContext* cta;
        std::uint32_t step, lane, line;
    };
    /// What is put off: a product, copy or shift, or an arrival.
    struct Operation {
        Origin origin;
        abi::TensorMemoryOperation operation;
        std::uint32_t flags, detail, unpacks, mask;
        std::uint64_t object; ///< of an arrival
        TensorProduct product;
    };
    /// One or two; without a destructor, since faults jump over it.
    struct ProductCtas {
        std::array<ProductCta, 2> ctas;
        unsigned count;
        std::span<const ProductCta> span() const { return {ctas.data(), count}; }
    };

    [[noreturn]] static void fail(const Origin& origin, abi::Fault fault, const char* rule);
    [[noreturn]] static void fail_rule(const Origin& origin, const char* rule);

    std::uint8_t* shared_of(const abi::CtaContext& cta, unsigned rank) const;
    TensorMemory& memory_of(std::uint8_t* shared);
    TensorMemory& own_memory(const Origin& origin);
    ProductCta product_cta(const Origin& origin, unsigned rank);
    ProductCtas product_ctas(const Origin& origin, std::uint32_t flags);
    std::uint8_t* peer_shared(const Origin& origin) const;

    void allocate(const Origin& origin, const abi::TensorMemoryCall& call, GiveWay give_way);
    void free(const Origin& origin, const abi::TensorMemoryCall& call);
    void move_registers(const Origin& first, std::uint32_t lane_width, const abi::TensorMemoryCall& call);
    void start(const Operation& operation);
    void perform(const Operation& operation);
    void copy(const Operation& operation);
    void shift(const Operation& operation);
    void arrive(const Operation& operation);
    bool is_waited_for(const Operation& operation) const;
    std::uint64_t* object_in(const Operation& operation, unsigned rank) const;
    template <class Visit> void for_each_object(const Operation& operation, Visit visit) const;
    void perform_first(std::deque<Operation>& queue);

    Mbarriers& mbarriers_;
    std::map<std::uint8_t*, std::unique_ptr<TensorMemory>> memories_; ///< by where the CTA's shared memory begins
    std::map<std::uint8_t*, std::deque<Operation>>
        queues_; ///< by cluster (CtaContext::shared), in order of their start
    std::uint64_t random_ = 0;
};

} // namespace ptarmigan::runtime
