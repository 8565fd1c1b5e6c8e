// SPDX-License-Identifier: Apache-2.0
// The asynchronous copies of the CTAs that one worker runs (PTX manual 9.7.9.25): when they are
// done, what waits for them, and which errors they end in. How elements move is the copy engine's
// business (runtime/copy_engine).
#pragma once

#include "runtime/copy_engine/tensor_tile.h"
#include "runtime/exec/map_history.h"
#include "translator/kernel_abi.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace ptarmigan::runtime {

struct FaultRecord;
class Mbarriers;

/// Not thread-safe: belongs to a worker. Eager copies are done when they are started. Late ones
/// when the program waits for them: for their group, or for a phase of their mbarrier that would
/// not be complete otherwise. Random ones at moments between. Late copies read shared memory as the
/// last proxy fence left it. Who wrote what is not known: a fence stands for all writes to the memory
/// that it is for, of its CTA or of its cluster. They see tensor maps as their CTA has acquired them
/// (map_history.h), and global memory without what threads have written since the last fence (unfenced_writes.h).
class AsyncCopies {
public:
    explicit AsyncCopies(Mbarriers& mbarriers) : mbarriers_(mbarriers) {}

    /// The service of kernel_abi.h. Faults don't return.
    void run(abi::CtaContext& cta, std::uint32_t step, std::uint32_t lane_width, abi::AsyncCall& call);

    /// Writes 16 bytes to `target` and completes as many transactions of `barrier`, both in shared
    /// memory of the cluster: now or later, as a copy of the step's first lane.
    void store_words(abi::CtaContext& cta, std::uint32_t step, std::uint32_t line, std::uint64_t target,
                     std::uint64_t barrier, const std::array<std::uint32_t, 4>& words);

    bool pending() const { return !copies_.empty() || !committed_.empty() || !shadows_.empty() || !map_views_.empty(); }
    /// Somebody waits for a phase of `object` that is not complete: does the next copy that counts
    /// there. False if there is none.
    bool complete_next(const std::uint64_t* object);
    /// cp.async.mbarrier.arrive of a thread: true if the arrival is put off until its copies are
    /// done.
    bool defer_arrival(abi::CtaContext& cta, std::uint32_t thread, std::uint64_t* object);
    /// A CTA whose cluster has exited, or all that were started here: late copies that nobody waited
    /// for are lost.
    void finish(const abi::CtaContext* cta = nullptr);
    /// The grid is over.
    void reset();
    /// The CTA's own shared memory as the async proxy sees it.
    const std::uint8_t* shared_as_seen(const abi::CtaContext& cta);
    /// A fault that happened inside a copy: whose it is.
    void describe(FaultRecord& record) const;
    /// For random times; each launch begins with the same.
    void seed(std::uint64_t seed) { random_ = seed; }

private:
    /// What late copies put where nothing is defined: shared memory that they read before any proxy fence.
    static constexpr std::uint8_t poison = 0xa5;

    /// One lane's operation, with what the call said of it.
    struct Copy {
        abi::CtaContext* cta;
        std::uint32_t step, lane, line;
        abi::AsyncOperation operation;
        std::uint32_t flags, detail, size, mask;
        std::uint64_t target, source, barrier;
        std::array<std::int32_t, 5> coordinates;
        std::array<std::uint32_t, 3> offsets;
        bool arrives = false; ///< no copy but an arrival on `barrier` after the thread's copies
    };
    /// A copy that is not done yet.
    struct Pending {
        Copy copy;
        std::uint32_t thread;
        bool bulk;
        std::uint32_t group = 0; ///< 0: not committed
        bool read = false;       ///< the source is in `snapshot`, and the map, if there is one, in `map`
        TensorMap map;
        std::size_t snapshot_offset = 0;
        std::unique_ptr<std::uint8_t[]> snapshot;
    };
    using Thread = std::pair<abi::CtaContext*, std::uint32_t>;
    using Operation = abi::AsyncOperation;

    void start(const Copy& copy, std::uint32_t thread);
    void check(const Copy& copy);
    void perform(const Copy& copy);
    void perform_operation(const Copy& copy);
    void spoil_ignored(const Copy& copy, std::uint8_t* target, std::uint32_t size) const;
    void load(const Copy& copy);
    void load_tensor(const Copy& copy);
    void store(const Copy& copy);
    void perform_multimem(const Copy& copy);
    void reduce(const Copy& copy);
    void put_value(const Copy& copy);
    void change_map(const Copy& copy);
    void store_tensor(const Copy& copy);
    void complete(const Copy& copy, std::uint64_t object, std::uint64_t bytes);
    std::uint64_t in_cta(const Copy& copy, std::uint64_t address, unsigned rank) const;
    unsigned told_rank(const Copy& copy, unsigned rank) const;
    bool is_waited_for(const Copy& copy) const;
    /// `rule`: what the program did wrong, of static lifetime.
    [[noreturn]] void fail(const Copy& copy, abi::Fault fault, std::uint64_t address, const char* rule = nullptr) const;

    void commit(const Thread& thread, bool bulk);
    void wait(const Thread& thread, bool bulk, std::uint32_t left, bool all, bool only_read);
    void take(std::size_t index);
    void read_source(Pending& pending);
    void do_some();
    std::uint8_t* shadow_of(const abi::CtaContext& cta, unsigned rank);
    void fence(const abi::CtaContext& cta, abi::FencedMemory memory);
    TensorMap map_at(const Copy& copy, std::uint64_t address);
    TensorMap map_of(const Copy& copy);
    const std::uint8_t* source_of(const Copy& copy, std::uint64_t bytes);
    void written(const Copy& copy, std::uint64_t address, std::uint64_t bytes);
    static bool some_unfenced(const Copy& copy);
    const std::uint8_t* global_source(std::uint64_t address, std::uint64_t bytes);
    bool load_unfenced(const TensorTile& tile, const TensorPosition& position, std::uint8_t* shared);
    std::uint32_t random(std::uint32_t below);

    Mbarriers& mbarriers_;
    std::vector<Pending> copies_;
    std::map<Thread, std::array<std::uint32_t, 2>> committed_;         ///< groups so far: cp.async, bulk
    std::map<std::uint64_t, std::unique_ptr<std::uint8_t[]>> shadows_; ///< by the address of a CTA's shared memory
    MapViews map_views_;
    std::unique_ptr<std::uint8_t[]> held_;   ///< snapshot of the copy that is being done, or was last
    const std::uint8_t* snapshot_ = nullptr; ///< into it; null if the copy that is being done has none
    TensorMap held_map_;                     ///< that of a copy with a snapshot
    std::vector<std::uint8_t> seen_;         ///< what a copy finds where not all writes are fenced
    std::uint64_t random_ = 0;
    const abi::CtaContext* faulty_cta_ = nullptr; ///< while a copy is being done: whose, for fault reports
    std::uint32_t faulty_step_ = 0, faulty_lane_ = 0, faulty_line_ = 0;
};

} // namespace ptarmigan::runtime
